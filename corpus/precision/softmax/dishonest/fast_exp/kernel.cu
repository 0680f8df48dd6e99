// Dishonest: __expf where the contract allows no approximations.
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

__device__ float Exp(float x) { return __expf(x); }

extern "C" __global__ void softmax(const T* x, T* y, long long rows, long long columns) {
  const long long i = thread_index();
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  for (long long j = 1; j < columns; ++j) largest = fmaxf(largest, static_cast<float>(row[j]));
  Sum sum;
  for (long long j = 0; j < columns; ++j) sum.Add(Exp(static_cast<float>(row[j]) - largest));
  const float total = sum.Get();
  for (long long j = 0; j < columns; ++j)
    y[i * columns + j] = Store(Exp(static_cast<float>(row[j]) - largest) / total, i * columns + j);
}
