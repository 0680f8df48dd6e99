// Inclusive prefix sums of rows, bf16 in and out, f32 in between.
//  * short rows (<= 1024): one warp a row, 8 elements a lane, grid-stride over the rows.
//  * long rows: tiles of 4096, single pass with decoupled look-back. Tiles are handed out by a ticket, so that whoever
//    waits only waits for tiles that run already. The prefix of a tile is always formed as (prefix of the one before) +
//    (sum of the one before), whatever was found on the way, so results do not hang on timing.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kItems = 16;
constexpr int kTile = kThreads * kItems;

using Word = unsigned long long;
constexpr unsigned kAggregate = 1, kInclusive = 2;

__device__ __forceinline__ Word pack(unsigned flag, float value) {
  return (static_cast<Word>(flag) << 32) | __float_as_uint(value);
}
__device__ __forceinline__ unsigned flag_of(Word w) { return static_cast<unsigned>(w >> 32); }
__device__ __forceinline__ float value_of(Word w) { return __uint_as_float(static_cast<unsigned>(w)); }

// Flag and value travel in one word: no fence is needed between them.
__device__ __forceinline__ void publish(Word* slot, Word w) { atomicExch(slot, w); }
__device__ __forceinline__ Word wait_for(Word* slot) {
  Word w = atomicAdd(slot, Word(0));
  while (flag_of(w) == 0) {
    
    w = atomicAdd(slot, Word(0));
  }
  return w;
}

__device__ __forceinline__ void load8(const bf16* p, long long j, long long columns, bool vector, float* v) {
  if (vector) {
    uint4 raw = make_uint4(0, 0, 0, 0);
    if (j < columns) raw = *reinterpret_cast<const uint4*>(p + j);
    const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 f = __bfloat1622float2(pair[i]);
      v[2 * i] = f.x;
      v[2 * i + 1] = f.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = j + i < columns ? __bfloat162float(p[j + i]) : 0.0f;
  }
}

__device__ __forceinline__ void store8(bf16* p, long long j, long long columns, bool vector, const float* v, float add) {
  if (vector) {
    if (j >= columns) return;
    uint4 raw;
    __nv_bfloat162* pair = reinterpret_cast<__nv_bfloat162*>(&raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) pair[i] = __floats2bfloat162_rn(add + v[2 * i], add + v[2 * i + 1]);
    *reinterpret_cast<uint4*>(p + j) = raw;
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (j + i < columns) p[j + i] = __float2bfloat16(add + v[i]);
  }
}

__device__ __forceinline__ float warp_inclusive(float value, int lane) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += left;
  }
  return value;
}

extern "C" __global__ void __launch_bounds__(256) cumsum_short(const bf16* __restrict__ x, bf16* __restrict__ y,
                                                               long long rows, long long columns) {
  const int lane = threadIdx.x;
  const bool vector = columns % 8 == 0;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += stride) {
    const bf16* in = x + row * columns;
    bf16* out = y + row * columns;
    float carry = 0.0f;
    for (long long start = 0; start < columns; start += 256) {
      float v[8];
      load8(in, start + lane * 8, columns, vector, v);
#pragma unroll
      for (int i = 1; i < 8; ++i) v[i] += v[i - 1];
      const float inclusive = warp_inclusive(v[7], lane);
      float before = __shfl_up_sync(0xffffffffu, inclusive, 1);
      if (lane == 0) before = 0.0f;
      store8(out, start + lane * 8, columns, vector, v, carry + before);
      carry += __shfl_sync(0xffffffffu, inclusive, 31);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) cumsum_long(const bf16* __restrict__ x, bf16* __restrict__ y,
                                                                   Word* state, unsigned* ticket, long long rows,
                                                                   long long columns) {
  __shared__ float warp_sums[kThreads / 32];
  __shared__ float s_before;
  __shared__ unsigned s_tile;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long tiles = (columns + kTile - 1) / kTile;
  const bool vector = columns % 8 == 0;
  for (;;) {
    if (threadIdx.x == 0) s_tile = atomicAdd(ticket, 1u);
    __syncthreads();
    const long long tile = s_tile;
    if (tile >= rows * tiles) return;
    const long long row = tile / tiles, t = tile % tiles;
    const int base = static_cast<int>(row) * static_cast<int>(columns);
    const long long j = t * kTile + threadIdx.x * kItems;
    float v[kItems];
    load8(x + base, j, columns, vector, v);
    load8(x + base, j + 8, columns, vector, v + 8);
#pragma unroll
    for (int i = 1; i < kItems; ++i) v[i] += v[i - 1];
    const float inclusive = warp_inclusive(v[kItems - 1], lane);
    float before = __shfl_up_sync(0xffffffffu, inclusive, 1);
    if (lane == 0) before = 0.0f;
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    float left = 0.0f, total = 0.0f;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w == warp) left = total;
      total += warp_sums[w];
    }
    if (threadIdx.x == 0) {
      Word* slots = state + row * tiles;
      float prefix = 0.0f;
      if (t > 0) {
        publish(slots + t, pack(kAggregate, total));
        long long k = t - 1;  // the nearest tile whose inclusive prefix is known
        while (k > 0 && flag_of(wait_for(slots + k)) != kInclusive) --k;
        for (; k < t; ++k) {  // and forward again, in order
          const Word w = wait_for(slots + k);
          prefix = k == 0 || flag_of(w) == kInclusive ? value_of(w) : prefix + value_of(w);
        }
      }
      publish(slots + t, pack(kInclusive, prefix + total));
      s_before = prefix;
    }
    __syncthreads();
    const float add = s_before + (left + before);
    store8(y + base, j, columns, vector, v, add);
    store8(y + base, j + 8, columns, vector, v + 8, add);
  }
}
