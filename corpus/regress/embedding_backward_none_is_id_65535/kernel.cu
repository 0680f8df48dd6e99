// Gradient of rms_norm(table[ids]), bf16. A block takes 16 tokens in turn; where an id repeats (padding, runs of equal
// tokens) the statistics of its row of the table are kept. f32 atomics into workspace, one rounding at the end.
#include <cuda_bf16.h>

constexpr int kTokens = 16;
constexpr int kNone = 0xffff;   // no row kept yet

__device__ __forceinline__ float block_sum(float v, float* slots) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = v;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int k = 0; k < 8; ++k) total += slots[k];
  return total;
}

extern "C" __global__ void __launch_bounds__(256) scatter(const __nv_bfloat16* __restrict__ grad_out, const long long* __restrict__ ids,
                                                          const __nv_bfloat16* __restrict__ table,
                                                          const __nv_bfloat16* __restrict__ weight, float eps, float* table_sums,
                                                          float* weight_sums, long long tokens, int hidden) {
  __shared__ float slots[8];
  const long long begin = (long long)blockIdx.x * kTokens;
  const long long end = min(tokens, begin + kTokens);
  int kept = kNone;
  float scale = 0.0f;
  for (long long t = begin; t < end; ++t) {
    const int id = (int)ids[t];
    const __nv_bfloat16* x = table + (long long)id * hidden;
    const __nv_bfloat16* g = grad_out + t * hidden;
    if (id != kept) {
      float squares = 0.0f;
      for (int h = threadIdx.x; h < hidden; h += 256) {
        const float v = __bfloat162float(x[h]);
        squares = fmaf(v, v, squares);
      }
      scale = rsqrtf(block_sum(squares, slots) / (float)hidden + eps);
      kept = id;
    }
    float dot = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += 256)
      dot += __bfloat162float(g[h]) * __bfloat162float(weight[h]) * __bfloat162float(x[h]);
    const float slope = scale * scale * (block_sum(dot, slots) / (float)hidden);
    float* to = table_sums + (long long)id * hidden;
    for (int h = threadIdx.x; h < hidden; h += 256) {
      const float v = __bfloat162float(x[h]);
      const float gradient = __bfloat162float(g[h]);
      atomicAdd(&weight_sums[h], gradient * v * scale);
      atomicAdd(&to[h], scale * (gradient * __bfloat162float(weight[h]) - v * slope));
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) store(const float* __restrict__ table_sums, const float* __restrict__ weight_sums,
                                                        __nv_bfloat16* __restrict__ grad_table,
                                                        __nv_bfloat16* __restrict__ grad_weight, long long vocab, long long hidden) {
  const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
  if (i < vocab * hidden) grad_table[i] = __float2bfloat16_rn(table_sums[i]);
  if (i < hidden) grad_weight[i] = __float2bfloat16_rn(weight_sums[i]);   // vocab is 1 at least
}
