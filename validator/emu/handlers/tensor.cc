// The products of semantics/matrix.h for floating-point elements, compiled once a level.
#include "validator/emu/handlers/tensor.h"

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

/// Bits kept below the largest exponent of a block; for wgmma on 8-bit types, where sums keep no
/// more than that either.
constexpr int kAlignBits = 25;
constexpr int kAlignBitsShort = 13;
/// The exponent of zero: below all others.
constexpr s32 kZeroExponent = -100000;
/// The exponent of an infinite accumulator.
constexpr s32 kInfiniteExponent = 1000;
/// Columns worked on together.
constexpr int kColumns = 8;

s32 ExponentOfF32(float value) {
  const s32 field = static_cast<s32>(ToBits(value) >> 23 & 0xff);
  return value == 0.0f  ? kZeroExponent
         : field == 255 ? kInfiniteExponent
                        : (field == 0 ? 1 : field) - 127;
}

/// Fields of a type, and where its bits begin. e4m3 has no infinity; its only NaN has all bits set.
template <int kExponentBits, int kFractionBits, int kShift = 0, bool kHasInfinity = true>
struct Fields {
  static constexpr u32 kFull = (1u << kExponentBits) - 1;
  static constexpr s32 kBias = (1 << (kExponentBits - 1)) - 1;
  static u32 Field(u32 bits) { return bits >> (kFractionBits + kShift) & kFull; }
  static u32 Fraction(u32 bits) { return bits >> kShift & ((1u << kFractionBits) - 1); }
  static bool IsSpecial(u32 bits) {
    return Field(bits) == kFull && (kHasInfinity || Fraction(bits) == (1u << kFractionBits) - 1);
  }
  /// Exact; special values become zero.
  static float Value(u32 bits) {
    const u32 magnitude = bits >> kShift & ((1u << (kExponentBits + kFractionBits)) - 1);
    const u32 sign = (bits >> (kExponentBits + kFractionBits + kShift) & 1) << 31;
    // As an f32 of the same fields, then rescaled by the difference of the biases, which also makes
    // subnormals right.
    constexpr float kRescale =
        kExponentBits == 8 ? 1.0f : __builtin_bit_cast(float, static_cast<u32>(254 - kBias) << 23);
    const float value = FromBits(magnitude << (23 - kFractionBits)) * kRescale;
    return IsSpecial(bits) ? 0.0f : FromBits(ToBits(value) | sign);
  }
  static s32 Exponent(u32 bits) {
    const u32 field = Field(bits);
    const s32 exponent = static_cast<s32>(field == 0 ? 1 : field) - kBias;
    return (field == 0 && Fraction(bits) == 0) || IsSpecial(bits) ? kZeroExponent : exponent;
  }
};
using F16Fields = Fields<5, 10>;
using Bf16Fields = Fields<8, 7>;
using Tf32Fields = Fields<8, 10, 13>;
using E4m3Fields = Fields<4, 3, 0, false>;
using E5m2Fields = Fields<5, 2>;

/// Values and exponents of `count` elements; true if any is infinite or NaN. `normalise`:
/// subnormals have the exponent of their value.
template <class F>
bool DecodeAll(const u32* bits, int count, bool normalise, float* values, s32* exponents) {
  u32 special = 0;
  for (int i = 0; i < count; ++i) {
    values[i] = F::Value(bits[i]);
    exponents[i] = normalise ? ExponentOfF32(values[i]) : F::Exponent(bits[i]);
    special |= F::IsSpecial(bits[i]) ? 1u : 0u;
  }
  return special != 0;
}
/// `as_f16`: 8-bit types are multiplied as f16, where subnormals of e4m3 are normal.
bool DecodeAll(TensorType type, const u32* bits, int count, bool as_f16, float* values,
               s32* exponents) {
  switch (type) {
    case TensorType::kF16:
      return DecodeAll<F16Fields>(bits, count, false, values, exponents);
    case TensorType::kBF16:
      return DecodeAll<Bf16Fields>(bits, count, false, values, exponents);
    case TensorType::kTF32:
      return DecodeAll<Tf32Fields>(bits, count, false, values, exponents);
    case TensorType::kE4M3:
      return DecodeAll<E4m3Fields>(bits, count, as_f16, values, exponents);
    case TensorType::kE5M2:
      return DecodeAll<E5m2Fields>(bits, count, false, values, exponents);
  }
  return false;
}

bool IsSpecial(TensorType type, u32 bits) {
  float value;
  s32 exponent;
  return DecodeAll(type, &bits, 1, false, &value, &exponent);
}
/// The value of any element, infinities and NaN included, for the rare outputs that have them among
/// their terms.
double PlainValue(TensorType type, u32 bits) {
  float value;
  s32 exponent;
  if (!DecodeAll(type, &bits, 1, false, &value, &exponent)) return static_cast<double>(value);
  if (type == TensorType::kE4M3) return static_cast<double>(FromBits(kNanF32));
  if (type == TensorType::kTF32) return static_cast<double>(FromBits(bits & 0xffffe000u));
  if (type == TensorType::kBF16) return static_cast<double>(FromBits(bits << 16));
  // e5m2 is the upper byte of an f16.
  return static_cast<double>(
      Fp16::Widen(static_cast<u16>(type == TensorType::kF16 ? bits : bits << 8)));
}

/// Columns of B and a row of A, decoded.
struct Decoded {
  alignas(64) float b[kMaxTensorK][kColumns];
  alignas(64) s32 b_exponent[kMaxTensorK][kColumns];
  alignas(64) float a[kMaxTensorK];
  alignas(64) s32 a_exponent[kMaxTensorK];
};

/// acc[j] = acc[j] + sum over the listed k, in one alignment; `kept` masks the f32 sum.
template <class Real>
void AddBlock(const Decoded& in, const int* order, int count, int align_bits, u32 kept,
              float* acc) {
  s32 top[kColumns];
  for (int j = 0; j < kColumns; ++j) top[j] = ExponentOfF32(acc[j]);
  for (int i = 0; i < count; ++i) {
    const int k = order[i];
    const s32 a_exponent = in.a_exponent[k];
    for (int j = 0; j < kColumns; ++j) {
      const s32 exponent = a_exponent + in.b_exponent[k][j];
      top[j] = exponent > top[j] ? exponent : top[j];
    }
  }
  // Terms scaled so that their unit is the last place kept. Where nothing but a tiny accumulator is
  // there, any scale will do that does not overflow: products have exponents of -300 at least, and
  // -30 where Real is float.
  constexpr s32 kLowest = sizeof(Real) == 4 ? -90 : -400;
  Real scale[kColumns];
  for (int j = 0; j < kColumns; ++j) {
    const s32 floor = top[j] > kLowest ? top[j] : kLowest;
    if (top[j] == kInfiniteExponent) {
      scale[j] = Real{0};
      continue;
    }
    if constexpr (sizeof(Real) == 4) {
      scale[j] = FromBits(static_cast<u32>(align_bits - floor + 127) << 23);
    } else {
      scale[j] = FromBits(static_cast<u64>(align_bits - floor + 1023) << 52);
    }
  }
  // Terms are below 2^27: eight fit 32 bits. Conversion to integer truncates.
  s64 sum[kColumns];
  for (int j = 0; j < kColumns; ++j) {
    sum[j] = static_cast<s64>(top[j] == kInfiniteExponent ? Real{0}
                                                          : static_cast<Real>(acc[j]) * scale[j]);
  }
  for (int first = 0; first < count; first += 8) {
    s32 part[kColumns] = {};
    for (int i = first; i < count && i < first + 8; ++i) {
      const int k = order[i];
      const Real a = static_cast<Real>(in.a[k]);
      for (int j = 0; j < kColumns; ++j)
        part[j] += static_cast<s32>(a * static_cast<Real>(in.b[k][j]) * scale[j]);
    }
    for (int j = 0; j < kColumns; ++j) sum[j] += part[j];
  }
  for (int j = 0; j < kColumns; ++j) {
    if (top[j] == kZeroExponent) {
      acc[j] = 0.0f;
      continue;
    }
    // No products, or a sum that has overflowed already: the accumulator stays.
    if (top[j] < kLowest || top[j] == kInfiniteExponent) continue;
    const double value =
        static_cast<double>(sum[j]) * FromBits(static_cast<u64>(top[j] - align_bits + 1023) << 52);
    const bool overflow = value >= 0x1p128 || value <= -0x1p128;
    const float result = overflow ? static_cast<float>(value) : NarrowToF32<Round::kZero>(value);
    acc[j] = result == 0.0f ? 0.0f : FromBits(ToBits(result) & kept);
  }
}

/// acc[j] = fma(a, b, ... fma(a, b, 0)) + addend[j]; a product of f16 values is exact in f32.
void AddChain(const Decoded& in, int count, const float* addend, float* acc) {
  for (int j = 0; j < kColumns; ++j) {
    float sum = 0.0f;
    for (int k = 0; k < count; ++k) sum += in.a[k] * in.b[k][j];
    acc[j] = sum + addend[j];
  }
}

/// The k of each block, one after the other.
struct Blocks {
  int order[kMaxTensorK];
  int size = 0;
  int align_bits = kAlignBits;
  u32 kept = ~0u;                ///< Bits of each f32 sum.
  bool accumulate_last = false;  ///< Start from zero and add the accumulator at the end.
};
void FillBlocks(const TensorProduct& product, Blocks& blocks) {
  const bool fp8 = product.a == TensorType::kE4M3 || product.a == TensorType::kE5M2;
  if (fp8 && !product.warpgroup) {
    int at = 0;
    const int stored = product.sparse ? 8 : 4;
    for (int part = 0; part < 2; ++part) {
      for (int k = 0; k < product.k; ++k) {
        if (k % stored / (stored / 2) == part) blocks.order[at++] = k;
      }
    }
    blocks.size = product.k / 2;
    blocks.accumulate_last = true;
    return;
  }
  for (int k = 0; k < product.k; ++k) blocks.order[k] = k;
  const int dense = product.steps_of_4 ? 4 : product.a == TensorType::kTF32 ? 8 : fp8 ? 32 : 16;
  if (fp8) {
    blocks.align_bits = kAlignBitsShort;
    if (!product.half_result) blocks.kept = ~0u << (23 - kAlignBitsShort);
  }
  blocks.size = product.sparse ? 2 * dense : dense;
}

/// An output with an infinity or NaN among its terms: finite ones do not matter.
float SpecialOutput(const TensorProduct& product, const u32* a_row, const u32* b_column, float c) {
  double sum = static_cast<double>(c);
  for (int k = 0; k < product.k; ++k) {
    if (product.sparse && a_row[k] == TensorAbsent(product.a)) continue;
    sum += PlainValue(product.a, a_row[k]) * PlainValue(product.b, b_column[k]);
  }
  return Canonical(static_cast<float>(sum));
}
bool AnySpecial(TensorType type, const u32* bits, int count) {
  for (int i = 0; i < count; ++i) {
    if (IsSpecial(type, bits[i])) return true;
  }
  return false;
}

template <class Real>
void Multiply(const TensorProduct& product, const u32* a, const u32* b, const float* c, float* d) {
  const int size = product.k;
  Blocks blocks;
  FillBlocks(product, blocks);
  Decoded in;
  for (int column = 0; column < product.n; column += kColumns) {
    float values[kMaxTensorK];
    s32 exponents[kMaxTensorK];
    bool b_special = false;
    for (int j = 0; j < kColumns; ++j) {
      b_special |= DecodeAll(product.b, b + (column + j) * size, size, !product.warpgroup, values,
                             exponents);
      for (int k = 0; k < size; ++k) {
        in.b[k][j] = values[k];
        in.b_exponent[k][j] = exponents[k];
      }
    }
    for (int i = 0; i < product.m; ++i) {
      const u32* const a_row = a + i * size;
      const bool a_special =
          DecodeAll(product.a, a_row, size, !product.warpgroup, in.a, in.a_exponent);
      const float* const addend = c + i * product.n + column;
      alignas(64) float acc[kColumns];
      bool c_special = false;
      for (int j = 0; j < kColumns; ++j) {
        const bool special = (ToBits(addend[j]) & 0x7f800000u) == 0x7f800000u;
        c_special |= special;
        acc[j] = blocks.accumulate_last || special ? 0.0f : addend[j];
      }
      if (product.chain) AddChain(in, size, addend, acc);
      for (int first = 0; first < size && !product.chain; first += blocks.size) {
        const int count = size - first < blocks.size ? size - first : blocks.size;
        AddBlock<Real>(in, blocks.order + first, count, blocks.align_bits, blocks.kept, acc);
      }
      if (blocks.accumulate_last) {
        for (int j = 0; j < kColumns; ++j) acc[j] += addend[j];
      }
      if (a_special || b_special || c_special) {
        for (int j = 0; j < kColumns; ++j) {
          const u32* const b_column = b + (column + j) * size;
          const bool special = a_special || (ToBits(addend[j]) & 0x7f800000u) == 0x7f800000u ||
                               AnySpecial(product.b, b_column, size);
          if (!special) continue;
          // What is finite after all met the special element of B only with an absent one of A.
          const float sum = SpecialOutput(product, a_row, b_column, addend[j]);
          if (sum - sum != 0.0f) acc[j] = sum;
        }
      }
      for (int j = 0; j < kColumns; ++j) d[i * product.n + column + j] = acc[j];
    }
  }
}

}  // namespace

void TensorMultiplyLevel(const TensorProduct& product, const u32* a, const u32* b, const float* c,
                         float* d) {
  // Products of these types do not leave the range of f32.
  const bool narrow = product.a != TensorType::kBF16 && product.a != TensorType::kTF32;
  if (narrow) {
    Multiply<float>(product, a, b, c, d);
  } else {
    Multiply<double>(product, a, b, c, d);
  }
}

double FmaF64Level(double a, double b, double c) { return FmaF64<Round::kNearest>(a, b, c); }

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
