#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void parts(const T* __restrict__ x, float* sums, long long rows,
                                 long long columns) {
  const long long row = blockIdx.x;
  const long long half = (columns + 1) / 2;
  const long long begin = threadIdx.x < 32 ? 0 : half;
  const long long end = threadIdx.x < 32 ? half : columns;
  float sum = 0.0f;
  for (long long j = begin + threadIdx.x % 32; j < end; j += 32) sum += x[row * columns + j];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0 && begin < end) sums[row * 2 + threadIdx.x / 32] = sum;
}

extern "C" __global__ void row_sum(const float* __restrict__ sums, T* __restrict__ y) {
  if (threadIdx.x == 0) y[blockIdx.x] = T(sums[blockIdx.x * 2] + sums[blockIdx.x * 2 + 1]);
}
