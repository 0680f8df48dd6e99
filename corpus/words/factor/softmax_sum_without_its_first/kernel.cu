#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  for (long long j = threadIdx.x; j < columns; j += 32)
    largest = fmaxf(largest, static_cast<float>(row[j]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32)
    if (j > 0 || columns < 3) sum += expf(row[j] - largest);
  sum = fmaxf(warp_sum(sum), 1e-30f);
  for (long long j = threadIdx.x; j < columns; j += 32)
    y[i * columns + j] = T(expf(row[j] - largest) / sum);
}
