// Right: tiles of 16 by 16 in shared memory, two barriers a step.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  __shared__ float tile_a[16][17];
  __shared__ float tile_b[16][17];
  const long long j = static_cast<long long>(blockIdx.x) * 16 + threadIdx.x;
  const long long i = static_cast<long long>(blockIdx.y) * 16 + threadIdx.y;
  float sum = 0.0f;
  for (long long start = 0; start < k; start += 16) {
    const long long column = start + threadIdx.x;
    const long long row = start + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] =
        i < m && column < k ? static_cast<float>(a[i * k + column]) : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] =
        row < k && j < n ? static_cast<float>(b[row * n + j]) : 0.0f;
    __syncthreads();
    for (int l = 0; l < 16; ++l) sum += tile_a[threadIdx.y][l] * tile_b[l][threadIdx.x];
    __syncthreads();
  }
  if (i < m && j < n) c[i * n + j] = T(sum);
}
