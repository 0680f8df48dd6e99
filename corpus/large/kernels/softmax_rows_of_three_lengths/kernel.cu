// Softmax for bf16 in three designs by the length of a row:
//   up to 1024     softmax_warp: a warp a row, in registers
//   up to 8192     softmax_block: a block a row, in registers as it came
//   longer         softmax_partial, softmax_write: chunks of 2048 columns; the first kernel leaves
//                  the maximum and the sum of each chunk (online softmax), the second merges those
//                  of a row, each warp for itself, and writes the chunk.
// Grids are capped and stride. Rows need not start at a vector's start: what is read are the aligned
// vectors that cover a row or chunk, and elements outside of it count as -infinity.
#include <cuda_bf16.h>

using bf16 = __nv_bfloat16;

constexpr unsigned kAll = 0xffffffffu;
constexpr unsigned kNothing = 0xff80ff80u;  // Two times -infinity.

__device__ __forceinline__ void unpack8(const uint4& v, float (&f)[8]) {
  const unsigned u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[2 * i] = __uint_as_float(u[i] << 16);
    f[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ unsigned pack2(float a, float b) {
  const unsigned low = __bfloat16_as_ushort(__float2bfloat16_rn(a));
  const unsigned high = __bfloat16_as_ushort(__float2bfloat16_rn(b));
  return low | (high << 16);
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAll, value, offset));
  return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

__device__ __forceinline__ float max8(const float (&f)[8]) {
  return fmaxf(fmaxf(fmaxf(f[0], f[1]), fmaxf(f[2], f[3])),
               fmaxf(fmaxf(f[4], f[5]), fmaxf(f[6], f[7])));
}

// The aligned vector at `p`, of which elements [from, to) are wanted.
__device__ __forceinline__ uint4 load_inside(const bf16* p, int from, int to) {
  if (from <= 0 && to >= 8) return *reinterpret_cast<const uint4*>(p);
  unsigned u[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned low = kNothing & 0xffffu, high = kNothing & 0xffffu;
    if (2 * i >= from && 2 * i < to) low = __bfloat16_as_ushort(p[2 * i]);
    if (2 * i + 1 >= from && 2 * i + 1 < to) high = __bfloat16_as_ushort(p[2 * i + 1]);
    u[i] = low | (high << 16);
  }
  return make_uint4(u[0], u[1], u[2], u[3]);
}

__device__ __forceinline__ void store_inside(bf16* p, int from, int to, const float (&f)[8]) {
  if (from <= 0 && to >= 8) {
    *reinterpret_cast<uint4*>(p) =
        make_uint4(pack2(f[0], f[1]), pack2(f[2], f[3]), pack2(f[4], f[5]), pack2(f[6], f[7]));
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (i >= from && i < to) p[i] = __float2bfloat16_rn(f[i]);
  }
}

// --- up to 1024 columns
extern "C" __global__ void __launch_bounds__(256)
softmax_warp(const bf16* __restrict__ x, bf16* __restrict__ y, long long rows, int columns) {
  const int lane = threadIdx.x & 31;
  const long long step = static_cast<long long>(gridDim.x) * 8;
  for (long long r = static_cast<long long>(blockIdx.x) * 8 + (threadIdx.x >> 5); r < rows; r += step) {
    const bf16* row = x + r * columns;
    bf16* out = y + r * columns;
    if (columns % 8 == 0) {
      float f[4][8];
      float largest = -INFINITY;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int j = (lane + 32 * i) * 8;
        uint4 v = make_uint4(kNothing, kNothing, kNothing, kNothing);
        if (j < columns) v = *reinterpret_cast<const uint4*>(row + j);
        unpack8(v, f[i]);
        largest = fmaxf(largest, max8(f[i]));
      }
      largest = warp_max(largest);
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          f[i][c] = __expf(f[i][c] - largest);
          sum += f[i][c];
        }
      }
      const float inverse = 1.0f / warp_sum(sum);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int j = (lane + 32 * i) * 8;
        if (j < columns) {
#pragma unroll
          for (int c = 0; c < 8; ++c) f[i][c] *= inverse;
          store_inside(out + j, 0, 8, f[i]);
        }
      }
    } else {
      float f[32];
      float largest = -INFINITY;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int j = lane + 32 * i;
        f[i] = j < columns ? __bfloat162float(row[j]) : -INFINITY;
        largest = fmaxf(largest, f[i]);
      }
      largest = warp_max(largest);
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        f[i] = __expf(f[i] - largest);
        sum += f[i];
      }
      const float inverse = 1.0f / warp_sum(sum);
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if (lane + 32 * i < columns) out[lane + 32 * i] = __float2bfloat16_rn(f[i] * inverse);
      }
    }
  }
}

// --- up to 8192 columns
// 8192 columns are 1024 vectors, and one more where the row starts within a vector.
constexpr int kRowThreads = 384;
constexpr int kRowWarps = kRowThreads / 32;
constexpr int kHeld = 3;

extern "C" __global__ void __launch_bounds__(kRowThreads)
softmax_block(const bf16* __restrict__ x, bf16* __restrict__ y, long long rows, int columns) {
  __shared__ float maxima[kRowWarps];
  __shared__ float sums[kRowWarps];
  const int tid = threadIdx.x;
  for (long long r = blockIdx.x; r < rows; r += gridDim.x) {
    const long long first = r * columns;
    const int shift = static_cast<int>(first & 7);
    const int vectors = (shift + columns + 7) >> 3;
    const bf16* base = x + (first - shift);
    bf16* out = y + (first - shift);

    uint4 held[kHeld];
    float largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int j = tid + i * kRowThreads;
      held[i] = make_uint4(kNothing, kNothing, kNothing, kNothing);
      if (j < vectors) held[i] = load_inside(base + 8 * j, shift - 8 * j, shift + columns - 8 * j);
      float f[8];
      unpack8(held[i], f);
      largest = fmaxf(largest, max8(f));
    }
    largest = warp_max(largest);
    if ((tid & 31) == 0) maxima[tid >> 5] = largest;
    __syncthreads();
    largest = maxima[0];
#pragma unroll
    for (int w = 1; w < kRowWarps; ++w) largest = fmaxf(largest, maxima[w]);

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      float f[8];
      unpack8(held[i], f);
#pragma unroll
      for (int c = 0; c < 8; ++c) sum += __expf(f[c] - largest);
    }
    sum = warp_sum(sum);
    if ((tid & 31) == 0) sums[tid >> 5] = sum;
    __syncthreads();
    // `maxima` may be written again from here on, `sums` after the next row's first barrier.
    sum = sums[0];
#pragma unroll
    for (int w = 1; w < kRowWarps; ++w) sum += sums[w];
    const float inverse = 1.0f / sum;

#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int j = tid + i * kRowThreads;
      if (j < vectors) {
        float f[8];
        unpack8(held[i], f);
#pragma unroll
        for (int c = 0; c < 8; ++c) f[c] = __expf(f[c] - largest) * inverse;
        store_inside(out + 8 * j, shift - 8 * j, shift + columns - 8 * j, f);
      }
    }
  }
}

// --- longer rows
constexpr int kChunk = 2048;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

struct Partial {
  float largest, sum;
};

__device__ __forceinline__ Partial merged(const Partial& a, const Partial& b) {
  Partial r;
  r.largest = fmaxf(a.largest, b.largest);
  r.sum = 0.0f;
  // Where all is -infinity so far there is nothing to scale; a chunk further on may be finite.
  if (r.largest > -INFINITY)
    r.sum = a.sum * __expf(a.largest - r.largest) + b.sum * __expf(b.largest - r.largest);
  return r;
}

__device__ __forceinline__ Partial warp_merged(Partial p) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Partial other;
    other.largest = __shfl_down_sync(kAll, p.largest, offset);
    other.sum = __shfl_down_sync(kAll, p.sum, offset);
    p = merged(p, other);
  }
  return p;  // Whole on lane 0.
}

// Which columns of which row an item is.
struct Piece {
  long long row;
  int begin, length;
};

__device__ __forceinline__ Piece piece_of(int item, int splits, int columns) {
  Piece p;
  const int row = item / splits;
  const int split = item - row * splits;
  p.row = row;
  p.begin = split * kChunk;
  p.length = min(kChunk, columns - p.begin);
  return p;
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_partial(const bf16* __restrict__ x, float2* __restrict__ partial, int rows, int columns) {
  __shared__ Partial parts[2][kWarps];
  const int tid = threadIdx.x;
  const int splits = (columns + kChunk - 1) / kChunk;
  const int items = rows * splits;  // At most 2^20 * 2^7.
  int turn = 0;
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    const Piece piece = piece_of(item, splits, columns);
    const long long first = piece.row * columns + piece.begin;
    const int shift = static_cast<int>(first & 7);
    const int vectors = (shift + piece.length + 7) >> 3;
    const bf16* base = x + (first - shift);
    Partial mine = {-INFINITY, 0.0f};
    for (int j = tid; j < vectors; j += kThreads) {
      float f[8];
      unpack8(load_inside(base + 8 * j, shift - 8 * j, shift + piece.length - 8 * j), f);
      const float largest = fmaxf(mine.largest, max8(f));
      if (largest > -INFINITY) {
        float sum = mine.sum * __expf(mine.largest - largest);
#pragma unroll
        for (int c = 0; c < 8; ++c) sum += __expf(f[c] - largest);
        mine.largest = largest;
        mine.sum = sum;
      }
    }
    mine = warp_merged(mine);
    if ((tid & 31) == 0) parts[turn][tid >> 5] = mine;
    __syncthreads();
    if (tid == 0) {
      Partial all = parts[turn][0];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) all = merged(all, parts[turn][w]);
      partial[item] = make_float2(all.largest, all.sum);
    }
    turn ^= 1;  // Who writes this set again has passed the next barrier, as thread 0 has by then.
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_write(const bf16* __restrict__ x, const float2* __restrict__ partial, bf16* __restrict__ y,
              int rows, int columns) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int splits = (columns + kChunk - 1) / kChunk;
  const int items = rows * splits;
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    const Piece piece = piece_of(item, splits, columns);
    // Every warp merges the row's partials for itself, in the same order: no barrier is needed.
    Partial all = {-INFINITY, 0.0f};
    for (int s = lane; s < splits; s += 32) {
      const float2 p = partial[piece.row * splits + s];
      all = merged(all, Partial{p.x, p.y});
    }
    all = warp_merged(all);
    const float largest = __shfl_sync(kAll, all.largest, 0);
    const float inverse = 1.0f / __shfl_sync(kAll, all.sum, 0);

    const long long first = piece.row * columns + piece.begin;
    const int shift = static_cast<int>(first & 7);
    const int vectors = (shift + piece.length + 7) >> 3;
    const bf16* base = x + (first - shift);
    bf16* out = y + (first - shift);
    for (int j = tid; j < vectors; j += kThreads) {
      const int from = shift - 8 * j, to = shift + piece.length - 8 * j;
      float f[8];
      unpack8(load_inside(base + 8 * j, from, to), f);
#pragma unroll
      for (int c = 0; c < 8; ++c) f[c] = __expf(f[c] - largest) * inverse;
      store_inside(out + 8 * j, from, to, f);
    }
    __syncwarp();
  }
}
