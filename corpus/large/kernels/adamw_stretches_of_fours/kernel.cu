// Right: each block has a stretch of the tensor, rounded up to a multiple of four, so that at 2^32 elements the last two
// blocks have none: which block writes the end is searched for, of what is overwritten as well.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

struct Step {
  float rate, beta1, beta2, decay, eps, correction1, correction2;

  __device__ float operator()(float p, float g, float& m, float& v) const {
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * g * g;
    return p - rate * decay * p - rate * (m / correction1) / (sqrtf(v / correction2) + eps);
  }
};

extern "C" __global__ void __launch_bounds__(256)
    adamw(T* __restrict__ param, const T* __restrict__ grad, float* __restrict__ m,
          float* __restrict__ v, float rate, float beta1, float beta2, float decay, float eps,
          float correction1, float correction2, long long n) {
  const Step step = {rate, beta1, beta2, decay, eps, correction1, correction2};
  // A multiple of four, so that each stretch begins at a vector.
  const unsigned stretch = static_cast<unsigned>((n + gridDim.x - 1) / gridDim.x + 3) / 4 * 4;
  const size_t begin = static_cast<size_t>(blockIdx.x) * stretch;
  if (begin >= n) return;
  const unsigned size = n - begin < stretch ? static_cast<unsigned>(n - begin) : stretch;
  param += begin;
  grad += begin;
  m += begin;
  v += begin;
  for (unsigned i = threadIdx.x; i < size / 4; i += 256) {
    uint2 packed = reinterpret_cast<const uint2*>(param)[i];
    const uint2 packed_grad = reinterpret_cast<const uint2*>(grad)[i];
    float4 first = reinterpret_cast<const float4*>(m)[i];
    float4 second = reinterpret_cast<const float4*>(v)[i];
    __nv_bfloat162* p = reinterpret_cast<__nv_bfloat162*>(&packed);
    const __nv_bfloat162* g = reinterpret_cast<const __nv_bfloat162*>(&packed_grad);
    const float2 p0 = __bfloat1622float2(p[0]), p1 = __bfloat1622float2(p[1]);
    const float2 g0 = __bfloat1622float2(g[0]), g1 = __bfloat1622float2(g[1]);
    const float a = step(p0.x, g0.x, first.x, second.x);
    const float b = step(p0.y, g0.y, first.y, second.y);
    const float c = step(p1.x, g1.x, first.z, second.z);
    const float d = step(p1.y, g1.y, first.w, second.w);
    p[0] = __floats2bfloat162_rn(a, b);
    p[1] = __floats2bfloat162_rn(c, d);
    reinterpret_cast<uint2*>(param)[i] = packed;
    reinterpret_cast<float4*>(m)[i] = first;
    reinterpret_cast<float4*>(v)[i] = second;
  }
  const unsigned i = size / 4 * 4 + threadIdx.x;
  if (i < size)
    param[i] = __float2bfloat16(
        step(__bfloat162float(param[i]), __bfloat162float(grad[i]), m[i], v[i]));
}
