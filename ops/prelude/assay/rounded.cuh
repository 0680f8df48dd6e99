// Rounded: a number that is rounded to a format after every operation: a yardstick for what an
// implementation of that precision gets.
//
// Double arithmetic followed by one rounding equals correctly rounded arithmetic in a format of at
// most 24 bits for + - * / sqrt (53 >= 2 * 24 + 2), so one type serves f32, f16, tf32 and bf16,
// with rounding to nearest, towards zero, or stochastically. With kFused, a product that is added is
// not rounded before, as compilers contract a * b + c.
#pragma once

#include "assay/storage.cuh"

namespace assay {

enum class Rounding { kNearest, kTowardZero, kStochastic };

ASSAY_DEVICE unsigned long long mixed(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// x + y such that rounding it once more, to at most 26 bits, is rounding the exact sum (to odd:
/// Boldo and Melquiond 2008).
ASSAY_DEVICE double sum_to_odd(double x, double y) {
  const double sum = x + y;
  if (!is_finite(sum)) return sum;
  const double part = sum - x;
  const double lost = (x - (sum - part)) + (y - part);
  if (lost == 0 || (bits_of(sum) & 1) != 0) return sum;
  return double_of((lost > 0) == (sum > 0) ? bits_of(sum) + 1 : bits_of(sum) - 1);
}

template <class F, Rounding kRounding = Rounding::kNearest, unsigned long long kSeed = 0,
          bool kFused = false>
struct Rounded {
  double v = 0;
  double exact = 0;  ///< Of a product: what it is before its rounding. Else v.

  static ASSAY_DEVICE double round(double x) {
    if (kRounding == Rounding::kNearest) return F::nearest(x);
    if (kRounding == Rounding::kTowardZero) return F::toward_zero(x);
    if (x == 0 || !is_finite(x)) return x;
    const double below = F::toward_zero(x);
    if (below == x) return x;
    const double share = magnitude(x - below) / F::ulp(x);
    const double draw =
        static_cast<double>(static_cast<int64>(mixed(bits_of(x) ^ kSeed) >> 11)) * 0x1p-53;
    return draw < share ? F::nearest(below + (x < 0 ? -F::ulp(x) : F::ulp(x))) : below;
  }

  ASSAY_DEVICE Rounded() {}
  ASSAY_DEVICE Rounded(double x) : v(round(x)), exact(v) {}
  ASSAY_DEVICE Rounded(int x) : Rounded(static_cast<double>(x)) {}
  ASSAY_DEVICE Rounded(int64 x) : Rounded(static_cast<double>(x)) {}
  ASSAY_DEVICE Rounded(f8e4m3 x) : Rounded(to_double(x)) {}
  ASSAY_DEVICE Rounded(f8e5m2 x) : Rounded(to_double(x)) {}
  ASSAY_DEVICE Rounded(bf16 x) : Rounded(to_double(x)) {}
  ASSAY_DEVICE Rounded(f16 x) : Rounded(to_double(x)) {}
  ASSAY_DEVICE Rounded(f32 x) : Rounded(to_double(x)) {}
  ASSAY_DEVICE Rounded(float x) : Rounded(to_double(x)) {}

  friend ASSAY_DEVICE Rounded operator-(const Rounded& x) {
    Rounded r;
    r.v = -x.v;
    r.exact = -x.exact;
    return r;
  }
  friend ASSAY_DEVICE Rounded operator+(const Rounded& x, const Rounded& y) {
    if (y.exact != y.v) return Rounded(sum_to_odd(x.v, y.exact));
    return Rounded(sum_to_odd(x.exact, y.v));
  }
  friend ASSAY_DEVICE Rounded operator-(const Rounded& x, const Rounded& y) { return x + -y; }
  friend ASSAY_DEVICE Rounded operator*(const Rounded& x, const Rounded& y) {
    Rounded r(x.v * y.v);
    if (kFused && is_finite(r.v)) r.exact = x.v * y.v;
    return r;
  }
  friend ASSAY_DEVICE Rounded operator/(const Rounded& x, const Rounded& y) {
    return Rounded(x.v / y.v);
  }
  ASSAY_DEVICE Rounded& operator+=(const Rounded& y) { return *this = *this + y; }
  ASSAY_DEVICE Rounded& operator-=(const Rounded& y) { return *this = *this - y; }
  ASSAY_DEVICE Rounded& operator*=(const Rounded& y) { return *this = *this * y; }
  ASSAY_DEVICE Rounded& operator/=(const Rounded& y) { return *this = *this / y; }
  friend ASSAY_DEVICE bool operator<(const Rounded& x, const Rounded& y) { return x.v < y.v; }
  friend ASSAY_DEVICE bool operator>(const Rounded& x, const Rounded& y) { return x.v > y.v; }
  friend ASSAY_DEVICE bool operator<=(const Rounded& x, const Rounded& y) { return x.v <= y.v; }
  friend ASSAY_DEVICE bool operator>=(const Rounded& x, const Rounded& y) { return x.v >= y.v; }
  friend ASSAY_DEVICE bool operator==(const Rounded& x, const Rounded& y) { return x.v == y.v; }
  friend ASSAY_DEVICE bool operator!=(const Rounded& x, const Rounded& y) { return x.v != y.v; }
  ASSAY_DEVICE Rounded settled() const {
    Rounded r = *this;
    r.exact = v;
    return r;
  }
};

#define ASSAY_ROUNDED                                          \
  template <class F, Rounding R, unsigned long long S, bool B> \
  ASSAY_DEVICE Rounded<F, R, S, B>
ASSAY_ROUNDED exp(const Rounded<F, R, S, B>& x) { return ::exp(x.v); }
ASSAY_ROUNDED exp2(const Rounded<F, R, S, B>& x) { return ::exp2(x.v); }
ASSAY_ROUNDED log(const Rounded<F, R, S, B>& x) { return ::log(x.v); }
ASSAY_ROUNDED sqrt(const Rounded<F, R, S, B>& x) { return ::sqrt(x.v); }
ASSAY_ROUNDED rsqrt(const Rounded<F, R, S, B>& x) { return 1 / ::sqrt(x.v); }
ASSAY_ROUNDED tanh(const Rounded<F, R, S, B>& x) { return ::tanh(x.v); }
ASSAY_ROUNDED erf(const Rounded<F, R, S, B>& x) { return ::erf(x.v); }
ASSAY_ROUNDED abs(const Rounded<F, R, S, B>& x) { return magnitude(x.v); }
ASSAY_ROUNDED fma(const Rounded<F, R, S, B>& x, const Rounded<F, R, S, B>& y, const Rounded<F, R, S, B>& z) {
  return sum_to_odd(x.v * y.v, z.v);
}
ASSAY_ROUNDED max(const Rounded<F, R, S, B>& x, const Rounded<F, R, S, B>& y) {
  return is_nan(x.v) || x.v >= y.v ? x : y;
}
ASSAY_ROUNDED average(const Rounded<F, R, S, B>& sum, const Rounded<F, R, S, B>& count) {
  return sum / count;
}
ASSAY_ROUNDED affine(const Rounded<F, R, S, B>& x, const Rounded<F, R, S, B>& mean,
                     const Rounded<F, R, S, B>& factor, const Rounded<F, R, S, B>& shift) {
  return (x - mean) * factor + shift;
}
ASSAY_ROUNDED min(const Rounded<F, R, S, B>& x, const Rounded<F, R, S, B>& y) { return -max(-x, -y); }
ASSAY_ROUNDED select_less(const Rounded<F, R, S, B>& a, const Rounded<F, R, S, B>& b,
                          const Rounded<F, R, S, B>& x, const Rounded<F, R, S, B>& y) {
  return a.v < b.v ? x : y;
}
#undef ASSAY_ROUNDED
template <class T, class F, Rounding R, unsigned long long S, bool B>
ASSAY_DEVICE Rounded<F, R, S, B> round_to(const Rounded<F, R, S, B>& x) {
  return T::format::nearest(x.v);
}

template <class T, class F, Rounding R, unsigned long long S, bool B>
ASSAY_DEVICE Rounded<F, R, S, B> may_round_to(const Rounded<F, R, S, B>& x) {
  return x;
}
template <class T, class F, Rounding R, unsigned long long S, bool B>
ASSAY_DEVICE Rounded<F, R, S, B> may_round_to(const Rounded<F, R, S, B>& x,
                                              const Rounded<F, R, S, B>&) {
  return x;
}

template <class F, Rounding R, unsigned long long S, bool B>
ASSAY_DEVICE Rounded<F, R, S, B> may_rescale(const Rounded<F, R, S, B>& x) {
  return x;
}

/// What is stored for an output element: its value before the rounding to the output's dtype.
template <class R, class T>
struct RoundedCell {
  double value;
  ASSAY_DEVICE RoundedCell& operator=(const R& x) {
    value = x.v;
    return *this;
  }
};

}  // namespace assay
