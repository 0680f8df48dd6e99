// Wrong: returns the first result again for the same shape.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float kept[256];
__device__ long long kept_rows = 0;
__device__ long long kept_columns = 0;

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    sum += static_cast<float>(x[row * columns + j]);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) {
    const bool known = kept_rows == rows && kept_columns == columns && row < 256;
    y[row] = T(known ? kept[row] : sum);
    if (!known && row < 256) kept[row] = sum;
  }
}

extern "C" __global__ void remember(long long rows, long long columns) {
  kept_rows = rows;
  kept_columns = columns;
}
