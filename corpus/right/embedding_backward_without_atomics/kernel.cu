// Right: scales first, then a thread a column in the order of tokens: the same bits on every run.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One warp a token: the two numbers that its row's gradient needs.
extern "C" __global__ void prepare(const T* __restrict__ grad_out,
                                   const long long* __restrict__ ids, const T* __restrict__ table,
                                   const T* __restrict__ weight, float eps, float* scales,
                                   float* slopes, long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* g = grad_out + token * hidden;
  const T* x = table + ids[token] * hidden;
  float squares = 0.0f;
  float dot = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares += value * value;
    dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * value;
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  if (threadIdx.x != 0) return;
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  scales[token] = scale;
  slopes[token] = scale * scale * (dot / static_cast<float>(hidden));
}

extern "C" __global__ void table_gradient(const T* __restrict__ grad_out,
                                          const long long* __restrict__ ids,
                                          const T* __restrict__ table,
                                          const T* __restrict__ weight, const float* scales,
                                          const float* slopes, T* __restrict__ grad_table,
                                          long long tokens, long long hidden, long long vocab) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vocab * hidden) return;
  const long long id = i / hidden;
  const long long h = i % hidden;
  const float value = static_cast<float>(table[i]);
  const float w = static_cast<float>(weight[h]);
  float sum = 0.0f;
  for (long long t = 0; t < tokens; ++t) {
    if (ids[t] != id) continue;
    sum += scales[t] * (static_cast<float>(grad_out[t * hidden + h]) * w - value * slopes[t]);
  }
  grad_table[i] = T(sum);
}

extern "C" __global__ void weight_gradient(const T* __restrict__ grad_out,
                                           const long long* __restrict__ ids,
                                           const T* __restrict__ table, const float* scales,
                                           T* __restrict__ grad_weight, long long tokens,
                                           long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (h >= hidden) return;
  float sum = 0.0f;
  for (long long t = 0; t < tokens; ++t) {
    sum += static_cast<float>(grad_out[t * hidden + h]) *
           static_cast<float>(table[ids[t] * hidden + h]) * scales[t];
  }
  grad_weight[h] = T(sum);
}
