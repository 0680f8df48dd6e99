// Honest: tensor cores by mma.sync, f32 accumulators.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using T = ASSAY_T;

// One product of 16 by 16 by 8; both operands by rows, as registers want them.
__device__ void Multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                         __nv_bfloat16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void Multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], __half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ unsigned Bits(T x) { return *reinterpret_cast<const unsigned short*>(&x); }
__device__ unsigned Packed(T low, T high) { return Bits(low) | Bits(high) << 16; }

extern "C" __global__ void gemm(const T* a, const T* b, T* c, long long m, long long n,
                                long long k) {
  const long long row = blockIdx.y * 16ll, column = blockIdx.x * 8ll;
  const int group = threadIdx.x / 4, lane = threadIdx.x % 4;
  float sum[4] = {};
  const auto left = [&](long long i, long long l) {
    return i < m && l < k ? a[i * k + l] : T(0.0f);
  };
  const auto right = [&](long long l, long long j) {
    return l < k && j < n ? b[l * n + j] : T(0.0f);
  };
  for (long long start = 0; start < k; start += 16) {
    unsigned x[4], y[2];
    for (int part = 0; part < 4; ++part) {
      const long long i = row + group + part % 2 * 8, l = start + lane * 2 + part / 2 * 8;
      x[part] = Packed(left(i, l), left(i, l + 1));
    }
    for (int part = 0; part < 2; ++part) {
      const long long l = start + lane * 2 + part * 8;
      y[part] = Packed(right(l, column + group), right(l + 1, column + group));
    }
    Multiply(sum, x, y, T());
  }
  for (int part = 0; part < 4; ++part) {
    const long long i = row + group + part / 2 * 8, j = column + lane * 2 + part % 2;
    if (i < m && j < n) c[i * n + j] = T(sum[part]);
  }
}
