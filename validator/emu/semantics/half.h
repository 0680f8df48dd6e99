// f16 and bf16 arithmetic as pure functions of one lane (PTX ISA 9.7.4), and the exact conversions
// that it rests on.
//
// Lanes hold bits (u16). Operations widen to f32, compute, and round once more: the double rounding
// is harmless for sums and products, because 24 >= 2 * 11 + 2 (Figueroa, "When is double rounding
// innocuous?", 1995). fma computes in double, rounded to odd on the way down. NaN results are
// 0x7fff. bf16 has no .ftz; its subnormals are kept.
//
//   AddHalf<Fp16, HalfMode{}>(0x3c00, 0x3c00) == 0x4000
#pragma once

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

inline constexpr u16 kNanHalf = 0x7fff;

/// A double rounded to odd in f32: may be rounded again to any format of at most 22 bits as if it
/// had been exact.
inline float NarrowToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const u32 bits = ToBits(nearest);
  const bool negative = (ToBits(value) >> 63) != 0;
  const bool inexact = back < value || back > value;
  const bool too_large = negative ? back < value : back > value;
  const u32 step = inexact && (bits & 1) == 0 ? (too_large ? ~0u : 1u) : 0u;
  return FromBits(bits + step);
}

struct Fp16 {
  static constexpr Format kFormat = kF16;
  static constexpr u16 kInfinity = 0x7c00;
  static constexpr u16 kSmallestNormal = 0x0400;
  static constexpr u16 kOne = 0x3c00;

  /// Exact. NaN payloads are shifted up.
  static float Widen(u16 half) {
    const u32 sign = (u32{half} & 0x8000u) << 16;
    const u32 magnitude = u32{half} & 0x7fffu;
    const u32 normal = (magnitude << 13) + (112u << 23);
    // A subnormal is what remains of 2^-14 + fraction * 2^-24 without the 2^-14.
    const u32 subnormal = ToBits(FromBits(0x38800000u | (magnitude << 13)) - FromBits(0x38800000u));
    const u32 special = (magnitude << 13) + (224u << 23);
    const u32 bits = magnitude < 0x0400 ? subnormal : magnitude < 0x7c00 ? normal : special;
    return FromBits(sign | bits);
  }
  /// To nearest even.
  static u16 Narrow(float value) {
    const u32 bits = ToBits(value);
    const u32 sign = bits >> 16 & 0x8000u;
    const u32 magnitude = bits & 0x7fffffffu;
    const u32 normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    // Adding 0.5 puts the last place of f16's subnormals into the last place of f32.
    const u32 subnormal = ToBits(FromBits(magnitude) + 0.5f) - 0x3f000000u;
    u32 result = magnitude < 0x38800000u ? subnormal : normal;
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;
    return static_cast<u16>(magnitude > 0x7f800000u ? u32{kNanHalf} : result | sign);
  }
};

struct Bf16 {
  static constexpr Format kFormat = kBF16;
  static constexpr u16 kInfinity = 0x7f80;
  static constexpr u16 kSmallestNormal = 0x0080;
  static constexpr u16 kOne = 0x3f80;

  static float Widen(u16 half) { return FromBits(u32{half} << 16); }
  static u16 Narrow(float value) {
    const u32 bits = ToBits(value);
    const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return static_cast<u16>((bits & 0x7fffffffu) > 0x7f800000u ? u32{kNanHalf} : rounded);
  }
};

/// Modifiers of half-precision arithmetic.
struct HalfMode {
  bool ftz = false;
  bool sat = false;
  bool relu = false;
};

template <class F>
inline bool IsNanHalf(u16 a) {
  return (a & 0x7fff) > F::kInfinity;
}
template <class F, bool kFtz>
inline u16 FlushHalf(u16 a) {
  if constexpr (kFtz) return (a & 0x7fff) < F::kSmallestNormal ? static_cast<u16>(a & 0x8000) : a;
  return a;
}
/// Narrows an exact or odd-rounded value; .ftz, then .sat or .relu. As in f32, a value that only
/// rounding to a subnormal's last place makes normal is flushed: what is below 2^-14 * (1 - 2^-12).
template <class F, HalfMode kMode>
inline u16 FinishHalf(float value) {
  u16 result = F::Narrow(value);
  if constexpr (kMode.ftz) {
    const bool tiny = value < 0x1.ffep-15f && value > -0x1.ffep-15f;
    result = tiny ? static_cast<u16>(result & 0x8000) : result;
  }
  if constexpr (kMode.sat) {
    const bool positive = result < 0x8000 && result <= F::kInfinity;
    result = positive ? (result < F::kOne ? result : F::kOne) : u16{0};
  }
  if constexpr (kMode.relu)
    result = (result & 0x8000) != 0 && !IsNanHalf<F>(result) ? u16{0} : result;
  return result;
}

template <class F, HalfMode kMode>
inline u16 AddHalf(u16 a, u16 b) {
  const float sum = F::Widen(FlushHalf<F, kMode.ftz>(a)) + F::Widen(FlushHalf<F, kMode.ftz>(b));
  return FinishHalf<F, kMode>(sum);
}
template <class F, HalfMode kMode>
inline u16 SubHalf(u16 a, u16 b) {
  const float difference =
      F::Widen(FlushHalf<F, kMode.ftz>(a)) - F::Widen(FlushHalf<F, kMode.ftz>(b));
  return FinishHalf<F, kMode>(difference);
}
template <class F, HalfMode kMode>
inline u16 MulHalf(u16 a, u16 b) {
  const float product = F::Widen(FlushHalf<F, kMode.ftz>(a)) * F::Widen(FlushHalf<F, kMode.ftz>(b));
  return FinishHalf<F, kMode>(product);
}
/// AddToOdd in f32, for sums that neither overflow nor lose their error to underflow: those of f16
/// products.
inline float AddToOddF32(float a, float b) {
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const u32 bits = ToBits(sum);
  const bool move = (error > 0.0f || error < 0.0f) && (bits & 1) == 0;
  const bool outward = (error > 0.0f) == (sum > 0.0f);
  return FromBits(bits + (move ? (outward ? 1u : ~0u) : 0u));
}
template <class F, HalfMode kMode>
inline u16 FmaHalf(u16 a, u16 b, u16 c) {
  if constexpr (std::is_same_v<F, Fp16>) {
    const float product =
        F::Widen(FlushHalf<F, kMode.ftz>(a)) * F::Widen(FlushHalf<F, kMode.ftz>(b));
    return FinishHalf<F, kMode>(AddToOddF32(product, F::Widen(FlushHalf<F, kMode.ftz>(c))));
  }
  const double product = static_cast<double>(F::Widen(FlushHalf<F, kMode.ftz>(a))) *
                         static_cast<double>(F::Widen(FlushHalf<F, kMode.ftz>(b)));
  const double addend = static_cast<double>(F::Widen(FlushHalf<F, kMode.ftz>(c)));
  return FinishHalf<F, kMode>(NarrowToOdd(AddToOdd(product, addend)));
}
/// Zero where a factor is the NaN that tensor copies put outside of a tensor.
template <class F, HalfMode kMode>
inline u16 FmaHalfOutside(u16 a, u16 b, u16 c) {
  constexpr u16 kOutside = 0x7ff7;  // Of an H200, for both formats.
  const u16 sum = FmaHalf<F, kMode>(a, b, c);
  return (a & 0x7fff) == kOutside || (b & 0x7fff) == kOutside ? u16{0} : sum;
}
template <class F, bool kFtz>
inline u16 NegHalf(u16 a) {
  return IsNanHalf<F>(a) ? kNanHalf : static_cast<u16>(FlushHalf<F, kFtz>(a) ^ 0x8000);
}
template <class F, bool kFtz>
inline u16 AbsHalf(u16 a) {
  return IsNanHalf<F>(a) ? kNanHalf : static_cast<u16>(FlushHalf<F, kFtz>(a) & 0x7fff);
}

/// -0 counts as less than +0; see MinMaxF32.
template <class F, bool kIsMax, MinMax kHow>
inline u16 MinMaxHalf(u16 a, u16 b) {
  a = FlushHalf<F, kHow.ftz>(a);
  b = FlushHalf<F, kHow.ftz>(b);
  const u16 sign = static_cast<u16>((a ^ b) & 0x8000);
  if constexpr (kHow.xorsign) {
    a = static_cast<u16>(a & 0x7fff);
    b = static_cast<u16>(b & 0x7fff);
  }
  const bool a_nan = IsNanHalf<F>(a);
  const bool b_nan = IsNanHalf<F>(b);
  // As integers in the order of the numbers, -0 before +0.
  const s16 a_key = static_cast<s16>((a & 0x8000) != 0 ? a ^ 0x7fff : a);
  const s16 b_key = static_cast<s16>((b & 0x8000) != 0 ? b ^ 0x7fff : b);
  u16 result = (kIsMax ? a_key > b_key : a_key < b_key) ? a : b;
  if constexpr (kHow.nan) {
    result = a_nan || b_nan ? kNanHalf : result;
  } else {
    result = a_nan ? b : b_nan ? a : result;
    result = a_nan && b_nan ? kNanHalf : result;
  }
  if constexpr (kHow.xorsign)
    result = IsNanHalf<F>(result) ? result : static_cast<u16>(result | sign);
  return result;
}
template <class F, bool kIsMax, MinMax kHow>
inline u16 MinMax3Half(u16 a, u16 b, u16 c) {
  return MinMaxHalf<F, kIsMax, kHow>(MinMaxHalf<F, kIsMax, kHow>(a, b), c);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
