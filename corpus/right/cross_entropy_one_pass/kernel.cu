// Right: a block a token, running maximum and sum by the warps, joined in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cross_entropy(const T* __restrict__ logits,
                                         const long long* __restrict__ targets,
                                         float* __restrict__ loss, long long tokens,
                                         long long vocab) {
  __shared__ float largests[4];
  __shared__ float sums[4];
  const long long token = blockIdx.x;
  const T* row = logits + token * vocab;
  float largest = -3.0e38f;
  float sum = 0.0f;
  for (long long v = threadIdx.x; v < vocab; v += 128) {
    const float value = static_cast<float>(row[v]);
    if (value > largest) {
      sum *= expf(largest - value);
      largest = value;
    }
    sum += expf(value - largest);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other_largest = __shfl_xor_sync(0xffffffffu, largest, offset);
    const float other_sum = __shfl_xor_sync(0xffffffffu, sum, offset);
    const float joint = fmaxf(largest, other_largest);
    sum = sum * expf(largest - joint) + other_sum * expf(other_largest - joint);
    largest = joint;
  }
  if (threadIdx.x % 32 == 0) {
    largests[threadIdx.x / 32] = largest;
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < 4; ++warp) {
    const float joint = fmaxf(largest, largests[warp]);
    sum = sum * expf(largest - joint) + sums[warp] * expf(largests[warp] - joint);
    largest = joint;
  }
  loss[token] = logf(sum) + (largest - static_cast<float>(row[targets[token]]));
}
