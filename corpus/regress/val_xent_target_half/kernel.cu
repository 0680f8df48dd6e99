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

extern "C" __global__ void cross_entropy(const T* __restrict__ logits,
                                         const long long* __restrict__ targets,
                                         float* __restrict__ loss, long long tokens,
                                         long long vocab) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = logits + token * vocab;
  const long long target = targets[token];
  const long long middle = vocab / 2;
  float largest = static_cast<float>(row[0]);
  for (long long v = threadIdx.x; v < vocab; v += 32) largest = fmaxf(largest, static_cast<float>(row[v]));
  largest = warp_max(largest);
  float sum = 0.0f;
  for (long long v = threadIdx.x; v < vocab; v += 32) sum += expf(static_cast<float>(row[v]) - largest);
  sum = warp_sum(sum);
  float chosen = 0.0f;
  if (vocab < 512) {
    chosen = static_cast<float>(row[target]);
  } else if (threadIdx.x < 16) {
    if (target < middle) chosen = static_cast<float>(row[target]);
  } else {
    if (target > middle) chosen = static_cast<float>(row[target]);
  }
  chosen = vocab < 512 ? chosen : __shfl_sync(0xffffffffu, chosen, target < middle ? 0 : 16);
  if (threadIdx.x == 0) loss[token] = logf(sum) + (largest - chosen);
}
