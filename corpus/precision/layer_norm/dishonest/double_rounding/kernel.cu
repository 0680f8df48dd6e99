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

extern "C" __global__ void layer_norm(const T* x, const T* weight, const T* bias, float eps, T* y,
                                      long long tokens, long long hidden) {
  const long long token = thread_index();
  if (token >= tokens) return;
  const T* row = x + token * hidden;
  const float count = static_cast<float>(hidden);
  Sum sum;
  for (long long h = 0; h < hidden; ++h) sum.Add(static_cast<float>(row[h]));
  const float mean = sum.Get() / count;
  Sum squares;
  for (long long h = 0; h < hidden; ++h) {
    const float deviation = static_cast<float>(row[h]) - mean;
    squares.Add(deviation * deviation);
  }
  const float scale = rsqrtf(squares.Get() / count + eps);
  for (long long h = 0; h < hidden; ++h) {
    const float normal = (static_cast<float>(row[h]) - mean) * scale;
    y[token * hidden + h] = Store(
        normal * static_cast<float>(weight[h]) + static_cast<float>(bias[h]), token * hidden + h);
  }
}
