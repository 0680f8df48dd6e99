// The special function unit: what rcp, rsqrt, sqrt, ex2, lg2, sin, cos and tanh.approx return, bit
// for bit as an H200 (sm_90) does.
//
// The chip splits the argument's mantissa or fraction into a segment and an offset x of 17 bits,
// and evaluates a quadratic of the segment in fixed point:
//
//   value = c0 + c1 * x + c2 * TruncatedSquare(x)
//
// truncates it to 24 bits and puts sign and exponent to it (the design is that of Oberman and Siu,
// "A high-performance area-efficient multifunction interpolator", ARITH 2005). The squarer leaves
// out the partial products of its low columns, which shows in the results. The coefficients were
// recovered from recordings of all mantissas (tests/conformance/fit_mufu.py) and reproduce every
// one of them; a test holds digests of the recordings.
//
// A *unit* here is a structure of three functions: Locate says where to look, kTable/Row which
// quadratic, Finish what becomes of the value. RunUnit takes 32 lanes through in stages, so that
// each stage vectorises; around a unit stands the short sequence that ptxas makes of a form
// (handlers/approx.cc).
//
// Units flush subnormal inputs and results to zeros, except tanh; NaN results are 0x7fffffff.
// Everything is exact in double: no result depends on the host's libm or on fused operations.
#pragma once

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/level.h"
#include "validator/emu/semantics/mufu_tables.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

inline constexpr u32 kSignF32 = 0x80000000u;
inline constexpr u32 kInfinityF32 = 0x7f800000u;
inline constexpr u32 kMantissaF32 = 0x007fffffu;

/// x^2 / 2^19 for x < 2^17, without the partial products x_i * x_j (2^(i+j+1), or 2^2i on the
/// diagonal) of the columns below 2^19. `high` and `low` are x / 2^9 and x % 2^9. Of the products
/// within `high` only x_9 squared falls away, of those within `low` all; what is left are rows of
/// bit i of `low` with the bits of `high` above 8 - i. All of it fits 16 bits.
inline u16 TruncatedSquare(u16 high, u16 low) {
  u16 sum = static_cast<u16>(static_cast<u16>(high * high - (high & 1)) >> 1);
  for (int i = 2; i <= 8; ++i) {
    const u16 bit = static_cast<u16>(0 - (low >> i & 1));
    sum = static_cast<u16>(sum + (bit & high >> (9 - i)));
  }
  return sum;
}

/// A positive value cut to f32's 24 bits.
inline float Truncated(double value) {
  return static_cast<float>(FromBits(ToBits(value) & 0xffffffffe0000000ull));
}

inline s32 ExponentBits(u32 bits) { return static_cast<s32>(bits >> 23 & 0xff); }

/// Which quadratic of the unit's table, and where on it.
struct Place {
  u32 row = 0;
  u32 offset = 0;  ///< Below 2^17.
};
inline Place BySixBits(u32 fraction) { return {fraction >> 17, fraction & 0x1ffff}; }

/// `value` with `exponent` added to its exponent; 0 below the normal range, infinity above.
inline float Scaled(float value, s32 exponent, u32 sign) {
  const s32 biased = ExponentBits(ToBits(value)) + exponent;
  const u32 normal = ToBits(value) + (static_cast<u32>(exponent) << 23);
  const u32 magnitude = biased <= 0 ? 0 : biased >= 255 ? kInfinityF32 : normal;
  return FromBits(magnitude | sign);
}

struct RcpUnit {
  static const Quadratic* Table() { return kRcpTable; }
  static Place Locate(u32 bits) { return {bits >> 16 & 0x7f, (bits & 0xffff) << 1}; }
  static float Finish(u32 bits, double value) {
    const u32 sign = bits & kSignF32;
    const s32 exponent = ExponentBits(bits);
    u32 result = ToBits(Scaled(Truncated(value), 127 - exponent, sign));
    const u32 infinity = kInfinityF32 | sign;
    result = exponent == 0 ? infinity : result;
    result = exponent == 255 ? sign : result;
    result = (bits & ~kSignF32) > kInfinityF32 ? kNanF32 : result;
    return FromBits(result);
  }
};

/// rsqrt and sqrt have two tables, by the exponent's parity.
inline Place ByParity(u32 bits) {
  const u32 fraction = bits & kMantissaF32;
  return {((bits >> 17 & 0x40) ^ 0x40) | fraction >> 17, fraction & 0x1ffff};
}

struct RsqrtUnit {
  static const Quadratic* Table() { return kRsqrtTable; }
  static Place Locate(u32 bits) { return ByParity(bits); }
  static float Finish(u32 bits, double value) {
    const s32 exponent = ExponentBits(bits);
    // Even powers of two are exact; their quadratic is a quarter of a place short.
    const float result = (bits & 0x00ffffffu) == 0x00800000u ? 1.0f : Truncated(value);
    const float normal = Scaled(result, -((exponent - 127) >> 1), 0);
    const float zero = FromBits(kInfinityF32 | (bits & kSignF32));
    return exponent == 0          ? zero
           : bits == kInfinityF32 ? 0.0f
           : bits > kInfinityF32  ? FromBits(kNanF32)
                                  : normal;
  }
};

struct SqrtUnit {
  static const Quadratic* Table() { return kSqrtTable; }
  static Place Locate(u32 bits) { return ByParity(bits); }
  static float Finish(u32 bits, double value) {
    const s32 exponent = ExponentBits(bits);
    const float normal = Scaled(Truncated(value), (exponent - 127) >> 1, 0);
    return exponent == 0          ? FromBits(bits & kSignF32)
           : bits == kInfinityF32 ? FromBits(bits)
           : bits > kInfinityF32  ? FromBits(kNanF32)
                                  : normal;
  }
};

struct Exp2Unit {
  /// The argument in units of 2^-23, rounded down. Of a negative one the magnitude is cut first,
  /// and one is taken off unless what is left of it is whole.
  static s32 Fixed(u32 bits) {
    const u32 magnitude = ExponentBits(bits) == 0 ? 0 : bits & ~kSignF32;
    // From 255 on, NaN included, the result does not depend on it.
    const float within = FromBits(magnitude < 0x437f0000u ? magnitude : 0x437f0000u);
    const s32 cut = static_cast<s32>(within * 0x1p23f);
    const s32 below = (cut & 0x7fffff) == 0 ? -cut : ~cut;
    return (bits & kSignF32) != 0 ? below : cut;
  }
  static const Quadratic* Table() { return kExp2Table; }
  static Place Locate(u32 bits) { return BySixBits(static_cast<u32>(Fixed(bits)) & kMantissaF32); }
  static float Finish(u32 bits, double value) {
    const float result = Scaled(Truncated(value), Fixed(bits) >> 23, 0);
    return (bits & ~kSignF32) > kInfinityF32 ? FromBits(kNanF32) : result;
  }
};

struct Log2Unit {
  static const Quadratic* Table() { return kLog2Table; }
  static Place Locate(u32 bits) { return BySixBits(bits & kMantissaF32); }
  static float Finish(u32 bits, double value) {
    const s32 exponent = ExponentBits(bits);
    // Exponent and value, rounded down to 2^-36: 1.5 * 2^16 leaves no bits below.
    const double whole = static_cast<double>(exponent - 127);
    const double sum = ((whole + (value - 0x1.8p-38)) + 0x1.8p16) - 0x1.8p16;
    // The magnitude of a negative sum is its one's complement.
    const bool negative = exponent < 127;
    const float magnitude = Truncated(negative ? -sum - 0x1p-36 : sum);
    const float normal = negative ? -magnitude : magnitude;
    return exponent == 0          ? FromBits(kInfinityF32 | kSignF32)
           : bits == kInfinityF32 ? FromBits(bits)
           : bits > kInfinityF32  ? FromBits(kNanF32)
           : bits == 0x3f800000u  ? 0.0f
                                  : normal;
  }
};

/// Sine (quadrant 0) or cosine (quadrant 1).
template <u32 kShift>
struct SinUnit {
  /// The argument's magnitude in turns, of which the fraction counts, in units of 2^-25 of a turn:
  /// quadrant and 23 bits. The product is rounded to f32 toward zero.
  static u32 Angle(u32 bits) {
    const u32 magnitude = (bits & ~kSignF32) < kInfinityF32 ? bits & ~kSignF32 : 0;
    const double product = static_cast<double>(FromBits(magnitude)) * 0x1.45f306p-3;
    const double turns = FromBits(ToBits(product) & 0xffffffffe0000000ull);
    const double fraction = turns - __builtin_floor(turns);
    return static_cast<u32>(static_cast<s32>(fraction * 0x1p25)) + (kShift << 23);
  }
  static const Quadratic* Table() { return kSinTable; }
  static Place Locate(u32 bits) {
    const u32 angle = Angle(bits);
    // The second half of a half turn runs backwards: the one's complement of the fraction.
    return BySixBits((angle ^ (0u - (angle >> 23 & 1))) & kMantissaF32);
  }
  static float Finish(u32 bits, double value) {
    const u32 own = kShift == 0 ? bits & kSignF32 : 0;
    const u32 sign = (Angle(bits) << 7 & kSignF32) ^ own;
    const float result = FromBits(ToBits(Truncated(value)) ^ sign);
    return (bits & ~kSignF32) >= kInfinityF32 ? FromBits(kNanF32) : result;
  }
};

struct TanhUnit {
  static const Quadratic* Table() { return kTanhTable; }
  /// How many leading bits of the mantissa choose among the rows of a binade; the table repeats
  /// rows for all four.
  static u32 SegmentBits(s32 exponent) {
    return static_cast<u32>((exponent > 121) + (exponent > 123) + (exponent > 126) +
                            (exponent > 127) - (exponent > 128));
  }
  static Place Locate(u32 bits) {
    const s32 exponent = ExponentBits(bits);
    const s32 inside = exponent < 119 ? 119 : exponent > 129 ? 129 : exponent;
    const u32 fraction = bits & kMantissaF32;
    return {static_cast<u32>(inside - 119) << 4 | fraction >> 19,
            fraction >> (6 - SegmentBits(inside)) & 0x1ffff};
  }
  static float Finish(u32 bits, double value) {
    const u32 sign = bits & kSignF32;
    const u32 magnitude = bits & ~kSignF32;
    const s32 exponent = ExponentBits(bits);
    const u32 inner = exponent < 119 ? magnitude : ToBits(Truncated(value));
    const u32 result = exponent > 129 ? 0x3f800000u : inner;
    return magnitude > kInfinityF32 ? FromBits(kNanF32) : FromBits(result | sign);
  }
};

/// What ex2 and tanh of halves make of the unit's result: it is cut, subnormals included.
template <class F>
inline u16 Cut(float value);
template <>
inline u16 Cut<Fp16>(float value) {
  const u32 sign = ToBits(value) >> 16 & 0x8000;
  const u32 magnitude = ToBits(value) & ~kSignF32;
  const float small = FromBits(magnitude < 0x38800000u ? magnitude : 0);
  const u32 subnormal = static_cast<u32>(static_cast<s32>(small * 0x1p24f));
  const u32 normal = (magnitude - (112u << 23)) >> 13;
  u32 result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  return static_cast<u16>(magnitude > kInfinityF32 ? u32{kNanHalf} : result | sign);
}
template <>
inline u16 Cut<Bf16>(float value) {
  return static_cast<u16>(ToBits(value) >> 16);
}

/// Takes 32 lanes through a unit. `in` and `out` may be the same.
template <class Unit>
[[gnu::noinline]] void RunUnit(const float* in, float* out) {
  constexpr int kLanes = 32;
  alignas(64) u32 rows[kLanes];
  alignas(64) s32 offsets[kLanes];
  alignas(64) u16 high[kLanes];
  alignas(64) u16 low[kLanes];
  alignas(64) u16 squares[kLanes];
  alignas(64) double c0[kLanes];
  alignas(64) double c1[kLanes];
  alignas(64) double c2[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const Place place = Unit::Locate(ToBits(in[i]));
    rows[i] = place.row;
    offsets[i] = static_cast<s32>(place.offset);
    high[i] = static_cast<u16>(place.offset >> 9);
    low[i] = static_cast<u16>(place.offset & 0x1ff);
  }
  for (int i = 0; i < kLanes; ++i) squares[i] = TruncatedSquare(high[i], low[i]);
  const Quadratic* const table = Unit::Table();
  for (int i = 0; i < kLanes; ++i) {
    const Quadratic& row = table[rows[i]];
    c0[i] = row.c0;
    c1[i] = row.c1;
    c2[i] = row.c2;
  }
  for (int i = 0; i < kLanes; ++i) c0[i] += c1[i] * offsets[i] + c2[i] * squares[i];
  for (int i = 0; i < kLanes; ++i) out[i] = Unit::Finish(ToBits(in[i]), c0[i]);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
