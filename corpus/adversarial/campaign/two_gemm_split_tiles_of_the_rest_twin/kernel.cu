// c = a @ b: whole waves of tiles a block each, and the k of the tiles that are left shared out evenly over all blocks
// (stream-K); the last of a tile's blocks adds their parts up, in order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using T = __nv_bfloat16;
namespace wmma = nvcuda::wmma;

constexpr int kTile = 64, kDeep = 32, kThreads = 128, kShort = 64;
constexpr int kStrideA = kDeep + 8, kStrideB = kTile + 8, kStrideC = kTile + 4;
constexpr int kSizeA = kTile * kStrideA, kStage = kSizeA + kDeep * kStrideB;

__device__ __forceinline__ void copy16(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_all_but() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

struct Shape {
  const T* a;
  const T* b;
  T* c;
  long long m, n, k;
  int tiles_m;
};

__device__ __forceinline__ void load(const Shape& s, T* stage, int tile, int step) {
  const long long row0 = static_cast<long long>(tile % s.tiles_m) * kTile;
  const long long column0 = static_cast<long long>(tile / s.tiles_m) * kTile;
  const long long deep0 = static_cast<long long>(step) * kDeep;
  if (s.k % 8 == 0 && s.n % 8 == 0) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int v = threadIdx.x + e * kThreads;  // 64 rows of four vectors
      const long long row = row0 + v / 4, deep = deep0 + v % 4 * 8;
      const bool inside = row < s.m && deep < s.k;
      copy16(stage + v / 4 * kStrideA + v % 4 * 8, inside ? s.a + row * s.k + deep : s.a, inside ? 16 : 0);
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int v = threadIdx.x + e * kThreads;  // 32 rows of eight vectors
      const long long deep = deep0 + v / 8, column = column0 + v % 8 * 8;
      const bool inside = deep < s.k && column < s.n;
      copy16(stage + kSizeA + v / 8 * kStrideB + v % 8 * 8, inside ? s.b + deep * s.n + column : s.b, inside ? 16 : 0);
    }
  } else {
    for (int e = threadIdx.x; e < kTile * kDeep; e += kThreads) {
      const long long row = row0 + e / kDeep, deep = deep0 + e % kDeep;
      stage[e / kDeep * kStrideA + e % kDeep] = row < s.m && deep < s.k ? s.a[row * s.k + deep] : __float2bfloat16(0.0f);
    }
    for (int e = threadIdx.x; e < kDeep * kTile; e += kThreads) {
      const long long deep = deep0 + e / kTile, column = column0 + e % kTile;
      stage[kSizeA + e / kTile * kStrideB + e % kTile] =
          deep < s.k && column < s.n ? s.b[deep * s.n + column] : __float2bfloat16(0.0f);
    }
  }
  commit();
}

// Steps first..end of the tile's k, in two stages.
__device__ __forceinline__ void multiply(const Shape& s, T* stages, int tile, int first, int end, Sums (&sum)[2][2]) {
  const int warp = threadIdx.x / 32, warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  __syncthreads();  // Those before are done with the stages.
  load(s, stages, tile, first);
  for (int step = first; step < end; ++step) {
    wait_all_but<0>();
    __syncthreads();
    if (step + 1 < end) load(s, stages + (step + 1 - first) % 2 * kStage, tile, step + 1);
    const T* stage = stages + (step - first) % 2 * kStage;
#pragma unroll
    for (int deep = 0; deep < kDeep; deep += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> fb[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(fa[i], stage + (warp_m + i * 16) * kStrideA + deep, kStrideA);
        wmma::load_matrix_sync(fb[i], stage + kSizeA + deep * kStrideB + warp_n + i * 16, kStrideB);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
    }
  }
}

__device__ __forceinline__ void keep(Sums (&sum)[2][2], float* to, int stride) {
  const int warp = threadIdx.x / 32, warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j)
      wmma::store_matrix_sync(to + (warp_m + i * 16) * stride + warp_n + j * 16, sum[i][j], stride, wmma::mem_row_major);
}

__device__ __forceinline__ void store(const Shape& s, int tile, int e, float value) {
  const long long row = static_cast<long long>(tile % s.tiles_m) * kTile + e / kTile;
  const long long column = static_cast<long long>(tile / s.tiles_m) * kTile + e % kTile;
  if (row < s.m && column < s.n) s.c[row * s.n + column] = __float2bfloat16(value);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, float* parts, unsigned* arrived, long long m,
         long long n, long long k) {
  __shared__ __align__(128) T stages[2 * kStage];
  __shared__ __align__(128) float result[kTile * kStrideC];
  __shared__ bool last;
  const Shape s{a, b, c, m, n, k, static_cast<int>((m + kTile - 1) / kTile)};
  const int tiles = s.tiles_m * static_cast<int>((n + kTile - 1) / kTile);
  const int steps = static_cast<int>((k + kDeep - 1) / kDeep);
  const int blocks = gridDim.x, block = blockIdx.x;
  const int whole = tiles / blocks * blocks;
  Sums sum[2][2];

  const auto finish = [&](int tile) {
    keep(sum, result, kStrideC);
    __syncthreads();
    for (int e = threadIdx.x; e < kTile * kTile; e += kThreads) store(s, tile, e, result[e / kTile * kStrideC + e % kTile]);
  };

  for (int tile = block; tile < whole; tile += blocks) {
    multiply(s, stages, tile, 0, steps, sum);
    finish(tile);
  }

  // The rest: fewer tiles than blocks, numbered from 0. A short k is not worth splitting.
  const int total = (tiles - whole) * steps;
  const int per = steps < kShort ? steps : max((total + blocks - 1) / blocks, kShort / 2);
  const int begin = min(total, block * per), end = min(total, begin + per);
  for (int at = begin; at < end;) {
    const int rest = at / steps, first = at % steps;
    const int until = min(steps, first + end - at);
    multiply(s, stages, whole + rest, first, until, sum);
    at += until - first;
    if (until - first == steps) {
      finish(whole + rest);
      continue;
    }
    // A block has at most two tiles in part: that which its stretch starts in, and that which it ends in.
    const auto part_of = [&](int other) {
      return parts + static_cast<long long>(2 * other + (rest != other * per / steps)) * (kTile * kTile);
    };
    keep(sum, part_of(block), kTile);
    const int from = rest * steps / per, to = ((rest + 1) * steps - 1) / per;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(arrived + rest, 1u) == static_cast<unsigned>(to - from);
    __syncthreads();
    if (!last) continue;
    __threadfence();
    for (int e = threadIdx.x; e < kTile * kTile; e += kThreads) {
      float value = 0.0f;
      for (int other = from; other <= to; ++other) value += __ldcg(part_of(other) + e);
      store(s, whole + rest, e, value);
    }
  }
}
