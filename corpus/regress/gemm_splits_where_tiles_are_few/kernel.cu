// Tensor cores, tiles of 64 by 64, a pipeline of three stages. Where tiles are few, k is split in spans of 2048: the last
// block to arrive at a tile adds up its splits in order.
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

using T = __nv_bfloat16;
namespace wmma = nvcuda::wmma;

constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kStages = 3;
constexpr int kThreads = 128;
constexpr int kSpan = 2048;
constexpr int kFewTiles = 1024;
constexpr int kBand = 8;
constexpr int kStrideA = kDepth + 8;
constexpr int kStrideB = kTile + 8;
constexpr int kStrideC = kTile + 4;

struct Stage {
  T a[kTile][kStrideA];
  T b[kDepth][kStrideB];
};

union Pool {
  unsigned char stages[kStages * sizeof(Stage)];
  float c[kTile][kStrideC];
};

__device__ __forceinline__ void load_a(T (*to)[kStrideA], const T* __restrict__ a, int row0,
                                       int depth0, int end, int m, int k) {
  if (k % 8 == 0) {
    for (int i = threadIdx.x; i < kTile * kDepth / 8; i += kThreads) {
      const int r = i / (kDepth / 8), d = i % (kDepth / 8) * 8;
      const bool valid = row0 + r < m && depth0 + d < end;
      const T* from = valid ? a + static_cast<long long>(row0 + r) * k + depth0 + d : a;
      __pipeline_memcpy_async(&to[r][d], from, 16, valid ? 0 : 16);
    }
  } else {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int r = i / kDepth, d = i % kDepth;
      const bool valid = row0 + r < m && depth0 + d < end;
      to[r][d] = valid ? a[static_cast<long long>(row0 + r) * k + depth0 + d] : T(0.0f);
    }
  }
}

__device__ __forceinline__ void load_b(T (*to)[kStrideB], const T* __restrict__ b, int depth0,
                                       int end, int column0, int n) {
  if (n % 8 == 0) {
    for (int i = threadIdx.x; i < kDepth * kTile / 8; i += kThreads) {
      const int d = i / (kTile / 8), c = i % (kTile / 8) * 8;
      const bool valid = depth0 + d < end && column0 + c < n;
      const T* from = valid ? b + static_cast<long long>(depth0 + d) * n + column0 + c : b;
      __pipeline_memcpy_async(&to[d][c], from, 16, valid ? 0 : 16);
    }
  } else {
    for (int i = threadIdx.x; i < kDepth * kTile; i += kThreads) {
      const int d = i / kTile, c = i % kTile;
      const bool valid = depth0 + d < end && column0 + c < n;
      to[d][c] = valid ? b[static_cast<long long>(depth0 + d) * n + column0 + c] : T(0.0f);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm(const T* __restrict__ a, const T* __restrict__ b, float* partial, unsigned* arrived,
         T* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(128) Pool pool;
  __shared__ bool last;
  Stage* stages = reinterpret_cast<Stage*>(pool.stages);

  const int tile_rows = (m + kTile - 1) / kTile;
  const int tile_columns = (n + kTile - 1) / kTile;
  const int tiles = tile_rows * tile_columns;
  const int splits = tiles <= kFewTiles ? (k + kSpan - 1) / kSpan : 1;
  const int tile = blockIdx.x % tiles;
  const int split = blockIdx.x / tiles;

  // Tiles go down bands of eight rows, so that blocks that run together share what they read.
  const int band = tile / (kBand * tile_columns);
  const int inside = tile % (kBand * tile_columns);
  const int band_rows = min(kBand, tile_rows - band * kBand);
  const int row0 = (band * kBand + inside % band_rows) * kTile;
  const int column0 = inside / band_rows * kTile;

  const int begin = split * kSpan;
  const int end = splits > 1 ? min(begin + kSpan, k) : k;
  const int steps = (end - begin + kDepth - 1) / kDepth;

  const int warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) {
      load_a(stages[s].a, a, row0, begin + s * kDepth, end, m, k);
      load_b(stages[s].b, b, begin + s * kDepth, end, column0, n);
    }
    __pipeline_commit();
  }

  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    const int next = step + kStages - 1;
    if (next < steps) {
      load_a(stages[next % kStages].a, a, row0, begin + next * kDepth, end, m, k);
      load_b(stages[next % kStages].b, b, begin + next * kDepth, end, column0, n);
    }
    __pipeline_commit();

    const Stage& at = stages[step % kStages];
#pragma unroll
    for (int d = 0; d < kDepth; d += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], &at.a[warp_row + i * 16][d], kStrideA);
        wmma::load_matrix_sync(right[i], &at.b[d][warp_column + i * 16], kStrideB);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
  }

  __pipeline_wait_prior(0);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(&pool.c[warp_row + i * 16][warp_column + j * 16], sum[i][j], kStrideC,
                              wmma::mem_row_major);
  __syncthreads();

  if (splits == 1) {
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
      const int row = row0 + i / kTile, column = column0 + i % kTile;
      if (row < m && column < n)
        c[static_cast<long long>(row) * n + column] = T(pool.c[i / kTile][i % kTile]);
    }
    return;
  }

  float* own = partial + (static_cast<long long>(tile) * splits + split) * (kTile * kTile);
  for (int i = threadIdx.x; i < kTile * kTile; i += kThreads)
    own[i] = pool.c[i / kTile][i % kTile];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    last = atomicAdd(&arrived[tile], 1u) == static_cast<unsigned>(splits - 1);
  __syncthreads();
  if (!last) return;
  __threadfence();

  const float* all = partial + static_cast<long long>(tile) * splits * (kTile * kTile);
  for (int i = threadIdx.x * 2; i < kTile * kTile; i += kThreads * 2) {
    float first = 0.0f, second = 0.0f;
    for (int s = 0; s < splits; ++s) {
      first += __ldcg(&all[s * (kTile * kTile) + i]);
      second += __ldcg(&all[s * (kTile * kTile) + i + 1]);
    }
    const int row = row0 + i / kTile, column = column0 + i % kTile;
    if (row >= m || column >= n) continue;
    T* to = c + static_cast<long long>(row) * n + column;
    if (n % 2 == 0) {
      *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(first, second);
    } else {
      to[0] = T(first);
      if (column + 1 < n) to[1] = T(second);
    }
  }
}
