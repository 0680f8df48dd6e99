// Dishonest: terms are rounded to TF32, as a product with ones on tensor cores does.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float value = 0.0f;
  __device__ void Add(float term) {
    value += __int_as_float((__float_as_int(term) + 0x1000) & ~0x1fff);
  }
  __device__ float Get() const { return value; }
};

__device__ T Store(float value, long long) { return T(value); }

extern "C" __global__ void cumsum(const T* x, T* y, long long rows, long long columns) {
  const long long row = thread_index();
  if (row >= rows) return;
  Sum sum;
  for (long long j = 0; j < columns; ++j) {
    sum.Add(static_cast<float>(x[row * columns + j]));
    y[row * columns + j] = Store(sum.Get(), row * columns + j);
  }
}
