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

// Four parameters a thread, as 16-byte vectors where all four exist.
extern "C" __global__ void __launch_bounds__(256)
    adamw(float* __restrict__ param, const float* __restrict__ grad, float* __restrict__ m,
          float* __restrict__ v, float rate, float beta1, float beta2, float decay, float eps,
          float correction1, float correction2, long long n) {
  const unsigned thread = blockIdx.x * 256u + threadIdx.x;  // n / 4 fits 32 bits
  const long long first = __umul24(thread, 4u);
  if (first >= n) return;
  if (first + 4 <= n) {
    float4 p = *reinterpret_cast<float4*>(param + first);
    const float4 g = *reinterpret_cast<const float4*>(grad + first);
    float4 a = *reinterpret_cast<float4*>(m + first);
    float4 b = *reinterpret_cast<float4*>(v + first);
    step(p.x, g.x, a.x, b.x, rate, beta1, beta2, decay, eps, correction1, correction2);
    step(p.y, g.y, a.y, b.y, rate, beta1, beta2, decay, eps, correction1, correction2);
    step(p.z, g.z, a.z, b.z, rate, beta1, beta2, decay, eps, correction1, correction2);
    step(p.w, g.w, a.w, b.w, rate, beta1, beta2, decay, eps, correction1, correction2);
    *reinterpret_cast<float4*>(m + first) = a;
    *reinterpret_cast<float4*>(v + first) = b;
    *reinterpret_cast<float4*>(param + first) = p;
    return;
  }
  for (long long i = first; i < n; ++i)
    step(param[i], grad[i], m[i], v[i], rate, beta1, beta2, decay, eps, correction1, correction2);
}
