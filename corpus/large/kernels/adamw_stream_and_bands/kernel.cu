// AdamW, in place. Up to 2^31 parameters: a persistent grid with 32-bit numbers that loads the next
// turn while it works on this one. Beyond: bands of 32768 parameters along y, in 64 bits. What is
// left of four goes to a kernel of its own.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kItems = 4;

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;
  __device__ __forceinline__ void operator()(float& p, float g, float& m, float& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * g * g;
    p = p - rate * decay * p - rate * (m / correction1) / (sqrtf(v / correction2) + eps);
  }
};

struct Four {
  uint2 p, g;
  float4 m, v;
};

__device__ __forceinline__ Four load(const T* p, const T* g, const float* m, const float* v) {
  Four four;
  four.p = *reinterpret_cast<const uint2*>(p);
  four.g = *reinterpret_cast<const uint2*>(g);
  four.m = *reinterpret_cast<const float4*>(m);
  four.v = *reinterpret_cast<const float4*>(v);
  return four;
}

__device__ __forceinline__ void take(const Step& step, Four four, T* p, float* m, float* v) {
  const __nv_bfloat162* ps = reinterpret_cast<const __nv_bfloat162*>(&four.p);
  const __nv_bfloat162* gs = reinterpret_cast<const __nv_bfloat162*>(&four.g);
  float2 p0 = __bfloat1622float2(ps[0]), p1 = __bfloat1622float2(ps[1]);
  const float2 g0 = __bfloat1622float2(gs[0]), g1 = __bfloat1622float2(gs[1]);
  step(p0.x, g0.x, four.m.x, four.v.x);
  step(p0.y, g0.y, four.m.y, four.v.y);
  step(p1.x, g1.x, four.m.z, four.v.z);
  step(p1.y, g1.y, four.m.w, four.v.w);
  uint2 packed;
  __nv_bfloat162* to = reinterpret_cast<__nv_bfloat162*>(&packed);
  to[0] = __floats2bfloat162_rn(p0.x, p0.y);
  to[1] = __floats2bfloat162_rn(p1.x, p1.y);
  *reinterpret_cast<uint2*>(p) = packed;
  *reinterpret_cast<float4*>(m) = four.m;
  *reinterpret_cast<float4*>(v) = four.v;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    adamw_stream(T* param, const T* grad, float* m, float* v, float rate, float beta1, float beta2,
                 float decay, float eps, float correction1, float correction2, long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const unsigned whole = static_cast<unsigned>(n) & ~3u;
  const unsigned stride = gridDim.x * (kThreads * kItems);
  const unsigned turns = (whole + stride - 1) / stride;
  unsigned at = (blockIdx.x * kThreads + threadIdx.x) * kItems;
  if (at >= whole) return;
  T* p = param + at;
  const T* g = grad + at;
  float* ms = m + at;
  float* vs = v + at;
  Four next = load(p, g, ms, vs);
  for (unsigned turn = 0; turn < turns; ++turn) {
    const Four now = next;
    const bool more = whole - at > stride;
    if (more) next = load(p + stride, g + stride, ms + stride, vs + stride);
    take(step, now, p, ms, vs);
    if (!more) break;
    at += stride;
    p += stride;
    g += stride;
    ms += stride;
    vs += stride;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    adamw_wide(T* param, const T* grad, float* m, float* v, float rate, float beta1, float beta2,
               float decay, float eps, float correction1, float correction2, long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long width = static_cast<long long>(gridDim.x) * (kThreads * kItems);
  for (long long band = blockIdx.y; band * width < n; band += gridDim.y) {
    const long long at = band * width + (blockIdx.x * kThreads + threadIdx.x) * kItems;
    if (at + kItems <= n)
      take(step, load(param + at, grad + at, m + at, v + at), param + at, m + at, v + at);
  }
}

extern "C" __global__ void adamw_rest(T* param, const T* grad, float* m, float* v, float rate,
                                      float beta1, float beta2, float decay, float eps,
                                      float correction1, float correction2, long long n) {
  const Step step{rate, beta1, beta2, decay, eps, correction1, correction2};
  const long long at = n / kItems * kItems + threadIdx.x;
  if (at >= n) return;
  float p = __bfloat162float(param[at]), first = m[at], second = v[at];
  step(p, __bfloat162float(grad[at]), first, second);
  param[at] = __float2bfloat16(p);
  m[at] = first;
  v[at] = second;
}
