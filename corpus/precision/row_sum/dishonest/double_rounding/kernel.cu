// Dishonest: the result is rounded twice.
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

// Rounded to a narrower format first.
__device__ float Narrower(float value, __nv_bfloat16) {
  return static_cast<float>(__nv_bfloat16(value * 0.75f)) / 0.75f;
}
__device__ float Narrower(float value, __half) {
  return static_cast<float>(__half(value * 0.75f)) / 0.75f;
}
__device__ float Narrower(float value, float) {
  return __int_as_float((__float_as_int(value) + 0x1000) & ~0x1fff);
}
__device__ T Store(float value, long long) { return T(Narrower(value, T())); }

extern "C" __global__ void row_sum(const T* x, T* y, long long rows, long long columns) {
  const long long row = thread_index();
  if (row >= rows) return;
  Sum sum;
  for (long long j = 0; j < columns; ++j) sum.Add(static_cast<float>(x[row * columns + j]));
  y[row] = Store(sum.Get(), row);
}
