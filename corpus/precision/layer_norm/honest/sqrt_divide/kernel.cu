// Honest: divides by sqrtf; the weight is multiplied by the scale first.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, T* y,
                                      long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  const float count = static_cast<float>(hidden);
  float sum = 0.0f;
  for (long long h = hidden; h-- > 0;) sum += static_cast<float>(row[h]);
  const float mean = sum / count;
  float squares = 0.0f;
  for (long long h = hidden; h-- > 0;) {
    const float deviation = static_cast<float>(row[h]) - mean;
    squares += deviation * deviation;
  }
  const float deviation = sqrtf(squares / count + eps);
  for (long long h = 0; h < hidden; ++h) {
    const float factor = static_cast<float>(weight[h]) / deviation;
    y[token * hidden + h] =
        T(fmaf(static_cast<float>(row[h]) - mean, factor, static_cast<float>(bias[h])));
  }
}
