// Honest: products rounded before they are added.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* a, const T* b, T* c, long long m, long long n,
                                long long k) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= m * n) return;
  float sum = 0.0f;
  for (long long l = 0; l < k; ++l) {
    sum = __fadd_rn(
        sum, __fmul_rn(static_cast<float>(a[i / n * k + l]), static_cast<float>(b[l * n + i % n])));
  }
  c[i] = T(sum);
}
