// Rounded: a number that is rounded to a format after every operation: a yardstick for what an
// implementation of that precision gets.
//
// Double arithmetic followed by one rounding equals correctly rounded arithmetic in a format of at
// most 24 bits for + - * / sqrt (53 >= 2 * 24 + 2), so one type serves f32, f16, tf32 and bf16,
// with rounding to nearest, towards zero, or stochastically.
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

template <class F, Rounding kRounding = Rounding::kNearest, unsigned long long kSeed = 0>
struct Rounded {
  double v = 0;

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
  ASSAY_DEVICE Rounded(double x) : v(round(x)) {}
  ASSAY_DEVICE Rounded(int x) : v(round(static_cast<double>(x))) {}
  ASSAY_DEVICE Rounded(int64 x) : v(round(static_cast<double>(x))) {}
  ASSAY_DEVICE Rounded(bf16 x) : v(round(to_double(x))) {}
  ASSAY_DEVICE Rounded(f16 x) : v(round(to_double(x))) {}
  ASSAY_DEVICE Rounded(f32 x) : v(round(to_double(x))) {}
  ASSAY_DEVICE Rounded(float x) : v(round(to_double(x))) {}

  friend ASSAY_DEVICE Rounded operator-(const Rounded& x) {
    Rounded r;
    r.v = -x.v;
    return r;
  }
  friend ASSAY_DEVICE Rounded operator+(const Rounded& x, const Rounded& y) {
    return Rounded(x.v + y.v);
  }
  friend ASSAY_DEVICE Rounded operator-(const Rounded& x, const Rounded& y) {
    return Rounded(x.v - y.v);
  }
  friend ASSAY_DEVICE Rounded operator*(const Rounded& x, const Rounded& y) {
    return Rounded(x.v * y.v);
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
  ASSAY_DEVICE Rounded settled() const { return *this; }
};

#define ASSAY_ROUNDED                                  \
  template <class F, Rounding R, unsigned long long S> \
  ASSAY_DEVICE Rounded<F, R, S>
ASSAY_ROUNDED exp(const Rounded<F, R, S>& x) { return ::exp(x.v); }
ASSAY_ROUNDED exp2(const Rounded<F, R, S>& x) { return ::exp2(x.v); }
ASSAY_ROUNDED log(const Rounded<F, R, S>& x) { return ::log(x.v); }
ASSAY_ROUNDED sqrt(const Rounded<F, R, S>& x) { return ::sqrt(x.v); }
ASSAY_ROUNDED rsqrt(const Rounded<F, R, S>& x) { return 1 / ::sqrt(x.v); }
ASSAY_ROUNDED tanh(const Rounded<F, R, S>& x) { return ::tanh(x.v); }
ASSAY_ROUNDED erf(const Rounded<F, R, S>& x) { return ::erf(x.v); }
ASSAY_ROUNDED abs(const Rounded<F, R, S>& x) { return magnitude(x.v); }
ASSAY_ROUNDED fma(const Rounded<F, R, S>& x, const Rounded<F, R, S>& y, const Rounded<F, R, S>& z) {
  return x * y + z;
}
ASSAY_ROUNDED max(const Rounded<F, R, S>& x, const Rounded<F, R, S>& y) {
  return is_nan(x.v) || x.v >= y.v ? x : y;
}
ASSAY_ROUNDED average(const Rounded<F, R, S>& sum, const Rounded<F, R, S>& count) {
  return sum / count;
}
ASSAY_ROUNDED min(const Rounded<F, R, S>& x, const Rounded<F, R, S>& y) { return -max(-x, -y); }
ASSAY_ROUNDED select_less(const Rounded<F, R, S>& a, const Rounded<F, R, S>& b,
                          const Rounded<F, R, S>& x, const Rounded<F, R, S>& y) {
  return a.v < b.v ? x : y;
}
#undef ASSAY_ROUNDED
template <class T, class F, Rounding R, unsigned long long S>
ASSAY_DEVICE Rounded<F, R, S> round_to(const Rounded<F, R, S>& x) {
  return T::format::nearest(x.v);
}

template <class T, class F, Rounding R, unsigned long long S>
ASSAY_DEVICE Rounded<F, R, S> may_round_to(const Rounded<F, R, S>& x) {
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
