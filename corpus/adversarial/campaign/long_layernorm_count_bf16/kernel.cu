#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

struct Welford {
  float mean = 0.0f, m2 = 0.0f;
  __nv_bfloat16 count = __nv_bfloat16(0.0f);

  __device__ void add(float value) {
    count = __nv_bfloat16(static_cast<float>(count) + 1.0f);
    const float delta = value - mean;
    mean += delta / static_cast<float>(count);
    m2 += delta * (value - mean);
  }
};

extern "C" __global__ void layer_norm(const T* __restrict__ x, const T* __restrict__ weight,
                                      const T* __restrict__ bias, float eps, T* __restrict__ y,
                                      long long tokens, long long hidden) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  Welford lane;
  for (long long h = threadIdx.x; h < hidden; h += 32) lane.add(static_cast<float>(row[h]));
  const float size = static_cast<float>(hidden);
  const float mine = static_cast<float>((hidden - threadIdx.x + 31) / 32);
  const float mean = warp_sum(lane.mean * mine) / size;
  const float apart = lane.mean - mean;
  const float variance = warp_sum(lane.m2 + apart * apart * mine) / size;
  const float scale = rsqrtf(variance + eps);
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[token * hidden + h] = T((static_cast<float>(row[h]) - mean) * scale * static_cast<float>(weight[h]) +
                              static_cast<float>(bias[h]));
}
