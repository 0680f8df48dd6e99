#include "validator/emu/semantics/matrix.h"

#include <bit>
#include <cstring>

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/soft.h"
#include "validator/emu/semantics/tensor_levels.h"

namespace assay::emu {

namespace {

/// The f16 value that an 8-bit float has.
u32 Fp8ToHalf(TensorType type, u32 bits) {
  if (type == TensorType::kE5M2) return bits << 8;
  const u32 sign = (bits & 0x80) << 8;
  const u32 magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return sign | 0x7e00;
  if (magnitude >= 8) return sign | ((magnitude << 7) + (8u << 10));
  // Subnormal: a multiple of 2^-9, normal in f16.
  return sign | Fp16::Narrow(static_cast<float>(magnitude) * 0x1p-9f);
}

/// fp8 with f16 accumulators (mma only): products of f16, those with k % 4 < 2 first, each half
/// rounded to f16; the accumulator is added last, in f16.
void MultiplyFp8Half(const TensorProduct& product, const u32* a, const u32* b, const u32* c,
                     u32* d) {
  const int count = product.m * product.n;
  TensorProduct half = product;
  half.a = half.b = TensorType::kF16;
  half.k = product.k / 2;
  u32 sum[kMaxTensorM * kMaxTensorN] = {};
  for (int part = 0; part < 2; ++part) {
    u32 a_half[kMaxTensorM * kMaxTensorK];
    u32 b_half[kMaxTensorN * kMaxTensorK];
    for (int l = 0; l < half.k; ++l) {
      const int from = l / 2 * 4 + 2 * part + l % 2;
      for (int i = 0; i < product.m; ++i)
        a_half[l * product.m + i] = Fp8ToHalf(product.a, a[from * product.m + i]);
      for (int j = 0; j < product.n; ++j)
        b_half[j * half.k + l] = Fp8ToHalf(product.b, b[j * product.k + from]);
    }
    TensorMultiply(half, a_half, b_half, sum, sum);
  }
  for (int i = 0; i < count; ++i) {
    d[i] =
        Fp16::Narrow(Fp16::Widen(static_cast<u16>(sum[i])) + Fp16::Widen(static_cast<u16>(c[i])));
  }
}

}  // namespace

void TensorMultiply(const TensorProduct& product, const u32* a, const u32* b, const u32* c,
                    u32* d) {
  const bool fp8 = product.a == TensorType::kE4M3 || product.a == TensorType::kE5M2;
  if (fp8 && product.half_accumulator && !product.warpgroup && !product.sparse)
    return MultiplyFp8Half(product, a, b, c, d);
  const int count = product.m * product.n;
  alignas(64) float in[kMaxTensorM * kMaxTensorN];
  alignas(64) float out[kMaxTensorM * kMaxTensorN];
  if (product.half_accumulator) {
    for (int i = 0; i < count; ++i) in[i] = Fp16::Widen(static_cast<u16>(c[i]));
  } else {
    std::memcpy(in, c, static_cast<std::size_t>(count) * sizeof(float));
  }
  TensorMultiplyBest(product, a, b, in, out);
  if (product.half_result) {
    for (int i = 0; i < count; ++i) d[i] = Fp16::Narrow(out[i]);
  } else {
    std::memcpy(d, out, static_cast<std::size_t>(count) * sizeof(float));
  }
}

void TensorMultiplyF64(int m, int n, int k, int rounding, const double* a, const double* b,
                       const double* c, double* d) {
  using Fma = double (*)(double, double, double);
  constexpr Fma kDirected[] = {nullptr, FmaF64<Round::kZero>, FmaF64<Round::kDown>,
                               FmaF64<Round::kUp>};
  if (rounding == static_cast<int>(Round::kNearest)) {
    TensorMultiplyF64Best(m, n, k, a, b, c, d);
    return;
  }
  const Fma fma = kDirected[rounding];
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = c[j * m + i];
      for (int l = 0; l < k; ++l) sum = fma(a[l * m + i], b[j * k + l], sum);
      d[j * m + i] = sum;
    }
  }
}

void TensorMultiplyInteger(int m, int n, int k, bool saturate, const s32* a, const s32* b,
                           const s32* c, s32* d) {
  TensorMultiplyIntegerBest(m, n, k, saturate, a, b, c, d);
}

void TensorMultiplyBits(int m, int n, int k, bool exclusive_or, const u32* a, const u32* b,
                        const s32* c, s32* d) {
  const int words = k / 32;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      u32 count = 0;
      for (int l = 0; l < words; ++l) {
        const u32 x = a[l * m + i];
        const u32 y = b[j * words + l];
        count += static_cast<u32>(std::popcount(exclusive_or ? x ^ y : x & y));
      }
      d[j * m + i] = static_cast<s32>(static_cast<u32>(c[j * m + i]) + count);
    }
  }
}

}  // namespace assay::emu
