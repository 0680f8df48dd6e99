// Honest: a warp a token; the target's distance from the maximum is taken first.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float WarpSum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

__device__ float WarpMax(float value) {
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

extern "C" __global__ void cross_entropy(const T* logits, const long long* targets, float* loss,
                                         long long tokens, long long vocab) {
  const T* row = logits + blockIdx.x * vocab;
  float largest = static_cast<float>(row[0]);
  for (long long j = threadIdx.x; j < vocab; j += 32)
    largest = fmaxf(largest, static_cast<float>(row[j]));
  largest = WarpMax(largest);
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < vocab; j += 32)
    sum += expf(static_cast<float>(row[j]) - largest);
  sum = WarpSum(sum);
  if (threadIdx.x == 0)
    loss[blockIdx.x] = logf(sum) - (static_cast<float>(row[targets[blockIdx.x]]) - largest);
}
