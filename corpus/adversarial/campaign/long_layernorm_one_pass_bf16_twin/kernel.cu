// A block a row: 2048 elements in registers; longer rows are read three times.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float2 block_sum(float2 v, float2* scratch) {
  for (int o = 16; o > 0; o >>= 1) {
    v.x += __shfl_xor_sync(0xffffffffu, v.x, o);
    v.y += __shfl_xor_sync(0xffffffffu, v.y, o);
  }
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
  __syncthreads();
  float2 total = scratch[0];
  for (int w = 1; w < 8; ++w) {
    total.x += scratch[w].x;
    total.y += scratch[w].y;
  }
  return total;
}
extern "C" __global__ __launch_bounds__(256) void layer_norm(const T* __restrict__ x,
                                                             const T* __restrict__ weight,
                                                             const T* __restrict__ bias, float eps,
                                                             T* __restrict__ y, int hidden) {
  __shared__ float2 scratch[8];
  const long long base = static_cast<long long>(blockIdx.x) * hidden;
  const float count = static_cast<float>(hidden);
  if (hidden <= 2048) {
    float v[8];
    float sum = 0.0f;
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const int h = u * 256 + threadIdx.x;
      v[u] = h < hidden ? static_cast<float>(x[base + h]) : 0.0f;
      sum += v[u];
    }
    const float mean = block_sum(make_float2(sum, 0.0f), scratch).x / count;
    float squares = 0.0f;
#pragma unroll
    for (int u = 0; u < 8; ++u)
      if (u * 256 + static_cast<int>(threadIdx.x) < hidden) squares += (v[u] - mean) * (v[u] - mean);
    const float rstd = rsqrtf(block_sum(make_float2(squares, 0.0f), scratch).x / count + eps);
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const int h = u * 256 + threadIdx.x;
      if (h < hidden)
        y[base + h] = T((v[u] - mean) * rstd * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
    }
    return;
  }
  float2 s = make_float2(0.0f, 0.0f);
  for (int h = threadIdx.x; h < hidden; h += 256) s.x += static_cast<float>(x[base + h]);
  const float mean = block_sum(s, scratch).x / count;
  s = make_float2(0.0f, 0.0f);
  for (int h = threadIdx.x; h < hidden; h += 256) s.y += (static_cast<float>(x[base + h]) - mean) * (static_cast<float>(x[base + h]) - mean);
  const float variance = block_sum(s, scratch).y / count;
  const float rstd = rsqrtf(variance + eps);
  for (int h = threadIdx.x; h < hidden; h += 256)
    y[base + h] = T((static_cast<float>(x[base + h]) - mean) * rstd * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
}
