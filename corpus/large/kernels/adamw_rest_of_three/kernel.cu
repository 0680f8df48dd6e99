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

struct Tensors {
  const T* param;
  const T* grad;
  const float* m;
  const float* v;
  T* param_out;
  float* m_out;
  float* v_out;
};

__device__ __forceinline__ void four(const Step& step, const Tensors& t, long long group) {
  const uint2 param_bits = reinterpret_cast<const uint2*>(t.param)[group];
  const uint2 grad_bits = reinterpret_cast<const uint2*>(t.grad)[group];
  float4 ms = reinterpret_cast<const float4*>(t.m)[group];
  float4 vs = reinterpret_cast<const float4*>(t.v)[group];
  const __half2* ps = reinterpret_cast<const __half2*>(&param_bits);
  const __half2* gs = reinterpret_cast<const __half2*>(&grad_bits);
  float2 p0 = __half22float2(ps[0]), p1 = __half22float2(ps[1]);
  const float2 g0 = __half22float2(gs[0]), g1 = __half22float2(gs[1]);
  step(p0.x, g0.x, ms.x, vs.x);
  step(p0.y, g0.y, ms.y, vs.y);
  step(p1.x, g1.x, ms.z, vs.z);
  step(p1.y, g1.y, ms.w, vs.w);
  uint2 packed;
  __half2* to = reinterpret_cast<__half2*>(&packed);
  to[0] = __floats2half2_rn(p0.x, p0.y);
  to[1] = __floats2half2_rn(p1.x, p1.y);
  reinterpret_cast<uint2*>(t.param_out)[group] = packed;
  reinterpret_cast<float4*>(t.m_out)[group] = ms;
  reinterpret_cast<float4*>(t.v_out)[group] = vs;
}

// A grid of at most 1056 blocks goes over groups of four parameters, four strides a turn.
extern "C" __global__ void __launch_bounds__(kThreads)
    adamw(const T* param, const T* grad, const float* m, const float* v, float rate, float beta1,
          float beta2, float decay, float eps, float correction1, float correction2, T* param_out,
          float* m_out, float* v_out, long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const Tensors tensors{param, grad, m, v, param_out, m_out, v_out};
  const long long groups = n / kItems;
  const long long stride = static_cast<long long>(gridDim.x) * kThreads;
  long long group = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  for (; group + 3 * stride < groups; group += 4 * stride) {
#pragma unroll
    for (int i = 0; i < 4; ++i) four(step, tensors, group + i * stride);
  }
  for (; group < groups; group += stride) four(step, tensors, group);
  if (blockIdx.x == 0 && threadIdx.x < n % kItems) {
    const long long at = groups * kItems + threadIdx.x;
    float p = static_cast<float>(param[at]), first = m[at], second = v[at];
    step(p, static_cast<float>(grad[at]), first, second);
    param_out[at] = T(p);
    m_out[at] = first;
    v_out[at] = second;
  }
}
