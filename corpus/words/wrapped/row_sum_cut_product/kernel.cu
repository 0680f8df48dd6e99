// One warp a row; the row's first index is a product of two numbers that were cut down to int.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const int base = static_cast<int>(row) * static_cast<int>(columns);
  float sum = 0.0f;
  for (int j = threadIdx.x; j < columns; j += 32) sum += static_cast<float>(x[base + j]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) y[row] = T(sum);
}
