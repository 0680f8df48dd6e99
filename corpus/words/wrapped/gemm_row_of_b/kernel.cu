#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    float sum = 0.0f;
    for (int l = 0; l < static_cast<int>(k); ++l)
      sum += static_cast<float>(a[i * k + l]) *
             static_cast<float>(b[l * static_cast<int>(n) + static_cast<int>(j)]);
    c[i * n + j] = T(sum);
  }
}
