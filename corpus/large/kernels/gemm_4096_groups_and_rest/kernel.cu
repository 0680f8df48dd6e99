// c = a b for bf16 with n = k = 4096 and any m, on tensor cores. The launch plan chooses by m:
//   up to 128     gemm_split, gemm_reduce: k in 8 parts over the grid, f32 partials, a second launch
//   below 8192    gemm_tiles<128, false>: persistent blocks, tiles of 128 x 128
//   from 8192 on  gemm_tiles<256, true>: persistent blocks, full tiles of 256 x 128 in groups of eight
//                 rows of tiles for the L2; gemm_tiles<128, false> does the rows that remain
// Operands come through a ring of four cp.async stages of 32 along k, swizzled, and by ldmatrix; a
// warp has 64 x 32 of the result.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int kN = 4096;
constexpr int kK = 4096;
constexpr int kColumns = 128;  // Of a tile.
constexpr int kDepth = 32;     // Of a stage.
constexpr int kStages = 4;

__device__ __forceinline__ void copy16(void* shared, const void* global, int bytes) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const bf16* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const bf16* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ unsigned pack2(float a, float b) {
  const unsigned low = __bfloat16_as_ushort(__float2bfloat16_rn(a));
  const unsigned high = __bfloat16_as_ushort(__float2bfloat16_rn(b));
  return low | (high << 16);
}

// Where the 8 elements at chunk c of row r lie in a stage.
__device__ __forceinline__ int place_a(int r, int c) { return r * kDepth + ((c ^ (r >> 1 & 3)) << 3); }
__device__ __forceinline__ int place_b(int r, int c) { return r * kColumns + ((c ^ (r & 7)) << 3); }

// Of a tile: the first row and column.
struct Tile {
  unsigned row, column;
};

__device__ __forceinline__ void clear(float (&sum)[4][4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[i][j][e] = 0.0f;
    }
  }
}

// Adds a's rows times b's columns over `steps` stages from k0 on. Rows past m count as zeros. A block
// has 2 * kRows threads: warps in rows of four.
template <int kRows>
__device__ __forceinline__ void accumulate(const bf16* __restrict__ a, const bf16* __restrict__ b,
                                           unsigned m, const Tile& tile, int k0, int steps,
                                           bf16* ring, float (&sum)[4][4][4]) {
  constexpr int kThreads = 2 * kRows;
  constexpr int kStage = kRows * kDepth + kDepth * kColumns;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  auto fetch = [&](int step) {
    bf16* to_a = ring + step % kStages * kStage;
    bf16* to_b = to_a + kRows * kDepth;
    const int k = k0 + step * kDepth;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = (tid + i * kThreads) / 4;
      const int c = (tid + i * kThreads) % 4;
      const unsigned row = tile.row + r;
      const bool inside = row < m;
      copy16(to_a + place_a(r, c), inside ? a + static_cast<size_t>(row) * kK + k + 8 * c : a,
             inside ? 16 : 0);
    }
#pragma unroll
    for (int i = tid; i < kDepth * kColumns / 8; i += kThreads) {
      const int r = i / 16;
      const int c = i % 16;
      copy16(to_b + place_b(r, c), b + static_cast<size_t>(k + r) * kN + tile.column + 8 * c, 16);
    }
    commit_copies();
  };
  __syncthreads();  // All have done with the ring's last contents.
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  const int warp_row = warp / 4 * 64;
  const int warp_column = warp % 4 * 32;
  for (int s = 0; s < steps; ++s) {
    wait_copies<kStages - 2>();
    __syncthreads();  // Stage s is there for all, and stage s - 1 is read by all.
    if (s + kStages - 1 < steps) {
      fetch(s + kStages - 1);
    } else {
      commit_copies();
    }
    const bf16* at_a = ring + s % kStages * kStage;
    const bf16* at_b = at_a + kRows * kDepth;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      unsigned fa[4][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        load_matrices(fa[i], at_a + place_a(warp_row + 16 * i + lane % 16, k / 8 + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        load_matrices_transposed(
            fb[j], at_b + place_b(k + lane % 16, (warp_column + 16 * j) / 8 + lane / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const unsigned half[2] = {fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]};
          mma_16x8x16(sum[i][j], fa[i], half);
        }
      }
    }
  }
}

// --- small m
constexpr int kParts = 8;

extern "C" __global__ void __launch_bounds__(128)
gemm_split(const bf16* __restrict__ a, const bf16* __restrict__ b, float* __restrict__ partial,
           int m) {
  extern __shared__ __align__(128) unsigned char split_memory[];
  const Tile tile = {blockIdx.z * 64u, blockIdx.x * static_cast<unsigned>(kColumns)};
  const int part = blockIdx.y;
  float sum[4][4][4];
  clear(sum);
  accumulate<64>(a, b, m, tile, part * (kK / kParts), kK / kParts / kDepth,
                 reinterpret_cast<bf16*>(split_memory), sum);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const unsigned row = tile.row + 16 * i + lane / 4;
      const unsigned column = tile.column + warp * 32 + 8 * j + lane % 4 * 2;
      float* out = partial + (static_cast<size_t>(part) * m + row) * kN + column;
      if (row < static_cast<unsigned>(m))
        *reinterpret_cast<float2*>(out) = make_float2(sum[i][j][0], sum[i][j][1]);
      if (row + 8 < static_cast<unsigned>(m))
        *reinterpret_cast<float2*>(out + 8 * kN) = make_float2(sum[i][j][2], sum[i][j][3]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
gemm_reduce(const float* __restrict__ partial, bf16* __restrict__ c, int m) {
  const int i = blockIdx.x * 256 + threadIdx.x;  // Four columns; at most 128 * 1024 of them.
  if (i >= m * (kN / 4)) return;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const float4 p = reinterpret_cast<const float4*>(partial)[static_cast<size_t>(part) * m * (kN / 4) + i];
    sum.x += p.x;
    sum.y += p.y;
    sum.z += p.z;
    sum.w += p.w;
  }
  reinterpret_cast<uint2*>(c)[i] = make_uint2(pack2(sum.x, sum.y), pack2(sum.z, sum.w));
}

// --- larger m
constexpr int kGroup = 8;
constexpr int kTilesAcross = kN / kColumns;
constexpr int kTall = 8192;  // From here on tiles of 256 rows, as far as they are full.

template <int kRows, bool kGrouped>
__global__ void __launch_bounds__(2 * kRows)
gemm_tiles(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c, int m) {
  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  int first_row = 0, tiles_down = m / kRows;
  if (!kGrouped) {
    first_row = m >= kTall ? m / 256 * 256 : 0;
    tiles_down = (m - first_row + kRows - 1) / kRows;
  }
  const int tiles = tiles_down * kTilesAcross;
  for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
    Tile tile;
    if (kGrouped) {
      // Groups of eight rows of tiles, the last one of as many as there are, column by column.
      const int group = number / (kGroup * kTilesAcross);
      const int within = number % (kGroup * kTilesAcross);
      const int size = min(kGroup, tiles_down - group * kGroup);
      tile.row = (group * kGroup + within % size) * kRows;
      tile.column = within / size * kColumns;
    } else {
      tile.row = first_row + number % tiles_down * kRows;
      tile.column = number / tiles_down * kColumns;
    }
    float sum[4][4][4];
    clear(sum);
    accumulate<kRows>(a, b, m, tile, 0, kK / kDepth, reinterpret_cast<bf16*>(memory), sum);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned row = tile.row + warp / 4 * 64 + 16 * i + lane / 4;
        const unsigned column = tile.column + warp % 4 * 32 + 8 * j + lane % 4 * 2;
        bf16* out = c + static_cast<size_t>(row) * kN + column;
        if (row < static_cast<unsigned>(m))
          *reinterpret_cast<unsigned*>(out) = pack2(sum[i][j][0], sum[i][j][1]);
        if (row + 8 < static_cast<unsigned>(m))
          *reinterpret_cast<unsigned*>(out + 8 * kN) = pack2(sum[i][j][2], sum[i][j][3]);
      }
    }
  }
}
