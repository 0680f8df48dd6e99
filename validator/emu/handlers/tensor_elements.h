// Elements of matrices as numbers: value and exponent of each, decoded by fields, for the products of
// tensor.cc. Compiled once a level, with it.
#pragma once

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/level.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

/// The exponent of zero: below all others.
inline constexpr s32 kZeroExponent = -100000;
/// The exponent of an infinite accumulator.
inline constexpr s32 kInfiniteExponent = 1000;

inline s32 ExponentOfF32(float value) {
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
inline bool DecodeAll(TensorType type, const u32* bits, int count, bool as_f16, float* values,
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

inline bool IsSpecial(TensorType type, u32 bits) {
  float value;
  s32 exponent;
  return DecodeAll(type, &bits, 1, false, &value, &exponent);
}
/// The value of any element, infinities and NaN included, for the rare outputs that have them among
/// their terms.
inline double PlainValue(TensorType type, u32 bits) {
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

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
