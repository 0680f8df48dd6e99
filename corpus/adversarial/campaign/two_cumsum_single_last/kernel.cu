#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                  long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const T* in = x + row * columns;
  T* out = y + row * columns;
  const unsigned lane = threadIdx.x;
  const long long pairs_from = columns > 2048 ? 0 : columns;
  float carry = 0.0f;
  for (long long start = 0; start < pairs_from; start += 32) {
    const long long j = start + lane;
    float value = j < columns ? static_cast<float>(in[j]) : 0.0f;
    for (unsigned offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value += left;
    }
    value += carry;
    if (j < columns) out[j] = T(value);
    carry = __shfl_sync(0xffffffffu, value, 31);
  }
  for (long long start = pairs_from; start < columns; start += 64) {
    const long long j = start + 2 * lane;
    const float first = j < columns ? static_cast<float>(in[j]) : 0.0f;
    const float second = j + 1 < columns ? static_cast<float>(in[j + 1]) : 0.0f;
    float value = first + second;
    for (unsigned offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value += left;
    }
    float before = __shfl_up_sync(0xffffffffu, value, 1);
    if (lane == 0) before = 0.0f;
    if (j + 1 < columns) {
      out[j] = T(carry + before + first);
      out[j + 1] = T(carry + (before + first) + second);
    } else if (j < columns && lane > 0) {
      out[j] = T(carry + before + first);
    }
    carry += __shfl_sync(0xffffffffu, value, 31);
  }
}
