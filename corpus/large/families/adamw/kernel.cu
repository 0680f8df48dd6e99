// Right: a thread a parameter, at most 65,535 blocks, which take further parameters in turns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void adamw(T* param, const T* grad, float* m, float* v, float rate,
                                 float beta1, float beta2, float decay, float eps,
                                 float correction1, float correction2, long long n) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step) {
    const float g = static_cast<float>(grad[i]);
    const float first = beta1 * m[i] + (1.0f - beta1) * g;
    const float second = beta2 * v[i] + (1.0f - beta2) * g * g;
    m[i] = first;
    v[i] = second;
    const float p = static_cast<float>(param[i]);
    const float slope = (first / correction1) / (sqrtf(second / correction2) + eps);
    param[i] = T(p - rate * decay * p - rate * slope);
  }
}
