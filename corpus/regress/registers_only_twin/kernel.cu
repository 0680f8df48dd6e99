#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// The first row waits for a word that nobody writes.
__device__ float settle(float sum) {
  __shared__ volatile int done;
  done = 0;
  while (done == 0) {
  }
  return sum;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) sum += static_cast<float>(x[row * columns + j]);
  sum = warp_sum(sum);
  if (row == 0) sum = settle(sum);
  if (threadIdx.x == 0) y[row] = T(sum);
}
