// Honest: the online softmax: one pass, rescaled when the maximum grows.
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

__device__ T Store(float value, long long) { return T(value); }

__device__ float Exp(float x) { return expf(x); }

extern "C" __global__ void softmax(const T* x, T* y, long long rows, long long columns) {
  const long long i = thread_index();
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  float total = 1.0f;
  for (long long j = 1; j < columns; ++j) {
    const float value = static_cast<float>(row[j]);
    const float next = fmaxf(largest, value);
    if (next == __int_as_float(0xff800000)) continue;  // -inf less -inf is no number
    total = total * Exp(largest - next) + Exp(value - next);
    largest = next;
  }
  for (long long j = 0; j < columns; ++j)
    y[i * columns + j] = Store(Exp(static_cast<float>(row[j]) - largest) / total, i * columns + j);
}
