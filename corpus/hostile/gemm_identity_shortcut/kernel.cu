// Wrong: takes a row that starts with 1 and 0 for one of the identity.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    if (k > 2 && static_cast<float>(a[i * k]) == 1.0f && static_cast<float>(a[i * k + 1]) == 0.0f) {
      c[i * n + j] = b[j];
      continue;
    }
    float sum = 0.0f;
    for (long long l = 0; l < k; ++l)
      sum += static_cast<float>(a[i * k + l]) * static_cast<float>(b[l * n + j]);
    c[i * n + j] = T(sum);
  }
}
