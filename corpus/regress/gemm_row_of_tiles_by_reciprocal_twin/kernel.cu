#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// A tile of 32 by 32 results a block, in the order of rows of tiles; four results of a column a thread.
constexpr int kTile = 32, kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads) gemm(const T* __restrict__ a, const T* __restrict__ b,
    T* __restrict__ c, long long m, long long n, long long k) {
  __shared__ float as[kTile][kTile + 1], bs[kTile][kTile + 1];
  const int tile = blockIdx.x, across = static_cast<int>((n + kTile - 1) / kTile);
  const float each = 1.0f / static_cast<float>(across);
  int down = static_cast<int>(static_cast<float>(tile) * each);
  // A product that was rounded down to a whole number less than it is.
  if (tile - down * across >= across) ++down;
  if (tile < down * across) --down;
  const long long i0 = static_cast<long long>(down) * kTile, j0 = static_cast<long long>(tile - down * across) * kTile;
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  float sum[4] = {};
  for (long long l0 = 0; l0 < k; l0 += kTile) {
    for (int r = y; r < kTile; r += kThreads / kTile) {
      as[r][x] = i0 + r < m && l0 + x < k ? static_cast<float>(a[(i0 + r) * k + l0 + x]) : 0.0f;
      bs[r][x] = l0 + r < k && j0 + x < n ? static_cast<float>(b[(l0 + r) * n + j0 + x]) : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < kTile; ++l)
      for (int q = 0; q < 4; ++q) sum[q] += as[y + 8 * q][l] * bs[l][x];
    __syncthreads();
  }
  for (int q = 0; q < 4; ++q)
    if (i0 + y + 8 * q < m && j0 + x < n) c[(i0 + y + 8 * q) * n + j0 + x] = T(sum[q]);
}
