#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

struct alignas(16) Half8 { __half v[8]; };

__device__ __forceinline__ __half one(__half x, float top, float den) {
  return __float2half(expf(__half2float(x) - top) / den);
}

extern "C" __global__ void softmax(const __half* __restrict__ x, __half* __restrict__ y, long long rows,
                                   long long columns) {
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const __half* in = x + row * columns;
  __half* out = y + row * columns;
  float top = __half2float(in[0]);
  for (long long j = lane; j < columns; j += 32) top = fmaxf(top, __half2float(in[j]));
  for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
  float den = 0.0f;
  for (long long j = lane; j < columns; j += 32) den += expf(__half2float(in[j]) - top);
  den = warp_sum(den);
  const unsigned long long ai = reinterpret_cast<unsigned long long>(in) & 15ull;
  const unsigned long long ao = reinterpret_cast<unsigned long long>(out) & 15ull;
  long long head = ai == ao ? static_cast<long long>((16ull - ao) & 15ull) / 2 : columns;
  if (head > columns) head = columns;
  for (long long j = lane; j < head; j += 32) out[j] = one(in[j], top, den);
  const long long groups = (columns - head) / 8;
  for (long long g = lane; g < groups; g += 32) {
    Half8 pack = *reinterpret_cast<const Half8*>(in + head + g * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) pack.v[i] = one(pack.v[i], top, den);
    *reinterpret_cast<Half8*>(out + head + g * 8) = pack;
  }
  for (long long j = head + groups * 8 + lane; j < columns; j += 32) out[j] = one(in[j], top, den);
}
