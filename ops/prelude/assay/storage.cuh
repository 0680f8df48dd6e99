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
ASSAY_DEVICE double magnitude(double x) { return ::fabs(x); }
ASSAY_DEVICE bool is_finite(double x) { return magnitude(x) < infinity(); }
ASSAY_DEVICE bool is_nan(double x) { return x != x; }
ASSAY_DEVICE double larger(double a, double b) { return a < b ? b : a; }
ASSAY_DEVICE double smaller(double a, double b) { return a < b ? a : b; }

// Largest power of two that divides x: 0 for 0, -1 (unknown) where x is not finite or tiny. Without
// branches: every element of every tensor goes through it, and lanes would part.
ASSAY_DEVICE double granularity_of(double x) {
  const unsigned long long bits = bits_of(x);
  const unsigned exponent = static_cast<unsigned>(bits >> 52) & 0x7ffu;
  // x without its last bit is what lacks to x; a power of two has none but the hidden one.
  const double last = x - double_of(bits & (bits - 1));
  const double lowest = magnitude((bits & 0xfffffffffffffull) == 0 ? x : last);
  const double other = x == 0 ? 0 : -1;
  return exponent - 75u > 0x7feu - 75u ? other : lowest;
}
ASSAY_DEVICE unsigned bits_of(float x) {
#if defined(__CUDACC__)
  return __float_as_uint(x);
#else
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}
ASSAY_DEVICE float float_of(unsigned bits) {
#if defined(__CUDACC__)
  return __uint_as_float(bits);
#else
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}
/// The same of an element: in half as many bits, and denormal numbers have one.
ASSAY_DEVICE double granularity_of_element(float x) {
  const unsigned bits = bits_of(x);
  const unsigned fraction = bits & 0x7fffffu, exponent = bits & 0x7f800000u;
  // The power of two of x with the last bit of its fraction, less that power.
  const float last = float_of(exponent | (fraction & (0u - fraction))) - float_of(exponent);
  const float lowest = fraction == 0 ? float_of(exponent) : last;
  return static_cast<double>(exponent == 0x7f800000u ? -1.0f : lowest);
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
// References convert every element that they read, in their innermost loops.
ASSAY_DEVICE float to_float(bf16 x) { return float_of(static_cast<unsigned>(x.bits) << 16); }
ASSAY_DEVICE float to_float(f16 x) {
#if defined(__CUDACC__)
  float number;
  asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(x.bits));
  return number;
#else
  const unsigned sign = static_cast<unsigned>(x.bits & 0x8000) << 16;
  const unsigned exponent = (x.bits >> 10) & 0x1f, fraction = x.bits & 0x3ff;
  if (exponent == 0x1f) return float_of(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float number = static_cast<float>(fraction) * 0x1p-24f;
    return float_of(sign | bits_of(number));
  }
  return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
#endif
}
ASSAY_DEVICE float to_float(f32 x) { return x.number; }
ASSAY_DEVICE float to_float(float x) { return x; }
ASSAY_DEVICE double to_double(bf16 x) { return static_cast<double>(to_float(x)); }
ASSAY_DEVICE double to_double(f16 x) { return static_cast<double>(to_float(x)); }
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
