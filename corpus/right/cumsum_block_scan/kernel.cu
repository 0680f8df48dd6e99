// Right: a block a row, 256 elements at a time, scan by warps and over warps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  __shared__ float totals[8];
  const long long row = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  float carry = 0.0f;
  for (long long start = 0; start < columns; start += 256) {
    const long long j = start + threadIdx.x;
    float value = j < columns ? static_cast<float>(x[row * columns + j]) : 0.0f;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value += left;
    }
    if (lane == 31) totals[warp] = value;
    __syncthreads();
    float before = carry;
    float all = carry;
    for (int w = 0; w < 8; ++w) {
      if (w < warp) before += totals[w];
      all += totals[w];
    }
    if (j < columns) y[row * columns + j] = T(value + before);
    carry = all;
    __syncthreads();
  }
}
