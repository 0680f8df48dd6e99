// f32 and f64 arithmetic as pure functions of one lane (PTX ISA 9.7.3).
//
// Results that IEEE 754 defines agree with it in every bit. What it leaves open follows the
// hardware (measured on an H200): f32 operations return the NaN 0x7fffffff whatever the payloads
// were, f64 operations a quieted NaN operand or 0xfff8000000000000.
// `.ftz` reads and writes subnormals as zeros of the same sign. Whether a result is subnormal is
// decided on the value rounded as if the exponent had no lower end: 2^-126 * (1 - 2^-24) is flushed
// although it would round up to a normal number.
//
// Directed rounding does not touch the host's rounding mode. f32 operations are computed in double,
// rounded *to odd* (the lowest bit says "inexact"), and then rounded once to f32 by integer
// arithmetic: 53 >= 24 + 2 bits make that exact (Boldo and Melquiond, "Emulation of FMA and
// correctly rounded sums", 2008). f64 uses soft.h.
//
// Cost: nearest f32 and f64 compile to the host's own instruction and a blend for NaN; directed f32
// to some twenty.
#pragma once

#include "validator/emu/semantics/level.h"
#include "validator/emu/semantics/soft.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

inline constexpr u32 kNanF32 = 0x7fffffffu;

inline float FromBits(u32 bits) { return BitCast<float>(bits); }
inline double FromBits(u64 bits) { return BitCast<double>(bits); }
inline double FromBits(unsigned long long bits) { return BitCast<double>(bits); }
inline u32 ToBits(float value) { return BitCast<u32>(value); }
inline u64 ToBits(double value) { return BitCast<u64>(value); }

inline bool IsNan(float a) { return a != a; }
inline bool IsNan(double a) { return a != a; }
inline float Canonical(float a) { return a != a ? FromBits(kNanF32) : a; }

/// Subnormals become zeros of the same sign.
inline float Flush(float a) {
  const u32 bits = ToBits(a);
  return FromBits((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
template <bool kFtz>
inline float FlushIf(float a) {
  if constexpr (kFtz) return Flush(a);
  return a;
}
/// .sat: [0, 1], NaN and -0 become +0.
inline float Saturate(float a) {
  const float low = a > 0.0f ? a : 0.0f;
  return low < 1.0f ? low : 1.0f;
}

/// The sum, whose lowest bit is set if it is not exact: TwoSum (Knuth), then a step towards the
/// exact value where needed. Holds for finite sums that do not overflow, which sums of f32 values
/// and their products never do in double.
inline double AddToOdd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  u64 bits = ToBits(sum);
  // Rounding to odd: an inexact even result moves to its odd neighbour on the side of the exact
  // value.
  const bool move = (error > 0.0 || error < 0.0) && (bits & 1) == 0;  // Not when it is NaN.
  const bool outward = (error > 0.0) == (sum > 0.0);
  bits += move ? (outward ? u64{1} : ~u64{0}) : u64{0};
  return FromBits(bits);
}

/// Rounds a double to f32 in any mode, exactly; subnormals, overflow, infinities and NaN included.
template <Round kMode>
inline float NarrowToF32(double value) {
  if constexpr (kMode == Round::kNearest) {
    return Canonical(static_cast<float>(value));
  } else {
    // The conversion of the host rounds to nearest; step back to the neighbour that the mode asks
    // for. Overflow to infinity steps back to the largest finite value by the same subtraction, and
    // zero steps to the smallest subnormal by the same addition.
    const float nearest = static_cast<float>(value);
    const double back = static_cast<double>(nearest);
    const u32 bits = ToBits(nearest);
    const bool negative = (ToBits(value) >> 63) != 0;
    bool inwards = false;
    bool outwards = false;
    const bool too_large = negative ? back < value : back > value;
    const bool too_small = negative ? back > value : back < value;
    if constexpr (kMode == Round::kZero) {
      inwards = too_large;
    } else if constexpr (kMode == Round::kDown) {
      inwards = !negative && too_large;
      outwards = negative && too_small;
    } else {
      inwards = negative && too_large;
      outwards = !negative && too_small;
    }
    return Canonical(FromBits(bits - (inwards ? 1u : 0u) + (outwards ? 1u : 0u)));
  }
}

/// x + -x is -0 when rounding down; everything else follows from the addition itself.
template <Round kMode>
inline double SignZeroSum(double sum, double a, double b) {
  if constexpr (kMode == Round::kDown) {
    const bool both_positive_zero = a == 0.0 && b == 0.0 && ((ToBits(a) | ToBits(b)) >> 63) == 0;
    return sum == 0.0 && !both_positive_zero ? -0.0 : sum;
  }
  return sum;
}

// --- add,
// sub, mul, fma (9.7.3.3-9.7.3.6)
template <bool kSat>
inline float Finish(float result) {
  result = Canonical(result);
  if constexpr (kSat) return Saturate(result);
  return result;
}
/// .ftz of a result, given the same result computed 2^32 times larger, where the exponent's lower
/// end is out of the way. What overflows there is not small.
inline constexpr float kScale = 0x1p32f;
inline float FlushScaled(float result, float scaled) {
  const bool tiny = scaled < 0x1p-94f && scaled > -0x1p-94f;
  return FromBits(tiny ? ToBits(result) & 0x80000000u : ToBits(result));
}
/// Narrows what AddToOdd and its like left in a double.
template <Round kMode, bool kFtz, bool kSat>
inline float FinishDouble(double value) {
  const float result = NarrowToF32<kMode>(value);
  if constexpr (kFtz)
    return Finish<kSat>(
        FlushScaled(result, NarrowToF32<kMode>(value * static_cast<double>(kScale))));
  return Finish<kSat>(result);
}

template <Round kMode = Round::kNearest, bool kFtz = false, bool kSat = false>
inline float AddF32(float a, float b) {
  a = FlushIf<kFtz>(a);
  b = FlushIf<kFtz>(b);
  if constexpr (kMode == Round::kNearest) {
    // Sums below the normal range are exact.
    return Finish<kSat>(FlushIf<kFtz>(a + b));
  } else {
    const double x = a;
    const double y = b;
    return FinishDouble<kMode, kFtz, kSat>(SignZeroSum<kMode>(AddToOdd(x, y), x, y));
  }
}
template <Round kMode = Round::kNearest, bool kFtz = false, bool kSat = false>
inline float SubF32(float a, float b) {
  return AddF32<kMode, kFtz, kSat>(a, -b);
}
template <Round kMode = Round::kNearest, bool kFtz = false, bool kSat = false>
inline float MulF32(float a, float b) {
  a = FlushIf<kFtz>(a);
  b = FlushIf<kFtz>(b);
  if constexpr (kMode == Round::kNearest) {
    if constexpr (kFtz) return Finish<kSat>(FlushScaled(a * b, (a * kScale) * b));
    return Finish<kSat>(a * b);
  } else {
    // 48 bits: the product is exact in double.
    return FinishDouble<kMode, kFtz, kSat>(static_cast<double>(a) * static_cast<double>(b));
  }
}
template <Round kMode = Round::kNearest, bool kFtz = false, bool kSat = false>
inline float FmaF32(float a, float b, float c) {
  a = FlushIf<kFtz>(a);
  b = FlushIf<kFtz>(b);
  c = FlushIf<kFtz>(c);
#ifdef __FMA__
  if constexpr (kMode == Round::kNearest) {
    const float result = __builtin_fmaf(a, b, c);
    if constexpr (kFtz)
      return Finish<kSat>(FlushScaled(result, __builtin_fmaf(a * kScale, b, c * kScale)));
    return Finish<kSat>(result);
  }
#endif
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  return FinishDouble<kMode, kFtz, kSat>(
      SignZeroSum<kMode>(AddToOdd(product, addend), product, addend));
}

// --- div,
// rcp, sqrt (9.7.3.8, 13, 15)
/// Quotients and roots of f32 values are never nearer than 2^-49 (relative) to a number of 25 bits
/// that they do not equal, so that the double result (error 2^-53) lies on the same side of every
/// f32 value and midpoint as the exact one.
template <Round kMode = Round::kNearest, bool kFtz = false>
inline float DivF32(float a, float b) {
  a = FlushIf<kFtz>(a);
  b = FlushIf<kFtz>(b);
  if constexpr (kMode == Round::kNearest) {
    if constexpr (kFtz) return Finish<false>(FlushScaled(a / b, (a * kScale) / b));
    return Finish<false>(a / b);
  } else {
    return FinishDouble<kMode, kFtz, false>(static_cast<double>(a) / static_cast<double>(b));
  }
}
template <Round kMode = Round::kNearest, bool kFtz = false>
inline float RcpF32(float a) {
  return DivF32<kMode, kFtz>(1.0f, a);
}
template <Round kMode = Round::kNearest, bool kFtz = false>
inline float SqrtF32(float a) {
  a = FlushIf<kFtz>(a);
  if constexpr (kMode == Round::kNearest) {
    return Finish<false>(__builtin_sqrtf(a));
  } else {
    return FinishDouble<kMode, false, false>(__builtin_sqrt(static_cast<double>(a)));
  }
}

// --- f64 (9.7.3.3-9.7.3.6, 8, 13, 15)
inline constexpr u64 kQuietBitF64 = 0x0008000000000000ull;
inline constexpr u64 kNanF64 = 0xfff8000000000000ull;
inline double Quiet(double a) { return FromBits(ToBits(a) | kQuietBitF64); }

/// What the hardware returns when an operation yields NaN: the second operand before the others.
inline double NanOf(double result, double a, double b, double c) {
  double nan = IsNan(a) ? Quiet(a) : FromBits(kNanF64);
  nan = IsNan(c) ? Quiet(c) : nan;
  nan = IsNan(b) ? Quiet(b) : nan;
  return IsNan(result) ? nan : result;
}
inline double NanOf(double result, double a, double b) { return NanOf(result, a, b, a); }

template <Round kMode = Round::kNearest>
inline double AddF64(double a, double b) {
  if constexpr (kMode == Round::kNearest) {
    return NanOf(a + b, a, b);
  } else {
    const u64 bits =
        Encode<kF64>(SoftAdd(Decode<kF64>(ToBits(a)), Decode<kF64>(ToBits(b)), kMode), kMode);
    return NanOf(FromBits(bits), a, b);
  }
}
template <Round kMode = Round::kNearest>
inline double SubF64(double a, double b) {
  if constexpr (kMode == Round::kNearest) {
    return NanOf(a - b, a, b);
  } else {
    return NanOf(AddF64<kMode>(a, -b), a, b);
  }
}
template <Round kMode = Round::kNearest>
inline double MulF64(double a, double b) {
  if constexpr (kMode == Round::kNearest) {
    return NanOf(a * b, a, b);
  } else {
    const u64 bits = Encode<kF64>(SoftMul(Decode<kF64>(ToBits(a)), Decode<kF64>(ToBits(b))), kMode);
    return NanOf(FromBits(bits), a, b);
  }
}
template <Round kMode = Round::kNearest>
inline double FmaF64(double a, double b, double c) {
#ifdef __FMA__
  if constexpr (kMode == Round::kNearest) return NanOf(__builtin_fma(a, b, c), a, b, c);
#endif
  const SoftValue sum =
      SoftFma(Decode<kF64>(ToBits(a)), Decode<kF64>(ToBits(b)), Decode<kF64>(ToBits(c)), kMode);
  return NanOf(FromBits(Encode<kF64>(sum, kMode)), a, b, c);
}
template <Round kMode = Round::kNearest>
inline double DivF64(double a, double b) {
  if constexpr (kMode == Round::kNearest) {
    return NanOf(a / b, b, a);
  } else {
    const u64 bits = Encode<kF64>(SoftDiv(Decode<kF64>(ToBits(a)), Decode<kF64>(ToBits(b))), kMode);
    return NanOf(FromBits(bits), b, a);
  }
}
template <Round kMode = Round::kNearest>
inline double RcpF64(double a) {
  return DivF64<kMode>(1.0, a);
}
template <Round kMode = Round::kNearest>
inline double SqrtF64(double a) {
  if constexpr (kMode == Round::kNearest) {
    return NanOf(__builtin_sqrt(a), a, a);
  } else {
    return NanOf(FromBits(Encode<kF64>(SoftSqrt(Decode<kF64>(ToBits(a))), kMode)), a, a);
  }
}

// --- abs,
// neg, min, max (9.7.3.9-9.7.3.12)
template <bool kFtz>
inline float AbsF32(float a) {
  return Canonical(FromBits(ToBits(FlushIf<kFtz>(a)) & 0x7fffffffu));
}
template <bool kFtz>
inline float NegF32(float a) {
  return Canonical(FromBits(ToBits(FlushIf<kFtz>(a)) ^ 0x80000000u));
}
/// NaN keeps its sign.
inline double AbsF64(double a) {
  return IsNan(a) ? Quiet(a) : FromBits(ToBits(a) & 0x7fffffffffffffffull);
}
inline double NegF64(double a) {
  return IsNan(a) ? Quiet(a) : FromBits(ToBits(a) ^ 0x8000000000000000ull);
}

/// How min and max differ from each other: modifiers as flags.
struct MinMax {
  bool ftz = false;
  bool nan = false;  ///< .NaN: either NaN gives NaN; without it the other operand is returned.
  bool xorsign =
      false;  ///< .xorsign.abs: of the absolute values, with the exclusive or of the signs.
};

/// -0 counts as less than +0. Two NaNs give the canonical NaN.
template <bool kIsMax, MinMax kHow>
inline float MinMaxF32(float a, float b) {
  a = FlushIf<kHow.ftz>(a);
  b = FlushIf<kHow.ftz>(b);
  const u32 sign = (ToBits(a) ^ ToBits(b)) & 0x80000000u;
  if constexpr (kHow.xorsign) {
    a = FromBits(ToBits(a) & 0x7fffffffu);
    b = FromBits(ToBits(b) & 0x7fffffffu);
  }
  const u32 zeros = kIsMax ? ToBits(a) & ToBits(b) : ToBits(a) | ToBits(b);
  const bool first = kIsMax ? a > b : a < b;
  float result = a == b ? FromBits(zeros) : first ? a : b;
  const bool a_nan = a != a;
  const bool b_nan = b != b;
  if constexpr (kHow.nan) {
    result = a_nan || b_nan ? FromBits(kNanF32) : result;
  } else {
    result = b_nan ? a : result;
    result = a_nan && b_nan ? FromBits(kNanF32) : result;
  }
  if constexpr (kHow.xorsign) result = IsNan(result) ? result : FromBits(ToBits(result) | sign);
  return result;
}
template <bool kIsMax>
inline double MinMaxF64(double a, double b) {
  if (IsNan(a)) return IsNan(b) ? Quiet(b) : b;
  if (IsNan(b)) return a;
  if (a == b) return FromBits(kIsMax ? ToBits(a) & ToBits(b) : ToBits(a) | ToBits(b));
  return (kIsMax ? a > b : a < b) ? a : b;
}
template <bool kIsMax, MinMax kHow>
inline float MinMax3F32(float a, float b, float c) {
  return MinMaxF32<kIsMax, kHow>(MinMaxF32<kIsMax, kHow>(a, b), c);
}

// --- copysign, testp (9.7.3.1-2)
/// The sign of `a`, the rest of `b`.
inline u32 CopySign32(u32 a, u32 b) { return (a & 0x80000000u) | (b & 0x7fffffffu); }
inline u64 CopySign64(u64 a, u64 b) {
  return (a & 0x8000000000000000ull) | (b & 0x7fffffffffffffffull);
}

enum class FloatClass { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <FloatClass kClass, class T, int kFractionBits>
inline bool TestP(T bits) {
  constexpr T kFraction = (T{1} << kFractionBits) - 1;
  constexpr T kExponent = Cast<T>(static_cast<T>(~T{0}) >> 1) & Cast<T>(~kFraction);
  const T exponent = bits & kExponent;
  const T fraction = bits & kFraction;
  if constexpr (kClass == FloatClass::kFinite) return exponent != kExponent;
  if constexpr (kClass == FloatClass::kInfinite) return exponent == kExponent && fraction == 0;
  if constexpr (kClass == FloatClass::kNumber) return exponent != kExponent || fraction == 0;
  if constexpr (kClass == FloatClass::kNotANumber) return exponent == kExponent && fraction != 0;
  // Zeros count as normal.
  if constexpr (kClass == FloatClass::kNormal)
    return exponent != kExponent && (exponent != 0 || fraction == 0);
  return exponent == 0 && fraction != 0;
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
