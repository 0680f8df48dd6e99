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
  const int lane = threadIdx.x;
  float largest = static_cast<float>(row[0]);
  for (long long v = lane; v < vocab; v += 32) largest = fmaxf(largest, static_cast<float>(row[v]));
  largest = warp_max(largest);
  float sum = 0.0f;
  if (vocab <= 1024) {
    for (long long v = lane; v < vocab; v += 32) sum += expf(static_cast<float>(row[v]) - largest);
  } else {
    const long long whole = vocab / 4 * 4;
    for (long long v = 4 * lane; v < whole; v += 128) {
      sum += expf(static_cast<float>(row[v]) - largest);
      sum += expf(static_cast<float>(row[v + 1]) - largest);
      sum += expf(static_cast<float>(row[v + 2]) - largest);
      sum += expf(static_cast<float>(row[v + 3]) - largest);
    }
    const int tail = static_cast<int>(vocab & 3);
    const int live = tail & 2 ? 2 : tail & 1;
    if (lane < live) sum += expf(static_cast<float>(row[whole + lane]) - largest);
  }
  sum = warp_sum(sum);
  if (lane == 0) loss[token] = logf(sum) + (largest - static_cast<float>(row[targets[token]]));
}
