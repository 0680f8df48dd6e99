#include "validator/emu/semantics/matrix.h"

#include <bit>
#include <cstring>

#include "validator/emu/handlers/tensor_levels.h"
#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/soft.h"

namespace assay::emu {

void TensorMultiply(const TensorProduct& product, const u32* a, const u32* b, const u32* c,
                    u32* d) {
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
