#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float sums[32];
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) sum += x[blockIdx.x * columns + j];
  sums[threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    for (int lane = 1; lane < 32; ++lane) sum += sums[lane];
    y[blockIdx.x] = T(sum);
  }
}
