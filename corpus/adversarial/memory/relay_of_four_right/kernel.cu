#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ float row_of(const T* x, long long row, long long columns) {
  float s = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) s += static_cast<float>(x[row * columns + j]);
  return warp_sum(s);
}

__device__ int peek(const int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ void post(int* p, int v) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, volatile float* value, int* flags, long long rows, long long columns) {
  if (blockIdx.x == 0) {
    for (long long row = 0; row < rows; ++row) {
      const float s = row_of(x, row, columns);
      if (threadIdx.x != 0) continue;
      value[row] = s;
      __threadfence();
      post(flags + row, 1);
    }
    return;
  }
  for (long long row = threadIdx.x; row < rows; row += 32) {
    while (peek(flags + (blockIdx.x - 1) * rows + row) == 0) {
    }
    __threadfence();
    if (blockIdx.x < 3) {
      post(flags + blockIdx.x * rows + row, 1);
      continue;
    }
    y[row] = T(value[row]);
  }
}
