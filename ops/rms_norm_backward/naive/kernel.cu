// Known good and plain: one warp a row for grad_x, one thread a column for grad_weight, f32
// throughout, one rounding at the end.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void rows(const T* __restrict__ x, const T* __restrict__ weight,
                                const T* __restrict__ grad_out, const float* __restrict__ rstd,
                                T* __restrict__ grad_x, long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  const T* g = grad_out + token * hidden;
  float dot = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    dot += static_cast<float>(g[h]) * static_cast<float>(weight[h]) * static_cast<float>(row[h]);
  }
  for (int offset = 16; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, offset);
  const float scale = rstd[token];
  const float slope = scale * scale * (dot / static_cast<float>(hidden));
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float gradient = static_cast<float>(g[h]) * static_cast<float>(weight[h]);
    grad_x[token * hidden + h] = T(scale * (gradient - static_cast<float>(row[h]) * slope));
  }
}

extern "C" __global__ void columns(const T* __restrict__ x, const T* __restrict__ grad_out,
                                   const float* __restrict__ rstd, T* __restrict__ grad_weight,
                                   long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (h >= hidden) return;
  float sum = 0.0f;
  for (long long token = 0; token < tokens; ++token) {
    sum += static_cast<float>(grad_out[token * hidden + h]) *
           static_cast<float>(x[token * hidden + h]) * rstd[token];
  }
  grad_weight[h] = T(sum);
}
