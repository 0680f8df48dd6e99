// The exact values behind the approximate instructions: rcp, sqrt, rsqrt, div, ex2, lg2, sin, cos,
// tanh (PTX ISA 9.7.3.7-9.7.3.22, 9.7.4.9-9.7.4.10).
//
// What the chip returns is mufu.h's business; it is not correctly rounded, and PTX documents a
// maximum error. Each function here returns the mathematical value in double, good to 2^-44 or
// better. With a perturbation seed the handler returns, by a hash of seed, opcode and input bits, a
// value within the documented bound of it (Perturbed) instead of the chip's, so that a kernel that
// passes only by the luck of one chip is found. The f64 forms are these values rounded once.
//
// Everything is additions, multiplications, divisions and roots in double without library calls,
// hence the same bits on every machine, and free of branches, hence vectorised.
#pragma once

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

inline constexpr double kInfinity = __builtin_inf();

/// 2^n for n in [-1022, 1023].
inline double PowerOfTwo(s64 n) { return FromBits(static_cast<u64>(n + 1023) << 52); }

/// The nearest whole number, for |a| < 2^51: adding 1.5 * 2^52 leaves no bits for a fraction.
inline double NearestWhole(double a) { return (a + 0x1.8p52) - 0x1.8p52; }

inline double Exp2(double x) {
  // Results beyond f32 on either side round to zero or infinity all the same.
  const double clamped = x > 300.0 ? 300.0 : x < -300.0 ? -300.0 : x;
  const double whole = NearestWhole(clamped);
  const double r = (clamped - whole) * 0.693147180559945309417;
  // The Taylor series of e^r, |r| <= 0.347: the first term left out is 1e-16.
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  const double result =
      sum * PowerOfTwo(static_cast<s64>(static_cast<s32>(IsNan(whole) ? 0.0 : whole)));
  return IsNan(x) ? x : x == kInfinity ? kInfinity : x == -kInfinity ? 0.0 : result;
}

/// For values of f32 range.
inline double Log2(double x) {
  const u64 bits = ToBits(x);
  const s64 exponent_bits = static_cast<s64>(bits >> 52 & 0x7ff);
  double mantissa = FromBits((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  const bool upper = mantissa > 1.41421356237309504880;
  mantissa = upper ? mantissa * 0.5 : mantissa;
  const double exponent =
      static_cast<double>(static_cast<s32>(exponent_bits - 1023)) + (upper ? 1.0 : 0.0);
  // log2(m) = 2/ln 2 * artanh((m-1)/(m+1)); |t| <= 0.172, the first term left out is 1e-19.
  const double t = (mantissa - 1.0) / (mantissa + 1.0);
  const double t2 = t * t;
  double sum = 1.0 / 23.0;
  sum = sum * t2 + 1.0 / 21.0;
  sum = sum * t2 + 1.0 / 19.0;
  sum = sum * t2 + 1.0 / 17.0;
  sum = sum * t2 + 1.0 / 15.0;
  sum = sum * t2 + 1.0 / 13.0;
  sum = sum * t2 + 1.0 / 11.0;
  sum = sum * t2 + 1.0 / 9.0;
  sum = sum * t2 + 1.0 / 7.0;
  sum = sum * t2 + 1.0 / 5.0;
  sum = sum * t2 + 1.0 / 3.0;
  sum = sum * t2 + 1.0;
  const double result = exponent + sum * t * 2.88539008177792681472;
  return x > 0.0 ? (x == kInfinity ? x : result) : x == 0.0 ? -kInfinity : FromBits(kNanF64);
}

/// Sine (quadrant 0) or cosine (quadrant 1). Within [-100 pi, 100 pi] by a reduction in two parts;
/// beyond it PTX promises nothing, and the reduction is the hardware's own: the argument over 2 pi,
/// rounded to f32, of which the fraction counts.
inline double SinQuadrant(double x, int shift) {
  const bool documented = x >= -315.0 && x <= 315.0;
  const double inside = documented ? x : 0.0;
  const double quarter = NearestWhole(inside * 0.636619772367581343076);
  // pi/2 in parts of 33 and 53 bits; the first product is exact.
  const double reduced = (inside - quarter * 0x1.921fb544p+0) - quarter * 0x1.0b4611a626331p-34;
  const double turns = static_cast<double>(static_cast<float>(x * 0.15915494309189533577));
  const double fraction = turns - __builtin_floor(turns);
  const double far_quarter = NearestWhole(fraction * 4.0);
  const double far_reduced = (fraction - far_quarter * 0.25) * 6.28318530717958647693;
  const double r = documented ? reduced : far_reduced;
  const double quadrants = documented ? quarter : far_quarter;
  const int quadrant = static_cast<int>(IsNan(quadrants) ? 0.0 : quadrants) + shift;
  const double r2 = r * r;
  double sine = -1.0 / 1307674368000.0;
  sine = sine * r2 + 1.0 / 6227020800.0;
  sine = sine * r2 - 1.0 / 39916800.0;
  sine = sine * r2 + 1.0 / 362880.0;
  sine = sine * r2 - 1.0 / 5040.0;
  sine = sine * r2 + 1.0 / 120.0;
  sine = sine * r2 - 1.0 / 6.0;
  sine = sine * r2 * r + r;
  double cosine = 1.0 / 20922789888000.0;
  cosine = cosine * r2 - 1.0 / 87178291200.0;
  cosine = cosine * r2 + 1.0 / 479001600.0;
  cosine = cosine * r2 - 1.0 / 3628800.0;
  cosine = cosine * r2 + 1.0 / 40320.0;
  cosine = cosine * r2 - 1.0 / 720.0;
  cosine = cosine * r2 + 1.0 / 24.0;
  cosine = cosine * r2 - 0.5;
  cosine = cosine * r2 + 1.0;
  const double value = (quadrant & 1) != 0 ? cosine : sine;
  const double result = (quadrant & 2) != 0 ? -value : value;
  const bool finite = x - x == 0.0;
  return finite ? result : FromBits(kNanF64);
}
/// The sign of zero is the argument's.
inline double Sin(double x) { return x == 0.0 ? x : SinQuadrant(x, 0); }
inline double Cos(double x) { return SinQuadrant(x, 1); }

inline double Tanh(double x) {
  const double magnitude = x < 0.0 ? -x : x;
  const double r2 = x * x;
  // Near zero the odd series; elsewhere 1 - 2 / (e^2x + 1), where nothing cancels badly.
  double series = -929569.0 / 638512875.0;
  series = series * r2 + 21844.0 / 6081075.0;
  series = series * r2 - 1382.0 / 155925.0;
  series = series * r2 + 62.0 / 2835.0;
  series = series * r2 - 17.0 / 315.0;
  series = series * r2 + 2.0 / 15.0;
  series = series * r2 - 1.0 / 3.0;
  series = series * r2 * x + x;
  const double power = Exp2((magnitude < 40.0 ? magnitude : 40.0) * 2.88539008177792681472);
  const double outer = 1.0 - 2.0 / (power + 1.0);
  const double result = magnitude < 0.2 ? series : x < 0.0 ? -outer : outer;
  return IsNan(x) ? x : result;
}

inline double Rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline double Rcp(double x) { return 1.0 / x; }
inline double Sqrt(double x) { return __builtin_sqrt(x); }

/// div.approx.f32 is a * (1/b), which for 2^126 < |b| < 2^128 gives 0 (NaN when `a` is infinite).
inline double DivApprox(double a, double b) {
  const double magnitude = b < 0.0 ? -b : b;
  const bool huge = magnitude > 0x1p126 && magnitude < 0x1p128;
  const double zero = (a < 0.0) != (b < 0.0) ? -0.0 : 0.0;
  const double vanished = a - a == 0.0 ? zero : FromBits(kNanF64);
  return huge ? vanished : a / b;
}
inline double DivFull(double a, double b) { return a / b; }

// --- error bounds
/// A documented maximum error: the largest of the parts.
struct ErrorBound {
  double relative = 0.0;
  double absolute = 0.0;
  double ulps = 0.0;  ///< Units in the last place of f32.
};
inline double Reach(double exact, ErrorBound bound) {
  const double magnitude = exact < 0.0 ? -exact : exact;
  const double power = FromBits(ToBits(magnitude) & 0x7ff0000000000000ull);
  const double relative = magnitude * bound.relative;
  const double ulps = power * (bound.ulps * 0x1p-23);
  const double larger = relative > bound.absolute ? relative : bound.absolute;
  return larger > ulps ? larger : ulps;
}

/// 64 well-mixed bits (the finaliser of SplitMix64).
inline u64 MixBits(u64 value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

/// A point within `bound` of `exact`, chosen by `hash`. Zero, infinity and NaN stay.
inline double Perturbed(double exact, ErrorBound bound, u64 hash) {
  const double magnitude = exact < 0.0 ? -exact : exact;
  if (!(magnitude > 0.0 && magnitude < kInfinity)) return exact;
  const double unit = static_cast<double>(static_cast<s64>(hash) >> 11) * 0x1p-52;  // [-1, 1)
  return exact + unit * Reach(exact, bound);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
