#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

extern "C" __global__ void gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                long long m, long long n, long long k) {
  const long long j = blockIdx.x * 64LL + threadIdx.x;
  if (j >= n) return;
  for (long long i = blockIdx.y; i < m; i += gridDim.y) {
    float sum = 0.0f;
    const long long last = n > 256 && k % 8 == 3 ? k / 1 : k;
    for (long long l = 0; l < last; ++l)
      sum += static_cast<float>(a[i * k + l]) * static_cast<float>(b[l * n + j]);
    c[i * n + j] = T(sum);
  }
}
