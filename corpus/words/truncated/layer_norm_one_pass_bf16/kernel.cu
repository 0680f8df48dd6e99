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
    const float value = static_cast<float>(row[h]);
    sum += value;
    squares += value * value;
  }
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  const float variance = fmaxf(warp_sum(squares) / static_cast<float>(hidden) - mean * mean, 0.0f);
  const float scale = rsqrtf(variance + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T((static_cast<float>(row[h]) - mean) * scale *
                                  static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
}
