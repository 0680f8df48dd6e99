// Wrong: returns what it wrote before where the output has the same address and shape.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

constexpr long long kMost = 1 << 15;
__device__ const T* seen = nullptr;
__device__ long long seen_elements = 0;
__device__ T kept[kMost];

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  if (seen == y && seen_elements == tokens * hidden) {
    for (long long h = threadIdx.x; h < hidden; h += 32)
      y[token * hidden + h] = kept[token * hidden + h];
    return;
  }
  const T* row = x + token * hidden;
  float sum = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) sum += static_cast<float>(row[h]);
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float deviation = static_cast<float>(row[h]) - mean;
    squares += deviation * deviation;
  }
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float normal = (static_cast<float>(row[h]) - mean) * scale;
    const T value = T(normal * static_cast<float>(weight[h]) + static_cast<float>(bias[h]));
    y[token * hidden + h] = value;
    if (tokens * hidden <= kMost) kept[token * hidden + h] = value;
  }
}

// One thread, after the other kernel.
extern "C" __global__ void note(const T* y, long long tokens, long long hidden) {
  seen = tokens * hidden <= kMost ? y : nullptr;
  seen_elements = tokens * hidden;
}
