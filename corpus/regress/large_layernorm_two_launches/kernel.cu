#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

extern "C" __global__ void stats(const T* __restrict__ x, float eps, float* __restrict__ kept,
                                 long long tokens, long long hidden) {
  const long long token = blockIdx.x;
  const T* row = x + token * hidden;
  float sum = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) sum += static_cast<float>(row[h]);
  const float mean = warp_sum(sum) / static_cast<float>(hidden);
  float squares = 0.0f;
  for (long long h = threadIdx.x; h < hidden; h += 32) {
    const float off = static_cast<float>(row[h]) - mean;
    squares += off * off;
  }
  squares = warp_sum(squares);
  if (threadIdx.x != 0) return;
  kept[2 * token] = mean;
  kept[2 * token + 1] = rsqrtf(squares / static_cast<float>(hidden) + eps);
}

extern "C" __global__ void apply(const T* __restrict__ x, const T* __restrict__ weight,
                                 const T* __restrict__ bias, const float* __restrict__ kept,
                                 T* __restrict__ y, long long tokens, long long hidden) {
  const long long token = blockIdx.x;
  const unsigned first = static_cast<unsigned>(token) * static_cast<unsigned>(hidden);
  for (long long h = threadIdx.x; h < hidden; h += 32)
    y[first + h] = T((static_cast<float>(x[first + h]) - kept[2 * token]) * kept[2 * token + 1] *
                         static_cast<float>(weight[h]) +
                     static_cast<float>(bias[h]));
}
