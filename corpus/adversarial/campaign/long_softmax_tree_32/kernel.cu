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
  __shared__ float scratch[4];
  __shared__ float partial[1024];
  __shared__ float total;
  const long long row = blockIdx.x;
  if (row >= rows) return;
  const T* in = x + row * columns;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float largest = static_cast<float>(in[0]);
  for (long long j = threadIdx.x; j < columns; j += 128)
    largest = fmaxf(largest, static_cast<float>(in[j]));
  largest = block_max(largest, scratch);
  const int tiles = static_cast<int>((columns + 255) / 256);
  for (int tile = warp; tile < tiles; tile += 4) {
    float sum = 0.0f;
    for (int i = lane; i < 256; i += 32) {
      const long long j = 256LL * tile + i;
      if (j < columns) sum += expf(static_cast<float>(in[j]) - largest);
    }
    sum = warp_sum(sum);
    if (lane == 0) partial[tile] = sum;
  }
  __syncthreads();
  if (warp == 0) {
    float sum = lane < tiles ? partial[lane] : 0.0f;
    sum = warp_sum(sum);
    if (lane == 0) total = sum;
  }
  __syncthreads();
  const float sum = total;
  for (long long j = threadIdx.x; j < columns; j += 128)
    y[row * columns + j] = T(expf(static_cast<float>(in[j]) - largest) / sum);
}
