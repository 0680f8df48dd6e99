// The prelude's error bound (assay/bounded.cuh) on functions, means and roundings; on sums: bounded_sums_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "ops/reference_on_host.h"

namespace assay::ops {
namespace {

using Honest = Bounded<F32Contract>;

TEST(Bounded, OverflowOfTheAccumulatorIsUnbounded) {
  const Honest big = f32{1e30f};
  EXPECT_TRUE(std::isinf((big * big).hard()));
  EXPECT_TRUE(std::isinf(Honest(Honest(1) / (big * big)).hard()));
  const Honest infinite = f32{std::numeric_limits<float>::infinity()};
  EXPECT_EQ((infinite + Honest(1)).hard(), 0);
}

TEST(Bounded, FunctionsBoundTheirFloatTwins) {
  Rng rng(15);
  for (int i = 0; i < 20000; ++i) {
    const auto base = static_cast<float>(rng.Normal() * 4);
    const auto other = static_cast<float>(rng.Normal());
    // An argument with an error of its own.
    const float argument = base * other;
    const Honest exact = Honest(f32{base}) * Honest(f32{other});
    const auto check = [&](const Honest& truth, float got, const char* what) {
      ASSERT_LE(std::fabs(static_cast<double>(got) - truth.v), truth.hard())
          << what << " of " << argument;
      ASSERT_LT(truth.hard(), 1e-4 * (1 + std::fabs(truth.v))) << what << " of " << argument;
    };
    check(exp(exact), std::exp(argument), "exp");
    check(tanh(exact), std::tanh(argument), "tanh");
    check(erf(exact), std::erf(argument), "erf");
    check(abs(exact), std::fabs(argument), "abs");
    check(max(exact, Honest(f32{other})), std::max(argument, other), "max");
    const Honest squared = exact * exact + Honest(1);
    const float square = argument * argument + 1.0f;
    check(sqrt(squared), std::sqrt(square), "sqrt");
    check(rsqrt(squared), 1.0f / std::sqrt(square), "rsqrt");
    check(log(squared), std::log(square), "log");
    check(exact / squared, argument * (1.0f / square), "division");
  }
}

TEST(Bounded, PrescribedRoundingsAreNotErrors) {
  const Honest x = Honest(f32{1.0f}) / Honest(f32{3.0f});
  const Honest rounded = round_to<bf16>(x);
  EXPECT_EQ(rounded.v, Bf16Format::nearest(1.0 / 3));
  EXPECT_EQ(rounded.hard(), 0) << "no honest value is near a tie";
  const Honest tie = Honest::result(1 + 0x1p-8, 0x1p-20, 0x1p-22, 0, -1);
  EXPECT_EQ(round_to<bf16>(tie).hard(), 0x1p-7) << "either neighbour is honest";
}

TEST(Bounded, RunningMeansStayWithinTheAverage) {
  // Found by corpus/precision: the sum of sorted f16 values is exact in f32, a running mean of them
  // is not.
  Rng rng(19);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 2 + rng.Below(400);
    Honest sum = 0;
    float mean = 0;
    const double start = rng.Normal() * 4, step = rng.Unit() * 0.01;
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(F16Format::nearest(start + step * static_cast<double>(i)));
      sum += Honest(f32{x});
      mean += (x - mean) / static_cast<float>(i + 1);
    }
    const Honest truth = average(sum, Honest(static_cast<int64>(count)));
    ASSERT_LE(std::fabs(static_cast<double>(mean) - truth.v), truth.hard()) << count;
  }
}

TEST(Bounded, RunningMeansShrinkWithEachZero) {
  // A plain sum takes no notice of zeros, and is not given anything for them.
  Rng rng(23);
  double most = 0;
  for (int round = 0; round < 300; ++round) {
    const int64 count = 2 + static_cast<int64>(rng.Below(2000));
    const auto x = static_cast<float>(rng.Normal());
    Honest sum = 0;
    float mean = 0;
    for (int64 i = 0; i < count; ++i) {
      const float term = i == 0 ? x : 0.0f;
      sum += Honest(f32{term});
      mean += (term - mean) / static_cast<float>(i + 1);
    }
    const Honest count_of = count, truth = average(sum, count_of), plain = sum / count_of;
    const double off = std::fabs(static_cast<double>(mean) - truth.v);
    ASSERT_LE(off, truth.hard()) << count;
    most = std::max(most, off / plain.hard());
  }
  EXPECT_GT(most, 2);
  EXPECT_LT(average(Honest(0), Honest(int64{741})).hard(), 2e-38)
      << "zeros alone are a zero, flushed or not";
}

struct Drifting : F32Contract {
  static bool independent() { return false; }
};

TEST(Bounded, RunningMeansOfRampsNeedTheirOwnAllowance) {
  // Along a ramp every step of a running mean adds the same amount, and is rounded alike.
  Rng rng(23);
  int beyond_usual = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 100 + rng.Below(300);
    Bounded<F32Contract> usual = 0;
    Bounded<Drifting> drifting = 0;
    float mean = 0;
    const double start = rng.Normal() * 4, step = rng.Unit() * 0.01;
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(start + step * static_cast<double>(i));
      usual += Bounded<F32Contract>(f32{x});
      drifting += Bounded<Drifting>(f32{x});
      mean += (x - mean) / static_cast<float>(i + 1);
    }
    const auto truth = average(drifting, Bounded<Drifting>(static_cast<int64>(count)));
    const double error = std::fabs(static_cast<double>(mean) - truth.v);
    ASSERT_LE(error, truth.hard()) << count;
    if (error > average(usual, Bounded<F32Contract>(static_cast<int64>(count))).hard())
      ++beyond_usual;
  }
  EXPECT_GT(beyond_usual, 0);
}

struct Repeating : F32Contract {
  static bool independent() { return false; }
};

TEST(Bounded, MeansOfScaledTermsStayWithinTheAverage) {
  // A sum of x * (1 / n) is inexact where that of x is exact; where x repeats, its roundings conspire.
  Rng rng(37);
  int beyond_usual = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 2 + rng.Below(round % 2 == 0 ? 8 : 4000);
    const bool repeats = round % 4 < 2;
    Bounded<F32Contract> usual = 0;
    Bounded<Repeating> repeating = 0;
    const float inverse = 1.0f / static_cast<float>(count);
    float mean = 0, x = 3;
    for (std::size_t i = 0; i < count; ++i) {
      if (!repeats) x = static_cast<float>(rng.Normal());
      usual += Bounded<F32Contract>(f32{x});
      repeating += Bounded<Repeating>(f32{x});
      mean += x * inverse;
    }
    const auto expected = average(usual, Bounded<F32Contract>(static_cast<int64>(count)));
    const auto truth = average(repeating, Bounded<Repeating>(static_cast<int64>(count)));
    const double error = std::fabs(static_cast<double>(mean) - truth.v);
    ASSERT_LE(error, truth.hard()) << count;
    if (!repeats) {
      ASSERT_LE(error, expected.hard()) << count;
    }
    if (error > expected.hard()) ++beyond_usual;
  }
  EXPECT_GT(beyond_usual, 0);
}

/// A quotient that is off by up to two units in its last place, as div.approx.f32 may be, and exact
/// where the divisor is a power of two.
float ApproximateQuotient(float x, float y, Rng& rng) {
  const float quotient = x / y;
  if (quotient == 0 || std::frexp(y, std::array<int, 1>{}.data()) == 0.5f) return quotient;
  const auto ulp = std::ldexp(1.0, std::ilogb(quotient) - 23);
  return static_cast<float>(quotient + std::floor((2 * rng.Unit() - 1) * 2.5) * ulp);
}

TEST(Bounded, RunningMeansMayDivideApproximately) {
  Rng rng(53);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t count = 1 + rng.Below(round % 2 == 0 ? 6 : 300);
    const bool integers = rng.Below(2) == 0;
    Honest sum = 0;
    float mean = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(integers ? std::floor(8 * rng.Normal()) : rng.Normal());
      sum += Honest(f32{x});
      mean += ApproximateQuotient(x - mean, static_cast<float>(i + 1), rng);
    }
    const Honest truth = average(sum, Honest(static_cast<int64>(count)));
    ASSERT_LE(std::fabs(static_cast<double>(mean) - truth.v), truth.hard()) << count;
  }
}

struct Accurate : F32Contract {
  static constexpr bool approximate = false;
};

TEST(Bounded, FastQuotientsByHugeDivisorsMayVanish) {
  const auto quotient = [](auto one, float y) {
    using Number = decltype(one);
    return Number(f32{-88.0f}) / (one + Number(f32{y}));
  };
  for (const float y : {0x1.8p126f, 0x1p127f, 0x1.8p127f}) {
    const Honest fast = quotient(Honest(1), y);
    EXPECT_GE(fast.hard(), std::fabs(fast.v)) << "__fdividef gives zero";
    const auto accurate = quotient(Bounded<Accurate>(1), y);
    EXPECT_LT(accurate.hard(), 0.1 * std::fabs(accurate.v));
  }
  const Honest usual = quotient(Honest(1), 0x1p120f);
  EXPECT_LT(usual.hard(), 0.1 * std::fabs(usual.v)) << "below 2^126 it does not";
}

TEST(Bounded, FactorsMayBeMultipliedIntoASum) {
  Rng rng(59);
  int beyond_exact = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t count = 2 + rng.Below(100);
    const bool integers = round % 2 == 0;
    const float scale = 0.3f;
    Honest dot = 0;
    float folded = 0;
    double exact = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto draw = [&] {
        return static_cast<float>(integers ? std::floor(8 * rng.Normal()) : rng.Normal());
      };
      const float q = draw(), k = draw();
      dot += Honest(f32{q}) * Honest(f32{k});
      exact += static_cast<double>(q) * static_cast<double>(k);
      folded = std::fmaf(q * scale, k, folded);
    }
    const Honest truth = dot * Honest(f32{scale});
    const double error = std::fabs(static_cast<double>(folded) - truth.v);
    ASSERT_LE(error, truth.hard()) << count;
    // What rounding the exact sum's product alone would leave.
    if (integers && error > 2 * 0x1p-24 * std::fabs(truth.v)) ++beyond_exact;
  }
  EXPECT_GT(beyond_exact, 0);
  // A power of two rounds nothing, wherever it goes; nor does a difference gain anything.
  const Honest three = f32{3.0f}, five = f32{5.0f}, third = f32{1.0f / 3}, quarter = f32{0.25f};
  EXPECT_EQ(((three * five + five) * quarter).hard(), 0);
  EXPECT_GT(((three * five + five) * third).hard(), 0);
  const Honest rounded = third * third;
  const Honest difference = third - rounded;
  EXPECT_EQ((difference * third).hard(), (difference.settled() * third).hard());
}

TEST(Bounded, AffineMayBeMultipliedOut) {
  Rng rng(41);
  int beyond_plain = 0;
  for (int round = 0; round < 3000; ++round) {
    const double scale = std::ldexp(1, static_cast<int>(rng.Below(20)) - 10);
    const auto x = static_cast<float>(rng.Normal()), m = static_cast<float>(rng.Normal());
    const auto a = static_cast<float>(rng.Normal() * scale), b = static_cast<float>(rng.Normal());
    const Honest hx = f32{x}, hm = f32{m}, ha = f32{a}, hb = f32{b};
    const Honest truth = affine(hx, hm, ha, hb);
    const Honest plain = (hx - hm) * ha + hb;
    ASSERT_EQ(truth.v, plain.v);
    const float forms[] = {(x - m) * a + b, std::fma(x - m, a, b), x * a + (b - m * a),
                           std::fma(x, a, std::fma(-m, a, b)), (x * a - m * a) + b};
    for (const float form : forms) {
      const double error = std::fabs(static_cast<double>(form) - truth.v);
      ASSERT_LE(error, truth.hard());
      if (error > plain.hard()) ++beyond_plain;
    }
  }
  EXPECT_GT(beyond_plain, 0);
  // Without a mean there is nothing to multiply out.
  const Honest zero = f32{0.0f}, one = f32{1.0f}, third = f32{1.0f / 3};
  EXPECT_EQ(affine(third, zero, third, one).hard(), (third * third + one).hard());
}

/// Kahan's sum of two terms, and of zeros behind them.
float KahanOfTwo(float x, float y, int zeros) {
  float sum = 0, lost = 0;
  for (int i = 0; i < 2 + zeros; ++i) {
    const float term = (i == 0 ? x : i == 1 ? y : 0.0f) - lost;
    const float next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  return sum;
}

TEST(Bounded, WhatKahanCarriesPastTwoTermsIsHonestAndNothingElseIs) {
  Rng rng(31);
  int beyond_one_rounding = 0, allowed_more = 0;  // Of all sums.
  constexpr int kRounds = 200'000;
  for (int round = 0; round < kRounds; ++round) {
    const auto scale = static_cast<float>(std::exp2(rng.Between(-3, 3)));
    const auto x = static_cast<float>(rng.Normal()), y = scale * static_cast<float>(rng.Normal());
    const Honest sum = Honest(f32{x}) + Honest(f32{y});
    const double half = F32Format::ulp(sum.v) / 2;
    double worst = 0;
    for (const int zeros : {0, 1, 2, 14}) {
      for (const float got : {KahanOfTwo(x, y, zeros), KahanOfTwo(y, x, zeros)})
        worst = std::max(worst, std::fabs(static_cast<double>(got) - sum.v));
    }
    ASSERT_LE(worst, sum.hard()) << x << " + " << y;
    ASSERT_LE(sum.hard(), 1.5 * half);
    beyond_one_rounding += worst > half;
    allowed_more += sum.hard() > half;
  }
  EXPECT_GT(beyond_one_rounding, 0);
  // Most sums may be rounded once, and no further; the others are those where that happens.
  EXPECT_LT(allowed_more, kRounds / 8);
  EXPECT_LE(allowed_more, beyond_one_rounding + beyond_one_rounding / 50);
}

TEST(Bounded, TwoTermsAreRoundedOnce) {
  Rng rng(29);
  for (int round = 0; round < 20000; ++round) {
    const auto x = static_cast<float>(rng.Normal()), y = static_cast<float>(rng.Normal());
    const auto sum = Bounded<F32Contract>(f32{x}) + Bounded<F32Contract>(f32{y});
    ASSERT_LE(std::fabs(static_cast<double>(x + y) - sum.v), sum.hard());
    // Where terms differ in sign, nothing is carried.
    if (x * y < 0) {
      ASSERT_LE(sum.hard(), F32Format::ulp(sum.v) / 2);
    }
    const auto product = Bounded<F32Contract>(f32{x}) * Bounded<F32Contract>(f32{y});
    ASSERT_LE(std::fabs(static_cast<double>(x * y) - product.v), product.hard());
    ASSERT_LE(product.hard(), F32Format::ulp(product.v) / 2 + 0x1p-126);
  }
}

TEST(Bounded, ProductsOfThreeMayBeTakenInAnyOrder) {
  Rng rng(43);
  int beyond_one_rounding = 0;
  for (int round = 0; round < 20000; ++round) {
    // The product of the first two is exact, that of the others is not.
    const auto x = static_cast<float>(rng.Between(-8, 8)),
               y = static_cast<float>(rng.Between(1, 8));
    const auto z = static_cast<float>(rng.Normal());
    const Honest truth = Honest(f32{x}) * Honest(f32{y}) * Honest(f32{z});
    for (const float got : {(x * y) * z, x * (y * z), (x * z) * y}) {
      const double error = std::fabs(static_cast<double>(got) - truth.v);
      ASSERT_LE(error, truth.hard());
      if (error > F32Format::ulp(truth.v) / 2) ++beyond_one_rounding;
    }
  }
  EXPECT_GT(beyond_one_rounding, 0);
}

TEST(Bounded, ExactScoresAreRoundedWhereTheyAreKeptInPowersOfTwo) {
  // exp(a - b) as exp2(a log2(e) - b log2(e)), products rounded: large scores err, equal ones do not.
  constexpr float kLog2e = 1.44269504f;
  Rng rng(19);
  int beyond_exact = 0;
  for (int round = 0; round < 1000; ++round) {
    const auto a = static_cast<float>(rng.Below(2000));
    const float b = a + static_cast<float>(rng.Below(8));
    const Honest exact = exp(Honest(f32{a}) - Honest(f32{b}));
    const Honest kept = exp(may_rescale(Honest(f32{a})) - may_rescale(Honest(f32{b})));
    const volatile float scaled_a = a * kLog2e, scaled_b = b * kLog2e;
    const double error = std::fabs(std::exp2(static_cast<double>(scaled_a - scaled_b)) - kept.v);
    ASSERT_LE(error, kept.hard()) << a << " " << b;
    if (error > exact.hard()) ++beyond_exact;
  }
  EXPECT_GT(beyond_exact, 100);
  EXPECT_EQ(may_rescale(Honest(0)).hard(), 0);
}

TEST(Bounded, IndependentErrorsStaySoThroughAQuotient) {
  const Bounded<F32Contract> share = may_round_to<bf16>(Bounded<F32Contract>(1.0 / 3));
  const Bounded<F32Contract> quotient = share / Bounded<F32Contract>(4.0);
  EXPECT_NEAR(std::sqrt(quotient.w), std::sqrt(share.w) / 4, 1e-9);
  EXPECT_LT(quotient.correlated(), std::sqrt(quotient.w) / 1000);
}

TEST(Bounded, AllowedRoundingsAddUpLikeIndependentErrors) {
  Rng rng(18);
  double squares = 0, limits = 0;
  for (int round = 0; round < 50; ++round) {
    Honest sum = 0;
    double rounded = 0;
    for (int i = 0; i < 1000; ++i) {
      const Honest p = f32{static_cast<float>(rng.Unit())};
      const Honest v = f32{static_cast<float>(rng.Normal())};
      sum += may_round_to<bf16>(p) * v;
      rounded += Bf16Format::nearest(p.v) * v.v;
    }
    ASSERT_LE(std::fabs(rounded - sum.v), sum.hard());
    squares += (rounded - sum.v) * (rounded - sum.v);
    limits += sum.typical() * sum.typical();
  }
  EXPECT_LT(squares, limits);
  EXPECT_GT(squares, limits / 25);
}

TEST(Bounded, ProbabilitiesMayBeRoundedBeforeOrAfterTheDivisionOrOverTheLargestSoFar) {
  Rng rng(47);
  int beyond_before = 0, beyond_both = 0;
  for (int round = 0; round < 2000; ++round) {
    const Honest p = f32{static_cast<float>(rng.Below(4) == 0 ? 1 : rng.Unit())};
    const Honest sum = f32{static_cast<float>(1 + rng.Unit() * 30)};
    const Honest either = may_round_to<bf16>(p, sum);
    const double before = std::fabs(Bf16Format::nearest(p.v) - p.v);
    const double after = std::fabs(Bf16Format::nearest(p.v / sum.v) * sum.v - p.v);
    ASSERT_LE(before, either.hard());
    ASSERT_LE(after, either.hard() * (1 + 1e-12));
    // A pass over the keys rounds what it has over the largest score so far, and scales it afterwards.
    const double scale = std::exp(rng.Unit() * 5);
    const double passing = std::fabs(Bf16Format::nearest(p.v * scale) / scale - p.v);
    if (p.v != 1) {
      ASSERT_LE(passing, either.hard() * (1 + 1e-12));
    }
    // And no more: half an ulp where ulps are coarsest.
    ASSERT_LE(either.hard(), p.v * 0x1p-8 * (1 + 1e-6));
    if (p.v != 1 && passing > std::max(before, after)) ++beyond_both;
    if (after > may_round_to<bf16>(p).hard()) ++beyond_before;
  }
  EXPECT_GT(beyond_before, 0);
  EXPECT_GT(beyond_both, 0);
  // One key alone has the probability 1, either way.
  EXPECT_EQ(may_round_to<bf16>(Honest(1), Honest(1)).hard(), 0);
}

TEST(Bounded, SelectionsWithinTheErrorAllowBothSides) {
  const Honest a = Honest::result(1, 0.1, 0.1, 0, -1), b = Honest::result(1.05, 0.1, 0.1, 0, -1),
               c = Honest(2);
  EXPECT_EQ(select_less(a, c, Honest(5), Honest(9)).hard(), 0);
  EXPECT_GE(select_less(a, b, Honest(5), Honest(9)).hard(), 4);
}

}  // namespace
}  // namespace assay::ops
