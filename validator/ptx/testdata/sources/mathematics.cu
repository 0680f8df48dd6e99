// Mathematical functions, integer intrinsics, atomics, fences, cache operators.
#include <math.h>
__global__ void f(float* x, double* d, long long* l, unsigned* u, int n) {
  int i = threadIdx.x;
  x[i] = sinf(x[i]) + __sinf(x[i]) + tanf(x[i]) + powf(x[i], 2.5f) + erff(x[i]) + rsqrtf(x[i]) +
         __fdividef(x[i], 3.f) + x[i] / x[i + 1] + sqrtf(x[i]) + fmodf(x[i], x[i + 2]) +
         tanhf(x[i]) + exp2f(x[i]) + log1pf(x[i]) + lgammaf(x[i]) + roundf(x[i]) + rintf(x[i]) +
         ceilf(x[i]) + truncf(x[i]) + __frcp_rz(x[i]) + __fadd_ru(x[i], 1.f) + fminf(x[i], 2.f);
  d[i] = sin(d[i]) + exp(d[i]) + pow(d[i], 1.3) + sqrt(d[i]) + d[i] / d[i + 1] + rsqrt(d[i]) +
         log(d[i]) + cbrt(d[i]) + __dmul_rd(d[i], 2.0) + fma(d[i], d[i], 1.0) + d[i + 1] * n +
         nearbyint(d[i]);
  l[i] = l[i] / l[i + 1] + l[i] % n + __mul64hi(l[i], l[i + 1]) + __popcll(l[i]) + __clzll(l[i]) +
         __brevll(l[i]) + __ffsll(l[i]) + (l[i] << n) + llrint(d[i]) + (long long)x[i];
  u[i] = u[i] / 7 + u[i] % n + __umulhi(u[i], u[i + 1]) + __funnelshift_l(u[i], u[i + 1], n) +
         __byte_perm(u[i], u[i + 1], n) + __vadd4(u[i], u[i + 1]) + __vmaxs2(u[i], u[i + 1]) +
         __dp4a(u[i], u[i + 1], u[i + 2]) + __sad(u[i], n, u[i + 1]) + __usad(u[i], 1, 2) +
         __mul24(u[i], n) + __brev(u[i]) + __clz(u[i]) + __fns(u[i], 1, 2) + max(u[i], 5u) +
         abs(n) + 0 + __uhadd(u[i], u[i + 1]) + __viaddmax_s32(u[i], u[i + 1], 3);
  atomicCAS(u, 1, 2);
  atomicExch(u, 3);
  atomicMin((int*)u, 4);
  atomicMax(u, 5);
  atomicAnd(u, 6);
  atomicOr(u, 7);
  atomicXor(u, 8);
  atomicInc(u, 9);
  atomicDec(u, 10);
  atomicAdd(d, 1.0);
  atomicAdd(x, 1.f);
  atomicAdd_block(u, 1);
  atomicAdd_system(u, u[3]);
  u[40] = atomicCAS((unsigned short*)u + 1, (unsigned short)1, (unsigned short)2);
  atomicCAS((unsigned long long*)u, 1ull, 2ull);
  x[7] = atomicExch(x, 2.f);
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  __syncwarp();
  u[9] = __syncthreads_or(n);
  u[10] = __syncthreads_count(n);
  u[11] = __syncthreads_and(n);
  u[12] = clock();
  l[13] = clock64();
  __nanosleep(100);
  u[13] = __activemask();
  __trap();
}
__global__ void ldg(const float4* __restrict__ x, float4* y, volatile int* v) {
  y[threadIdx.x] = x[threadIdx.x];
  v[0] = v[1];
  y[1] = __ldcs(x + 1);
  __stcg(y + 2, x[3]);
  y[4] = __ldcv(x + 4);
  y[5] = __ldlu(x + 9);
  __stwt(y + 7, x[7]);
}
