// Gradient of rms_norm(table[ids]) with respect to table and weight, without atomics on floats where rows are cool: tokens are
// binned by id (count, scan, scatter), and a block adds up the tokens of one row of the table. Hot rows, of more than 4096
// tokens, are cut into pieces of the sorted order instead, whose sums meet in an f32 table of hot rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr unsigned kHot = 4096;
constexpr int kPiece = 1024;       // sorted tokens of a block, where rows are hot
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

// One block: where the tokens of each id begin, and which ids are hot.
extern "C" __global__ void __launch_bounds__(kScanThreads)
scan_counts(const unsigned* __restrict__ count, unsigned* __restrict__ first, unsigned* __restrict__ cursor,
            int* __restrict__ hot_of, unsigned* __restrict__ hot_ids, unsigned* hot_count, long long vocab) {
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
      int hot = -1;
      if (n > kHot) {
        hot = static_cast<int>(atomicAdd(hot_count, 1u));
        hot_ids[hot] = static_cast<unsigned>(id);
      }
      hot_of[id] = hot;
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
cool_rows(const T* __restrict__ grad_out, const T* __restrict__ table, const T* __restrict__ weight,
          const float* __restrict__ scale, const float* __restrict__ slope, const unsigned* __restrict__ count,
          const unsigned* __restrict__ first, const int* __restrict__ hot_of, const unsigned* __restrict__ order,
          T* __restrict__ grad_table, long long hidden) {
  const long long id = blockIdx.x;
  const long long h = static_cast<long long>(blockIdx.y) * kThreads + threadIdx.x;
  if (h >= hidden || hot_of[id] >= 0) return;
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

// One block 256 columns of kPiece tokens in sorted order, of which it takes those of hot rows.
extern "C" __global__ void __launch_bounds__(kThreads)
hot_pieces(const T* __restrict__ grad_out, const long long* __restrict__ ids, const T* __restrict__ table,
           const T* __restrict__ weight, const float* __restrict__ scale, const float* __restrict__ slope,
           const int* __restrict__ hot_of, const unsigned* __restrict__ order, float* hot_sums, long long tokens,
           long long hidden) {
  const long long h = static_cast<long long>(blockIdx.y) * kThreads + threadIdx.x;
  if (h >= hidden) return;
  const long long begin = static_cast<long long>(blockIdx.x) * kPiece;
  const long long end = begin + kPiece < tokens ? begin + kPiece : tokens;
  const float w = static_cast<float>(weight[h]);
  int hot = -1;
  long long current = -1;
  float sum = 0.0f, value = 0.0f;
  for (long long i = begin; i < end; ++i) {
    const long long token = order[i];
    const long long id = ids[token];
    if (id != current) {
      if (hot >= 0) atomicAdd(&hot_sums[hot * hidden + h], sum);
      current = id;
      hot = hot_of[id];
      sum = 0.0f;
      value = static_cast<float>(table[id * hidden + h]);
    }
    if (hot < 0) continue;
    sum += scale[token] * (static_cast<float>(grad_out[token * hidden + h]) * w - value * slope[token]);
  }
  if (hot >= 0) atomicAdd(&hot_sums[hot * hidden + h], sum);
}

extern "C" __global__ void __launch_bounds__(kThreads)
hot_rows(const float* __restrict__ hot_sums, const unsigned* __restrict__ hot_ids,
         const unsigned* __restrict__ hot_count, T* __restrict__ grad_table, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.y) * kThreads + threadIdx.x;
  if (blockIdx.x >= *hot_count || h >= hidden) return;
  const long long id = hot_ids[blockIdx.x];
  grad_table[id * hidden + h] = T(hot_sums[blockIdx.x * hidden + h]);
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
