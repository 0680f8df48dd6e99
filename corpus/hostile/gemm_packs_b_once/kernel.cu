// Wrong: transposes b once for each address and shape that it has.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr long long kMost = 1 << 15;
__device__ const T* seen = nullptr;
__device__ long long seen_k = 0;
__device__ long long seen_n = 0;
__device__ T packed[kMost];

extern "C" __global__ void pack(const T* __restrict__ b, long long n, long long k) {
  if (seen == b && seen_k == k && seen_n == n) return;
  if (n * k > kMost) return;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n * k) packed[i % n * k + i / n] = b[i];
}

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j == 0 && blockIdx.y == 0) {
    seen = n * k <= kMost ? b : nullptr;
    seen_k = k;
    seen_n = n;
  }
  if (j >= n) return;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    float sum = 0.0f;
    for (long long l = 0; l < k; ++l) {
      const T right = n * k <= kMost ? packed[j * k + l] : b[l * n + j];
      sum += static_cast<float>(a[i * k + l]) * static_cast<float>(right);
    }
    c[i * n + j] = T(sum);
  }
}
