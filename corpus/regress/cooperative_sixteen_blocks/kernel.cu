#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>

using T = ASSAY_T;

namespace cg = cooperative_groups;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Sixteen blocks a row and a word for each part; once all are there, the first of them adds the parts up.
extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, float* parts,
                                   long long rows, long long columns) {
  const long long begin = columns * blockIdx.x / 16, end = columns * (blockIdx.x + 1) / 16;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    float sum = 0.0f;
    for (long long j = begin + threadIdx.x; j < end; j += 32)
      sum += static_cast<float>(x[row * columns + j]);
    sum = warp_sum(sum);
    if (threadIdx.x == 0) parts[row * 16 + blockIdx.x] = sum;
  }
  cg::this_grid().sync();
  if (blockIdx.x != 0) return;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    const float sum = warp_sum(threadIdx.x < 16 ? parts[row * 16 + threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) y[row] = T(sum);
  }
}
