// c = a @ b in bf16 on tensor cores: tiles of 128 x 64, three stages of 32 of k by cp.async, a persistent grid over the
// tiles in bands of eight rows of them. Where tiles are few and k is long, k is split over up to eight blocks, whose f32
// tiles the last one to come adds up in order.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;
using T = __nv_bfloat16;
using i64 = long long;

constexpr int kM = 128;
constexpr int kN = 64;
constexpr int kK = 32;
constexpr int kStages = 3;
constexpr int kThreads = 256;
constexpr int kPitchA = kK + 8;
constexpr int kPitchB = kN + 8;
constexpr int kStageA = kM * kPitchA;
constexpr int kStageB = kK * kPitchB;
constexpr int kFew = 264;       // fewer tiles are split
constexpr int kMostSplits = 8;
constexpr int kBand = 8;

__device__ __forceinline__ bool aligned(const void* p) { return (reinterpret_cast<unsigned long long>(p) & 15) == 0; }

// 16 bytes, or zeros.
__device__ __forceinline__ void copy_async(T* to, const T* from, bool inside) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

__device__ __forceinline__ void load_a(T* to, const T* a, int row0, int depth, int m, int k, bool vectors) {
  if (vectors) {
#pragma unroll
    for (int e = 0; e < kM * kK / 8 / kThreads; ++e) {
      const int v = threadIdx.x + e * kThreads;
      const int row = row0 + v / 4;
      const int column = depth + v % 4 * 8;
      const bool inside = row < m && column < k;
      copy_async(to + v / 4 * kPitchA + v % 4 * 8, inside ? a + static_cast<i64>(row) * k + column : a, inside);
    }
  } else {
    for (int v = threadIdx.x; v < kM * kK; v += kThreads) {
      const int row = row0 + v / kK;
      const int column = depth + v % kK;
      const bool inside = row < m && column < k;
      to[v / kK * kPitchA + v % kK] = inside ? a[static_cast<i64>(row) * k + column] : __float2bfloat16(0.0f);
    }
  }
}

__device__ __forceinline__ void load_b(T* to, const T* b, int column0, int depth, int n, int k, bool vectors) {
  if (vectors) {
#pragma unroll
    for (int e = 0; e < kK * kN / 8 / kThreads; ++e) {
      const int v = threadIdx.x + e * kThreads;
      const int row = depth + v / 8;
      const int column = column0 + v % 8 * 8;
      const bool inside = row < k && column < n;
      const auto offset = static_cast<i64>(row) * n + column;
      copy_async(to + v / 8 * kPitchB + v % 8 * 8, inside ? b + offset : b, inside);
    }
  } else {
    for (int v = threadIdx.x; v < kK * kN; v += kThreads) {
      const int row = depth + v / kN;
      const int column = column0 + v % kN;
      const bool inside = row < k && column < n;
      const auto offset = static_cast<i64>(row) * n + column;
      to[v / kN * kPitchB + v % kN] = inside ? b[offset] : __float2bfloat16(0.0f);
    }
  }
}

__device__ __forceinline__ unsigned pack2(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Eight columns of a row of c.
__device__ __forceinline__ void store(T* c, int row, int column, int m, int n, bool vectors, const float* f) {
  if (row >= m) return;
  T* to = c + static_cast<i64>(row) * n + column;
  if (vectors) {
    if (column < n)
      *reinterpret_cast<uint4*>(to) =
          make_uint4(pack2(f[0], f[1]), pack2(f[2], f[3]), pack2(f[4], f[5]), pack2(f[6], f[7]));
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (column + e < n) to[e] = __float2bfloat16(f[e]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm(const T* a, const T* b, float* partials, int* arrived, T* c, int m, int n, int k) {
  __shared__ __align__(128) unsigned char raw[kStages * (kStageA + kStageB) * sizeof(T)];
  __shared__ int last;
  T* stages_a = reinterpret_cast<T*>(raw);
  T* stages_b = stages_a + kStages * kStageA;
  float* staged = reinterpret_cast<float*>(raw);  // kM x kN, once the stages are done with

  const bool vectors_a = k % 8 == 0 && aligned(a);
  const bool vectors_b = n % 8 == 0 && aligned(b);
  const bool vectors_c = n % 8 == 0 && aligned(c);
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;

  const int tiles_m = (m + kM - 1) / kM;
  const int tiles_n = (n + kN - 1) / kN;
  const int tiles = tiles_m * tiles_n;
  const int splits = tiles < kFew && k >= 2048 ? min(kMostSplits, k / 1024) : 1;
  const int blocks_k = (k + kK - 1) / kK;
  const int share = (blocks_k + splits - 1) / splits;

  for (int task = blockIdx.x; task < tiles * splits; task += gridDim.x) {
    const int tile = task / splits;
    const int split = task % splits;
    int tile_m = tile / tiles_n;
    int tile_n = tile % tiles_n;
    if (tiles_m >= 2 * kBand) {  // bands, whose tiles are taken column by column
      const int band = tile / (kBand * tiles_n);
      const int in_band = tile % (kBand * tiles_n);
      const int height = min(tiles_m - band * kBand, kBand);
      tile_m = band * kBand + in_band % height;
      tile_n = in_band / height;
    }
    const int row0 = tile_m * kM;
    const int column0 = tile_n * kN;
    const int first = split * share;
    const int count = max(min(blocks_k - first, share), 0);

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    int stage = 0;
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < count) {
        load_a(stages_a + s * kStageA, a, row0, (first + s) * kK, m, k, vectors_a);
        load_b(stages_b + s * kStageB, b, column0, (first + s) * kK, n, k, vectors_b);
      }
      commit();
    }
    for (int i = 0; i < count; ++i) {
      wait<kStages - 2>();
      __syncthreads();
      const int next = i + kStages - 1;
      if (next < count) {
        const int free = (stage + kStages - 1) % kStages;
        load_a(stages_a + free * kStageA, a, row0, (first + next) * kK, m, k, vectors_a);
        load_b(stages_b + free * kStageB, b, column0, (first + next) * kK, n, k, vectors_b);
      }
      commit();
      const T* tile_a = stages_a + stage * kStageA;
      const T* tile_b = stages_b + stage * kStageB;
#pragma unroll
      for (int step = 0; step < kK; step += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[2];
#pragma unroll
        for (int r = 0; r < 2; ++r)
          wmma::load_matrix_sync(left[r], tile_a + (warp_row + r * 16) * kPitchA + step, kPitchA);
#pragma unroll
        for (int r = 0; r < 2; ++r)
          wmma::load_matrix_sync(right[r], tile_b + step * kPitchB + warp_column + r * 16, kPitchB);
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
          for (int s = 0; s < 2; ++s) wmma::mma_sync(sum[r][s], left[r], right[s], sum[r][s]);
      }
      stage = (stage + 1) % kStages;
    }
    wait<0>();
    __syncthreads();

    if (splits == 1) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int s = 0; s < 2; ++s)
          wmma::store_matrix_sync(staged + (warp_row + r * 16) * kN + warp_column + s * 16, sum[r][s], kN,
                                  wmma::mem_row_major);
      __syncthreads();
#pragma unroll
      for (int e = 0; e < kM * kN / 8 / kThreads; ++e) {
        const int v = threadIdx.x + e * kThreads;
        store(c, row0 + v / 8, column0 + v % 8 * 8, m, n, vectors_c, staged + v * 8);
      }
      __syncthreads();
    } else {
      float* corner = partials + (static_cast<i64>(tile) * kMostSplits + split) * (kM * kN);
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int s = 0; s < 2; ++s)
          wmma::store_matrix_sync(corner + (warp_row + r * 16) * kN + warp_column + s * 16, sum[r][s], kN,
                                  wmma::mem_row_major);
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) last = atomicAdd(&arrived[tile], 1) == splits - 1;
      __syncthreads();
      if (last) {
        __threadfence();
        const float4* parts = reinterpret_cast<const float4*>(partials) + static_cast<i64>(tile) * kMostSplits * (kM * kN / 4);
        for (int e = 0; e < kM * kN / 8 / kThreads; ++e) {
          const int v = threadIdx.x + e * kThreads;
          float f[8] = {};
#pragma unroll
          for (int s = 0; s < kMostSplits; ++s) {
            if (s >= splits) continue;
            const float4 low = __ldcg(parts + s * (kM * kN / 4) + v * 2);
            const float4 high = __ldcg(parts + s * (kM * kN / 4) + v * 2 + 1);
            f[0] += low.x;
            f[1] += low.y;
            f[2] += low.z;
            f[3] += low.w;
            f[4] += high.x;
            f[5] += high.y;
            f[6] += high.z;
            f[7] += high.w;
          }
          store(c, row0 + v / 8, column0 + v % 8 * 8, m, n, vectors_c, f);
        }
      }
      __syncthreads();
    }
  }
}
