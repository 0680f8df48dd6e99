// Router of a mixture of experts for bf16. The launch plan chooses by the shape:
//   up to 8 experts                          route_skinny: a warp a token, logits in registers
//   few tokens and long rows                 route_split, route_pick: tensor cores, hidden in 8 parts
//                                            over the grid, partial logits in workspace
//   else                                     route_fused: persistent, 16 tokens a block, tensor
//                                            cores, logits in shared memory, top-k by the warps
// Tensor cores: mma.m16n8k16, operands through a ring of three cp.async stages of 64 columns. Sums are
// moved to a second accumulator every 4096 columns, so that truncation does not pile up along a row.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr unsigned kAll = 0xffffffffu;

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
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const unsigned (&a)[4],
                                            const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// --- up to 8 experts
constexpr int kFew = 8;

__device__ __forceinline__ void unpack8(const uint4& v, float (&f)[8]) {
  const unsigned u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(u[i] << 16);
    f[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
  }
}

extern "C" __global__ void __launch_bounds__(256)
route_skinny(const bf16* __restrict__ x, const bf16* __restrict__ weight, int* __restrict__ expert,
             float* __restrict__ share, long long tokens, int hidden, int experts, int chosen) {
  const int lane = threadIdx.x & 31;
  const long long step = static_cast<long long>(gridDim.x) * 8;
  for (long long token = static_cast<long long>(blockIdx.x) * 8 + (threadIdx.x >> 5); token < tokens;
       token += step) {
    const bf16* row = x + token * hidden;
    float logit[kFew];
#pragma unroll
    for (int e = 0; e < kFew; ++e) logit[e] = 0.0f;
    if (hidden % 8 == 0) {
      for (int h = lane * 8; h < hidden; h += 256) {
        float a[8];
        unpack8(*reinterpret_cast<const uint4*>(row + h), a);
#pragma unroll
        for (int e = 0; e < kFew; ++e) {
          if (e < experts) {
            float b[8];
            unpack8(*reinterpret_cast<const uint4*>(weight + e * hidden + h), b);
#pragma unroll
            for (int c = 0; c < 8; ++c) logit[e] += a[c] * b[c];
          }
        }
      }
    } else {
      for (int h = lane; h < hidden; h += 32) {
        const float a = __bfloat162float(row[h]);
#pragma unroll
        for (int e = 0; e < kFew; ++e) {
          if (e < experts) logit[e] += a * __bfloat162float(weight[e * hidden + h]);
        }
      }
    }
    // Sums by butterfly are the same bits on all lanes, so each lane chooses the same.
#pragma unroll
    for (int e = 0; e < kFew; ++e) {
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2)
        logit[e] += __shfl_xor_sync(kAll, logit[e], offset);
    }
    unsigned taken = 0;
    float first = 0.0f, total = 0.0f, my_logit = 0.0f;
    int my_expert = 0;
    for (int k = 0; k < chosen; ++k) {
      int best = -1;
      float value = 0.0f;
#pragma unroll
      for (int e = 0; e < kFew; ++e) {
        if (e < experts && (taken >> e & 1) == 0 && (best < 0 || logit[e] > value)) {
          best = e;
          value = logit[e];
        }
      }
      taken |= 1u << best;
      if (k == 0) first = value;
      total += __expf(value - first);
      if (lane == k) {
        my_expert = best;
        my_logit = value;
      }
    }
    if (lane < chosen) {
      expert[token * chosen + lane] = my_expert;
      share[token * chosen + lane] = __expf(my_logit - first) / total;
    }
  }
}

// --- tensor cores
constexpr int kTokens = 16;    // Of a tile.
constexpr int kExperts = 128;  // Of a pass: 16 a warp.
constexpr int kDepth = 64;     // Columns of a stage.
constexpr int kStages = 3;
constexpr int kPitch = kDepth + 8;  // Elements; keeps the fragments' loads free of bank conflicts.
constexpr int kStage = (kTokens + kExperts) * kPitch;
constexpr int kPromote = 64;  // Stages until sums move on.
constexpr int kParts = 8;     // Of hidden, in route_split.
constexpr unsigned kFull = 256;  // Threads.

// Rows [first, first + kRows) of a matrix, columns [k, k + 64), zeros outside of it.
template <int kRows>
__device__ __forceinline__ void load_rows(bf16* to, const bf16* __restrict__ from, long long first,
                                          long long rows, int k, int hidden) {
  for (int i = threadIdx.x; i < kRows * (kDepth / 8); i += kFull) {
    const int r = i / (kDepth / 8);
    const int c = i % (kDepth / 8) * 8;
    bf16* place = to + r * kPitch + c;
    const bool inside = first + r < rows && k + c < hidden;
    const unsigned bytes = (static_cast<unsigned>(first + r) * hidden + k + c) * 2u;
    const bf16* source = from;
    if (inside) source = reinterpret_cast<const bf16*>(reinterpret_cast<const char*>(from) + bytes);
    if (hidden % 8 == 0) {
      copy16(place, source, inside ? 16 : 0);
    } else {
      unsigned short u[8];
#pragma unroll
      for (int j = 0; j < 8; ++j)
        u[j] = inside && k + c + j < hidden ? __bfloat16_as_ushort(source[j]) : 0;
      *reinterpret_cast<uint4*>(place) =
          make_uint4(u[0] | u[1] << 16, u[2] | u[3] << 16, u[4] | u[5] << 16, u[6] | u[7] << 16);
    }
  }
}

// The logits of 16 tokens and 128 experts over stages [begin, end) of hidden: of those, this thread has
// tokens lane / 4 (+ 8) and experts 16 * warp + 8 * i + lane % 4 * 2 (+ 1), as mma leaves them.
__device__ __forceinline__ void tile_logits(bf16* ring, const bf16* __restrict__ x,
                                            const bf16* __restrict__ weight, long long token0,
                                            long long tokens, int expert0, int experts, int hidden,
                                            int begin, int end, float (&sum)[2][4]) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  float part[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int c = 0; c < 4; ++c) sum[i][c] = part[i][c] = 0.0f;
  }
  const int tiles = end - begin;
  auto fetch = [&](int t) {
    if (t < tiles) {
      bf16* stage = ring + t % kStages * kStage;
      load_rows<kTokens>(stage, x, token0, tokens, (begin + t) * kDepth, hidden);
      load_rows<kExperts>(stage + kTokens * kPitch, weight, expert0, experts, (begin + t) * kDepth,
                          hidden);
    }
    commit_copies();
  };
  __syncthreads();  // Whoever still reads the ring, or the logits of the tile before.
  fetch(0);
  fetch(1);
  for (int t = 0; t < tiles; ++t) {
    wait_copies<1>();
    __syncthreads();  // All copies of stage t are there, and stage t - 1 is read by all.
    fetch(t + 2);
    const bf16* a_rows = ring + t % kStages * kStage;
    const bf16* b_rows = a_rows + (kTokens + 16 * warp) * kPitch;
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      const int column = k + lane % 4 * 2;
      const bf16* at = a_rows + lane / 4 * kPitch + column;
      const unsigned a[4] = {*reinterpret_cast<const unsigned*>(at),
                             *reinterpret_cast<const unsigned*>(at + 8 * kPitch),
                             *reinterpret_cast<const unsigned*>(at + 8),
                             *reinterpret_cast<const unsigned*>(at + 8 * kPitch + 8)};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bf16* bt = b_rows + (8 * i + lane / 4) * kPitch + column;
        const unsigned b[2] = {*reinterpret_cast<const unsigned*>(bt),
                               *reinterpret_cast<const unsigned*>(bt + 8)};
        mma_16x8x16(part[i], a, b);
      }
    }
    if ((t + 1) % kPromote == 0 || t + 1 == tiles) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sum[i][c] += part[i][c];
          part[i][c] = 0.0f;
        }
      }
    }
  }
}

// A key that orders logits, and of equal ones puts the smaller index first. Never 0.
__device__ __forceinline__ unsigned long long key_of(float logit, int index) {
  const unsigned u = __float_as_uint(logit);
  const unsigned ordered = (u & 0x80000000u) != 0 ? ~u : u | 0x80000000u;
  return static_cast<unsigned long long>(ordered) << 32 | (0xffffffffu - static_cast<unsigned>(index));
}

// One warp, one token. Lane l has experts l, l + 32, ...: at most 32, whose bits are in `taken`.
__device__ __forceinline__ void pick(const float* logits, int* expert, float* share, int experts,
                                     int chosen) {
  const int lane = threadIdx.x & 31;
  unsigned taken = 0;
  auto best_of_lane = [&]() {
    unsigned long long best = 0;
    for (int i = 0; lane + 32 * i < experts; ++i) {
      if ((taken >> i & 1) == 0) {
        const unsigned long long key = key_of(logits[lane + 32 * i], lane + 32 * i);
        best = key > best ? key : best;
      }
    }
    return best;
  };
  unsigned long long mine = best_of_lane();
  float first = 0.0f, total = 0.0f;
  float held[2] = {0.0f, 0.0f};
  int held_expert[2] = {0, 0};
  for (int k = 0; k < chosen; ++k) {
    unsigned long long best = mine;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const unsigned long long other = __shfl_xor_sync(kAll, best, offset);
      best = other > best ? other : best;
    }
    const int index = static_cast<int>(0xffffffffu - static_cast<unsigned>(best));
    const float value = logits[index];
    if (index % 32 == lane) {
      taken |= 1u << (index / 32);
      mine = best_of_lane();
    }
    if (k == 0) first = value;
    total += __expf(value - first);
    if (k % 32 == lane) {
      if (k < 32) {
        held[0] = value;
        held_expert[0] = index;
      } else {
        held[1] = value;
        held_expert[1] = index;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (lane + 32 * i < chosen) {
      expert[lane + 32 * i] = held_expert[i];
      share[lane + 32 * i] = __expf(held[i] - first) / total;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kFull)
route_fused(const bf16* __restrict__ x, const bf16* __restrict__ weight, int* __restrict__ expert,
            float* __restrict__ share, long long tokens, int hidden, int experts, int chosen) {
  extern __shared__ __align__(16) unsigned char memory[];
  bf16* ring = reinterpret_cast<bf16*>(memory);
  float* logits = reinterpret_cast<float*>(memory + kStages * kStage * sizeof(bf16));
  const int pitch = experts + 4;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int stages = (hidden + kDepth - 1) / kDepth;
  const int tiles = static_cast<int>((tokens + kTokens - 1) / kTokens);
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const long long token0 = static_cast<long long>(tile) * kTokens;
    for (int expert0 = 0; expert0 < experts; expert0 += kExperts) {
      float sum[2][4];
      tile_logits(ring, x, weight, token0, tokens, expert0, experts, hidden, 0, stages, sum);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int e = expert0 + 16 * warp + 8 * i + lane % 4 * 2 + c % 2;
          if (e < experts) logits[(lane / 4 + c / 2 * 8) * pitch + e] = sum[i][c];
        }
      }
    }
    __syncthreads();
    for (int r = warp; r < kTokens; r += 8) {
      const long long token = token0 + r;
      if (token < tokens)
        pick(logits + r * pitch, expert + token * chosen, share + token * chosen, experts, chosen);
    }
    // The next tile's logits are written past the barriers in tile_logits.
  }
}

extern "C" __global__ void __launch_bounds__(kFull)
route_split(const bf16* __restrict__ x, const bf16* __restrict__ weight, float* __restrict__ partial,
            int tokens, int hidden, int experts) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int token0 = blockIdx.x * kTokens;
  const int part = blockIdx.y;
  const int expert0 = blockIdx.z * kExperts;
  const int stages = (hidden + kDepth - 1) / kDepth;
  const int begin = stages * part / kParts;
  const int end = stages * (part + 1) / kParts;
  float sum[2][4];
  tile_logits(reinterpret_cast<bf16*>(memory), x, weight, token0, tokens, expert0, experts, hidden,
              begin, end, sum);
  float* out = partial + static_cast<long long>(part) * tokens * experts;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int token = token0 + lane / 4 + c / 2 * 8;
      const int e = expert0 + 16 * warp + 8 * i + lane % 4 * 2 + c % 2;
      if (token < tokens && e < experts) out[static_cast<long long>(token) * experts + e] = sum[i][c];
    }
  }
}

extern "C" __global__ void __launch_bounds__(128)
route_pick(const float* __restrict__ partial, int* __restrict__ expert, float* __restrict__ share,
           int tokens, int experts, int chosen) {
  __shared__ float logits[4][1024];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int token = blockIdx.x * 4 + warp;
  if (token >= tokens) return;
  for (int e = lane; e < experts; e += 32) {
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      sum += partial[(static_cast<long long>(part) * tokens + token) * experts + e];
    logits[warp][e] = sum;
  }
  __syncwarp();
  pick(logits[warp], expert + static_cast<long long>(token) * chosen,
       share + static_cast<long long>(token) * chosen, experts, chosen);
}
