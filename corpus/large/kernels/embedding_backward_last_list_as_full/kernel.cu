// Wrong: Gradient of rms_norm(table[ids]) with respect to table and weight, without atomics on floats: tokens are binned by id
// (count, scan, scatter), and a block adds up the tokens of one row of the table.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kList = 4096;  // tokens of a row that are staged at once
constexpr int kPiece = 1024;  // tokens of a block that adds up grad_weight
constexpr int kScanThreads = 1024;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One warp a token: the two numbers that its row shares, and the count of its id.
extern "C" __global__ void __launch_bounds__(kThreads)
statistics(const T* __restrict__ grad_out, const long long* __restrict__ ids, const T* __restrict__ table,
           const T* __restrict__ weight, float eps, float* __restrict__ scale, float* __restrict__ slope,
           unsigned* count, long long tokens, long long hidden) {
  const int lane = threadIdx.x % 32;
  const long long token = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  const long long id = ids[token];
  const T* g = grad_out + token * hidden;
  const T* x = table + id * hidden;
  float squares = 0.0f, dot = 0.0f;
#pragma unroll 4
  for (long long h = lane; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares += value * value;
    dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * value;
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  if (lane == 0) {
    const float s = rsqrtf(squares / static_cast<float>(hidden) + eps);
    scale[token] = s;
    slope[token] = s * s * (dot / static_cast<float>(hidden));
    atomicAdd(&count[id], 1u);
  }
}

// One block: where the tokens of each id begin.
extern "C" __global__ void __launch_bounds__(kScanThreads)
scan_counts(const unsigned* __restrict__ count, unsigned* __restrict__ first, unsigned* __restrict__ cursor,
            long long vocab) {
  __shared__ unsigned warp_totals[kScanThreads / 32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  unsigned carry = 0;
  for (long long start = 0; start < vocab; start += kScanThreads) {
    const long long id = start + threadIdx.x;
    const unsigned n = id < vocab ? count[id] : 0;
    unsigned through = n;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const unsigned left = __shfl_up_sync(0xffffffffu, through, offset);
      if (lane >= offset) through += left;
    }
    if (lane == 31) warp_totals[warp] = through;
    __syncthreads();
    unsigned before = carry;
    for (int w = 0; w < warp; ++w) before += warp_totals[w];
    unsigned all = carry;
    for (int w = 0; w < kScanThreads / 32; ++w) all += warp_totals[w];
    if (id < vocab) {
      first[id] = cursor[id] = before + through - n;
    }
    carry = all;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
bin_tokens(const long long* __restrict__ ids, unsigned* cursor, unsigned* __restrict__ order, long long tokens) {
  const long long token = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (token < tokens) order[atomicAdd(&cursor[ids[token]], 1u)] = static_cast<unsigned>(token);
}

// One block 256 columns of a row of the table.
extern "C" __global__ void __launch_bounds__(kThreads)
narrow_rows(const T* __restrict__ grad_out, const T* __restrict__ table, const T* __restrict__ weight,
          const float* __restrict__ scale, const float* __restrict__ slope, const unsigned* __restrict__ count,
          const unsigned* __restrict__ first, const unsigned* __restrict__ order, T* __restrict__ grad_table,
          long long hidden) {
  const long long id = blockIdx.x;
  const long long h = static_cast<long long>(blockIdx.y) * kThreads + threadIdx.x;
  if (h >= hidden) return;
  const unsigned n = count[id];
  float sum = 0.0f;
  if (n > 0) {
    const unsigned* tokens_of_id = order + first[id];
    const float value = static_cast<float>(table[id * hidden + h]);
    const float w = static_cast<float>(weight[h]);
#pragma unroll 4
    for (unsigned i = 0; i < n; ++i) {
      const long long token = tokens_of_id[i];
      sum += scale[token] * (static_cast<float>(grad_out[token * hidden + h]) * w - value * slope[token]);
    }
  }
  grad_table[id * hidden + h] = T(sum);
}

// The same for wide rows: 1024 columns a block, and what all of them need of the tokens staged in shared memory.
extern "C" __global__ void __launch_bounds__(kThreads)
wide_rows(const T* __restrict__ grad_out, const T* __restrict__ table, const T* __restrict__ weight,
          const float* __restrict__ scale, const float* __restrict__ slope, const unsigned* __restrict__ count,
          const unsigned* __restrict__ first, const unsigned* __restrict__ order, T* __restrict__ grad_table,
          long long hidden) {
  __shared__ unsigned token_of[kList];
  __shared__ float scale_of[kList];
  __shared__ float slope_of[kList];
  const long long id = blockIdx.x;
  const long long h0 = static_cast<long long>(blockIdx.y) * (kThreads * 4) + threadIdx.x;
  const unsigned n = count[id];
  float value[4], w[4], sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const long long h = h0 + c * kThreads;
    value[c] = n > 0 && h < hidden ? static_cast<float>(table[id * hidden + h]) : 0.0f;
    w[c] = n > 0 && h < hidden ? static_cast<float>(weight[h]) : 0.0f;
  }
  const int staged = n < kList ? static_cast<int>(n) : kList;
  for (unsigned base = 0; base < n; base += kList) {
    for (unsigned i = threadIdx.x; i < kList && base + i < n; i += kThreads) {
      const unsigned token = order[first[id] + base + i];
      token_of[i] = token;
      scale_of[i] = scale[token];
      slope_of[i] = slope[token];
    }
    __syncthreads();
#pragma unroll 2
    for (int i = 0; i < staged; ++i) {
      const T* g = grad_out + static_cast<long long>(token_of[i]) * hidden;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const long long h = h0 + c * kThreads;
        if (h < hidden) sum[c] += scale_of[i] * (static_cast<float>(g[h]) * w[c] - value[c] * slope_of[i]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const long long h = h0 + c * kThreads;
    if (h < hidden) grad_table[id * hidden + h] = T(sum[c]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
weight_pieces(const T* __restrict__ grad_out, const long long* __restrict__ ids, const T* __restrict__ table,
              const float* __restrict__ scale, float* __restrict__ partial, long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.y) * kThreads + threadIdx.x;
  if (h >= hidden) return;
  const long long begin = static_cast<long long>(blockIdx.x) * kPiece;
  const long long end = begin + kPiece < tokens ? begin + kPiece : tokens;
  float sum = 0.0f;
#pragma unroll 4
  for (long long token = begin; token < end; ++token)
    sum += static_cast<float>(grad_out[token * hidden + h]) * static_cast<float>(table[ids[token] * hidden + h]) *
           scale[token];
  partial[blockIdx.x * hidden + h] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
weight_sums(const float* __restrict__ partial, T* __restrict__ grad_weight, long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (h >= hidden) return;
  const long long pieces = (tokens + kPiece - 1) / kPiece;
  float sum = 0.0f;
  for (long long p = 0; p < pieces; ++p) sum += partial[p * hidden + h];
  grad_weight[h] = T(sum);
}
