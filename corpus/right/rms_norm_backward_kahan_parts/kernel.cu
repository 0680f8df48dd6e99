// Rows by warps, columns in sixteen fixed parts; parts and their sum carry what they lost (Kahan).
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
extern "C" __global__ void parts(const T* __restrict__ x, const T* __restrict__ grad_out,
                                 const float* __restrict__ rstd, float* __restrict__ part,
                                 long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (h >= hidden) return;
  float sum = 0.0f, lost = 0.0f;
  for (long long token = blockIdx.y; token < tokens; token += 16) {
    const float term = static_cast<float>(grad_out[token * hidden + h]) *
                       static_cast<float>(x[token * hidden + h]) * rstd[token];
    const float y = term - lost;
    const float t = sum + y;
    lost = (t - sum) - y;
    sum = t;
  }
  part[blockIdx.y * hidden + h] = sum;
}
extern "C" __global__ void columns(const float* __restrict__ part, T* __restrict__ grad_weight,
                                   long long tokens, long long hidden) {
  const long long h = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (h >= hidden) return;
  float sum = 0.0f, lost = 0.0f;
  for (int i = 0; i < 16; ++i) {
    const float y = part[i * hidden + h] - lost;
    const float t = sum + y;
    lost = (t - sum) - y;
    sum = t;
  }
  grad_weight[h] = T(sum);
}
