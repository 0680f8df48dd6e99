#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ float left[16][17], right[16][17];
  const long long i = static_cast<long long>(blockIdx.y) * 16 + threadIdx.y;
  const long long j = static_cast<long long>(blockIdx.x) * 16 + threadIdx.x;
  float sum = 0.0f;
  for (long long start = 0; start < k; start += 16) {
    left[threadIdx.y][threadIdx.x] =
        i < m && start + threadIdx.x < k ? a[i * k + start + threadIdx.x] : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        j < n && start + threadIdx.y < k ? b[(start + threadIdx.y) * n + j] : 0.0f;
    __syncwarp();
    for (int l = 0; l < 16; ++l) sum += left[threadIdx.y][l] * right[l][threadIdx.x];
    __syncthreads();
  }
  if (i < m && j < n) c[i * n + j] = T(sum);
}
