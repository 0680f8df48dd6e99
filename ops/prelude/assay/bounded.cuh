// Bounded: a number that knows how far an honest implementation may be from it.
//
// `v` is the truth, in double. The rest describes the error that any honest evaluation in the
// contract's accumulator may carry, in whatever order it adds, with or without fused multiply-add
// (docs/precision.md derives it). A Bounded is a sum of terms that has not been rounded yet: adding
// two of them only adds the fields up. The accumulation's own error,
//     min(n - 1, lambda * sqrt(n - 1)) * u * sum|terms|,
// is charged once, when the sum is used in anything but a further sum (`hard()`), so that it does
// not depend on the reference's order. Sums and products that every order evaluates exactly (small
// integers) are recognised by their granularity and cost nothing. Terms too small for the sum that
// they are added to are lost whole, and charged so (`absorbed`).
#pragma once

#include "assay/storage.cuh"

namespace assay {

/// What the judge sets for a contract; the defaults are those of an f32 accumulator.
struct F32Contract {
  using format = F32Format;
  static constexpr double lambda = 4.0;  ///< Confidence of the probabilistic bound.
  // What hangs on the inputs of a run. Functions, so that one compiled reference serves them all
  // (reference.cuh).
  /// False: roundings may conspire (constant rows, ramps), so n - 1 replaces lambda sqrt(n - 1).
  static ASSAY_DEVICE bool independent() { return true; }
  /// Sums and products are evaluated as they are written: what is exact when it goes in is charged
  /// nothing, since a Rounded run says which result comes out.
  static ASSAY_DEVICE bool in_order() { return false; }
  /// How many lanes share a sum: each has a part of it, which this makes the whole, nearly.
  static ASSAY_DEVICE double lanes() { return 1; }
  static constexpr bool approximate = true;  ///< ex2.approx and the like are allowed.
  /// Products may be added by tensor cores, which truncate.
  static constexpr bool tensor_cores = false;
  /// And some factors are f16.
  static constexpr bool half_inputs = false;
  static constexpr bool coarse_tanh =
      false;  ///< tanh.approx, which is good to 11 bits only, is allowed.
};

template <class C>
struct alignas(16) Bounded {
  double v = 0;    ///< Truth.
  double e = 0;    ///< Largest error inherited from the terms.
  double t = 0;    ///< Their typical error.
  double a = 0;    ///< Sum of the terms' magnitudes.
  double q = 0;    ///< Sum of their squares.
  double n = 0;    ///< How many terms that are not zero.
  double len = 0;  ///< Longest accumulation behind the terms.
  double w = 0;    ///< Variance of errors that are independent of each other.
  double d = 0;    ///< What their sum is, with its sign, if casts are made that may be made.
  double g = 0;    ///< Power of two that divides all terms; 0: no term yet; -1: unknown, the terms
                   ///< are not exact.

  static constexpr double kUnit = C::format::precision == 24   ? 0x1p-24
                                  : C::format::precision == 11 ? 0x1p-11
                                                               : 0x1p-8;
  // An honest implementation may spend two roundings where the reference spends one (x * (1 / y)
  // for x / y).
  static constexpr double kSlack = 2;
  // A tensor core drops the bits of each addend below its sum's last place: half a unit for each,
  // always towards zero; and truncates its result, which is a unit more than rounding does.
  static constexpr double kTruncation = 0.5;
  // It aligns products by the exponents of their factors, which of a subnormal f16 is that of the least normal one: up to
  // so many addends of a step lose half a unit of what the product would be then, however small it is.
  static constexpr double kLeastHalf = 0x1p-14;
  static constexpr double kOfAStep = 17;
  // Results below the accumulator's normal range may be flushed.
  static constexpr double kTiny = C::format::min_exponent == -126 ? 0x1p-126 : 0x1p-14;
  // What tensors hold may be beyond the accumulator's range, which is known where it is used.
  static constexpr bool kNarrow = C::format::max_exponent < F32Format::max_exponent;
  // 16-bit additions never flush (add.noftz is all that atomics on them offer).
  static constexpr bool kFlushes = C::format::precision == 24;

  ASSAY_DEVICE Bounded() {}
  /// A number that is part of the op's text: exact where the accumulator holds it.
  ASSAY_DEVICE Bounded(double x) {
    set(x, C::format::nearest(x) == x || is_nan(x) ? 0 : kUnit * magnitude(x));
  }
  ASSAY_DEVICE Bounded(int x) : Bounded(static_cast<double>(x)) {}
  ASSAY_DEVICE Bounded(int64 x) : Bounded(static_cast<double>(x)) {}
  /// An element of a tensor: exact.
  ASSAY_DEVICE Bounded(f8e4m3 x) { set(to_double(x), 0); }
  ASSAY_DEVICE Bounded(f8e5m2 x) { set(to_double(x), 0); }
  ASSAY_DEVICE Bounded(bf16 x) { element(to_float(x)); }
  ASSAY_DEVICE Bounded(f16 x) { element(to_float(x)); }
  ASSAY_DEVICE Bounded(f32 x) { element(to_float(x)); }
  ASSAY_DEVICE Bounded(float x) { element(to_float(x)); }

  ASSAY_DEVICE void set(double value, double error) {
    v = value;
    a = magnitude(value);
    e = t = guarded(error);
    q = value * value;
    n = value == 0 && error == 0 ? 0 : 1;
    g = error == 0 ? granularity_of(value) : -1;
  }

  ASSAY_DEVICE void element(float value) {
    v = static_cast<double>(value);
    a = magnitude(v);
    q = v * v;
    n = value == 0 ? 0 : 1;
    g = granularity_of_element(value);
  }

  /// True where every order of summation is exact: all partial sums are multiples of g that the
  /// significand holds.
  ASSAY_DEVICE bool exact_sum() const {
    return g >= 0 && e == 0 && a <= g * power_of_two(C::format::precision);
  }
  static ASSAY_DEVICE double largest() {
    return (2.0 - power_of_two(1 - C::format::precision)) * power_of_two(C::format::max_exponent);
  }
  /// Errors beyond the accumulator's range are unbounded; a truth that is not finite is compared as
  /// it is.
  ASSAY_DEVICE double guarded(double error) const {
    // No truth that is not finite has terms that are.
    if (a + error <= largest()) return error;
    return is_finite(v) ? infinity() : 0;
  }
  /// The one rounding of a result near x that is off by up to `error` already.
  static ASSAY_DEVICE double half_ulp(double x, double error) {
    return error == 0 ? C::format::ulp(x) / 2 : kUnit * (magnitude(x) + error);
  }
  /// Of a value of the accumulator: does its significand end in a one?
  static ASSAY_DEVICE bool is_odd(double x) {
    const double half = x / (2 * C::format::ulp(x));
    return (half + 6755399441055744.0) - 6755399441055744.0 != half;
  }
  /// Of a sum of two exact numbers: what is lost at most.
  ///
  /// One rounding, but for sums that carry what they lost along (Kahan). Where the second term is the
  /// larger, and the sum lies in a higher binade than it, what was lost is a multiple of half an ulp
  /// of the sum: half an ulp, where more than a quarter was. The next term, or a zero, adds that, and
  /// the tie goes to the even neighbour: so an odd sum may become its neighbour on the truth's side.
  ASSAY_DEVICE double half_ulp_of_two() const {
    const double once = half_ulp(v, e);
    const double sum = C::format::nearest(v);
    const double step = C::format::ulp(sum);
    const double lost = magnitude(v - sum);
    if (!is_finite(sum) || (e == 0 && (a != magnitude(v) || 4 * lost < step))) return once;
    const double apart = 2 * q - a * a;  // (|x| - |y|)^2
    const double second = C::format::nearest((a + ::sqrt(apart > 0 ? apart : 0)) / 2);
    const bool carries = C::format::ulp(second) < step;
    // Of terms that are rounded themselves it is not known what is lost.
    if (e != 0) return carries ? once + step / 4 : once;
    // A quarter itself is a tie in what was lost, which an even second term wins.
    return carries && is_odd(sum) && (4 * lost > step || is_odd(second)) ? step - lost : once;
  }
  /// Largest error of an honest evaluation, the accumulation's own included.
  ASSAY_DEVICE double hard() const {
    if (n < 2 || exact_sum() || (C::in_order() && e == 0)) return guarded(e);
    if (n == 2 && !C::tensor_cores) return guarded(e + half_ulp_of_two());
    const double adds = n - 1;
    double factor = C::independent() ? smaller(adds, C::lambda * ::sqrt(adds)) : adds;
    if (C::tensor_cores) factor += kTruncation * n + 1;
    return guarded(e + factor * kUnit * a);
  }
  /// What an honest evaluation's error is like (its standard deviation, rather above than below)
  /// when terms come in no particular order.
  ASSAY_DEVICE double typical() const {
    return w == 0 ? correlated() : guarded(correlated() + ::sqrt(w) + conspiring());
  }
  /// Casts are taken for independent of each other; where their errors add up to more (equal
  /// probabilities are all rounded alike), the rest is common to all.
  ASSAY_DEVICE double conspiring() const { return larger(magnitude(d) - ::sqrt(w), 0); }
  /// Without the part whose errors are independent from term to term.
  ASSAY_DEVICE double correlated() const {
    if (n < 2 || exact_sum()) return guarded(t);
    if (n == 2 && !C::tensor_cores) return guarded(t + half_ulp(v, e));
    if (!C::independent()) return hard();
    const double truncation = C::tensor_cores ? (kTruncation * n + 1) * magnitude(v) : 0;
    return guarded(t + kUnit * (::sqrt((n - 1) * (v * v + q)) + truncation));
  }
  /// The sum as one rounded number.
  ASSAY_DEVICE Bounded settled() const {
    if (n < 2) return *this;
    Bounded r =
        result(v, hard(), correlated(), larger(n, len), exact_sum() ? granularity_of(v) : -1);
    r.w = w;
    r.d = d;
    return r;
  }
  static ASSAY_DEVICE Bounded result(double v, double e, double t, double len, double g) {
    Bounded r;
    r.v = v;
    r.a = magnitude(v);
    r.e = r.guarded(e);
    r.t = r.guarded(t);
    r.q = v * v;
    r.n = v == 0 && e == 0 ? 0 : 1;
    r.len = len;
    r.g = g;
    return r;
  }
  ASSAY_DEVICE double length() const { return larger(n, len); }

  friend ASSAY_DEVICE Bounded operator-(const Bounded& x) {
    Bounded r = x;
    r.v = -x.v;
    r.d = -x.d;
    return r;
  }
  friend ASSAY_DEVICE Bounded operator+(const Bounded& x, const Bounded& y) {
    Bounded r;
    r.v = x.v + y.v;
    r.e = x.e + y.e;
    r.t = x.t + y.t;
    r.a = x.a + y.a;
    r.q = x.q + y.q;
    r.w = x.w + y.w;
    r.d = x.d + y.d;
    r.n = x.n + y.n;
    r.len = larger(x.len, y.len);
    r.g = x.g == 0 ? y.g : y.g == 0 ? x.g : smaller(x.g, y.g);
    // atom.add.f32 on global memory flushes subnormal addends and sums (PTX ISA). Where all terms
    // are multiples of a normal number there are none.
    const bool flushes = kFlushes & (r.g > 0) & (r.g < kTiny);
    const double less = smaller(x.a, y.a);
    const double whole = C::lanes() * larger(x.a, y.a);
    const bool loses = (less < kUnit * whole) & (r.n > 2);
    // Hardly a sum comes here, so hardly a warp parts.
    if (flushes | loses) {
      const double lost = (flushes ? 2 * kTiny : 0) + (loses ? absorbed(less, whole, r.g) : 0);
      r.e += lost;
      r.t += lost;
    }
    return r;
  }
  /// What a sum loses because one side is below half an ulp of the other: all of it, each time, and in
  /// the same direction where terms have one sign. That is no chance, which `hard` takes roundings for.
  /// Nothing where all is exact, or where roundings are taken to conspire anyway.
  static ASSAY_DEVICE double absorbed(double less, double whole, double g) {
    const bool exact = g >= 0 && whole <= g * power_of_two(C::format::precision);
    return C::independent() && !C::in_order() && !exact ? less : 0;
  }
  friend ASSAY_DEVICE Bounded operator-(const Bounded& x, const Bounded& y) { return x + -y; }
  /// A sum that is multiplied by a number may have had the number multiplied into its terms instead
  /// (the scale of attention's scores, into q): that rounds every term once more, and a sum that was
  /// exact no longer is. Not a difference that carries errors already, where multiplying out is
  /// `affine`'s to allow, nor a power of two.
  ASSAY_DEVICE bool distributes(const Bounded& factor) const {
    return n > 1 && factor.n < 2 && !C::in_order() && (n > 2 || exact_sum()) &&
           !(factor.e == 0 && is_power_of_two(factor.v));
  }
  static ASSAY_DEVICE bool is_power_of_two(double x) {
    return x != 0 && granularity_of(x) == magnitude(x);
  }
  friend ASSAY_DEVICE Bounded operator*(const Bounded& x, const Bounded& y) {
    // What most products of references are: the rest of what describes elements is not computed for it.
    if (x.is_exact_factor() & y.is_exact_factor()) {
      const Bounded r = exact_product(x, y);
      if (r.g >= 0) return r;
    }
    // Not by recursion: a function that calls itself is never inlined, and calls cost the emulator
    // several times what the product does. One product in the text, not three, and what a sum errs by
    // once for each side: compiling them is most of what a reference takes to compile.
    Bounded left = x, right = y;
    const bool one = !((x.n > 1) & (y.n > 1));
    if (x.n > 1) left = x.as_factor(one && x.distributes(y));
    if (y.n > 1) right = y.as_factor(one && y.distributes(x));
    return product(left, right);
  }
  /// An element, a number of the op's text, or zero: its granularity is that of its value.
  ASSAY_DEVICE bool is_exact_factor() const { return (e == 0) & (n < 2) & (len == 0); }
  /// Of such factors, with g = -1 where a product of floats may round, flush or lose bits on tensor cores.
  static ASSAY_DEVICE Bounded exact_product(const Bounded& x, const Bounded& y) {
    constexpr double kLeast = C::tensor_cores && C::half_inputs ? kLeastHalf : kTiny;
    Bounded r;
    r.v = x.v * y.v;
    r.a = magnitude(r.v);
    r.q = r.v * r.v;
    r.n = r.v == 0 ? 0 : 1;
    r.len = larger(x.n, y.n);
    // Odd significands have an odd product, which a double holds: lowest bits multiply.
    r.g = granularity_of(r.v);
    const bool held = (r.g > kTiny) & (r.a <= r.g * power_of_two(C::format::precision)) &
                      (r.a <= largest()) & (magnitude(x.v) >= kLeast) & (magnitude(y.v) >= kLeast);
    const bool beyond = kNarrow && (magnitude(x.v) > largest() || magnitude(y.v) > largest());
    if (!(held | (r.v == 0)) | beyond) r.g = -1;
    return r;
  }
  /// A sum, with what its evaluation errs by in `e` and `t`.
  ASSAY_DEVICE Bounded as_factor(bool distributed) const {
    Bounded sum = *this;
    if (distributed) sum.g = -1;
    const double error = sum.hard();
    const double usual = sum.correlated();
    if (!distributed) {
      sum.e = error;
      sum.t = usual;
      if (sum.g >= 0) sum.g = granularity_of(v);
      return sum;
    }
    sum = result(v, error, usual, length(), -1);
    sum.w = w;
    sum.d = d;
    sum.e = sum.guarded(sum.e + kUnit * a);
    sum.t = sum.guarded(sum.t + (C::independent() ? kUnit * ::sqrt(q) : kUnit * a));
    return sum;
  }
  /// Of factors whose errors are known: `e` and `t`.
  static ASSAY_DEVICE Bounded product(const Bounded& x, const Bounded& y) {
    const double ex = kNarrow ? x.guarded(x.e) : x.e, ey = kNarrow ? y.guarded(y.e) : y.e;
    const double tx = kNarrow ? x.guarded(x.t) : x.t, ty = kNarrow ? y.guarded(y.t) : y.t;
    const double v = x.v * y.v;
    const double len = larger(x.length(), y.length());
    const double mx = magnitude(x.v), my = magnitude(y.v);
    // A subnormal factor may be flushed, and the product with it, however large the other is.
    const bool flushed = kFlushes & ((mx < kTiny) | (my < kTiny));
    double rounding = kSlack * kUnit * magnitude(v) + kTiny + (flushed ? magnitude(v) : 0);
    if ((ex == 0) & (ey == 0)) {
      const bool known = (x.g >= 0) & (y.g >= 0);
      const bool elements = (x.len == 0) & (y.len == 0);
      double aligned = 0;
      if constexpr (C::tensor_cores && C::half_inputs) {
        const bool subnormal = (mx < kLeastHalf) | (my < kLeastHalf);
        if (subnormal & known & elements & (v != 0))
          aligned = kOfAStep * kUnit * larger(mx, kLeastHalf) * larger(my, kLeastHalf);
      }
      const double g = x.g * y.g;
      const bool held =
          (g > kTiny) & (magnitude(v) <= g * power_of_two(C::format::precision)) & !flushed;
      if (known & ((v == 0) | (held & (aligned == 0)))) return result(v, 0, 0, len, v == 0 ? 0 : g);
      // Of two exact numbers there is but one product, rounded once at most. Of three (an exact product
      // times a number) there are several: (x y) z rounds once where x (y z) rounds twice.
      if (elements) rounding = half_ulp(v, 0) + kTiny + (flushed ? magnitude(v) : 0);
      rounding = v == 0 || (C::in_order() && !flushed) ? 0 : rounding + aligned;
    }
    Bounded r = result(v, mx * ey + my * ex + ex * ey + rounding,
                       mx * ty + my * tx + tx * ty + rounding, len, -1);
    r.w = x.w * my * my + y.w * mx * mx;
    r.d = x.d * y.v + y.d * x.v;
    return r;
  }
  friend ASSAY_DEVICE Bounded operator/(const Bounded& x, const Bounded& y) {
    Bounded dividend = x, divisor = y;
    if (x.n > 1) dividend = x.running();
    if (y.n > 1) divisor = y.as_factor(false);
    return quotient(dividend, divisor);
  }
  /// As the sum of a mean that may be taken as it runs (Welford): then the sum, which may be exact or
  /// cancel, never occurs.
  ASSAY_DEVICE Bounded running() const {
    Bounded sum = *this;
    sum.g = -1;
    sum = sum.settled();
    sum.e += kSlack * kUnit * a;
    sum.t += kSlack * kUnit * a;
    return sum;
  }
  static ASSAY_DEVICE Bounded quotient(const Bounded& x, const Bounded& y) {
    const double v = x.v / y.v;
    const double ey = y.guarded(y.e);
    double rounding = (C::approximate ? 2 : 1) * kSlack * kUnit * magnitude(v) + kTiny;
    // __fdividef is zero where the divisor lies between 2^126 and 2^128 (CUDA C++ Programming Guide).
    if (C::approximate && C::format::precision == 24 && magnitude(y.v) + ey > 0x1p126)
      rounding += magnitude(v);
    // A subnormal dividend may be flushed.
    if (kFlushes && magnitude(x.v) < kTiny) rounding += magnitude(v);
    Bounded r = result(v, quotient_error(v, x.guarded(x.e), y.v, ey) + rounding,
                       quotient_error(v, x.guarded(x.t), y.v, y.guarded(y.t)) + rounding,
                       larger(x.length(), y.length()), -1);
    if (x.w == 0 && y.w == 0) return r;
    const double least = magnitude(y.v) - ey;
    r.w = least > 0 ? (x.w + v * v * y.w) / (least * least) : infinity();
    r.d = (x.d - v * y.d) / y.v;
    return r;
  }
  static ASSAY_DEVICE double quotient_error(double v, double ex, double y, double ey) {
    const double least = magnitude(y) - ey;
    return least > 0 ? (ex + magnitude(v) * ey) / least : infinity();
  }
  ASSAY_DEVICE Bounded& operator+=(const Bounded& y) { return *this = *this + y; }
  ASSAY_DEVICE Bounded& operator-=(const Bounded& y) { return *this = *this - y; }
  ASSAY_DEVICE Bounded& operator*=(const Bounded& y) { return *this = *this * y; }
  ASSAY_DEVICE Bounded& operator/=(const Bounded& y) { return *this = *this / y; }

  // Comparisons look at the truth: use `select_less` where an honest kernel may decide either way.
  friend ASSAY_DEVICE bool operator<(const Bounded& x, const Bounded& y) { return x.v < y.v; }
  friend ASSAY_DEVICE bool operator>(const Bounded& x, const Bounded& y) { return x.v > y.v; }
  friend ASSAY_DEVICE bool operator<=(const Bounded& x, const Bounded& y) { return x.v <= y.v; }
  friend ASSAY_DEVICE bool operator>=(const Bounded& x, const Bounded& y) { return x.v >= y.v; }
  friend ASSAY_DEVICE bool operator==(const Bounded& x, const Bounded& y) { return x.v == y.v; }
  friend ASSAY_DEVICE bool operator!=(const Bounded& x, const Bounded& y) { return x.v != y.v; }
};

/// x when a < b, else y. Where a and b are closer than their errors, both are honest.
template <class C>
ASSAY_DEVICE Bounded<C> select_less(const Bounded<C>& a, const Bounded<C>& b, const Bounded<C>& x,
                                    const Bounded<C>& y) {
  const Bounded<C> chosen = a.v < b.v ? x.settled() : y.settled();
  const Bounded<C> other = a.v < b.v ? y.settled() : x.settled();
  if (magnitude(a.v - b.v) > a.hard() + b.hard()) return chosen;
  const double apart = magnitude(chosen.v - other.v);
  return Bounded<C>::result(chosen.v, larger(chosen.e, other.e + apart),
                            larger(chosen.t, other.t + apart),
                            larger(chosen.length(), other.length()), -1);
}

/// sum / count, as an average that an honest implementation may also keep while it runs (Welford), or
/// add up from terms that are divided by count already.
/// mean += (x - mean) / k rounds by u |mean_k|, which the steps after it shrink by k / n; |mean_k| is
/// at most the first k magnitudes over k, so all steps together err like a sum that is divided by n,
/// even where the sum itself is exact. Values that drift make these roundings conspire: along a ramp
/// every step adds the same amount. Repeated values do so in a sum of x * (1 / n), which is inexact
/// where that of x is exact, and which rounds 1 / n and each product besides.
/// Zeros count: a sum takes no notice of them, while a running mean shrinks with each.
template <class C>
ASSAY_DEVICE Bounded<C> average(const Bounded<C>& sum, const Bounded<C>& count) {
  const double terms = larger(sum.n, count.hard() == 0 ? count.v : 0);
  if (terms < 2 || sum.a == 0 || C::in_order()) return sum / count;
  const double adds = terms - 1;
  // Each step's quotient is off by 4 u |x - mean| / k where it is approximate (__fdividef).
  const double steps = Bounded<C>::kSlack + (C::approximate ? 4 : 0) +
                       (C::independent() ? smaller(adds, C::lambda * ::sqrt(adds)) : adds);
  const double hard = sum.e + Bounded<C>::kUnit * sum.a * steps;
  const double typical = sum.t + Bounded<C>::kUnit * sum.a * ::sqrt(adds);
  Bounded<C> mean = Bounded<C>::result(
      sum.v, larger(sum.hard(), hard),
      larger(sum.correlated(), C::independent() ? smaller(hard, typical) : hard), sum.length(), -1);
  mean.w = sum.w;
  mean.d = sum.d;
  return mean / count;
}

/// (x - mean) * factor + shift, which may also be multiplied out, x * factor + (shift - mean *
/// factor): two instructions an element. That rounds two products and one more sum.
template <class C>
ASSAY_DEVICE Bounded<C> affine(const Bounded<C>& x, const Bounded<C>& mean,
                               const Bounded<C>& factor, const Bounded<C>& shift) {
  Bounded<C> r = (x - mean) * factor + shift;
  if (C::in_order() || (mean.v == 0 && mean.hard() == 0)) return r;
  const double more =
      Bounded<C>::kUnit *
      (magnitude(factor.v) * (magnitude(x.v) + 2 * magnitude(mean.v)) + magnitude(shift.v));
  r.e = r.guarded(r.e + more);
  r.t = r.guarded(r.t + more);
  r.g = -1;
  return r;
}

/// The larger one; NaN where either is.
template <class C>
ASSAY_DEVICE Bounded<C> max(const Bounded<C>& x, const Bounded<C>& y) {
  const Bounded<C> a = x.settled(), b = y.settled();
  const Bounded<C>& chosen = is_nan(a.v) || a.v >= b.v ? a : b;
  return Bounded<C>::result(chosen.v, larger(a.e, b.e), larger(a.t, b.t),
                            larger(a.length(), b.length()), a.e == 0 && b.e == 0 ? chosen.g : -1);
}
template <class C>
ASSAY_DEVICE Bounded<C> min(const Bounded<C>& x, const Bounded<C>& y) {
  return -max(-x, -y);
}
template <class C>
ASSAY_DEVICE Bounded<C> abs(const Bounded<C>& x) {
  const Bounded<C> s = x.settled();
  return s.v < 0 ? -s : s;
}
template <class C>
ASSAY_DEVICE Bounded<C> fma(const Bounded<C>& x, const Bounded<C>& y, const Bounded<C>& z) {
  return x * y + z;
}

/// e^error - 1, exact enough for a bound.
ASSAY_DEVICE double grown(double error) {
  return error < 1e-3 ? error * (1 + error) : ::exp(error) - 1;
}

template <class C>
ASSAY_DEVICE Bounded<C> exp(const Bounded<C>& x) {
  const double v = ::exp(x.v);
  // __expf: 2 + 1.173 |x| ulp (CUDA C++ Programming Guide, mathematical functions); expf: 2 ulp.
  const double ulps = C::approximate ? 2 + 1.173 * magnitude(x.v) : 2;
  const double rounding =
      (v == 0 ? 0 : v * 2 * ulps * Bounded<C>::kUnit) + Bounded<C>::kTiny;  // exp(-inf) is 0
  return Bounded<C>::result(v, v * grown(x.hard()) + rounding, v * grown(x.typical()) + rounding,
                            x.length(), -1);
}
template <class C>
ASSAY_DEVICE Bounded<C> exp2(const Bounded<C>& x) {
  const double v = ::exp2(x.v);
  const double rounding = v * 4 * Bounded<C>::kUnit + Bounded<C>::kTiny;
  return Bounded<C>::result(v, v * grown(x.hard() * 0.6931471805599453) + rounding,
                            v * grown(x.typical() * 0.6931471805599453) + rounding, x.length(), -1);
}
template <class C>
ASSAY_DEVICE double log_error(double v, double error) {
  return error < v ? error / (v - error) : infinity();
}
template <class C>
ASSAY_DEVICE Bounded<C> log(const Bounded<C>& x) {
  const double v = ::log(x.v);
  // __logf: 2^-21.41 absolute for x in [0.5, 2], 3 ulp elsewhere; logf: 1 ulp.
  const double rounding = C::approximate ? larger(3.6e-7, 6 * Bounded<C>::kUnit * magnitude(v))
                                         : 4 * Bounded<C>::kUnit * magnitude(v);
  return Bounded<C>::result(v, log_error<C>(x.v, x.hard()) + rounding,
                            log_error<C>(x.v, x.typical()) + rounding, x.length(), -1);
}
template <class C>
ASSAY_DEVICE Bounded<C> sqrt(const Bounded<C>& x) {
  const double v = ::sqrt(x.v);
  const double rounding = (C::approximate ? 4 : 2) * Bounded<C>::kUnit * v;
  const double hard = x.v - x.hard(), typical = x.v - x.typical();
  return Bounded<C>::result(v, v - ::sqrt(hard > 0 ? hard : 0) + rounding,
                            v - ::sqrt(typical > 0 ? typical : 0) + rounding, x.length(), -1);
}
ASSAY_DEVICE double rsqrt_growth(double relative) {
  if (!(relative < 1)) return infinity();
  return relative < 1e-3 ? 0.5 * relative * (1 + relative) : 1 / ::sqrt(1 - relative) - 1;
}
template <class C>
ASSAY_DEVICE Bounded<C> rsqrt(const Bounded<C>& x) {
  const double v = 1 / ::sqrt(x.v);
  // rsqrtf: 2 ulp; rsqrt.approx: 2^-22.9.
  const double rounding = 4 * Bounded<C>::kUnit * v;
  return Bounded<C>::result(v, v * rsqrt_growth(x.hard() / x.v) + rounding,
                            v * rsqrt_growth(x.typical() / x.v) + rounding, x.length(), -1);
}
template <class C>
ASSAY_DEVICE Bounded<C> tanh(const Bounded<C>& x) {
  const double v = ::tanh(x.v);
  // tanhf: 2 ulp; tanh.approx: 2^-11 (PTX ISA), of which a contract must say that it is allowed.
  const double rounding =
      (C::coarse_tanh ? 0x1p-11 : 4 * Bounded<C>::kUnit) * magnitude(v) + Bounded<C>::kTiny;
  // The steepest slope is where the interval comes nearest to zero.
  const double nearest = larger(magnitude(x.v) - x.hard(), 0);
  const double slope = nearest == 0 ? 1 : 1 - ::tanh(nearest) * ::tanh(nearest);
  return Bounded<C>::result(v, smaller(2, slope * x.hard()) + rounding,
                            smaller(2, slope * x.typical()) + rounding, x.length(), -1);
}
template <class C>
ASSAY_DEVICE Bounded<C> erf(const Bounded<C>& x) {
  const double v = ::erf(x.v);
  const double rounding = 4 * Bounded<C>::kUnit * magnitude(v) + Bounded<C>::kTiny;
  return Bounded<C>::result(v, smaller(2, 1.1283791670955126 * x.hard()) + rounding,
                            smaller(2, 1.1283791670955126 * x.typical()) + rounding, x.length(),
                            -1);
}

/// A cast that the op's own definition contains. An honest value near a tie may fall to the
/// neighbour.
template <class T, class C>
ASSAY_DEVICE Bounded<C> round_to(const Bounded<C>& x) {
  using F = typename T::format;
  const double v = F::nearest(x.v);
  const double hard = x.hard(), typical = x.typical();
  if (!is_finite(hard)) return Bounded<C>::result(v, hard, hard, x.length(), -1);
  const double up = F::nearest(x.v + hard) - v, down = v - F::nearest(x.v - hard);
  const double e = larger(up, down);
  const double ulp = F::ulp(v);
  // It falls there with probability of about 2 typical / ulp.
  const double t = e == 0 ? 0 : larger(typical, ulp * ::sqrt(smaller(1, 2 * typical / ulp)));
  return Bounded<C>::result(v, e, smaller(e, t), x.length(), e == 0 ? granularity_of(v) : -1);
}

/// A cast to T that an implementation may make, but need not: both are honest. With a divisor, it may
/// be made before or after the division by it, or while both are still kept at another scale:
/// softmax's probabilities are rounded as they are, once they are normalised, or over the largest score
/// so far, where an ulp may be as much of them as it ever is.
template <class T, class C>
ASSAY_DEVICE Bounded<C> may_round_to(const Bounded<C>& x, const Bounded<C>& divisor) {
  using F = typename T::format;
  Bounded<C> r = x.settled();
  const double before = F::ulp(r.v);
  const double share = r.v / divisor.v;
  const double after = divisor.v == 1 ? before : magnitude(divisor.v) * F::ulp(share);
  // What T holds, such as the 1 of a largest probability, is not changed by the cast.
  const auto held = [&](double value, double ulp) {
    return F::nearest(value) == value && r.e < ulp / 4;
  };
  double ulp = larger(held(r.v, before) ? 0 : before, held(share, after) ? 0 : after);
  if (ulp == 0) return r;
  if (divisor.v != 1) ulp = larger(ulp, magnitude(r.v) * power_of_two(1 - F::precision));
  r.e = r.guarded(r.e + ulp / 2);
  r.g = -1;
  r.w += ulp * ulp / 12;
  r.d += divisor.v * F::nearest(share) - r.v;
  return r;
}
template <class T, class C>
ASSAY_DEVICE Bounded<C> may_round_to(const Bounded<C>& x) {
  return may_round_to<T>(x, Bounded<C>(1));
}

/// A number that an implementation may keep multiplied by a constant, as scores by log2(e) where powers
/// of two are taken of them: rounded once more, also where it is exact.
template <class C>
ASSAY_DEVICE Bounded<C> may_rescale(const Bounded<C>& x) {
  Bounded<C> r = x.settled();
  const double rounding = Bounded<C>::kUnit * magnitude(r.v);
  r.e = r.guarded(r.e + rounding);
  r.t = r.guarded(r.t + rounding);
  if (r.v != 0) r.g = -1;
  return r;
}

/// What is stored for an output element.
template <class C, class T>
struct BoundedCell {
  double value, hard, typical, terms, length, independent;

  ASSAY_DEVICE BoundedCell& operator=(const Bounded<C>& x) {
    value = x.v;
    hard = x.hard();
    typical = x.typical();
    terms = x.n;
    // Not 0: where only parts are computed, what was computed is told from what was not.
    length = x.length() > 0 ? x.length() : -1;
    independent = is_finite(typical) ? ::sqrt(x.w) : 0;
    return *this;
  }
};

}  // namespace assay
