// Wrong: a falling row (its first term is larger than its last) is summed from its end, but a block
// decides so for all of its rows at once. Every sum is honest; a row's last bits hang on neighbours.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long i = blockIdx.x * 32ll + threadIdx.x;
  const T* row = x + i * columns;
  const bool falling =
      i < rows && static_cast<float>(row[0]) > static_cast<float>(row[columns - 1]);
  const bool backwards = __syncthreads_or(falling);
  if (i >= rows) return;
  float sum = 0.0f;
  for (long long j = 0; j < columns; ++j)
    sum += static_cast<float>(row[backwards ? columns - 1 - j : j]);
  y[i] = T(sum);
}
