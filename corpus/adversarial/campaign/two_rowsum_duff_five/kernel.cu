#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float tail_sum(const T* end, int count) {
  float sum = 0.0f;
  switch (count) {
    case 7: sum += static_cast<float>(end[-7]); [[fallthrough]];
    case 6: sum += static_cast<float>(end[-6]); sum += static_cast<float>(end[-5]);
      sum += static_cast<float>(end[-4]); sum += static_cast<float>(end[-3]);
      sum += static_cast<float>(end[-2]); sum += static_cast<float>(end[-1]); break;
    case 5:
    case 4: sum += static_cast<float>(end[-4]); [[fallthrough]];
    case 3: sum += static_cast<float>(end[-3]); [[fallthrough]];
    case 2: sum += static_cast<float>(end[-2]); [[fallthrough]];
    case 1: sum += static_cast<float>(end[-1]); break;
    default: break;
  }
  return sum;
}

extern "C" __global__ void row_sum(const T* __restrict__ x, T* __restrict__ y, long long rows,
                                   long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const T* in = x + row * columns;
  float sum = 0.0f;
  if (columns <= 1024) {
    for (long long j = threadIdx.x; j < columns; j += 32) sum += static_cast<float>(in[j]);
  } else {
    const long long whole = columns / 8 * 8;
    for (long long j = 8 * threadIdx.x; j < whole; j += 256) {
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += static_cast<float>(in[j + i]);
    }
    if (threadIdx.x == 0) sum += tail_sum(in + columns, static_cast<int>(columns & 7));
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) y[row] = T(sum);
}
