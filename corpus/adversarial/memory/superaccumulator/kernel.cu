#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

constexpr int kLimbs = 10;

__device__ void add_limb(unsigned long long* p, unsigned v, bool negative) {
  if (v == 0) return;
  const unsigned long long wide = v;
  atomicAdd(p, negative ? 0ull - wide : wide);
}

extern "C" __global__ void gather(const T* __restrict__ x, unsigned long long* limbs,
                                  long long rows, long long columns) {
  const long long row = blockIdx.x / 2;
  const int half = blockIdx.x % 2;
  const long long end = half ? columns : columns / 2;
  for (long long j = (half ? columns / 2 : 0) + threadIdx.x; j < end; j += 128) {
    const unsigned u = __float_as_uint(x[row * columns + j]);
    const unsigned exponent = (u >> 23) & 255u;
    unsigned long long mantissa = u & 0x7fffffu;
    if (exponent > 0) mantissa |= 0x800000u;
    const unsigned offset = exponent > 0 ? exponent - 1 : 0;
    mantissa <<= offset & 31;
    unsigned long long* p = limbs + row * kLimbs + (offset >> 5);
    add_limb(p, static_cast<unsigned>(mantissa), u >> 31);
    add_limb(p + 1, static_cast<unsigned>(mantissa >> 32), u >> 31);
  }
}

extern "C" __global__ void round_off(const unsigned long long* __restrict__ limbs,
                                     T* __restrict__ y, long long rows) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  unsigned digit[kLimbs];
  long long carry = 0;
  for (int i = 0; i < kLimbs; ++i) {
    const long long v = static_cast<long long>(limbs[row * kLimbs + i]) + carry;
    digit[i] = static_cast<unsigned>(v);
    carry = v >> 32;
  }
  const bool negative = carry < 0;
  if (negative) {
    unsigned long long c = 1;
    for (int i = 0; i < kLimbs; ++i) {
      c += static_cast<unsigned>(~digit[i]);
      digit[i] = static_cast<unsigned>(c);
      c >>= 32;
    }
  }
  unsigned long long head = digit[0];
  int place = 0;
  unsigned below = 0;
  for (int i = 1; i < kLimbs; ++i) {
    if (digit[i] != 0) {
      for (int q = place; q < i - 1; ++q) below |= digit[q];
      head = (static_cast<unsigned long long>(digit[i]) << 32) | digit[i - 1];
      place = i - 1;
    }
  }
  if (below != 0) head |= 1;
  const float v = ldexpf(__ull2float_rn(head), 32 * place - 149);
  y[row] = negative ? -v : v;
}
