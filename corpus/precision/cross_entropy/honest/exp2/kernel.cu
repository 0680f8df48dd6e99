// Honest: exp2f and log2f with their constants.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cross_entropy(const T* logits, const long long* targets, float* loss,
                                         long long tokens, long long vocab) {
  const long long token = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  const T* row = logits + token * vocab;
  constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
  float largest = static_cast<float>(row[0]);
  for (long long j = 1; j < vocab; ++j) largest = fmaxf(largest, static_cast<float>(row[j]));
  float sum = 0.0f;
  for (long long j = 0; j < vocab; ++j)
    sum += exp2f((static_cast<float>(row[j]) - largest) * kLog2e);
  loss[token] = log2f(sum) * kLn2 + (largest - static_cast<float>(row[targets[token]]));
}
