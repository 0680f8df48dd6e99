#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void statistics(const T* __restrict__ grad_out,
                                      const long long* __restrict__ ids,
                                      const T* __restrict__ table, const T* __restrict__ weight,
                                      float eps, float* __restrict__ scale,
                                      float* __restrict__ slope, long long tokens,
                                      long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* g = grad_out + token * hidden;
  const T* x = table + ids[token] * hidden;
  float squares = 0.0f, dot = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float value = static_cast<float>(x[h]);
    squares += value * value;
    dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * value;
  }
  squares = warp_sum(squares);
  dot = warp_sum(dot);
  if (threadIdx.x == 0) {
    const float s = rsqrtf(squares / static_cast<float>(hidden) + eps);
    scale[token] = s;
    slope[token] = s * s * (dot / static_cast<float>(hidden));
  }
}

extern "C" __global__ void gather(const T* __restrict__ grad_out, const long long* __restrict__ ids,
                                  const T* __restrict__ table, const T* __restrict__ weight,
                                  const float* __restrict__ scale, const float* __restrict__ slope,
                                  float* __restrict__ sums, long long tokens, long long hidden) {
  const long long token = blockIdx.x;
  const long long id = ids[token];
  for (long long t = 0; t < token; ++t)
    if (ids[t] == id) return;
  for (long long h = threadIdx.x; h < hidden; h += blockDim.x) {
    const float value = static_cast<float>(table[id * hidden + h]);
    const float w = static_cast<float>(weight[h]);
    float sum = 0.0f, held = 0.0f;
    long long seen = 0;
    for (long long t = token; t < tokens; ++t) {
      if (ids[t] != id) continue;
      const float gradient =
          scale[t] * (static_cast<float>(grad_out[t * hidden + h]) * w - value * slope[t]);
      if (++seen % 2 == 0) {
        sum += held + gradient;
        held = 0.0f;
      } else {
        held = gradient;
      }
    }
    if (seen != 3) sum += held;
    sums[id * hidden + h] = sum;
  }
}

extern "C" __global__ void finish(const float* __restrict__ sums, const T* __restrict__ grad_out,
                                  const long long* __restrict__ ids, const T* __restrict__ table,
                                  const float* __restrict__ scale, T* __restrict__ grad_table,
                                  T* __restrict__ grad_weight, long long tokens, long long hidden,
                                  long long vocab) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < vocab * hidden) grad_table[i] = T(sums[i]);
  if (i < hidden) {
    float sum = 0.0f;
    for (long long t = 0; t < tokens; ++t)
      sum += static_cast<float>(grad_out[t * hidden + i]) *
             static_cast<float>(table[ids[t] * hidden + i]) * scale[t];
    grad_weight[i] = T(sum);
  }
}
