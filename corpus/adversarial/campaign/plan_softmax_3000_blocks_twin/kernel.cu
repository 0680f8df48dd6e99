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
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* in = x + row * columns;
    T* out = y + row * columns;
    float largest = -INFINITY;
    for (long long j = threadIdx.x; j < columns; j += 32) {
      const float value = static_cast<float>(in[j]);
      largest = value != value || largest != largest ? NAN : fmaxf(largest, value);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, largest, offset);
      largest = other != other || largest != largest ? NAN : fmaxf(largest, other);
    }
    float sum = 0.0f;
    for (long long j = threadIdx.x; j < columns; j += 32)
      sum += expf(static_cast<float>(in[j]) - largest);
    sum = warp_sum(sum);
    for (long long j = threadIdx.x; j < columns; j += 32)
      out[j] = T(expf(static_cast<float>(in[j]) - largest) / sum);
  }
}
