// Backward of rms_norm(table[ids], weight), bf16. A counting sort brings the tokens of an id together, so that a block can own a
// row of the table and add up in registers; grad_weight goes through partial sums of 1,024 tokens each. No atomics on floats.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kEach = 8;                     // columns of a thread
constexpr int kSlice = kThreads * kEach;     // columns of a block
constexpr unsigned kList = 4096;             // tokens of a row that are staged at a time
constexpr int kScan = 1024, kScanEach = 4;   // the scan's threads, and counts of each
constexpr int kTokens = 1024;                // tokens of a partial sum of grad_weight

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

// How many tokens each id has, and the how-maniest of its id each token is.
extern "C" __global__ void count_ids(const long long* __restrict__ ids, unsigned* count, unsigned* __restrict__ rank, int tokens) {
  const int t = blockIdx.x * kThreads + threadIdx.x;
  if (t < tokens) rank[t] = atomicAdd(&count[ids[t]], 1u);
}

// Exclusive prefix sum of the counts, one block.
extern "C" __global__ void __launch_bounds__(kScan) scan_ids(const unsigned* __restrict__ count, unsigned* __restrict__ start, int vocab) {
  __shared__ unsigned sums[kScan / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  unsigned carry = 0;
  for (int base = 0; base < vocab; base += kScan * kScanEach) {
    const int first = base + threadIdx.x * kScanEach;
    unsigned value[kScanEach], own = 0;
#pragma unroll
    for (int i = 0; i < kScanEach; ++i) {
      value[i] = first + i < vocab ? count[first + i] : 0u;
      own += value[i];
    }
    unsigned upto = own;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const unsigned left = __shfl_up_sync(0xffffffffu, upto, o);
      if (lane >= o) upto += left;
    }
    if (lane == 31) sums[warp] = upto;
    __syncthreads();
    if (warp == 0) {
      unsigned s = sums[lane];
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        const unsigned left = __shfl_up_sync(0xffffffffu, s, o);
        if (lane >= o) s += left;
      }
      sums[lane] = s;
    }
    __syncthreads();
    unsigned at = carry + (warp > 0 ? sums[warp - 1] : 0u) + upto - own;
#pragma unroll
    for (int i = 0; i < kScanEach; ++i) {
      if (first + i < vocab) start[first + i] = at;
      at += value[i];
    }
    carry += sums[kScan / 32 - 1];
    __syncthreads();
  }
}

// A warp a token: its scale and slope, and its place in the sorted order.
extern "C" __global__ void __launch_bounds__(kThreads) statistics(const T* __restrict__ grad_out, const long long* __restrict__ ids,
                                                                  const T* __restrict__ table, const T* __restrict__ weight, float eps,
                                                                  const unsigned* __restrict__ rank, const unsigned* __restrict__ start,
                                                                  float2* __restrict__ stat, int* __restrict__ order, int tokens,
                                                                  int hidden) {
  const int t = blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (t >= tokens) return;
  const long long id = ids[t];
  const T* g = grad_out + static_cast<long long>(t) * hidden;
  const T* x = table + id * hidden;
  float squares = 0.0f, dot = 0.0f;
  for (int h = lane; h < hidden; h += 32) {
    const float v = __bfloat162float(x[h]);
    squares += v * v;
    dot += __bfloat162float(g[h]) * __bfloat162float(weight[h]) * v;
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  if (lane == 0) {
    const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
    stat[t] = make_float2(scale, scale * scale * (dot / static_cast<float>(hidden)));
    order[start[id] + rank[t]] = t;
  }
}

// Columns of a thread: eight in a row by one load where rows are aligned, else every 256th.
template <bool kVector>
__device__ __forceinline__ int column_of(int slice, int i) {
  return slice * kSlice + (kVector ? threadIdx.x * kEach + i : i * kThreads + threadIdx.x);
}

template <bool kVector>
__device__ __forceinline__ void load(const T* __restrict__ row, int slice, int hidden, float (&out)[kEach]) {
  if constexpr (kVector) {
    uint4 bits = make_uint4(0u, 0u, 0u, 0u);
    const int c = column_of<true>(slice, 0);
    if (c < hidden) bits = *reinterpret_cast<const uint4*>(row + c);
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
#pragma unroll
    for (int i = 0; i < kEach / 2; ++i) {
      const float2 two = __bfloat1622float2(pairs[i]);
      out[2 * i] = two.x;
      out[2 * i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = column_of<false>(slice, i);
      out[i] = c < hidden ? __bfloat162float(row[c]) : 0.0f;
    }
  }
}

// A block a row of the table and 2,048 columns.
template <bool kVector>
__global__ void __launch_bounds__(kThreads) table_rows(const T* __restrict__ grad_out, const T* __restrict__ table,
                                                       const T* __restrict__ weight, const int* __restrict__ order,
                                                       const unsigned* __restrict__ start, const unsigned* __restrict__ count,
                                                       const float2* __restrict__ stat, T* __restrict__ grad_table, int hidden) {
  __shared__ int list[kList];
  const int row = blockIdx.x, slice = blockIdx.y;
  const unsigned n = count[row];
  const unsigned first = start[row];
  float sum[kEach] = {};
  if (n > 0) {
    float x[kEach], w[kEach], g[kEach];
    load<kVector>(table + static_cast<long long>(row) * hidden, slice, hidden, x);
    load<kVector>(weight, slice, hidden, w);
    for (unsigned base = 0; base < n; base += kList) {
      const unsigned here = min(n - base, kList);
      __syncthreads();
      for (unsigned i = threadIdx.x; i < here; i += kThreads) list[i] = order[first + base + i];
      __syncthreads();
      for (unsigned i = 0; i < here; ++i) {
        const int t = list[i];
        const float2 s = stat[t];
        load<kVector>(grad_out + static_cast<long long>(t) * hidden, slice, hidden, g);
#pragma unroll
        for (int k = 0; k < kEach; ++k) sum[k] += s.x * (g[k] * w[k] - x[k] * s.y);
      }
    }
  }
  T* to = grad_table + static_cast<long long>(row) * hidden;
  if constexpr (kVector) {
    const int c = column_of<true>(slice, 0);
    if (c < hidden) {
      uint4 bits;
      __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
      for (int i = 0; i < kEach / 2; ++i) pairs[i] = __floats2bfloat162_rn(sum[2 * i], sum[2 * i + 1]);
      *reinterpret_cast<uint4*>(to + c) = bits;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = column_of<false>(slice, i);
      if (c < hidden) to[c] = __float2bfloat16(sum[i]);
    }
  }
}

// A thread a column and 1,024 tokens.
extern "C" __global__ void __launch_bounds__(kThreads) weight_parts(const T* __restrict__ grad_out, const long long* __restrict__ ids,
                                                                    const T* __restrict__ table, const float2* __restrict__ stat,
                                                                    float* __restrict__ part, int tokens, int hidden) {
  const int h = blockIdx.x * kThreads + threadIdx.x;
  if (h >= hidden) return;
  const int first = blockIdx.y * kTokens, end = min(tokens, first + kTokens);
  float sum = 0.0f;
  for (int t = first; t < end; ++t) {
    const long long at = static_cast<long long>(t) * hidden + h;
    sum += __bfloat162float(grad_out[at]) * __bfloat162float(table[ids[t] * hidden + h]) * stat[t].x;
  }
  part[static_cast<long long>(blockIdx.y) * hidden + h] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreads) weight_sums(const float* __restrict__ part, T* __restrict__ grad_weight,
                                                                   int tokens, int hidden) {
  const int h = blockIdx.x * kThreads + threadIdx.x;
  if (h >= hidden) return;
  const int parts = (tokens + kTokens - 1) / kTokens;
  float sum = 0.0f;
  for (int p = 0; p < parts; ++p) sum += part[static_cast<long long>(p) * hidden + h];
  grad_weight[h] = __float2bfloat16(sum);
}
