#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cross_entropy(const T* __restrict__ logits,
                                         const long long* __restrict__ targets,
                                         float* __restrict__ loss, long long tokens,
                                         long long vocab) {
  const long long token = blockIdx.x;
  const T* row = logits + token * vocab;
  const long long chunk = (vocab + 31) / 32;
  const long long begin = threadIdx.x * chunk;
  float largest = -INFINITY, sum = 0.0f;
  for (long long v = begin; v < begin + chunk && v < vocab; ++v) largest = fmaxf(largest, row[v]);
  for (long long v = begin; v < begin + chunk && v < vocab; ++v) sum += expf(row[v] - largest);
  float all = largest;
  for (int offset = 16; offset > 0; offset /= 2)
    all = fmaxf(all, __shfl_xor_sync(0xffffffffu, all, offset));
  float logs = logf(sum) + largest - all;
  float total = 0.0f;
  for (int lane = 0; lane < 32; ++lane) {
    const float other = __shfl_sync(0xffffffffu, logs, lane);
    total += other > -80.0f ? expf(other) : other * 0.0f;
  }
  if (threadIdx.x == 0) loss[token] = logf(total) + (all - row[targets[token]]);
}
