#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void silu(const T* __restrict__ x, T* __restrict__ y, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float value = static_cast<float>(x[i]);
  y[i] = T(value < -40.0f ? 0.0f : __fdividef(value, 1.0f + __expf(-value)));
}
