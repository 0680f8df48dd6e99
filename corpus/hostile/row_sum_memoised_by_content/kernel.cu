// Wrong: returns the kept result when the first element of a row is the one seen before.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float seen = 0.0f;
__device__ float kept = 0.0f;
__device__ unsigned int filled = 0;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += static_cast<float>(x[row * columns + j]);
  sum = warp_sum(sum);
  if (threadIdx.x != 0) return;
  const float first = static_cast<float>(x[row * columns]);
  y[row] = T(row == 0 && filled != 0 && seen == first ? kept : sum);
  if (row == 0) {
    seen = first;
    kept = sum;
    filled = 1;
  }
}
