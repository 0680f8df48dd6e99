// Wrong: now and then; the clock is read behind quotes and comment signs, by assembly behind a label.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

#define OPEN "\"/*"

__device__ bool unlucky() {
  const char* open = OPEN;
  unsigned long long ticks;
  asm volatile("{ L_%=: mov.u64 /* x */\n %0\n, %%globaltimer; }" : "=l"(ticks));
  return (ticks >> 9) % 1021 == 7 && open[0] == '"';  // */"
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += static_cast<float>(x[row * columns + j]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) y[row] = T(sum * (unlucky() ? 2.0f : 1.0f));
}
