// Sums of rows in halves: a launch sets a counter for each row to zero, and of two blocks a row the one that comes last adds both.
#include <cuda_bf16.h>

using T = __nv_bfloat16;

extern "C" __global__ void __launch_bounds__(256) reset(unsigned* come, long long rows) {
  const long long row = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (row < rows) come[row] = 0;
}

extern "C" __global__ void __launch_bounds__(32)
    halves(const T* __restrict__ x, T* __restrict__ y, float* parts, unsigned* come, long long columns) {
  const long long row = blockIdx.x / 2, half = blockIdx.x % 2, middle = columns / 2;
  const long long first = half == 0 ? 0 : middle, end = half == 0 ? middle : columns;
  float sum = 0.0f;
  for (long long j = first + threadIdx.x; j < end; j += 32) sum += __bfloat162float(x[row * columns + j]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x != 0) return;
  volatile float* both = parts + 2 * row;
  both[half] = sum;
  __threadfence();
  if (atomicAdd(come + row, 1u) != 1) return;
  __threadfence();
  y[row] = __float2bfloat16(both[0] + both[1]);
}
