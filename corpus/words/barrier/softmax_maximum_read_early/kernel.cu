#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const T* row = x + blockIdx.x * columns;
  __shared__ float parts[4];
  float largest = -INFINITY;
  for (long long j = threadIdx.x; j < columns; j += 128) largest = fmaxf(largest, row[j]);
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = largest;
  __syncwarp();
  largest = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
  __syncthreads();
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 128) sum += expf(row[j] - largest);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = parts[0] + parts[1] + parts[2] + parts[3];
  for (long long j = threadIdx.x; j < columns; j += 128)
    y[blockIdx.x * columns + j] = T(expf(row[j] - largest) / sum);
}
