// Floating point in integer arithmetic: exact values with 128-bit significands, and one rounding at
// the end.
//
// The slow, obviously right engine. Forms that kernels rarely use run on it directly (directed
// rounding of f64, fp8, tf32); the fast paths of floating.h, half.h and convert.h are tested
// against it.
//
// Model: Decode<F> turns bits into sign * significand * 2^exponent, exactly. Add, Mul, Fma, Div and
// Sqrt keep enough bits that the significand, whose lowest bit is sticky ("jammed"), rounds to any
// format here exactly as the infinitely precise value would. Encode<F> rounds. A value is finite
// unless `kind` says otherwise; NaN payloads are the caller's business.
//
//   Encode<kF16>(SoftMul(Decode<kF32>(a), Decode<kF32>(b)), Round::kZero)
#pragma once

#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

/// .rn, .rz, .rm, .rp, and .rna (to nearest, ties away from zero).
enum class Round : u8 { kNearest, kZero, kDown, kUp, kAway };

/// A binary interchange format: 1 sign bit, `exponent` bits, `fraction` bits.
struct Format {
  int exponent;
  int fraction;
  bool has_infinity = true;  ///< e4m3 has none; its only NaN has all bits set.
  constexpr int bias() const { return (1 << (exponent - 1)) - 1; }
  constexpr int bits() const { return 1 + exponent + fraction; }
  constexpr bool operator==(const Format&) const = default;
};
inline constexpr Format kF16{5, 10};
inline constexpr Format kBF16{8, 7};
inline constexpr Format kTF32{8, 10};
inline constexpr Format kF32{8, 23};
inline constexpr Format kF64{11, 52};
inline constexpr Format kE5M2{5, 2};
inline constexpr Format kE4M3{4, 3, false};

struct SoftValue {
  enum class Kind : u8 { kFinite, kInfinity, kNan };
  Kind kind = Kind::kFinite;
  bool negative = false;
  int exponent = 0;  ///< Value = significand * 2^exponent.
  u128 significand = 0;

  bool IsZero() const { return kind == Kind::kFinite && significand == 0; }
};

inline int BitLength(u128 value) {
  const u64 high = static_cast<u64>(value >> 64);
  const u64 low = static_cast<u64>(value);
  if (high != 0) return 128 - __builtin_clzll(high);
  return low == 0 ? 0 : 64 - __builtin_clzll(low);
}

/// Shifts right, keeping in the lowest bit whether anything was lost.
inline u128 ShiftRightJam(u128 value, int count) {
  if (count <= 0) return value;
  if (count > 127) return value != 0 ? 1 : 0;
  const u128 lost = value & ((u128{1} << count) - 1);
  return (value >> count) | (lost != 0 ? 1 : 0);
}

template <Format F>
inline SoftValue Decode(u64 bits) {
  constexpr u64 kFractionMask = (u64{1} << F.fraction) - 1;
  constexpr int kExponentMask = (1 << F.exponent) - 1;
  SoftValue value;
  value.negative = (bits >> (F.exponent + F.fraction) & 1) != 0;
  const int exponent = static_cast<int>(bits >> F.fraction) & kExponentMask;
  const u64 fraction = bits & kFractionMask;
  if (F.has_infinity && exponent == kExponentMask) {
    value.kind = fraction == 0 ? SoftValue::Kind::kInfinity : SoftValue::Kind::kNan;
    return value;
  }
  if (!F.has_infinity && exponent == kExponentMask && fraction == kFractionMask) {
    value.kind = SoftValue::Kind::kNan;
    return value;
  }
  value.significand = exponent == 0 ? fraction : fraction | u64{1} << F.fraction;
  value.exponent = (exponent == 0 ? 1 : exponent) - F.bias() - F.fraction;
  return value;
}

/// Bits of the largest finite value, without sign.
template <Format F>
inline constexpr u64 kMaxFinite = F.has_infinity ? (((u64{1} << F.exponent) - 1) << F.fraction) - 1
                                                 : (u64{1} << (F.exponent + F.fraction)) - 2;
/// All ones below the sign: the NaN that the hardware writes for f16, bf16, f32, and the only NaN
/// of e4m3.
template <Format F>
inline constexpr u64 kAllOnesNan = (u64{1} << (F.exponent + F.fraction)) - 1;
template <Format F>
inline constexpr u64 kInfinityBits =
    F.has_infinity ? ((u64{1} << F.exponent) - 1) << F.fraction : kAllOnesNan<F>;

/// Does rounding away from zero apply, given the kept lowest bit and the discarded part relative to
/// one half?
inline bool RoundsUp(Round mode, bool negative, bool odd, bool half, bool below_half) {
  switch (mode) {
    case Round::kNearest:
      return half && (below_half || odd);
    case Round::kAway:
      return half;
    case Round::kZero:
      return false;
    case Round::kDown:
      return negative && (half || below_half);
    case Round::kUp:
      return !negative && (half || below_half);
  }
  return false;
}

/// Rounds to F. NaN becomes kAllOnesNan. With `saturate_finite` what overflows becomes the largest
/// finite value (.satfinite), infinities too.
template <Format F>
inline u64 Encode(const SoftValue& value, Round mode, bool saturate_finite = false) {
  const u64 sign = u64{value.negative} << (F.exponent + F.fraction);
  if (value.kind == SoftValue::Kind::kNan) return kAllOnesNan<F>;
  if (value.kind == SoftValue::Kind::kInfinity) {
    return sign | (saturate_finite ? kMaxFinite<F> : kInfinityBits<F>);
  }
  if (value.significand == 0) return sign;
  // Drop bits until fraction + 1 are left, more when the result is subnormal.
  constexpr int kMinExponent = 1 - F.bias() - F.fraction;
  int drop = BitLength(value.significand) - (F.fraction + 1);
  if (value.exponent + drop < kMinExponent) drop = kMinExponent - value.exponent;
  u128 kept = value.significand;
  int exponent = value.exponent;
  if (drop > 0) {
    const bool any = drop > 128;
    const bool half = !any && (kept >> (drop - 1) & 1) != 0;
    const bool below = any || (drop > 1 && (kept & ((u128{1} << (drop - 1)) - 1)) != 0);
    kept = drop > 127 ? 0 : kept >> drop;
    if (RoundsUp(mode, value.negative, (kept & 1) != 0, half, below)) ++kept;
  } else {
    kept <<= -drop;
  }
  exponent += drop;
  // The carry of rounding moves into the exponent field by itself.
  const u64 biased = static_cast<u64>(exponent - kMinExponent);
  const u64 packed = (biased << F.fraction) + static_cast<u64>(kept);
  if (packed > kMaxFinite<F>) {
    const bool to_infinity = !saturate_finite && (mode == Round::kNearest || mode == Round::kAway ||
                                                  (mode == Round::kUp && !value.negative) ||
                                                  (mode == Round::kDown && value.negative));
    return sign | (to_infinity ? kInfinityBits<F> : kMaxFinite<F>);
  }
  return sign | packed;
}

/// Moves the highest bit to bit 126, so that sums do not overflow.
inline SoftValue Normalized(SoftValue value) {
  const int shift = 127 - BitLength(value.significand);
  if (value.significand == 0) return value;
  if (shift >= 0) {
    value.significand <<= shift;
  } else {
    value.significand = ShiftRightJam(value.significand, -shift);
  }
  value.exponent -= shift;
  return value;
}

inline SoftValue SoftNan() { return {.kind = SoftValue::Kind::kNan}; }

/// The sign of an exact zero sum is minus only when rounding down, or when both addends are -0.
inline SoftValue SoftAdd(SoftValue a, SoftValue b, Round mode) {
  using Kind = SoftValue::Kind;
  if (a.kind == Kind::kNan || b.kind == Kind::kNan) return SoftNan();
  if (a.kind == Kind::kInfinity) {
    return b.kind == Kind::kInfinity && a.negative != b.negative ? SoftNan() : a;
  }
  if (b.kind == Kind::kInfinity) return b;
  if (a.IsZero() && b.IsZero()) {
    a.negative = a.negative == b.negative ? a.negative : mode == Round::kDown;
    return a;
  }
  if (a.IsZero()) return b;
  if (b.IsZero()) return a;
  a = Normalized(a);
  b = Normalized(b);
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
    const SoftValue swap = a;
    a = b;
    b = swap;
  }
  b.significand = ShiftRightJam(b.significand, a.exponent - b.exponent);
  a.significand =
      a.negative == b.negative ? a.significand + b.significand : a.significand - b.significand;
  if (a.significand == 0) a.negative = mode == Round::kDown;
  return a;
}

/// Exact, for factors of up to 64 significant bits.
inline SoftValue SoftMul(const SoftValue& a, const SoftValue& b) {
  using Kind = SoftValue::Kind;
  if (a.kind == Kind::kNan || b.kind == Kind::kNan) return SoftNan();
  SoftValue result;
  result.negative = a.negative != b.negative;
  if (a.kind == Kind::kInfinity || b.kind == Kind::kInfinity) {
    if (a.IsZero() || b.IsZero()) return SoftNan();
    result.kind = Kind::kInfinity;
    return result;
  }
  result.exponent = a.exponent + b.exponent;
  result.significand = a.significand * b.significand;
  return result;
}

/// a * b + c with one rounding, for factors of up to 53 significant bits: the sum keeps 126 bits
/// and a sticky one, and only an alignment by more than the addends' spare bits loses any, when at
/// most one leading bit can cancel.
inline SoftValue SoftFma(const SoftValue& a, const SoftValue& b, const SoftValue& c, Round mode) {
  return SoftAdd(SoftMul(a, b), c, mode);
}

/// For significands of up to 53 bits: 64 quotient bits and a sticky one.
inline SoftValue SoftDiv(const SoftValue& a, const SoftValue& b) {
  using Kind = SoftValue::Kind;
  if (a.kind == Kind::kNan || b.kind == Kind::kNan) return SoftNan();
  SoftValue result;
  result.negative = a.negative != b.negative;
  if (a.kind == Kind::kInfinity || b.IsZero()) {
    if (b.kind == Kind::kInfinity || a.IsZero()) return SoftNan();
    result.kind = Kind::kInfinity;
    return result;
  }
  if (b.kind == Kind::kInfinity || a.IsZero()) return result;
  const int lift = 126 - BitLength(a.significand);
  const u128 numerator = a.significand << lift;
  result.significand = numerator / b.significand;
  if (numerator % b.significand != 0) result.significand |= 1;
  result.exponent = a.exponent - lift - b.exponent;
  return result;
}

inline SoftValue SoftSqrt(const SoftValue& a) {
  using Kind = SoftValue::Kind;
  if (a.kind == Kind::kNan || a.IsZero()) return a;
  if (a.negative) return SoftNan();
  if (a.kind == Kind::kInfinity) return a;
  // Bit by bit: the root of a significand of 125 or 126 bits has 63.
  int lift = 126 - BitLength(a.significand);
  if (((a.exponent - lift) & 1) != 0) --lift;
  u128 rest = a.significand << lift;
  u128 root = 0;
  for (u128 bit = u128{1} << 126; bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  SoftValue result;
  result.significand = root << 1 | (rest != 0 ? 1 : 0);
  result.exponent = (a.exponent - lift) / 2 - 1;
  return result;
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
