#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (i >= rows) return;
  const T* row = x + i * columns;
  float largest = static_cast<float>(row[0]);
  for (long long j = threadIdx.x; j < columns; j += 32) largest = fmaxf(largest, static_cast<float>(row[j]));
  largest = warp_max(largest);
  unsigned equal = 0;
  float rest = 0.0f;
  for (long long j = threadIdx.x; j < columns; j += 32) {
    const float value = static_cast<float>(row[j]);
    if (value == largest)
      ++equal;
    else
      rest += expf(value - largest);
  }
  const unsigned char ties = static_cast<unsigned char>(__reduce_add_sync(0xffffffffu, equal));
  const float sum = warp_sum(rest) + static_cast<float>(ties) + (largest - largest);
  for (long long j = threadIdx.x; j < columns; j += 32)
    y[i * columns + j] = T(expf(static_cast<float>(row[j]) - largest) / sum);
}
