#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kThreads = 256;
constexpr int kItems = 4;

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;
  __device__ void operator()(float& p, float g, float& m, float& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * (g * g);
    p = p - rate * decay * p - rate * (m / correction1) / (sqrtf(v / correction2) + eps);
  }
};

// A grid of at most 2112 blocks goes over the parameters, four a thread a turn.
extern "C" __global__ void __launch_bounds__(kThreads)
    adamw(const T* param, const T* grad, const float* m, const float* v, float rate, float beta1,
          float beta2, float decay, float eps, float correction1, float correction2, T* param_out,
          float* m_out, float* v_out, long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long stride = static_cast<long long>(gridDim.x) * kThreads * kItems;
  const long long first =
      (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * kItems;
  const int turns = static_cast<int>((n + stride - 1) / stride);
  for (int turn = 0; turn < turns; ++turn) {
    const long long at = first + turn * stride;
    if (at >= n) break;
    if (n - at >= kItems) {
      const uint2 param_bits = *reinterpret_cast<const uint2*>(param + at);
      const uint2 grad_bits = *reinterpret_cast<const uint2*>(grad + at);
      float4 ms = *reinterpret_cast<const float4*>(m + at);
      float4 vs = *reinterpret_cast<const float4*>(v + at);
      const __nv_bfloat162* ps = reinterpret_cast<const __nv_bfloat162*>(&param_bits);
      const __nv_bfloat162* gs = reinterpret_cast<const __nv_bfloat162*>(&grad_bits);
      float2 p0 = __bfloat1622float2(ps[0]), p1 = __bfloat1622float2(ps[1]);
      const float2 g0 = __bfloat1622float2(gs[0]), g1 = __bfloat1622float2(gs[1]);
      step(p0.x, g0.x, ms.x, vs.x);
      step(p0.y, g0.y, ms.y, vs.y);
      step(p1.x, g1.x, ms.z, vs.z);
      step(p1.y, g1.y, ms.w, vs.w);
      uint2 packed;
      __nv_bfloat162* to = reinterpret_cast<__nv_bfloat162*>(&packed);
      to[0] = __floats2bfloat162_rn(p0.x, p0.y);
      to[1] = __floats2bfloat162_rn(p1.x, p1.y);
      *reinterpret_cast<uint2*>(param_out + at) = packed;
      *reinterpret_cast<float4*>(m_out + at) = ms;
      *reinterpret_cast<float4*>(v_out + at) = vs;
    } else {
      for (int e = 0; e < n - at; ++e) {
        float p = static_cast<float>(param[at + e]), first_moment = m[at + e],
              second_moment = v[at + e];
        step(p, static_cast<float>(grad[at + e]), first_moment, second_moment);
        param_out[at + e] = T(p);
        m_out[at + e] = first_moment;
        v_out[at + e] = second_moment;
      }
    }
  }
}
