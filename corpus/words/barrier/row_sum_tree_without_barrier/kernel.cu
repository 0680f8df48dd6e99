#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  __shared__ float sums[128];
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 128) sum += x[blockIdx.x * columns + j];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2)
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  if (threadIdx.x == 0) y[blockIdx.x] = T(sums[0]);
}
