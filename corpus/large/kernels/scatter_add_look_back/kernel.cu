// Scatter-add in f16 without atomics on the output: count the tokens of each row, scan the counts (decoupled look-back, one pass), list
// the tokens by row, add up each row's list in f32. Rows of more than 4096 tokens are hot: chunks of their lists are added by blocks of
// their own into f32 sums.
#include <cuda_fp16.h>

using T = __half;

constexpr unsigned kHot = 4096;
constexpr int kScanThreads = 256;
constexpr int kScanItems = 8;
constexpr int kTile = kScanThreads * kScanItems;
constexpr unsigned kAll = 0xffffffffu;
constexpr unsigned kAggregate = 1;  // a tile's status, above its number: its own sum, or that of all tiles up to it
constexpr unsigned kPrefix = 2;

extern "C" __global__ void __launch_bounds__(256) count_tokens(const long long* __restrict__ index, unsigned* counts, int tokens) {
  for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < tokens; t += gridDim.x * blockDim.x) atomicAdd(&counts[index[t]], 1u);
}

__device__ __forceinline__ unsigned long long status_word(unsigned flag, unsigned value) {
  return static_cast<unsigned long long>(flag) << 32 | value;
}

__device__ __forceinline__ unsigned long long status_of(const unsigned long long* status, int tile) {
  unsigned long long word;
  do word = *reinterpret_cast<const volatile unsigned long long*>(&status[tile]);
  while (word == 0);
  return word;
}

extern "C" __global__ void __launch_bounds__(kScanThreads)
    scan_counts(const unsigned* __restrict__ counts, unsigned* offsets, unsigned long long* status, unsigned* counters, unsigned* slots,
                unsigned* chunks, int rows) {
  // counters: next tile, hot rows, chunks; a chunk: begin in the list, length, slot
  __shared__ int shared_tile;
  __shared__ unsigned warp_totals[kScanThreads / 32];
  __shared__ unsigned shared_before;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) shared_tile = static_cast<int>(atomicAdd(&counters[0], 1u));
  __syncthreads();
  const int tile = shared_tile;
  const int first = tile * kTile + threadIdx.x * kScanItems;
  unsigned count[kScanItems];
  unsigned own = 0;
#pragma unroll
  for (int i = 0; i < kScanItems; ++i) {
    count[i] = first + i < rows ? counts[first + i] : 0u;
    own += count[i];
  }
  unsigned inclusive = own;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned other = __shfl_up_sync(kAll, inclusive, offset);
    if (lane >= offset) inclusive += other;
  }
  if (lane == 31) warp_totals[warp] = inclusive;
  __syncthreads();
  unsigned within = inclusive - own;
  unsigned total = 0;
#pragma unroll
  for (int w = 0; w < kScanThreads / 32; ++w) {
    if (w < warp) within += warp_totals[w];
    total += warp_totals[w];
  }
  if (warp == 0) {
    if (lane == 0) atomicExch(&status[tile], status_word(tile == 0 ? kPrefix : kAggregate, total));
    unsigned before = 0;
    // The 32 tiles before this one, then the 32 before those, up to one whose prefix is known.
    for (int last = tile - 1; last >= 0; last -= 32) {
      const unsigned long long word = last - lane >= 0 ? status_of(status, last - lane) : status_word(kPrefix, 0u);
      const unsigned known = __ballot_sync(kAll, static_cast<unsigned>(word >> 32) == kPrefix);
      const int nearest = known != 0 ? __ffs(known) - 1 : 31;
      unsigned value = lane <= nearest ? static_cast<unsigned>(word) : 0u;
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
      before += value;
      if (known != 0) break;
    }
    if (lane == 0) {
      if (tile != 0) atomicExch(&status[tile], status_word(kPrefix, before + total));
      shared_before = before;
    }
  }
  __syncthreads();
  unsigned offset = shared_before + within;
#pragma unroll
  for (int i = 0; i < kScanItems; ++i) {
    if (first + i >= rows) break;
    offsets[first + i] = offset;
    if (count[i] > kHot) {
      const unsigned slot = atomicAdd(&counters[1], 1u);
      const unsigned pieces = (count[i] + kHot - 1) / kHot;
      const unsigned place = atomicAdd(&counters[2], pieces);
      slots[first + i] = slot;
      for (unsigned p = 0; p < pieces; ++p)
        reinterpret_cast<uint4*>(chunks)[place + p] = make_uint4(offset + p * kHot, min(kHot, count[i] - p * kHot), slot, 0u);
    }
    offset += count[i];
  }
}

extern "C" __global__ void __launch_bounds__(256) list_tokens(const long long* __restrict__ index, const unsigned* __restrict__ offsets,
                                                              unsigned* cursors, unsigned* list, int tokens) {
  for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < tokens; t += gridDim.x * blockDim.x) {
    const long long row = index[t];
    list[offsets[row] + atomicAdd(&cursors[row], 1u)] = t;
  }
}

// The columns of a thread: eight side by side where rows are whole vectors, else eight that lie blockDim.x apart.
struct Columns {
  int hidden, first, step;
  bool vectors;

  __device__ __forceinline__ explicit Columns(int hidden) : hidden(hidden), vectors(hidden % 8 == 0) {
    first = 8 * blockIdx.x * blockDim.x + (vectors ? 8 : 1) * threadIdx.x;
    step = vectors ? 1 : blockDim.x;
  }
  __device__ __forceinline__ bool has(int k) const { return first + k * step < hidden; }
};

__device__ __forceinline__ float2 floats_of(unsigned both) {
  return __half22float2(*reinterpret_cast<const __half2*>(&both));
}

__device__ __forceinline__ unsigned packed(float a, float b) {
  const __half2 both = __floats2half2_rn(a, b);
  return *reinterpret_cast<const unsigned*>(&both);
}

__device__ __forceinline__ void add_tokens(const T* __restrict__ src, const unsigned* __restrict__ list, unsigned length,
                                           const Columns& columns, float (&sums)[8]) {
  if (columns.vectors) {
    if (!columns.has(0)) return;
#pragma unroll 4
    for (unsigned i = 0; i < length; ++i) {
      const uint4 v = *reinterpret_cast<const uint4*>(src + static_cast<long long>(list[i]) * columns.hidden + columns.first);
      const float2 a = floats_of(v.x), b = floats_of(v.y), c = floats_of(v.z), d = floats_of(v.w);
      sums[0] += a.x;
      sums[1] += a.y;
      sums[2] += b.x;
      sums[3] += b.y;
      sums[4] += c.x;
      sums[5] += c.y;
      sums[6] += d.x;
      sums[7] += d.y;
    }
  } else {
    for (unsigned i = 0; i < length; ++i) {
      const T* row = src + static_cast<long long>(list[i]) * columns.hidden;
#pragma unroll
      for (int k = 0; k < 8; ++k)
        if (columns.has(k)) sums[k] += __half2float(row[columns.first + k * columns.step]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(128) add_chunks(const T* __restrict__ src, const unsigned* __restrict__ list,
                                                             const unsigned* __restrict__ chunks, const unsigned* __restrict__ counters,
                                                             float* hot_sums, int hidden) {
  const Columns columns(hidden);
  const unsigned number = counters[2];
  for (unsigned c = blockIdx.y; c < number; c += gridDim.y) {
    const uint4 chunk = reinterpret_cast<const uint4*>(chunks)[c];
    float sums[8] = {};
    add_tokens(src, list + chunk.x, chunk.y, columns, sums);
    float* to = hot_sums + static_cast<long long>(chunk.z) * hidden;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (columns.has(k)) atomicAdd(&to[columns.first + k * columns.step], sums[k]);
  }
}

extern "C" __global__ void __launch_bounds__(128) gather_rows(const T* __restrict__ src, const unsigned* __restrict__ list,
                                                              const unsigned* __restrict__ counts, const unsigned* __restrict__ offsets,
                                                              const unsigned* __restrict__ slots, const float* __restrict__ hot_sums,
                                                              T* __restrict__ out, int hidden, int rows) {
  const Columns columns(hidden);
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    float sums[8] = {};
    if (counts[row] > kHot) {
      const float* from = hot_sums + static_cast<long long>(slots[row]) * hidden;
#pragma unroll
      for (int k = 0; k < 8; ++k)
        if (columns.has(k)) sums[k] = from[columns.first + k * columns.step];
    } else {
      add_tokens(src, list + offsets[row], counts[row], columns, sums);
    }
    T* to = out + static_cast<long long>(row) * hidden;
    if (columns.vectors) {
      if (columns.has(0))
        *reinterpret_cast<uint4*>(to + columns.first) =
            make_uint4(packed(sums[0], sums[1]), packed(sums[2], sums[3]), packed(sums[4], sums[5]), packed(sums[6], sums[7]));
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k)
        if (columns.has(k)) to[columns.first + k * columns.step] = __float2half_rn(sums[k]);
    }
  }
}
