// Honest: y = x * a + (bias - mean * a), two instructions an element.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, T* y,
                                      long long tokens, long long hidden) {
  const long long token = thread_index();
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float sum = 0.0f;
  for (long long h = 0; h < hidden; ++h) sum += static_cast<float>(row[h]);
  const float mean = sum / static_cast<float>(hidden);
  float squares = 0.0f;
  for (long long h = 0; h < hidden; ++h) {
    const float deviation = static_cast<float>(row[h]) - mean;
    squares += deviation * deviation;
  }
  const float scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  for (long long h = 0; h < hidden; ++h) {
    const float factor = scale * static_cast<float>(weight[h]);
    const float shift = static_cast<float>(bias[h]) - mean * factor;
    y[token * hidden + h] = T(static_cast<float>(row[h]) * factor + shift);
  }
}
