// Dishonest: the loss is cut off at 17 bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float value = 0.0f;
  __device__ void Add(float term) { value += term; }
  __device__ float Get() const { return value; }
};

// What is left of an f32 that went through a format of 17 bits.
__device__ float Store(float value, long long) {
  return __int_as_float(__float_as_int(value) & ~0x7f);
}

__device__ float Exp(float x) { return expf(x); }

extern "C" __global__ void cross_entropy(const T* logits, const long long* targets, float* loss,
                                         long long tokens, long long vocab) {
  const long long token = thread_index();
  if (token >= tokens) return;
  const T* row = logits + token * vocab;
  float largest = static_cast<float>(row[0]);
  for (long long j = 1; j < vocab; ++j) largest = fmaxf(largest, static_cast<float>(row[j]));
  Sum sum;
  for (long long j = 0; j < vocab; ++j) sum.Add(Exp(static_cast<float>(row[j]) - largest));
  const float total = sum.Get();
  loss[token] = Store(logf(total) + largest - static_cast<float>(row[targets[token]]), token);
}
