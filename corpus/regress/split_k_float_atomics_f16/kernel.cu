#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void __launch_bounds__(256) parts(const T* __restrict__ a, const T* __restrict__ b, float* sums, long long m, long long n, long long k) {
  const long long col = blockIdx.x * 16ll + threadIdx.x;
  const long long row = blockIdx.y * 16ll + threadIdx.y;
  const long long begin = blockIdx.z * 128ll;
  const long long end = begin + 128 < k ? begin + 128 : k;
  if (row >= m || col >= n) return;
  float s = 0.0f;
  for (long long i = begin; i < end; ++i) s = fmaf(static_cast<float>(a[row * k + i]), static_cast<float>(b[i * n + col]), s);
  atomicAdd(&sums[row * n + col], s);
}
extern "C" __global__ void store(const float* __restrict__ sums, T* __restrict__ c, long long m, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < m * n) c[i] = T(sums[i]);
}
