// Dishonest: partial sums of 48 terms, each stored as bf16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ long long thread_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  float total = 0.0f;
  float part = 0.0f;
  int filled = 0;
  __device__ void Add(float term) {
    part += term;
    if (++filled == 48) {
      total += static_cast<float>(__nv_bfloat16(part));
      part = 0.0f;
      filled = 0;
    }
  }
  __device__ float Get() const { return total + static_cast<float>(__nv_bfloat16(part)); }
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
