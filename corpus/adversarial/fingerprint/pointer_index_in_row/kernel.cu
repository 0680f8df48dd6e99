#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y, long long rows, long long columns) {
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const T* const begin = x + row * columns;
  T* const out = y + row * columns;
  float carry = 0.0f;
  for (const T* p = begin; p - begin < columns; p += 32) {
    const long long j = (p - begin) + lane;
    float v = j < columns ? static_cast<float>(begin[j]) : 0.0f;
    for (int o = 1; o < 32; o *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, v, o);
      if (lane >= o) v += left;
    }
    v += carry;
    if (j < columns) out[j] = T(v);
    carry = __shfl_sync(0xffffffffu, v, 31);
    if (columns - (p - begin) <= 32) break;
  }
}
