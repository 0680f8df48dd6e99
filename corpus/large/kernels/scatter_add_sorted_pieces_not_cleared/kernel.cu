// out[r] = sum of src[t] over index[t] = r, bf16, added in f32.
// Tokens are sorted by row (count, scan, place); then a block adds up a tile of columns of a row.
// Rows of more than 1024 tokens are cut into pieces, whose sums are added by the last kernel.
#include <cuda_bf16.h>

using T = __nv_bfloat16;
constexpr unsigned kPiece = 1024;
constexpr int kThreads = 128;

__device__ __forceinline__ unsigned pieces_of(unsigned count) {
  return count > kPiece ? (count + kPiece - 1) / kPiece : 0;
}

template <int V>
struct Lane {
  float sum[V];
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = 0;
  }
};

__device__ __forceinline__ void add_row(Lane<8>& lane, const T* at) {
  const uint4 raw = __ldg(reinterpret_cast<const uint4*>(at));
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&raw);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = __bfloat1622float2(pairs[i]);
    lane.sum[2 * i] += two.x;
    lane.sum[2 * i + 1] += two.y;
  }
}
__device__ __forceinline__ void add_row(Lane<1>& lane, const T* at) {
  lane.sum[0] += __bfloat162float(*at);
}

__global__ void clear(unsigned* counts, unsigned* total, int rows) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) counts[i] = 0;
  if (blockIdx.x == 0 && threadIdx.x == 0) *total = 0;
}

__global__ void count(const long long* index, unsigned* counts, int tokens) {
  for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < tokens; t += gridDim.x * blockDim.x)
    atomicAdd(counts + index[t], 1u);
}

// One block. The low half of a word counts tokens, the high half pieces.
__global__ void __launch_bounds__(1024) scan(const unsigned* counts, unsigned* begin, unsigned* cursor,
                                             unsigned* first_piece, unsigned* piece_row, unsigned* total, int rows) {
  using Word = unsigned long long;
  __shared__ Word of_warp[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  Word carry = 0;
  for (int base = 0; base < rows; base += 4096) {
    const int first = base + threadIdx.x * 4;
    unsigned c[4];
    Word own = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c[i] = first + i < rows ? counts[first + i] : 0;
      own += Word(c[i]) | Word(pieces_of(c[i])) << 32;
    }
    Word inclusive = own;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const Word other = __shfl_up_sync(0xffffffffu, inclusive, d);
      if (lane >= d) inclusive += other;
    }
    if (lane == 31) of_warp[warp] = inclusive;
    __syncthreads();
    Word before = 0, all = 0;
    for (int w = 0; w < 32; ++w) {
      if (w < warp) before += of_warp[w];
      all += of_warp[w];
    }
    Word at = carry + before + inclusive - own;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = first + i;
      if (row < rows) {
        const unsigned where = unsigned(at), piece = unsigned(at >> 32), pieces = pieces_of(c[i]);
        begin[row] = cursor[row] = where;
        first_piece[row] = piece;
        for (unsigned p = 0; p < pieces; ++p) piece_row[piece + p] = row;
        if (row == rows - 1) *total = piece + pieces;
      }
      at += Word(c[i]) | Word(pieces_of(c[i])) << 32;
    }
    carry += all;
    __syncthreads();
  }
}

__global__ void place(const long long* index, unsigned* cursor, unsigned* order, int tokens) {
  for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < tokens; t += gridDim.x * blockDim.x)
    order[atomicAdd(cursor + index[t], 1u)] = t;
}

// Sums of the pieces of hot rows.
template <int V>
__global__ void __launch_bounds__(kThreads) add_pieces(const T* src, const unsigned* counts, const unsigned* begin,
                                                       const unsigned* first_piece, const unsigned* piece_row,
                                                       const unsigned* total, const unsigned* order, float* partial,
                                                       int hidden) {
  const int tiles = (hidden + kThreads * V - 1) / (kThreads * V);
  const long long units = (long long)*total * tiles;
  Lane<V> lane;
  lane.clear();
  for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const long long piece = unit / tiles;
    const int column = int(unit % tiles) * kThreads * V + threadIdx.x * V;
    if (column >= hidden) continue;
    const unsigned row = piece_row[piece];
    const unsigned from = (unsigned(piece) - first_piece[row]) * kPiece;
    const unsigned to = min(from + kPiece, counts[row]);
    const unsigned* ids = order + begin[row];
    unsigned j = from;
    for (; j + 4 <= to; j += 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) add_row(lane, src + (long long)ids[j + i] * hidden + column);
    }
    for (; j < to; ++j) add_row(lane, src + (long long)ids[j] * hidden + column);
    float* out = partial + piece * hidden + column;
#pragma unroll
    for (int i = 0; i < V; ++i) out[i] = lane.sum[i];
  }
}

template <int V>
__global__ void __launch_bounds__(kThreads) add_rows(const T* src, const unsigned* counts, const unsigned* begin,
                                                     const unsigned* first_piece, const unsigned* order,
                                                     const float* partial, T* out, int hidden, int rows) {
  const int tiles = (hidden + kThreads * V - 1) / (kThreads * V);
  const long long units = (long long)rows * tiles;
  for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int row = int(unit / tiles);
    const int column = int(unit % tiles) * kThreads * V + threadIdx.x * V;
    if (column >= hidden) continue;
    Lane<V> lane;
    lane.clear();
    const unsigned n = counts[row];
    if (n > kPiece) {
      const unsigned pieces = pieces_of(n);
      const float* sums = partial + (long long)first_piece[row] * hidden + column;
      for (unsigned p = 0; p < pieces; ++p) {
#pragma unroll
        for (int i = 0; i < V; ++i) lane.sum[i] += sums[(long long)p * hidden + i];
      }
    } else {
      const unsigned* ids = order + begin[row];
      for (unsigned j = 0; j < n; ++j) {
        const long long at = (long long)ids[j] * hidden + column;
        add_row(lane, src + at);
      }
    }
    T* to = out + (long long)row * hidden + column;
    if (V == 8) {
      __nv_bfloat162 packed[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) packed[i] = __floats2bfloat162_rn(lane.sum[(2 * i) % V], lane.sum[(2 * i + 1) % V]);
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(packed);
    } else {
      *to = __float2bfloat16(lane.sum[0]);
    }
  }
}
