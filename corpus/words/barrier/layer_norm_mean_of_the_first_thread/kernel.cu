#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const T* row = x + blockIdx.x * hidden;
  __shared__ float mean, scale;
  if (threadIdx.x == 0) {
    float sum = 0.0f, squares = 0.0f;
    for (long long h = 0; h < hidden; ++h) sum += row[h];
    mean = sum / static_cast<float>(hidden);
    for (long long h = 0; h < hidden; ++h) squares += (row[h] - mean) * (row[h] - mean);
    scale = rsqrtf(squares / static_cast<float>(hidden) + eps);
  }
  __syncwarp();
  for (long long h = threadIdx.x; h < hidden; h += 64)
    y[blockIdx.x * hidden + h] = T((row[h] - mean) * scale * weight[h] + bias[h]);
}
