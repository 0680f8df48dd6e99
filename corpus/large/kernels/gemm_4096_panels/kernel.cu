// c = a @ b with n = k = 4096 in f16, by panels of 16384 rows: each panel is added up in f32 workspace over two halves
// of k, then rounded and stored. The workspace holds one panel, whatever m is.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int kSize = 4096;
constexpr int kPanelRows = 16384;
constexpr int kHalfDepth = 2048;
constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kPitchA = kDepth + 8;
constexpr int kPitchB = kTile + 8;

template <int kPanel, int kHalf>
__global__ void __launch_bounds__(128)
    accumulate(const __half* __restrict__ a, const __half* __restrict__ b, float* sums, int m) {
  __shared__ __align__(32) __half tile_a[kTile * kPitchA];
  __shared__ __align__(32) __half tile_b[kDepth * kPitchB];
  const int warp = threadIdx.x / 32;
  const int row0 = blockIdx.y * kTile;  // in the panel
  const int column0 = blockIdx.x * kTile;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;
  const long long panel_row = static_cast<long long>(kPanel) * kPanelRows;

  float* corner = sums + static_cast<long long>(row0 + warp_row) * kSize + column0 + warp_column;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (kHalf == 0)
        wmma::fill_fragment(sum[i][j], 0.0f);
      else
        wmma::load_matrix_sync(sum[i][j], corner + i * 16 * kSize + j * 16, kSize, wmma::mem_row_major);
    }
  }

  for (int depth = kHalf * kHalfDepth; depth < (kHalf + 1) * kHalfDepth; depth += kDepth) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int v = threadIdx.x + e * 128;  // 64 rows of 4 vectors
      const int r = v / 4;
      const int c = v % 4 * 8;
      const long long row = panel_row + row0 + r;
      uint4 raw = make_uint4(0, 0, 0, 0);
      if (row < m) raw = *reinterpret_cast<const uint4*>(a + row * kSize + depth + c);
      *reinterpret_cast<uint4*>(tile_a + r * kPitchA + c) = raw;
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int v = threadIdx.x + e * 128;  // 32 rows of 8 vectors
      const int r = v / 8;
      const int c = v % 8 * 8;
      *reinterpret_cast<uint4*>(tile_b + r * kPitchB + c) =
          *reinterpret_cast<const uint4*>(b + static_cast<long long>(depth + r) * kSize + column0 + c);
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth; step += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right[2];
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
      wmma::store_matrix_sync(corner + i * 16 * kSize + j * 16, sum[i][j], kSize, wmma::mem_row_major);
  }
}

// 16 blocks a row of the panel.
template <int kPanel>
__global__ void store(const float* __restrict__ sums, __half* __restrict__ c) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  c[static_cast<long long>(kPanel) * kPanelRows * kSize + i] = __float2half(sums[i]);
}
