#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = -INFINITY, sum = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const float next = fmaxf(largest, row[j]);
    sum = sum * expf(largest - next) + expf(row[j] - next);
    largest = next;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, offset);
    const float part = __shfl_xor_sync(0xffffffffu, sum, offset);
    const float next = fmaxf(largest, other);
    sum = sum * expf(largest - next) + part * expf(other - next);
    largest = next;
  }
  for (long long j = threadIdx.x; j < columns; j += 32)
    y[i * columns + j] = T(expf(row[j] - largest) / sum);
}
