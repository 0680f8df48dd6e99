// Right: atomics into sums, a warp a token in turns of 1024 blocks; then one rounding.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// A warp a token, in turns.
extern "C" __global__ void scatter(const T* __restrict__ grad_out,
                                   const long long* __restrict__ ids, const T* __restrict__ table,
                                   const T* __restrict__ weight, float eps, float* table_sums,
                                   float* weight_sums, long long tokens, long long hidden) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
       token < tokens; token += step) {
    const long long id = ids[token];
    const T* g = grad_out + token * hidden;
    const T* x = table + id * hidden;
    float squares = 0.0f;
    float dot = 0.0f;
    for (long long h = threadIdx.x; h < hidden; h += 32) {
      const float value = static_cast<float>(x[h]);
      squares += value * value;
      dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * value;
    }
    squares = warp_sum(squares);
    dot = warp_sum(dot);
    const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
    const float slope = scale * scale * (dot / static_cast<float>(hidden));
    for (long long h = threadIdx.x; h < hidden; h += 32) {
      const float value = static_cast<float>(x[h]);
      const float gradient = static_cast<float>(g[h]);
      atomicAdd(&weight_sums[h], gradient * value * scale);
      atomicAdd(&table_sums[id * hidden + h],
                scale * (gradient * static_cast<float>(weight[h]) - value * slope));
    }
  }
}

extern "C" __global__ void store(const float* __restrict__ table_sums,
                                 const float* __restrict__ weight_sums,
                                 T* __restrict__ grad_table, T* __restrict__ grad_weight,
                                 long long vocab, long long hidden) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (long long i = first; i < vocab * hidden; i += step) grad_table[i] = T(table_sums[i]);
  for (long long h = first; h < hidden; h += step) grad_weight[h] = T(weight_sums[h]);
}
