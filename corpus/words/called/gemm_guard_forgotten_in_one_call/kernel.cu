#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float load(const T* matrix, long long row, long long column, long long width) {
  return matrix[row * width + column];
}

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long i = static_cast<long long>(blockIdx.y) * 16 + threadIdx.y;
  const long long j = static_cast<long long>(blockIdx.x) * 16 + threadIdx.x;
  float sum = 0.0f;
  for (long long l = 0; l < k; ++l) sum += load(a, i, l, k) * (j < n ? load(b, l, j, n) : 0.0f);
  if (i < m && j < n) c[i * n + j] = T(sum);
}
