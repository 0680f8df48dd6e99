// Right: eight parts of a row in one pass each, merged by a second launch that takes two tokens a turn.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kVocab = 128256;
constexpr int kParts = 8;
constexpr int kPart = kVocab / kParts;  // 16032, a multiple of 8

struct alignas(16) Vec {
  T e[8];
};

struct Running {
  float largest;
  float sum;
};

__device__ Running combine(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float from_a = a.largest == largest ? a.sum : a.sum * expf(a.largest - largest);
  const float from_b = b.largest == largest ? b.sum : b.sum * expf(b.largest - largest);
  return {largest, from_a + from_b};
}

extern "C" __global__ void __launch_bounds__(256)
    part(const T* __restrict__ logits, float* __restrict__ most, float* __restrict__ total) {
  __shared__ float largests[8];
  __shared__ float sums[8];
  const long long token = blockIdx.x;
  const Vec* from = reinterpret_cast<const Vec*>(logits + token * kVocab + static_cast<long long>(blockIdx.y) * kPart);
  Running running{__int_as_float(0xff800000), 0.0f};
  for (int i = threadIdx.x; i < kPart / 8; i += 256) {
    const Vec v = from[i];
    float largest = running.largest;
#pragma unroll
    for (int j = 0; j < 8; ++j) largest = fmaxf(largest, static_cast<float>(v.e[j]));
    float sum = running.largest == largest ? running.sum : running.sum * expf(running.largest - largest);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += expf(static_cast<float>(v.e[j]) - largest);
    running = {largest, sum};
  }
  for (int o = 16; o > 0; o /= 2) {
    const float largest = __shfl_xor_sync(0xffffffffu, running.largest, o);
    const float sum = __shfl_xor_sync(0xffffffffu, running.sum, o);
    running = combine(running, {largest, sum});
  }
  if (threadIdx.x % 32 == 0) {
    largests[threadIdx.x / 32] = running.largest;
    sums[threadIdx.x / 32] = running.sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) running = combine(running, {largests[w], sums[w]});
    most[token * kParts + blockIdx.y] = running.largest;
    total[token * kParts + blockIdx.y] = running.sum;
  }
}

__device__ void merge_one(const T* logits, const long long* targets, const float* most,
                          const float* total, float* loss, long long token) {
  Running running{most[token * kParts], total[token * kParts]};
  for (int p = 1; p < kParts; ++p)
    running = combine(running, {most[token * kParts + p], total[token * kParts + p]});
  const float target = static_cast<float>(logits[token * kVocab + targets[token]]);
  loss[token] = logf(running.sum) + (running.largest - target);
}

extern "C" __global__ void __launch_bounds__(256)
    merge(const T* __restrict__ logits, const long long* __restrict__ targets,
          const float* __restrict__ most, const float* __restrict__ total,
          float* __restrict__ loss, long long tokens) {
  const long long step = static_cast<long long>(gridDim.x) * 256;
  long long token = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (token >= tokens) return;
  do {
    merge_one(logits, targets, most, total, loss, token);
    if (token + step < tokens) merge_one(logits, targets, most, total, loss, token + step);
    token += 2 * step;
  } while (token < tokens);
}
