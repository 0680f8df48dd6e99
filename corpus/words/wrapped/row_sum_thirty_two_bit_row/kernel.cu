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
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const int width = static_cast<int>(columns);
  float sum = 0.0f;
  for (int j = threadIdx.x; j < width; j += 32) sum += static_cast<float>(x[row * width + j]);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) y[row] = T(sum);
}
