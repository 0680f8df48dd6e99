// c = a @ b on tensor cores, 64 x 64 tiles, any m, n, k. Where there are many rows of tiles, tiles are taken in groups
// of eight rows, column by column within a group, so that blocks that run together share panels of b in L2.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;
using bf16 = __nv_bfloat16;

constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kPitchA = kDepth + 8;
constexpr int kPitchB = kTile + 8;
constexpr int kPitchC = kTile + 4;
constexpr int kGroup = 8;
constexpr int kGroupFrom = 16;  // rows of tiles

extern "C" __global__ void __launch_bounds__(128)
    gemm(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c, int m, int n,
         int k) {
  __shared__ __align__(32) bf16 tile_a[kTile * kPitchA];
  __shared__ __align__(32) bf16 tile_b[kDepth * kPitchB];
  __shared__ __align__(32) float tile_c[kTile * kPitchC];

  const int tiles_m = (m + kTile - 1) / kTile;
  const int tiles_n = (n + kTile - 1) / kTile;
  const int pid = blockIdx.x;
  int tile_row, tile_column;
  if (tiles_m < kGroupFrom) {
    tile_row = pid / tiles_n;
    tile_column = pid % tiles_n;
  } else {
    const int in_group = kGroup * tiles_n;
    const int group = pid / in_group;
    const int first = group * kGroup;
    const int height = min(tiles_m - first, kGroup);
    tile_row = first + pid % in_group % height;
    tile_column = pid % in_group / height;
  }
  const int row0 = tile_row * kTile;
  const int column0 = tile_column * kTile;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;
  const bf16 zero = __float2bfloat16(0.0f);

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  }

  for (int depth = 0; depth < k; depth += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += 128) {
      const int r = e / kDepth;
      const int l = e % kDepth;
      const bool inside = row0 + r < m && depth + l < k;
      tile_a[r * kPitchA + l] = inside ? a[static_cast<long long>(row0 + r) * k + depth + l] : zero;
    }
    for (int e = threadIdx.x; e < kDepth * kTile; e += 128) {
      const int l = e / kTile;
      const int j = e % kTile;
      const bool inside = depth + l < k && column0 + j < n;
      tile_b[l * kPitchB + j] = inside ? b[static_cast<long long>(depth + l) * n + column0 + j] : zero;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth; step += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::row_major> right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        wmma::load_matrix_sync(left[i], tile_a + (warp_row + i * 16) * kPitchA + step, kPitchA);
#pragma unroll
      for (int j = 0; j < 2; ++j)
        wmma::load_matrix_sync(right[j], tile_b + step * kPitchB + warp_column + j * 16, kPitchB);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(tile_c + (warp_row + i * 16) * kPitchC + warp_column + j * 16, sum[i][j],
                              kPitchC, wmma::mem_row_major);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < kTile * kTile; e += 128) {
    const int r = e / kTile;
    const int j = e % kTile;
    if (row0 + r < m && column0 + j < n)
      c[static_cast<long long>(row0 + r) * n + column0 + j] = __float2bfloat16(tile_c[r * kPitchC + j]);
  }
}
