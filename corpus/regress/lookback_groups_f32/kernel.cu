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

__device__ unsigned take_ticket(unsigned* counter) {
  __shared__ unsigned mine;
  if (threadIdx.x == 0) mine = atomicAdd(counter, 1u);
  __syncthreads();
  return mine;
}

__device__ unsigned long long word(unsigned state, float v) {
  return (static_cast<unsigned long long>(state) << 32) | __float_as_uint(v);
}

extern "C" __global__ void cumsum(const T* __restrict__ x, T* __restrict__ y,
                                  volatile unsigned long long* status, unsigned* ticket,
                                  long long rows, long long columns) {
  const unsigned id = take_ticket(ticket);
  const long long row = id / 8;
  const int part = id % 8;
  const long long begin = columns * part / 8, end = columns * (part + 1) / 8;
  const float sum = span_sum(x + row * columns, begin, end);
  float before = 0.0f;
  if (threadIdx.x == 0) {
    status[id] = word(part == 0 ? 2u : 1u, sum);
    for (int q = 1; q <= part;) {
      const unsigned long long w = status[id - q];
      const unsigned state = static_cast<unsigned>(w >> 32);
      if (state == 0) continue;
      before = __uint_as_float(static_cast<unsigned>(w)) + before;
      if (state == 2) break;
      ++q;
    }
    if (part > 0) status[id] = word(2u, before + sum);
  }
  before = __shfl_sync(0xffffffffu, before, 0);
  span_scan(x + row * columns, y + row * columns, begin, end, before);
}
