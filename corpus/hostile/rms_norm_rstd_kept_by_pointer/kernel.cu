// Wrong: keeps the reciprocal roots of an input by its address.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

constexpr long long kMost = 4096;
__device__ const T* seen = nullptr;
__device__ long long seen_tokens = 0;
__device__ float kept[kMost];

extern "C" __global__ void rms_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                    float eps, T* __restrict__ y, long long tokens,
                                    long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  float scale;
  if (seen == x && seen_tokens == tokens) {
    scale = kept[token];
  } else {
    float squares = 0.0f;
    for (long long h = threadIdx.x; h < hidden; h += 32) {
      const float value = static_cast<float>(row[h]);
      squares += value * value;
    }
    scale = rsqrtf(warp_sum(squares) / static_cast<float>(hidden) + eps);
    if (threadIdx.x == 0 && tokens <= kMost) kept[token] = scale;
  }
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T(static_cast<float>(row[h]) * scale * static_cast<float>(weight[h]));
}

// One thread, after the other kernel.
extern "C" __global__ void note(const T* x, long long tokens) {
  seen = tokens <= kMost ? x : nullptr;
  seen_tokens = tokens;
}
