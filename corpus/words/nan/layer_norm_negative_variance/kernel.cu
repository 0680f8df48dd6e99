#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float sum = 0.0f, squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    sum += row[h];
    squares += row[h] * row[h];
  }
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  const float variance = warp_sum(squares) / static_cast<float>(hidden) - mean * mean;
  const float scale = 1.0f / sqrtf(variance + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T((row[h] - mean) * scale * weight[h] + bias[h]);
}
