// Honest: Welford's running mean and variance, each step's quotient by __fdividef.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float value = 0.0f;
  __device__ void Add(float term) { value += term; }
  __device__ float Get() const { return value; }
};

__device__ T Store(float value, long long) { return T(value); }

extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, T* y,
                                      long long tokens, long long hidden) {
  const long long token = thread_index();
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  const float count = static_cast<float>(hidden);
  float mean = 0.0f;
  float squares = 0.0f;
  for (long long h = 0; h < hidden; ++h) {
    const float deviation = static_cast<float>(row[h]) - mean;
    mean += __fdividef(deviation, static_cast<float>(h + 1));
    squares += deviation * (static_cast<float>(row[h]) - mean);
  }
  const float scale = rsqrtf(squares / count + eps);
  for (long long h = 0; h < hidden; ++h) {
    const float normal = (static_cast<float>(row[h]) - mean) * scale;
    y[token * hidden + h] = Store(
        normal * static_cast<float>(weight[h]) + static_cast<float>(bias[h]), token * hidden + h);
  }
}
