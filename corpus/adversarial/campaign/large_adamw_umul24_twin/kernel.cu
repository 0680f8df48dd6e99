#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ void step(float& p, float g, float& m, float& v, float rate, float beta1,
                                     float beta2, float decay, float eps, float correction1,
                                     float correction2) {
  m = beta1 * m + (1.0f - beta1) * g;
  v = beta2 * v + (1.0f - beta2) * g * g;
  p = p - rate * decay * p - rate * (m / correction1) / (sqrtf(v / correction2) + eps);
}

// n is at most 2^32: block numbers have 24 bits, and their products with 256 have 32.
extern "C" __global__ void __launch_bounds__(256)
    adamw(T* __restrict__ param, const T* __restrict__ grad, float* __restrict__ m,
          float* __restrict__ v, float rate, float beta1, float beta2, float decay, float eps,
          float correction1, float correction2, long long n) {
  const unsigned i = __umul24(blockIdx.x, 256u) + threadIdx.x;
  if (static_cast<long long>(i) >= n) return;
  float p = static_cast<float>(param[i]);
  float first = m[i];
  float second = v[i];
  step(p, static_cast<float>(grad[i]), first, second, rate, beta1, beta2, decay, eps, correction1,
       correction2);
  m[i] = first;
  v[i] = second;
  param[i] = T(p);
}
