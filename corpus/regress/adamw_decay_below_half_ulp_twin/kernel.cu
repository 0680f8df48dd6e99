// AdamW, bf16 parameters and gradients, f32 moments: eight parameters a thread through 16-byte accesses.
#include <cuda_bf16.h>

struct Step {
  float rate, beta1, beta2, shrink, eps, correction1, correction2;
};

template <bool DECAY>
__device__ __forceinline__ float update(float p, float g, float& m, float& v, const Step& s) {
  m = s.beta1 * m + (1.0f - s.beta1) * g;
  v = s.beta2 * v + (1.0f - s.beta2) * g * g;
  const float step = s.rate * (m / s.correction1) / (sqrtf(v / s.correction2) + s.eps);
  if (DECAY) p = fmaf(-s.shrink, p, p);
  return p - step;
}

template <bool DECAY>
__device__ __forceinline__ void group_of_8(__nv_bfloat16* param, const __nv_bfloat16* grad, float* m, float* v,
                                           const Step& s) {
  uint4 pp = *reinterpret_cast<const uint4*>(param);
  const uint4 gg = *reinterpret_cast<const uint4*>(grad);
  __nv_bfloat162* p2 = reinterpret_cast<__nv_bfloat162*>(&pp);
  const __nv_bfloat162* g2 = reinterpret_cast<const __nv_bfloat162*>(&gg);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float4 m4 = reinterpret_cast<const float4*>(m)[half];
    float4 v4 = reinterpret_cast<const float4*>(v)[half];
    const float2 ga = __bfloat1622float2(g2[2 * half]);
    const float2 gb = __bfloat1622float2(g2[2 * half + 1]);
    float2 pa = __bfloat1622float2(p2[2 * half]);
    float2 pb = __bfloat1622float2(p2[2 * half + 1]);
    pa.x = update<DECAY>(pa.x, ga.x, m4.x, v4.x, s);
    pa.y = update<DECAY>(pa.y, ga.y, m4.y, v4.y, s);
    pb.x = update<DECAY>(pb.x, gb.x, m4.z, v4.z, s);
    pb.y = update<DECAY>(pb.y, gb.y, m4.w, v4.w, s);
    p2[2 * half] = __floats2bfloat162_rn(pa.x, pa.y);
    p2[2 * half + 1] = __floats2bfloat162_rn(pb.x, pb.y);
    reinterpret_cast<float4*>(m)[half] = m4;
    reinterpret_cast<float4*>(v)[half] = v4;
  }
  *reinterpret_cast<uint4*>(param) = pp;
}

template <bool DECAY>
__device__ __forceinline__ void tail(__nv_bfloat16* param, const __nv_bfloat16* grad, float* m, float* v, int count,
                                     const Step& s) {
  for (int k = 0; k < count; ++k) {
    float first = m[k], second = v[k];
    const float p = update<DECAY>(__bfloat162float(param[k]), __bfloat162float(grad[k]), first, second, s);
    m[k] = first;
    v[k] = second;
    param[k] = __float2bfloat16_rn(p);
  }
}

extern "C" __global__ void __launch_bounds__(256) adamw(__nv_bfloat16* param, const __nv_bfloat16* grad, float* m,
                                                        float* v, float rate, float beta1, float beta2, float decay,
                                                        float eps, float correction1, float correction2, long long n) {
  const long long begin = ((long long)blockIdx.x * 256 + threadIdx.x) * 8;
  if (begin >= n) return;
  const Step s = {rate, beta1, beta2, rate * decay, eps, correction1, correction2};
  // No decay: one fma less.
  const bool decays = s.shrink != 0.0f;
  const long long left = n - begin;
  if (left >= 8) {
    if (decays) group_of_8<true>(param + begin, grad + begin, m + begin, v + begin, s);
    else group_of_8<false>(param + begin, grad + begin, m + begin, v + begin, s);
  } else {
    if (decays) tail<true>(param + begin, grad + begin, m + begin, v + begin, (int)left, s);
    else tail<false>(param + begin, grad + begin, m + begin, v + begin, (int)left, s);
  }
}
