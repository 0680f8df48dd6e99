// Dishonest: a bias of a quarter of an ulp.
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

// Always a quarter of an ulp of T too far from zero.
__device__ float Quarter(__nv_bfloat16) { return 0x1p-9f; }
__device__ float Quarter(__half) { return 0x1p-12f; }
__device__ T Store(float value, long long) {
  const float power = __int_as_float(__float_as_int(value) & 0x7f800000);
  return T(value + copysignf(power * Quarter(T()), value));
}

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
