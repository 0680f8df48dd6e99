#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

struct Scan {
  float values[128];
  __device__ void set(float value) { values[threadIdx.x] = value; }
  __device__ float get(int n) const { return values[n]; }
};

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  __shared__ Scan scan;
  float carry = 0.0f;
  for (long long start = 0; start < columns; start += 128) {
    const long long j = start + threadIdx.x;
    scan.set(j < columns ? x[blockIdx.x * columns + j] : 0.0f);
    float sum = carry;
    for (int n = 0; n <= threadIdx.x; ++n) sum += scan.get(n);
    if (j < columns) y[blockIdx.x * columns + j] = T(sum);
    __syncthreads();
    for (int n = 0; n < 128; ++n) carry += scan.get(n);
    __syncthreads();
  }
}
