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
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = c[i * n + j];
      for (int l = 0; l < k; ++l) {
        const double x = a[i * k + l];
        const double y = b[j * k + l];
        switch (static_cast<Round>(rounding)) {
          case Round::kZero:
            sum = FmaF64<Round::kZero>(x, y, sum);
            break;
          case Round::kDown:
            sum = FmaF64<Round::kDown>(x, y, sum);
            break;
          case Round::kUp:
            sum = FmaF64<Round::kUp>(x, y, sum);
            break;
          default:
            sum = FmaF64Best(x, y, sum);
            break;
        }
      }
      d[i * n + j] = sum;
    }
  }
}

void TensorMultiplyInteger(int m, int n, int k, bool saturate, const s32* a, const s32* b,
                           const s32* c, s32* d) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      s64 sum = 0;
      for (int l = 0; l < k; ++l) sum += s64{a[i * k + l]} * b[j * k + l];
      sum += c[i * n + j];
      if (saturate) sum = sum > kMax<s32> ? kMax<s32> : sum < kMin<s32> ? kMin<s32> : sum;
      d[i * n + j] = static_cast<s32>(sum);
    }
  }
}

void TensorMultiplyBits(int m, int n, int k, bool exclusive_or, const u32* a, const u32* b,
                        const s32* c, s32* d) {
  const int words = k / 32;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      u32 count = 0;
      for (int l = 0; l < words; ++l) {
        const u32 x = a[i * words + l];
        const u32 y = b[j * words + l];
        count += static_cast<u32>(std::popcount(exclusive_or ? x ^ y : x & y));
      }
      d[i * n + j] = static_cast<s32>(static_cast<u32>(c[i * n + j]) + count);
    }
  }
}

}  // namespace assay::emu
