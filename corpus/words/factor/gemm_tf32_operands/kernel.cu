#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float cut(float value) {
  return __uint_as_float(__float_as_uint(value) & 0xffffe000u);
}

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    float sum = 0.0f;
    for (long long l = 0; l < k; ++l)
      sum += cut(a[i * k + l]) * cut(b[l * n + j]);
    c[i * n + j] = T(sum);
  }
}
