#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  __shared__ float values[128];
  float carry = 0.0f;
  for (long long start = 0; start < columns; start += 128) {
    const long long j = start + threadIdx.x;
    values[threadIdx.x] = j < columns ? x[blockIdx.x * columns + j] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < 128; offset *= 2) {
      const float left = threadIdx.x >= offset ? values[threadIdx.x - offset] : 0.0f;
      values[threadIdx.x] += left;
      __syncthreads();
    }
    if (j < columns) y[blockIdx.x * columns + j] = T(values[threadIdx.x] + carry);
    carry += values[127];
    __syncthreads();
  }
}
