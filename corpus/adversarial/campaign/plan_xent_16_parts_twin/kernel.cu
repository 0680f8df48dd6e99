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

extern "C" __global__ void parts(const T* __restrict__ logits, float* __restrict__ maxima,
                                 float* __restrict__ sums, long long tokens, long long vocab) {
  const long long token = blockIdx.x, part = blockIdx.y;
  const T* row = logits + token * vocab;
  const long long first = part * 2048, last = first + 2048 < vocab ? first + 2048 : vocab;
  float largest = -INFINITY;
  for (long long v = first + threadIdx.x; v < last; v += 32) largest = fmaxf(largest, static_cast<float>(row[v]));
  largest = warp_max(largest);
  float sum = 0.0f;
  for (long long v = first + threadIdx.x; v < last; v += 32) sum += expf(static_cast<float>(row[v]) - largest);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) {
    maxima[token * gridDim.y + part] = largest;
    sums[token * gridDim.y + part] = sum;
  }
}

extern "C" __global__ void merge(const T* __restrict__ logits, const long long* __restrict__ targets,
                                 const float* __restrict__ maxima, const float* __restrict__ sums,
                                 float* __restrict__ loss, long long tokens, long long vocab) {
  const long long token = blockIdx.x * 32LL + threadIdx.x;
  if (token >= tokens) return;
  const long long count = (vocab + 2047) / 2048;
  float largest = -INFINITY;
  for (long long i = 0; i < count; ++i) largest = fmaxf(largest, maxima[token * count + i]);
  float sum = 0.0f;
  for (long long i = 0; i < count; ++i) sum += sums[token * count + i] * expf(maxima[token * count + i] - largest);
  loss[token] = logf(sum) + (largest - static_cast<float>(logits[token * vocab + targets[token]]));
}
