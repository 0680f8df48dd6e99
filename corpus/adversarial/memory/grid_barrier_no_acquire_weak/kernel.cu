#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ float span_sum(const T* row, long long begin, long long end) {
  float s = 0.0f;
  for (long long j = begin + threadIdx.x; j < end; j += 32) s += static_cast<float>(row[j]);
  return warp_sum(s);
}

__device__ void span_scan(const T* row, T* out, long long begin, long long end, float carry) {
  for (long long start = begin; start < end; start += 32) {
    const long long j = start + threadIdx.x;
    float v = j < end ? static_cast<float>(row[j]) : 0.0f;
    for (int o = 1; o < 32; o *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, v, o);
      if (threadIdx.x >= o) v += left;
    }
    v += carry;
    if (j < end) out[j] = T(v);
    carry = __shfl_sync(0xffffffffu, v, 31);
  }
}

__device__ void meet(volatile unsigned* sense, unsigned* count) {
  __syncwarp();
  if (threadIdx.x == 0) {
    const unsigned before = *sense;
    __threadfence();
    if (atomicAdd(count, 1u) == gridDim.x - 1) {
      __threadfence();
      *sense = before + 1;
    } else {
      while (*sense == before) {
      }
    }
  }
  __syncwarp();
}

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y,
                                  volatile float* sums, unsigned* sense, unsigned* count,
                                  long long rows, long long columns) {
  const long long begin = columns * blockIdx.x / 6, end = columns * (blockIdx.x + 1) / 6;
  for (long long row = 0; row < rows; ++row) {
    const float s = span_sum(x + row * columns, begin, end);
    if (threadIdx.x == 0) sums[row * 6 + blockIdx.x] = s;
  }
  meet(sense, count);
  for (long long row = 0; row < rows; ++row) {
    float before = 0.0f;
    for (int i = 0; i < blockIdx.x; ++i) before += sums[row * 6 + i];
    span_scan(x + row * columns, y + row * columns, begin, end, before);
  }
}
