// Storage types of references: what tensors hold in memory, and exact conversion to double.
//
// Self-contained, so that a reference compiles without the toolkit's headers, as CUDA (NVRTC) and,
// for the tests of this prelude, as plain C++ on the host.
#pragma once

#if defined(__CUDACC__)
#define ASSAY_DEVICE __device__ __forceinline__
#else
#include <cmath>
#include <cstring>
#define ASSAY_DEVICE inline
#endif

namespace assay {

using int64 = long long;

ASSAY_DEVICE unsigned long long bits_of(double x) {
#if defined(__CUDACC__)
  return static_cast<unsigned long long>(__double_as_longlong(x));
#else
  unsigned long long bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

ASSAY_DEVICE double double_of(unsigned long long bits) {
#if defined(__CUDACC__)
  return __longlong_as_double(static_cast<long long>(bits));
#else
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

/// 2^k for a normal result.
ASSAY_DEVICE double power_of_two(int k) {
  return double_of(static_cast<unsigned long long>(k + 1023) << 52);
}
/// floor(log2 |x|) of a normal double.
ASSAY_DEVICE int exponent_of(double x) {
  return static_cast<int>((bits_of(x) >> 52) & 0x7ff) - 1023;
}
ASSAY_DEVICE double infinity() { return double_of(0x7ff0000000000000ull); }
ASSAY_DEVICE double magnitude(double x) { return double_of(bits_of(x) & 0x7fffffffffffffffull); }
ASSAY_DEVICE bool is_finite(double x) { return ((bits_of(x) >> 52) & 0x7ff) != 0x7ff; }
ASSAY_DEVICE bool is_nan(double x) { return x != x; }
ASSAY_DEVICE double larger(double a, double b) { return a < b ? b : a; }
ASSAY_DEVICE double smaller(double a, double b) { return a < b ? a : b; }

/// Largest power of two that divides x: 0 for 0, -1 (unknown) where x is not finite or denormal.
ASSAY_DEVICE double granularity_of(double x) {
  if (x == 0) return 0;
  const unsigned long long bits = bits_of(x);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
  if (exponent == 0 || exponent == 0x7ff) return -1;
  const unsigned long long significand = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  // x & -x, as a number; exact, since it is a power of two.
  const double lowest =
      static_cast<double>(static_cast<long long>(significand & (~significand + 1)));
  const int shift = exponent - 1023 - 52;
  if (shift < -1000) return -1;
  return lowest * power_of_two(shift);
}

/// What a float format holds: `precision` significand bits with the hidden one, exponents, largest
/// value.
template <int kPrecision, int kMinExponent, int kMaxExponent>
struct Format {
  static constexpr int precision = kPrecision;
  static constexpr int min_exponent = kMinExponent;
  static constexpr int max_exponent = kMaxExponent;

  /// Distance of neighbouring values around x.
  static ASSAY_DEVICE double ulp(double x) {
    int exponent = exponent_of(x);
    if (exponent < kMinExponent) exponent = kMinExponent;
    if (exponent > kMaxExponent) exponent = kMaxExponent;
    return power_of_two(exponent - kPrecision + 1);
  }
  /// Nearest value, ties to even; one rounding. Beyond the largest value: infinity.
  static ASSAY_DEVICE double nearest(double x) {
    if (x == 0 || !is_finite(x)) return x;
    if (exponent_of(x) > kMaxExponent) return x < 0 ? -infinity() : infinity();
    const double quantum = ulp(x);
    // Adding 1.5 * 2^52 rounds to an integer; |x / quantum| is below 2^25 here, so the sum is exact
    // but for that rounding.
    const double shifted = x / quantum + 6755399441055744.0;
    const double rounded = (shifted - 6755399441055744.0) * quantum;
    return exponent_of(rounded) > kMaxExponent ? (x < 0 ? -infinity() : infinity()) : rounded;
  }
  /// Next value towards zero (truncation).
  static ASSAY_DEVICE double toward_zero(double x) {
    const double rounded = nearest(x);
    if (!is_finite(x) || magnitude(rounded) <= magnitude(x)) return rounded;
    if (!is_finite(rounded))
      return (x < 0 ? -1.0 : 1.0) * (2.0 - power_of_two(1 - kPrecision)) *
             power_of_two(kMaxExponent);
    // From the binade of x, which may be one below that of `rounded`.
    return rounded - (x < 0 ? -ulp(x) : ulp(x));
  }
};

using Bf16Format = Format<8, -126, 127>;
using F16Format = Format<11, -14, 15>;
using F32Format = Format<24, -126, 127>;
using Tf32Format = Format<11, -126, 127>;

/// Conversions to f8 saturate, NaN aside, as those of cuda_fp8.h do: neither format overflows.
template <int kPrecision, int kMinExponent, int kMaxExponent, int kLargest>
struct SaturatingFormat : Format<kPrecision, kMinExponent, kMaxExponent> {
  static ASSAY_DEVICE double nearest(double x) {
    if (is_nan(x)) return x;
    const double rounded = Format<kPrecision, kMinExponent, kMaxExponent>::nearest(x);
    return magnitude(rounded) > kLargest ? (x < 0 ? -1.0 : 1.0) * kLargest : rounded;
  }
};
using F8E4M3Format = SaturatingFormat<4, -6, 8, 448>;
using F8E5M2Format = SaturatingFormat<3, -14, 15, 57344>;

struct f8e4m3 {
  using format = F8E4M3Format;
  unsigned char bits;
};
struct f8e5m2 {
  using format = F8E5M2Format;
  unsigned char bits;
};
struct bf16 {
  using format = Bf16Format;
  unsigned short bits;
};
struct f16 {
  using format = F16Format;
  unsigned short bits;
};
struct f32 {
  using format = F32Format;
  float number;
};

ASSAY_DEVICE double to_double(f32 x) { return static_cast<double>(x.number); }
ASSAY_DEVICE double to_double(float x) { return static_cast<double>(x); }
ASSAY_DEVICE double to_double(double x) { return x; }
ASSAY_DEVICE double to_double(bf16 x) {
  const unsigned long long sign = static_cast<unsigned long long>(x.bits & 0x8000) << 48;
  const int exponent = (x.bits >> 7) & 0xff;
  const unsigned long long fraction = x.bits & 0x7f;
  if (exponent == 0xff) return double_of(sign | 0x7ff0000000000000ull | (fraction << 45));
  if (exponent == 0)
    return double_of(
        sign | bits_of(static_cast<double>(static_cast<int64>(fraction)) * power_of_two(-133)));
  return double_of(sign | (static_cast<unsigned long long>(exponent - 127 + 1023) << 52) |
                   (fraction << 45));
}
ASSAY_DEVICE double to_double(f16 x) {
  const unsigned long long sign = static_cast<unsigned long long>(x.bits & 0x8000) << 48;
  const int exponent = (x.bits >> 10) & 0x1f;
  const unsigned long long fraction = x.bits & 0x3ff;
  if (exponent == 0x1f) return double_of(sign | 0x7ff0000000000000ull | (fraction << 42));
  if (exponent == 0)
    return double_of(
        sign | bits_of(static_cast<double>(static_cast<int64>(fraction)) * power_of_two(-24)));
  return double_of(sign | (static_cast<unsigned long long>(exponent - 15 + 1023) << 52) |
                   (fraction << 42));
}
/// An f8e5m2 is the upper half of an f16.
ASSAY_DEVICE double to_double(f8e5m2 x) {
  return to_double(f16{static_cast<unsigned short>(x.bits << 8)});
}
ASSAY_DEVICE double to_double(f8e4m3 x) {
  const double sign = (x.bits & 0x80) != 0 ? -1.0 : 1.0;
  const int exponent = (x.bits >> 3) & 0xf;
  const int fraction = x.bits & 0x7;
  if (exponent == 0xf && fraction == 7) return double_of(0x7ff8000000000000ull);
  if (exponent == 0) return sign * static_cast<double>(fraction) * power_of_two(-9);
  return sign * (8.0 + static_cast<double>(fraction)) * power_of_two(exponent - 10);
}

}  // namespace assay
