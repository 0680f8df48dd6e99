// Flash attention in bf16, 128 heads over 8192 keys, mma.sync m16n8k16, 64 queries a block, key tiles
// of 64 double buffered by cp.async.
//   attn_rows   many queries: persistent blocks, items (head, 64 queries) by ticket, longest first
//   attn_split  up to 256 queries: eight splits of 1024 keys; attn_merge puts them together
#include <cuda_bf16.h>
#include <cuda_pipeline.h>

using bf16 = __nv_bfloat16;
using u32 = unsigned;

constexpr int kHeads = 128;
constexpr int kKeys = 8192;
constexpr int kRows = 64;  // queries a block, keys a tile
constexpr int kThreads = 128;
constexpr int kSplits = 8;
constexpr int kSplitTiles = kKeys / kRows / kSplits;

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ldmatrix_trans(u32& b0, u32& b1, const bf16* p) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(p));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(b0), "=r"(b1)
               : "r"(at)
               : "memory");
}

__device__ __forceinline__ u32 pack(float a, float b) {
  const __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const u32*>(&h);
}

__device__ __forceinline__ u32 pair(const bf16* p) { return *reinterpret_cast<const u32*>(p); }

// 64 rows of `dim` columns into shared memory, padded with zeros to DP columns.
template <int DP>
__device__ __forceinline__ void load(bf16* to, const bf16* __restrict__ from, int rows, int dim) {
  constexpr int kLine = DP + 8;
  if (dim % 8 == 0) {
    for (int i = threadIdx.x; i < kRows * (DP / 8); i += kThreads) {
      const int r = i / (DP / 8);
      const int c = i % (DP / 8) * 8;
      bf16* p = to + r * kLine + c;
      if (r < rows && c < dim) {
        __pipeline_memcpy_async(p, from + r * dim + c, 16);
      } else {
        *reinterpret_cast<uint4*>(p) = make_uint4(0, 0, 0, 0);
      }
    }
  } else {
    for (int i = threadIdx.x; i < kRows * DP; i += kThreads) {
      const int r = i / DP;
      const int c = i % DP;
      to[r * kLine + c] = r < rows && c < dim ? from[r * dim + c] : __float2bfloat16_rn(0.0f);
    }
  }
}

template <int DP>
struct State {
  float o[DP / 8][4];
  float top[2];
  float sum[2];
};

// 64 queries from q0 on over the key tiles [begin, end). On return, sums are those of whole rows.
template <int DP>
__device__ __forceinline__ void attend(State<DP>& state, bf16* memory, const bf16* q, const bf16* k,
                                       const bf16* v, float scale, float softcap, int causal,
                                       int q0, int queries, int dim, int begin, int end) {
  constexpr int kLine = DP + 8;
  constexpr int kTile = kRows * kLine;
  bf16* qs = memory;
  bf16* ks = memory + kTile;
  bf16* vs = memory + 3 * kTile;
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int g = lane >> 2;
  const int t = lane & 3;

  load<DP>(qs, q + static_cast<long long>(q0) * dim, min(kRows, queries - q0), dim);
  load<DP>(ks, k + begin * kRows * dim, kRows, dim);
  load<DP>(vs, v + begin * kRows * dim, kRows, dim);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  u32 qf[DP / 16][4];
#pragma unroll
  for (int c = 0; c < DP / 16; ++c) {
    const bf16* p = qs + (warp * 16 + g) * kLine + c * 16 + 2 * t;
    qf[c][0] = pair(p);
    qf[c][1] = pair(p + 8 * kLine);
    qf[c][2] = pair(p + 8);
    qf[c][3] = pair(p + 8 * kLine + 8);
  }
#pragma unroll
  for (int n = 0; n < DP / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) state.o[n][i] = 0.0f;
  state.top[0] = state.top[1] = -INFINITY;
  state.sum[0] = state.sum[1] = 0.0f;

  // The keys that the block's first query, and this thread's two, see.
  const int seen = causal ? kKeys - queries + q0 + 1 : kKeys;
  const int row = warp * 16 + g;
  int buffer = 0;
  for (int tile = begin; tile < end; ++tile, buffer ^= 1) {
    if (tile + 1 < end) {
      load<DP>(ks + (buffer ^ 1) * kTile, k + (tile + 1) * kRows * dim, kRows, dim);
      load<DP>(vs + (buffer ^ 1) * kTile, v + (tile + 1) * kRows * dim, kRows, dim);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const bf16* kt = ks + buffer * kTile;
    const bf16* vt = vs + buffer * kTile;

    float s[8][4];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
      for (int c = 0; c < DP / 16; ++c) {
        const bf16* p = kt + (n * 8 + g) * kLine + c * 16 + 2 * t;
        mma(s[n], qf[c], pair(p), pair(p + 8));
      }
    }
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] *= scale;
    if (softcap > 0.0f) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[n][i] = softcap * tanhf(s[n][i] / softcap);
    }
    // Only tiles that reach past what the first query sees need the mask.
    const bool masked = causal && (tile + 1) * kRows > seen;
    if (masked) {
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = tile * kRows + n * 8 + 2 * t + (i & 1);
          if (key >= seen + row + (i >> 1) * 8) s[n][i] = -INFINITY;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = state.top[h];
#pragma unroll
      for (int n = 0; n < 8; ++n) top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
      const float factor = __expf(state.top[h] - top);
      state.top[h] = top;
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        s[n][2 * h] = __expf(s[n][2 * h] - top);
        s[n][2 * h + 1] = __expf(s[n][2 * h + 1] - top);
        sum += s[n][2 * h] + s[n][2 * h + 1];
      }
      state.sum[h] = state.sum[h] * factor + sum;
#pragma unroll
      for (int n = 0; n < DP / 8; ++n) {
        state.o[n][2 * h] *= factor;
        state.o[n][2 * h + 1] *= factor;
      }
    }
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const u32 p[4] = {pack(s[2 * b][0], s[2 * b][1]), pack(s[2 * b][2], s[2 * b][3]),
                        pack(s[2 * b + 1][0], s[2 * b + 1][1]),
                        pack(s[2 * b + 1][2], s[2 * b + 1][3])};
#pragma unroll
      for (int n = 0; n < DP / 8; ++n) {
        u32 b0, b1;
        ldmatrix_trans(b0, b1, vt + (b * 16 + (lane & 15)) * kLine + n * 8);
        mma(state.o[n], p, b0, b1);
      }
    }
    __syncthreads();  // the buffer is filled again in the next turn
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    state.sum[h] += __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
    state.sum[h] += __shfl_xor_sync(0xffffffffu, state.sum[h], 2);
  }
}

// How many tiles of keys the 64 queries from q0 on see.
__device__ __forceinline__ int tiles_of(int causal, int q0, int queries) {
  if (!causal) return kKeys / kRows;
  const int seen = kKeys - queries + min(q0 + kRows, queries);
  return (seen + kRows - 1) / kRows;
}

template <int DP>
__global__ void __launch_bounds__(kThreads)
attn_rows(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
          float scale, float softcap, int causal, bf16* __restrict__ o, unsigned* ticket,
          int queries, int dim) {
  extern __shared__ uint4 memory[];
  __shared__ int jobs[2];
  const int blocks = (queries + kRows - 1) / kRows;  // at most 128
  const int items = blocks * kHeads;
  const auto take = [&]() {
    const int item = static_cast<int>(atomicAdd(ticket, 1u));
    if (item >= items) return -1;
    const int block = blocks - 1 - item / kHeads;  // causal: longest first
    return (item % kHeads) << 7 | block;
  };
  if (threadIdx.x == 0) jobs[0] = take();
  for (int turn = 0;; turn ^= 1) {
    __syncthreads();  // the job is there, and nobody reads the last one's tiles any more
    const int job = jobs[turn];
    if (job < 0) return;
    if (threadIdx.x == 0) jobs[turn ^ 1] = take();  // read ahead
    const int head = job >> 7;
    const int q0 = (job & 127) * kRows;
    const long long keys_at = static_cast<long long>(head) * kKeys * dim;
    State<DP> state;
    attend<DP>(state, reinterpret_cast<bf16*>(memory),
               q + static_cast<long long>(head) * queries * dim, k + keys_at, v + keys_at, scale,
               softcap, causal, q0, queries, dim, 0, tiles_of(causal, q0, queries));
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = q0 + (threadIdx.x >> 5) * 16 + (lane >> 2) + h * 8;
      if (row >= queries) continue;
      bf16* to = o + (static_cast<long long>(head) * queries + row) * dim;
      const float factor = 1.0f / state.sum[h];
#pragma unroll
      for (int n = 0; n < DP / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int c = n * 8 + 2 * (lane & 3) + i;
          if (c < dim) to[c] = __float2bfloat16_rn(state.o[n][2 * h + i] * factor);
        }
    }
  }
}

// Where a row of a split's results lies in the workspace.
__device__ __forceinline__ long long slot(int split, int head, int row, int queries) {
  return (static_cast<long long>(split) * kHeads + head) * queries + row;
}

template <int DP>
__global__ void __launch_bounds__(kThreads)
attn_split(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
           float scale, float softcap, int causal, float* __restrict__ part_o,
           float2* __restrict__ part_sum, int queries, int dim) {
  extern __shared__ uint4 memory[];
  const int q0 = blockIdx.x * kRows;
  const int head = blockIdx.y;
  const int split = blockIdx.z;
  // With at most 256 queries every split has keys that every query sees.
  const int begin = split * kSplitTiles;
  const int end = min(begin + kSplitTiles, tiles_of(causal, q0, queries));
  const long long keys_at = static_cast<long long>(head) * kKeys * dim;
  State<DP> state;
  attend<DP>(state, reinterpret_cast<bf16*>(memory),
             q + static_cast<long long>(head) * queries * dim, k + keys_at, v + keys_at, scale,
             softcap, causal, q0, queries, dim, begin, end);
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = q0 + (threadIdx.x >> 5) * 16 + (lane >> 2) + h * 8;
    if (row >= queries) continue;
    const long long at = slot(split, head, row, queries);
    if ((lane & 3) == 0) part_sum[at] = make_float2(state.top[h], state.sum[h]);
#pragma unroll
    for (int n = 0; n < DP / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int c = n * 8 + 2 * (lane & 3) + i;
        if (c < dim) part_o[at * dim + c] = state.o[n][2 * h + i];
      }
  }
}

// A block a row of a head, a thread a column.
extern "C" __global__ void __launch_bounds__(kThreads)
attn_merge(const float* __restrict__ part_o, const float2* __restrict__ part_sum,
           bf16* __restrict__ o, int queries, int dim) {
  const int row = blockIdx.x;
  const int head = blockIdx.y;
  const int c = threadIdx.x;
  if (c >= dim) return;
  float top = -INFINITY;
#pragma unroll
  for (int s = 0; s < kSplits; ++s) top = fmaxf(top, part_sum[slot(s, head, row, queries)].x);
  float sum = 0.0f;
  float value = 0.0f;
#pragma unroll
  for (int s = 0; s < kSplits; ++s) {
    const long long at = slot(s, head, row, queries);
    const float2 part = part_sum[at];
    const float factor = __expf(part.x - top);
    sum += part.y * factor;
    value += part_o[at * dim + c] * factor;
  }
  o[(static_cast<long long>(head) * queries + row) * dim + c] = __float2bfloat16_rn(value / sum);
}
