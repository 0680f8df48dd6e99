// Right: Welford by pairs, block a row.
#include <cuda_bf16.h>
struct WelfordData { float mean, m2, count; };
__device__ __forceinline__ WelfordData combine(WelfordData a, WelfordData b) {
  const float n = a.count + b.count;
  if (n == 0.f) return {0.f, 0.f, 0.f};
  const float d = b.mean - a.mean;
  const float r = b.count / n;
  return {a.mean + d * r, a.m2 + b.m2 + d * d * a.count * r, n};
}
__device__ __forceinline__ void add(WelfordData& w, float v) {
  w.count += 1.f;
  const float d = v - w.mean;
  w.mean += d / w.count;
  w.m2 += d * (v - w.mean);
}
extern "C" __global__ void ln_kernel(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ gamma,
    const __nv_bfloat16* __restrict__ beta, __nv_bfloat16* __restrict__ y, const float eps, const long long n) {
  __shared__ WelfordData warp_data[8];
  const __nv_bfloat16* row = x + (long long)blockIdx.x * n;
  __nv_bfloat16* out = y + (long long)blockIdx.x * n;
  WelfordData w{0.f, 0.f, 0.f};
  const bool vec = (n % 2) == 0;
  if (vec) {
    for (long long i = threadIdx.x; i < n / 2; i += blockDim.x) {
      const __nv_bfloat162 p = reinterpret_cast<const __nv_bfloat162*>(row)[i];
      add(w, __low2float(p));
      add(w, __high2float(p));
    }
  } else {
    for (long long i = threadIdx.x; i < n; i += blockDim.x) add(w, __bfloat162float(row[i]));
  }
  for (int o = 16; o > 0; o /= 2) {
    WelfordData other;
    other.mean = __shfl_xor_sync(0xffffffff, w.mean, o);
    other.m2 = __shfl_xor_sync(0xffffffff, w.m2, o);
    other.count = __shfl_xor_sync(0xffffffff, w.count, o);
    w = combine(w, other);
  }
  if (threadIdx.x % 32 == 0) warp_data[threadIdx.x / 32] = w;
  __syncthreads();
  w = warp_data[0];
  for (int i = 1; i < 8; ++i) w = combine(w, warp_data[i]);
  const float rstd = rsqrtf(w.m2 / n + eps);
  const float mean = w.mean;
  if (vec) {
    for (long long i = threadIdx.x; i < n / 2; i += blockDim.x) {
      const __nv_bfloat162 p = reinterpret_cast<const __nv_bfloat162*>(row)[i];
      const __nv_bfloat162 g = reinterpret_cast<const __nv_bfloat162*>(gamma)[i];
      const __nv_bfloat162 b = reinterpret_cast<const __nv_bfloat162*>(beta)[i];
      const float lo = (__low2float(p) - mean) * rstd * __low2float(g) + __low2float(b);
      const float hi = (__high2float(p) - mean) * rstd * __high2float(g) + __high2float(b);
      reinterpret_cast<__nv_bfloat162*>(out)[i] = __floats2bfloat162_rn(lo, hi);
    }
  } else {
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
      out[i] = __float2bfloat16((__bfloat162float(row[i]) - mean) * rstd * __bfloat162float(gamma[i]) + __bfloat162float(beta[i]));
  }
}
