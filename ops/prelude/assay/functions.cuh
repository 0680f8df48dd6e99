// More functions of references, in both number types, and decisions that honest kernels may make
// either way.
//
// Each function of a Bounded propagates its argument's error by the largest slope over the interval and
// adds an error of its own: that of the CUDA function (CUDA C++ Programming Guide, mathematical
// functions) or of its approximation, where the contract allows one. docs/precision.md lists them.
//
// A Decision is a truth value that may be in doubt: less(a, b) is, where a and b are closer than their
// errors. select(decision, x, y) then covers both results. A comparison of exact numbers is never in
// doubt.
#pragma once

#include "assay/bounded.cuh"
#include "assay/rounded.cuh"

namespace assay {

// --- integers
/// An index that counts from the end where it is negative.
ASSAY_DEVICE int64 wrapped(int64 i, int64 n) { return i < 0 ? i + n : i; }
ASSAY_DEVICE int64 larger_of(int64 a, int64 b) { return a < b ? b : a; }
ASSAY_DEVICE int64 smaller_of(int64 a, int64 b) { return a < b ? a : b; }
/// Quotient and remainder that round towards minus infinity.
ASSAY_DEVICE int64 floor_div(int64 a, int64 b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
ASSAY_DEVICE int64 floor_mod(int64 a, int64 b) { return a - floor_div(a, b) * b; }

/// Comparisons by the truth alone, of numbers and of integers: for orders and extremes.
template <class N>
ASSAY_DEVICE bool greater(const N& a, const N& b) {
  return a > b;
}
template <class N>
ASSAY_DEVICE bool lesser(const N& a, const N& b) {
  return a < b;
}
template <class N>
ASSAY_DEVICE bool greater_or_equal(const N& a, const N& b) {
  return a >= b;
}
template <class N>
ASSAY_DEVICE bool lesser_or_equal(const N& a, const N& b) {
  return a <= b;
}

// --- decisions
struct Decision {
  bool v = false;
  bool sure = true;
  ASSAY_DEVICE Decision() {}
  ASSAY_DEVICE Decision(bool value) : v(value) {}
  ASSAY_DEVICE Decision(bool value, bool certain) : v(value), sure(certain) {}

  friend ASSAY_DEVICE Decision operator!(const Decision& a) { return {!a.v, a.sure}; }
  friend ASSAY_DEVICE Decision operator&&(const Decision& a, const Decision& b) {
    const bool no = (a.sure && !a.v) || (b.sure && !b.v);
    return {a.v && b.v, no || (a.sure && b.sure)};
  }
  friend ASSAY_DEVICE Decision operator||(const Decision& a, const Decision& b) {
    const bool yes = (a.sure && a.v) || (b.sure && b.v);
    return {a.v || b.v, yes || (a.sure && b.sure)};
  }
  friend ASSAY_DEVICE Decision operator^(const Decision& a, const Decision& b) {
    return {a.v != b.v, a.sure && b.sure};
  }
};
/// What the truth says.
ASSAY_DEVICE bool holds(const Decision& d) { return d.v; }
ASSAY_DEVICE int64 select(const Decision& d, int64 x, int64 y) { return d.v ? x : y; }
ASSAY_DEVICE Decision select(const Decision& d, const Decision& x, const Decision& y) {
  const Decision& chosen = d.v ? x : y;
  return {chosen.v, d.sure ? chosen.sure : x.sure && y.sure && x.v == y.v};
}

/// Are a and b further apart than their errors, or without any?
template <class C>
ASSAY_DEVICE bool told_apart(const Bounded<C>& a, const Bounded<C>& b) {
  const double errors = a.hard() + b.hard();
  return errors == 0 || !(magnitude(a.v - b.v) <= errors);
}
template <class C>
ASSAY_DEVICE Decision less(const Bounded<C>& a, const Bounded<C>& b) {
  return {a.v < b.v, told_apart(a, b)};
}
template <class C>
ASSAY_DEVICE Decision less_equal(const Bounded<C>& a, const Bounded<C>& b) {
  return {a.v <= b.v, told_apart(a, b)};
}
template <class C>
ASSAY_DEVICE Decision equal(const Bounded<C>& a, const Bounded<C>& b) {
  return {a.v == b.v, told_apart(a, b)};
}
/// x where d holds, else y; where d is in doubt, both are honest.
template <class C>
ASSAY_DEVICE Bounded<C> select(const Decision& d, const Bounded<C>& x, const Bounded<C>& y) {
  if (d.sure) return d.v ? x : y;
  const Bounded<C> chosen = d.v ? x.settled() : y.settled();
  const Bounded<C> other = d.v ? y.settled() : x.settled();
  const double apart = magnitude(chosen.v - other.v);
  Bounded<C> r = Bounded<C>::result(chosen.v, larger(chosen.e, other.e + apart),
                                    larger(chosen.t, other.t + apart),
                                    larger(chosen.length(), other.length()), -1);
  r.w = larger(chosen.w, other.w);
  return r;
}
/// An integer-valued number as an integer.
template <class C>
ASSAY_DEVICE int64 whole(const Bounded<C>& x) {
  return static_cast<int64>(x.v);
}

// --- functions of double that one of the compilers lacks
ASSAY_DEVICE double cosine_of_turn(int64 k, int64 n) {
  const double part = 2.0 * static_cast<double>(floor_mod(k, n)) / static_cast<double>(n);
#if defined(__CUDACC__)
  return ::cospi(part);
#else
  return ::cos(3.14159265358979323846 * part);
#endif
}
ASSAY_DEVICE double inverse_of_erf(double x) {
#if defined(__CUDACC__)
  return ::erfinv(x);
#else
  if (!(magnitude(x) < 1)) return magnitude(x) == 1 ? x * infinity() : infinity() - infinity();
  // Winitzki's form as a start; Newton's steps on erf, or on erfc in the tail.
  const double l = ::log1p(-x * x), c = 4.330746750799873 + l / 2;
  double y = ::sqrt(::sqrt(c * c - l / 0.147) - c);
  const double tail = 1 - magnitude(x);
  for (int i = 0; i < 4; ++i)
    y -= (y < 1 ? ::erf(y) - magnitude(x) : tail - ::erfc(y)) * 0.8862269254527580 * ::exp(y * y);
  return x < 0 ? -y : y;
#endif
}
ASSAY_DEVICE double sigmoid_of(double x) {
  const double e = ::exp(-magnitude(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
ASSAY_DEVICE double softplus_of(double x) { return larger(x, 0) + ::log1p(::exp(-magnitude(x))); }

// --- functions of Bounded
/// A function's value with the errors that its argument brings, `slope` times as large, and its own.
template <class C>
ASSAY_DEVICE Bounded<C> sloped(const Bounded<C>& x, double v, double slope, double own) {
  return Bounded<C>::result(v, slope * x.hard() + own, slope * x.typical() + own, x.length(), -1);
}
/// The smallest magnitude that x may have.
template <class C>
ASSAY_DEVICE double nearest_to_zero(const Bounded<C>& x) {
  return larger(magnitude(x.v) - x.hard(), 0);
}

/// __sinf: 2^-21.41 and __cosf: 2^-21.19 within [-pi, pi], unspecified beyond; sinf and cosf: 2 ulp.
template <class C>
ASSAY_DEVICE double wave_error(double x, double v, double approximate) {
  const double own = 4 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny;
  return C::approximate && magnitude(x) <= 3.14159274 ? larger(own, approximate) : own;
}
template <class C>
ASSAY_DEVICE Bounded<C> sin(const Bounded<C>& x) {
  const double v = ::sin(x.v);
  if (x.v == 0 && x.hard() == 0) return Bounded<C>(0);
  return sloped(x, v, 1, wave_error<C>(x.v, v, 3.6e-7));
}
template <class C>
ASSAY_DEVICE Bounded<C> cos(const Bounded<C>& x) {
  const double v = ::cos(x.v);
  return sloped(x, v, smaller(1, magnitude(x.v) + x.hard()), wave_error<C>(x.v, v, 4.2e-7));
}
/// atanf: 2 ulp.
template <class C>
ASSAY_DEVICE Bounded<C> atan(const Bounded<C>& x) {
  const double v = ::atan(x.v), nearest = nearest_to_zero(x);
  return sloped(x, v, 1 / (1 + nearest * nearest),
                4 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny);
}
/// A function that rises or falls throughout [low, high]: over an interval it moves no further than at
/// its ends.
template <class C, class F>
ASSAY_DEVICE Bounded<C> monotone(const Bounded<C>& x, double low, double high, double own, F f) {
  const double v = f(x.v);
  own += Bounded<C>::kTiny;
  const auto error = [&](double dx) {
    if (dx == 0 || !is_finite(v)) return own;
    const double left = f(larger(x.v - dx, low)), right = f(smaller(x.v + dx, high));
    return larger(magnitude(right - v), magnitude(v - left)) + own;
  };
  return Bounded<C>::result(v, error(x.hard()), error(x.typical()), x.length(), -1);
}
struct Asin {
  ASSAY_DEVICE double operator()(double x) const { return ::asin(x); }
};
struct Acos {
  ASSAY_DEVICE double operator()(double x) const { return ::acos(x); }
};
struct Asinh {
  ASSAY_DEVICE double operator()(double x) const { return ::asinh(x); }
};
struct Acosh {
  ASSAY_DEVICE double operator()(double x) const { return ::acosh(x); }
};
struct Atanh {
  ASSAY_DEVICE double operator()(double x) const { return ::atanh(x); }
};
/// asinf, acosf: 2 ulp; asinhf, atanhf: 3 ulp; acoshf: 4 ulp.
template <class C>
ASSAY_DEVICE Bounded<C> asin(const Bounded<C>& x) {
  return monotone(x, -1, 1, 4 * Bounded<C>::kUnit * magnitude(::asin(x.v)), Asin());
}
template <class C>
ASSAY_DEVICE Bounded<C> acos(const Bounded<C>& x) {
  return monotone(x, -1, 1, 4 * Bounded<C>::kUnit * magnitude(::acos(x.v)), Acos());
}
template <class C>
ASSAY_DEVICE Bounded<C> asinh(const Bounded<C>& x) {
  return monotone(x, -infinity(), infinity(), 6 * Bounded<C>::kUnit * magnitude(::asinh(x.v)),
                  Asinh());
}
template <class C>
ASSAY_DEVICE Bounded<C> acosh(const Bounded<C>& x) {
  return monotone(x, 1, infinity(), 8 * Bounded<C>::kUnit * magnitude(::acosh(x.v)), Acosh());
}
template <class C>
ASSAY_DEVICE Bounded<C> atanh(const Bounded<C>& x) {
  return monotone(x, -1, 1, 6 * Bounded<C>::kUnit * magnitude(::atanh(x.v)), Atanh());
}
/// atan2f: 3 ulp. Where y may be on either side of 0 and x is negative, the angle may be a turn off.
template <class C>
ASSAY_DEVICE Bounded<C> atan2(const Bounded<C>& y, const Bounded<C>& x) {
  const double v = ::atan2(y.v, x.v),
               own = 6 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny;
  const auto error = [&](double dy, double dx) {
    if (dy == 0 && dx == 0) return own;
    if (magnitude(y.v) <= dy && x.v - dx < 0) return 6.2831853071795865 + own;
    const double away = ::sqrt(x.v * x.v + y.v * y.v) - dx - dy;
    return away > 0 ? smaller(3.1415926535897932, (dx + dy) / away) + own
                    : 6.2831853071795865 + own;
  };
  return Bounded<C>::result(v, error(y.hard(), x.hard()), error(y.typical(), x.typical()),
                            larger(x.length(), y.length()), -1);
}
/// log1pf: 1 ulp. log(1 + x), which loses small x, is another function.
template <class C>
ASSAY_DEVICE Bounded<C> log1p(const Bounded<C>& x) {
  const double v = ::log1p(x.v), own = 4 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny;
  return Bounded<C>::result(v, log_error<C>(1 + x.v, x.hard()) + own,
                            log_error<C>(1 + x.v, x.typical()) + own, x.length(), -1);
}
/// expm1f: 1 ulp. exp(x) - 1, which loses small x, is another function.
template <class C>
ASSAY_DEVICE Bounded<C> expm1(const Bounded<C>& x) {
  const double v = ::expm1(x.v), own = 4 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny;
  return Bounded<C>::result(v, (1 + v) * grown(x.hard()) + own, (1 + v) * grown(x.typical()) + own,
                            x.length(), -1);
}
/// __log2f: 2^-22 within [0.5, 2], 2 ulp elsewhere; log2f: 1 ulp.
template <class C>
ASSAY_DEVICE Bounded<C> log2(const Bounded<C>& x) {
  const double v = ::log2(x.v), own = 4 * Bounded<C>::kUnit * magnitude(v);
  const double error = C::approximate ? larger(own, 0x1p-22) : own;
  return Bounded<C>::result(v, 1.4426950408889634 * log_error<C>(x.v, x.hard()) + error,
                            1.4426950408889634 * log_error<C>(x.v, x.typical()) + error, x.length(),
                            -1);
}
/// __log10f: 2^-24 within [0.5, 2], 3 ulp elsewhere, and log2's times log10(2); log10f: 2 ulp.
template <class C>
ASSAY_DEVICE Bounded<C> log10(const Bounded<C>& x) {
  const double v = ::log10(x.v), own = 6 * Bounded<C>::kUnit * magnitude(v);
  const double error = C::approximate ? larger(own, 1.1e-7) : own;
  return Bounded<C>::result(v, 0.43429448190325176 * log_error<C>(x.v, x.hard()) + error,
                            0.43429448190325176 * log_error<C>(x.v, x.typical()) + error,
                            x.length(), -1);
}
/// x^y. powf: 4 ulp; __powf is exp2(y * __log2f(x)).
template <class C>
ASSAY_DEVICE Bounded<C> pow(const Bounded<C>& x, const Bounded<C>& y) {
  const double v = ::pow(x.v, y.v);
  const double size = magnitude(x.v), ex = x.hard();
  const bool exact = ex == 0 && y.hard() == 0;
  if (exact && (size == 0 || size == 1 || y.v == 0)) return Bounded<C>(v);
  if (!(size > ex)) return Bounded<C>::result(v, infinity(), infinity(), x.length(), -1);
  const double logarithm = magnitude(::log(size));
  double own = 8 * Bounded<C>::kUnit;
  if (C::approximate)
    own = larger(own, grown(2 * (2 + 1.173 * magnitude(y.v) * logarithm) * Bounded<C>::kUnit +
                            magnitude(y.v) * larger(0x1p-22, 4 * Bounded<C>::kUnit * logarithm)));
  const auto error = [&](double dx, double dy) {
    const double relative = dx / (size - dx);
    return magnitude(v) * (grown((magnitude(y.v) + dy) * relative + dy * logarithm) + own) +
           Bounded<C>::kTiny;
  };
  return Bounded<C>::result(v, error(ex, y.hard()), error(x.typical(), y.typical()),
                            larger(x.length(), y.length()), -1);
}
/// erfinvf: 2 ulp.
template <class C>
ASSAY_DEVICE Bounded<C> erfinv(const Bounded<C>& x) {
  const double v = inverse_of_erf(x.v);
  const double own = 4 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny;
  const auto error = [&](double dx) {
    if (dx == 0) return own;
    const double end = magnitude(x.v) + dx;
    return end < 1 ? inverse_of_erf(end) - magnitude(v) + own : infinity();
  };
  return Bounded<C>::result(v, error(x.hard()), error(x.typical()), x.length(), -1);
}
/// 1 / (1 + exp(-x)): exp's error counts as far as exp is felt, then a sum and a quotient.
template <class C>
ASSAY_DEVICE Bounded<C> sigmoid(const Bounded<C>& x) {
  const double v = sigmoid_of(x.v), rest = sigmoid_of(-x.v);
  const double ulps = C::approximate ? 2 + 1.173 * magnitude(x.v) : 2;
  const double own = v * Bounded<C>::kUnit * (2 * ulps * rest + 2 + (C::approximate ? 4 : 2)) +
                     4 * Bounded<C>::kTiny;
  // The slope is v (1 - v), and neither changes by more than e^error over the interval.
  const double share = smaller(v, rest);
  return Bounded<C>::result(v, smaller(1, share * grown(x.hard())) + own,
                            smaller(1, share * grown(x.typical())) + own, x.length(), -1);
}
/// log1p(exp(x)).
template <class C>
ASSAY_DEVICE Bounded<C> softplus(const Bounded<C>& x) {
  const double v = softplus_of(x.v);
  const double ulps = C::approximate ? 2 + 1.173 * magnitude(x.v) : 2;
  const double own =
      Bounded<C>::kUnit * (2 * ulps * sigmoid_of(x.v) + 4 * v) + 4 * Bounded<C>::kTiny;
  return Bounded<C>::result(v, smaller(x.hard(), v * grown(x.hard())) + own,
                            smaller(x.typical(), v * grown(x.typical())) + own, x.length(), -1);
}

/// An integer next to x: where x may lie on either side of a step, both are honest.
template <class C, class Step>
ASSAY_DEVICE Bounded<C> stepped(const Bounded<C>& x, Step step) {
  const double v = step(x.v), hard = x.hard();
  if (!is_finite(hard)) return Bounded<C>::result(v, hard, hard, x.length(), -1);
  const double e = larger(step(x.v + hard) - v, v - step(x.v - hard));
  // How far it is to the step is known here, so that the chance is that of crossing it from x: none to
  // speak of beyond four standard deviations (Chebyshev: 1/16), else all.
  const double s = 4 * x.typical();
  const double t = step(x.v + s) == v && step(x.v - s) == v ? e / 4 : e;
  return Bounded<C>::result(v, e, t, x.length(), e == 0 ? granularity_of(v) : -1);
}
struct Floor {
  ASSAY_DEVICE double operator()(double x) const { return ::floor(x); }
};
struct Ceil {
  ASSAY_DEVICE double operator()(double x) const { return ::ceil(x); }
};
struct NearestEven {
  ASSAY_DEVICE double operator()(double x) const { return ::rint(x); }
};
struct Truncate {
  ASSAY_DEVICE double operator()(double x) const { return ::trunc(x); }
};
struct Sign {
  ASSAY_DEVICE double operator()(double x) const { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
};
template <class C>
ASSAY_DEVICE Bounded<C> floor(const Bounded<C>& x) {
  return stepped(x, Floor());
}
template <class C>
ASSAY_DEVICE Bounded<C> ceil(const Bounded<C>& x) {
  return stepped(x, Ceil());
}
/// To the nearest integer, ties to even.
template <class C>
ASSAY_DEVICE Bounded<C> round(const Bounded<C>& x) {
  return stepped(x, NearestEven());
}
template <class C>
ASSAY_DEVICE Bounded<C> trunc(const Bounded<C>& x) {
  return stepped(x, Truncate());
}
template <class C>
ASSAY_DEVICE Bounded<C> sign(const Bounded<C>& x) {
  return stepped(x, Sign());
}

/// sum * factor, where an implementation may multiply the factor into the terms although the sum or the
/// factor carries errors already.
template <class C>
ASSAY_DEVICE Bounded<C> scaled(const Bounded<C>& sum, const Bounded<C>& factor) {
  const bool free =
      C::in_order() || sum.n < 2 || (factor.hard() == 0 && Bounded<C>::is_power_of_two(factor.v));
  return free ? sum * factor : sum.as_factor(true) * factor;
}

/// cos and sin of k turns of n: what Fourier transforms multiply by. 2 ulp of 1, where it is not exact.
template <class R>
struct Turn;
template <class C>
struct Turn<Bounded<C>> {
  static ASSAY_DEVICE Bounded<C> of(double v) {
    const double exact = magnitude(v);
    const double e = exact == 0 || exact == 1 ? 0 : 4 * Bounded<C>::kUnit;
    return Bounded<C>::result(v, e, e, 0, e == 0 ? granularity_of(v) : -1);
  }
};

// --- the same of Rounded
#define ASSAY_ROUNDED_TYPE Rounded<F, R, S, B>
#define ASSAY_ROUNDED_TEMPLATE template <class F, Rounding R, unsigned long long S, bool B>
#define ASSAY_ROUNDED_FUNCTION(name, expression)                                             \
  ASSAY_ROUNDED_TEMPLATE ASSAY_DEVICE ASSAY_ROUNDED_TYPE name(const ASSAY_ROUNDED_TYPE& x) { \
    return expression;                                                                       \
  }
ASSAY_ROUNDED_FUNCTION(sin, ::sin(x.v))
ASSAY_ROUNDED_FUNCTION(cos, ::cos(x.v))
ASSAY_ROUNDED_FUNCTION(atan, ::atan(x.v))
ASSAY_ROUNDED_FUNCTION(asin, ::asin(x.v))
ASSAY_ROUNDED_FUNCTION(acos, ::acos(x.v))
ASSAY_ROUNDED_FUNCTION(asinh, ::asinh(x.v))
ASSAY_ROUNDED_FUNCTION(acosh, ::acosh(x.v))
ASSAY_ROUNDED_FUNCTION(atanh, ::atanh(x.v))
ASSAY_ROUNDED_FUNCTION(log1p, ::log1p(x.v))
ASSAY_ROUNDED_FUNCTION(expm1, ::expm1(x.v))
ASSAY_ROUNDED_FUNCTION(log2, ::log2(x.v))
ASSAY_ROUNDED_FUNCTION(log10, ::log10(x.v))
ASSAY_ROUNDED_FUNCTION(erfinv, inverse_of_erf(x.v))
ASSAY_ROUNDED_FUNCTION(sigmoid, sigmoid_of(x.v))
ASSAY_ROUNDED_FUNCTION(softplus, softplus_of(x.v))
ASSAY_ROUNDED_FUNCTION(floor, ::floor(x.v))
ASSAY_ROUNDED_FUNCTION(ceil, ::ceil(x.v))
ASSAY_ROUNDED_FUNCTION(round, ::rint(x.v))
ASSAY_ROUNDED_FUNCTION(trunc, ::trunc(x.v))
ASSAY_ROUNDED_FUNCTION(sign, Sign()(x.v))
#undef ASSAY_ROUNDED_FUNCTION
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE ASSAY_ROUNDED_TYPE pow(const ASSAY_ROUNDED_TYPE& x, const ASSAY_ROUNDED_TYPE& y) {
  return ::pow(x.v, y.v);
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE ASSAY_ROUNDED_TYPE atan2(const ASSAY_ROUNDED_TYPE& y, const ASSAY_ROUNDED_TYPE& x) {
  return ::atan2(y.v, x.v);
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE ASSAY_ROUNDED_TYPE scaled(const ASSAY_ROUNDED_TYPE& sum,
                                       const ASSAY_ROUNDED_TYPE& factor) {
  return sum * factor;
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE Decision less(const ASSAY_ROUNDED_TYPE& a, const ASSAY_ROUNDED_TYPE& b) {
  return a.v < b.v;
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE Decision less_equal(const ASSAY_ROUNDED_TYPE& a, const ASSAY_ROUNDED_TYPE& b) {
  return a.v <= b.v;
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE Decision equal(const ASSAY_ROUNDED_TYPE& a, const ASSAY_ROUNDED_TYPE& b) {
  return a.v == b.v;
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE ASSAY_ROUNDED_TYPE select(const Decision& d, const ASSAY_ROUNDED_TYPE& x,
                                       const ASSAY_ROUNDED_TYPE& y) {
  return d.v ? x : y;
}
ASSAY_ROUNDED_TEMPLATE
ASSAY_DEVICE int64 whole(const ASSAY_ROUNDED_TYPE& x) { return static_cast<int64>(x.v); }
ASSAY_ROUNDED_TEMPLATE
struct Turn<ASSAY_ROUNDED_TYPE> {
  static ASSAY_DEVICE ASSAY_ROUNDED_TYPE of(double v) { return v; }
};
#undef ASSAY_ROUNDED_TYPE
#undef ASSAY_ROUNDED_TEMPLATE

}  // namespace assay
