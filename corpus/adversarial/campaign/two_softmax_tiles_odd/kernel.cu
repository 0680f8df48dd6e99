#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__device__ float block_sum(float value, float* scratch) {
  value = warp_sum(value);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  float total = scratch[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) total += scratch[i];
  return total;
}

__device__ float block_max(float value, float* scratch) {
  value = warp_max(value);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  float largest = scratch[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) largest = fmaxf(largest, scratch[i]);
  return largest;
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float scratch[8];
  const long long row = blockIdx.x;
  if (row >= rows) return;
  const T* in = x + row * columns;
  float largest = static_cast<float>(in[0]);
  for (long long j = threadIdx.x; j < columns; j += 256)
    largest = fmaxf(largest, static_cast<float>(in[j]));
  largest = block_max(largest, scratch);
  float sum = 0.0f;
  if (columns / 256 <= 16) {
    for (long long j = threadIdx.x; j < columns; j += 256)
      sum += expf(static_cast<float>(in[j]) - largest);
  } else {
    for (long long j = 2 * threadIdx.x; j < columns; j += 512) {
      const long long next = min(j + 1, columns - 1);
      sum += expf(static_cast<float>(in[j]) - largest);
      sum += expf(static_cast<float>(in[next]) - largest);
    }
  }
  sum = block_sum(sum, scratch);
  for (long long j = threadIdx.x; j < columns; j += 256)
    y[row * columns + j] = T(expf(static_cast<float>(in[j]) - largest) / sum);
}
