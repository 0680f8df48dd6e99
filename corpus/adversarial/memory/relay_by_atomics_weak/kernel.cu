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

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, volatile float* value, int* first, int* second, long long rows, long long columns) {
  for (long long row = 0; row < rows; ++row) {
    if (blockIdx.x == 1) {
      const float s = row_of(x, row, columns);
      if (threadIdx.x != 0) continue;
      value[row] = s;
      __threadfence();
      atomicExch(first + row, 1);
    } else if (threadIdx.x == 0 && blockIdx.x == 0) {
      while (atomicAdd(first + row, 0) == 0) {
      }
      atomicExch(second + row, 1);
    } else if (threadIdx.x == 0) {
      while (atomicCAS(second + row, 1, 2) == 0) {
      }
      __threadfence();
      y[row] = T(value[row]);
    }
  }
}
