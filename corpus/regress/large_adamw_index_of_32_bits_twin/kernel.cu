#include <cuda_fp16.h>

using T = __half;
using int64 = long long;

extern "C" __global__ void __launch_bounds__(256) adamw(T* param, const T* __restrict__ grad, float* m, float* v, float rate,
                                                        float beta1, float beta2, float decay, float eps,
                                                        float correction1, float correction2, int64 n) {
  const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
  for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    const float g = __half2float(grad[i]);
    const float first = beta1 * m[i] + (1.0f - beta1) * g;
    const float second = beta2 * v[i] + (1.0f - beta2) * g * g;
    m[i] = first;
    v[i] = second;
    const float p = __half2float(param[i]);
    const float step = rate * (first / correction1) / (sqrtf(second / correction2) + eps);
    param[i] = __float2half_rn(p - rate * decay * p - step);
  }
}
