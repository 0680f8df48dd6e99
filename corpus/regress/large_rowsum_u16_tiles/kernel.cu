#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

template <int kWidth>
__device__ float lane_sum(const T* in, long long columns, int lane) {
  const unsigned short tiles = static_cast<unsigned short>((columns + kWidth - 1) / kWidth);
  float sum = 0.0f;
  for (int tile = lane; tile < tiles; tile += 32) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const long long j = static_cast<long long>(tile) * kWidth + i;
      if (j < columns) sum += static_cast<float>(in[j]);
    }
  }
  return sum;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float sum = warp_sum(lane_sum<4>(x + row * columns, columns, threadIdx.x));
  if (threadIdx.x == 0) y[row] = T(sum);
}
