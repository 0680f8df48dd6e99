// f16, bf16 and fp8: arithmetic, comparison, conversion, atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void halves(half2* h, const half* s, float* f, short* i) {
  const int t = threadIdx.x;
  h[t] = __hfma2_relu(h[t], h[t + 1], h[t + 2]);
  h[0] = __hmax2_nan(h[1], h[2]);
  h[3] = h2rsqrt(h[4]);
  h[5] = __floats2half2_rn(f[0], f[1]);
  f[2] = __half2float(__hfma_sat(s[0], s[1], s[2]));
  i[0] = __half2short_rz(s[3]);
  i[1] = __half2ushort_ru(s[4]);
  h[6].x = __ushort2half_rn(i[2]);
  h[7] = __hgeu2(h[8], h[9]);
  f[3] = __hbne2(h[10], h[11]) ? 1.0f : 0.0f;
  h[12] = h2tanh(h[13]);
  atomicAdd(&h[14], h[15]);
  f[4] = static_cast<float>(__half2half2(hexp(s[5])).y);
}

#if __CUDA_ARCH__ >= 800
__global__ void brain_floats(__nv_bfloat162* b, const __nv_bfloat16* s, float* f, double* d,
                             long long* l) {
  const int t = threadIdx.x;
  b[t] = __hfma2(b[t], b[t + 1], b[t + 2]);
  b[0] = __hmin2(b[1], b[2]);
  b[3] = __floats2bfloat162_rn(f[0], f[1]);
  f[2] = __bfloat162float(s[0]) + __bfloat162float(__hadd(s[1], s[2]));
  b[4].x = __double2bfloat16(d[0]);
  b[4].y = __ll2bfloat16_rn(l[0]);
  l[1] = __bfloat162ll_rz(s[3]);
  b[5] = h2log2(b[6]);
  f[3] = __hgt(s[4], s[5]) ? 1.0f : __hisnan(s[6]);
  atomicAdd(&b[7], b[8]);
  l[2] = __bfloat162char_rz(s[7]);
}
#endif

__global__ void eighths(__nv_fp8x2_e4m3* a, __nv_fp8_e5m2* b, float2* f, half2* h) {
  a[threadIdx.x] = __nv_fp8x2_e4m3(f[threadIdx.x]);
  f[1] = static_cast<float2>(a[2]);
  b[3] = __nv_fp8_e5m2(h[0].x);
  h[4].y = static_cast<half>(b[5]);
}
