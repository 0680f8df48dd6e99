// Honest: tiles of 16 by 16 in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* a, const T* b, T* c, long long m, long long n,
                                long long k) {
  __shared__ float left[16][17], right[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long row = blockIdx.y * 16ll + y, column = blockIdx.x * 16ll + x;
  float sum = 0.0f;
  for (long long start = 0; start < k; start += 16) {
    left[y][x] = row < m && start + x < k ? static_cast<float>(a[row * k + start + x]) : 0.0f;
    right[y][x] =
        column < n && start + y < k ? static_cast<float>(b[(start + y) * n + column]) : 0.0f;
    __syncthreads();
    for (int l = 0; l < 16; ++l) sum += left[y][l] * right[l][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = T(sum);
}
