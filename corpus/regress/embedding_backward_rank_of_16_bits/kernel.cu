#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;


// Tokens are sorted by id (count, scan, place), so that each row of the table's gradient is added up by one block, without float atomics.
using Rank = unsigned short;

__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// A warp a token: the two numbers that its row shares, and its rank among the tokens of its id.
extern "C" __global__ void statistics(const T* __restrict__ grad_out, const long long* __restrict__ ids, const T* __restrict__ table,
                                      const T* __restrict__ weight, float eps, float2* __restrict__ stats,
                                      unsigned* __restrict__ counts, Rank* __restrict__ ranks, long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const long long id = ids[token];
  const T* g = grad_out + token * hidden;
  const T* x = table + id * hidden;
  float squares = 0.0f, dot = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares = fmaf(value, value, squares);
    dot = fmaf(static_cast<float>(g[h]) * static_cast<float>(weight[h]), value, dot);
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  if (threadIdx.x == 0) {
    const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
    stats[token] = make_float2(scale, scale * scale * (dot / static_cast<float>(hidden)));
    ranks[token] = static_cast<Rank>(atomicAdd(&counts[id], 1u));
  }
}

// One block: starts[v] = how many tokens have an id below v.
extern "C" __global__ void __launch_bounds__(1024) scan(const unsigned* __restrict__ counts, unsigned* __restrict__ starts, int vocab) {
  __shared__ unsigned warps[32];
  const int each = (vocab + 1023) / 1024;
  const int begin = threadIdx.x * each;
  const int end = min(begin + each, vocab);
  unsigned mine = 0;
  for (int v = begin; v < end; ++v) mine += counts[v];
  unsigned inclusive = mine;
  const int lane = threadIdx.x % 32;
  for (int offset = 1; offset < 32; offset <<= 1) {
    const unsigned left = __shfl_up_sync(0xffffffffu, inclusive, offset);
    if (lane >= offset) inclusive += left;
  }
  if (lane == 31) warps[threadIdx.x / 32] = inclusive;
  __syncthreads();
  unsigned start = inclusive - mine;
  for (int w = 0; w < static_cast<int>(threadIdx.x / 32); ++w) start += warps[w];
  for (int v = begin; v < end; ++v) {
    starts[v] = start;
    start += counts[v];
  }
}

extern "C" __global__ void place(const long long* __restrict__ ids, const unsigned* __restrict__ starts, const Rank* __restrict__ ranks,
                                 unsigned* __restrict__ order, long long tokens) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token < tokens) order[starts[ids[token]] + ranks[token]] = static_cast<unsigned>(token);
}

// A block a row of the table.
extern "C" __global__ void gather_rows(const T* __restrict__ grad_out, const T* __restrict__ table, const T* __restrict__ weight,
                                       const float2* __restrict__ stats, const unsigned* __restrict__ counts,
                                       const unsigned* __restrict__ starts, const unsigned* __restrict__ order,
                                       T* __restrict__ grad_table, long long hidden) {
  const long long row = blockIdx.x;
  const unsigned count = counts[row];
  const unsigned* mine = order + starts[row];
  for (long long h = threadIdx.x; h < hidden; h += blockDim.x) {
    float sum = 0.0f;
    if (count != 0) {
      const float x = static_cast<float>(table[row * hidden + h]);
      const float w = static_cast<float>(weight[h]);
      for (unsigned i = 0; i < count; ++i) {
        const long long token = mine[i];
        const float2 s = stats[token];
        sum += s.x * (static_cast<float>(grad_out[token * hidden + h]) * w - x * s.y);
      }
    }
    grad_table[row * hidden + h] = T(sum);
  }
}

// Parts of the tokens, then the parts.
extern "C" __global__ void weight_parts(const T* __restrict__ grad_out, const long long* __restrict__ ids, const T* __restrict__ table,
                                        const float2* __restrict__ stats, float* __restrict__ parts, long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (h >= hidden) return;
  float sum = 0.0f;
  for (long long token = blockIdx.y; token < tokens; token += gridDim.y)
    sum += static_cast<float>(grad_out[token * hidden + h]) * static_cast<float>(table[ids[token] * hidden + h]) * stats[token].x;
  parts[blockIdx.y * hidden + h] = sum;
}

extern "C" __global__ void weight_sums(const float* __restrict__ parts, T* __restrict__ grad_weight, long long hidden, long long tokens) {
  const long long h = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (h >= hidden) return;
  const int count = tokens < 256 ? static_cast<int>(tokens) : 256;
  float sum = 0.0f;
  for (int p = 0; p < count; ++p) sum += parts[p * hidden + h];
  grad_weight[h] = T(sum);
}
