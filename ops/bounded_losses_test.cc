// What sums and products lose whole: terms below half an ulp of their sum, and subnormal factors (assay/bounded.cuh).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/rng.h"
#include "ops/reference_on_host.h"

namespace assay::ops {
namespace {

using Honest = Bounded<F32Contract>;
struct Dependent : F32Contract {
  static bool independent() { return false; }
};
struct Lanes : F32Contract {
  static double lanes() { return 32; }
};

/// Exponentials of normal numbers: most are tiny beside a few.
std::vector<float> Exponentials(Rng& rng, std::size_t count, double spread) {
  std::vector<float> terms;
  for (std::size_t i = 0; i < count; ++i) {
    terms.push_back(static_cast<float>(std::exp(spread * rng.Normal())));
  }
  return terms;
}
float InARow(const std::vector<float>& terms) {
  float sum = 0;
  for (const float term : terms) sum += term;
  return sum;
}
/// What a reference adds up, one lane or 32 of them.
template <class C>
Bounded<C> Added(const std::vector<float>& terms, std::size_t lanes) {
  std::vector<Bounded<C>> parts(lanes);
  for (std::size_t i = 0; i < terms.size(); ++i) parts[i % lanes] += Bounded<C>(f32{terms[i]});
  for (std::size_t distance = lanes / 2; distance > 0; distance /= 2) {
    for (std::size_t i = 0; i < distance; ++i) parts[i] = parts[i] + parts[i + distance];
  }
  return parts[0];
}
template <class C>
double Chance(const Bounded<C>& sum) {
  return C::lambda * std::sqrt(sum.n - 1) * Bounded<C>::kUnit * sum.a;
}

TEST(BoundedLosses, WhatASumAbsorbsIsNoChance) {
  Rng rng(61);
  int beyond_chance = 0, beyond_without_lanes = 0;
  for (int round = 0; round < 24; ++round) {
    const std::vector<float> terms = Exponentials(rng, 20'000U << (round % 3), 3);
    const auto one = Added<F32Contract>(terms, 1);
    const auto shared = Added<Lanes>(terms, 32);
    const double error = std::fabs(static_cast<double>(InARow(terms)) - one.v);
    ASSERT_LE(error, one.hard());
    ASSERT_LE(error, 4 * one.typical());
    // Each lane has a 32nd of the sum; what one that adds all up would have lost is charged all the same.
    ASSERT_LE(error, shared.hard());
    ASSERT_LE(error, 4 * shared.typical());
    if (error > Chance(one)) ++beyond_chance;
    if (error > Added<F32Contract>(terms, 32).hard()) ++beyond_without_lanes;
    // Not without measure: some five times what chance may do, where (n - 1) u a is fifty times that.
    EXPECT_LT(one.hard(), 10 * Chance(one));
  }
  EXPECT_GT(beyond_chance, 0);
  EXPECT_GT(beyond_without_lanes, 0);
}

TEST(BoundedLosses, TermsLikeTheOthersAreChargedAsChance) {
  Rng rng(67);
  std::vector<float> terms;
  for (int i = 0; i < 60'000; ++i) terms.push_back(static_cast<float>(1 + rng.Unit()));
  for (const Honest& sum : {Added<F32Contract>(terms, 1), Added<F32Contract>(terms, 32)}) {
    EXPECT_EQ(sum.e, 0);
    EXPECT_EQ(sum.hard(), Chance(sum));
  }
  EXPECT_EQ(Added<Lanes>(terms, 32).e, 0);
  // Where roundings are taken to conspire, n - 1 covers what is absorbed.
  EXPECT_EQ(Added<Dependent>(Exponentials(rng, 20'000, 3), 1).e, 0);
}

TEST(BoundedLosses, SumsOfTwoAreRoundedOnce) {
  const Honest sum = Honest(f32{1.0f}) + Honest(f32{0x1p-40f});
  EXPECT_EQ(sum.e, 0);
  EXPECT_LE(sum.hard(), 0x1p-24);
}

TEST(BoundedLosses, ExactSumsStayExact) {
  std::vector<float> terms(1000, 1.0f);
  terms[3] = 0x1.8p+23f;
  const auto one = Added<F32Contract>(terms, 1);
  EXPECT_TRUE(one.exact_sum());
  EXPECT_EQ(one.hard(), 0);
  // Of a lane's part a 32nd of the range is sure to stay exact with the others' parts.
  terms[3] = 0x1.8p+18f;
  EXPECT_EQ(Added<Lanes>(terms, 32).hard(), 0);
}

TEST(BoundedLosses, ASubnormalFactorMayBeFlushed) {
  const float small = 0x1.8p-127f, large = 1.7f;
  const Honest product = Honest(f32{large}) * Honest(f32{small});
  ASSERT_GT(product.v, 0x1p-126);
  EXPECT_GE(product.hard(), product.v);
  // Powers of two make exact products, which may be flushed as well.
  EXPECT_GE((Honest(f32{4.0f}) * Honest(f32{small})).hard(), 4.0 * static_cast<double>(small));
  const Honest quotient = Honest(f32{small}) / Honest(f32{0.125f});
  EXPECT_GE(quotient.hard(), quotient.v);
  // The same result of normal factors is rounded, or flushed where it is subnormal itself.
  const Honest normal = Honest(f32{0x1p-100f}) * Honest(f32{0x1.9p-26f});
  EXPECT_LE(normal.hard(), 0x1.1p-126);
  EXPECT_EQ((Honest(f32{0x1p-100f}) * Honest(f32{0x1.8p-24f})).hard(), 0);
}

float Kahan(const std::array<float, 3>& terms) {
  volatile float sum = 0, lost = 0;
  for (const float term : terms) {
    const volatile float corrected = term - lost;
    const volatile float next = sum + corrected;
    const volatile float gained = next - sum;
    lost = gained - corrected;
    sum = next;
  }
  return sum;
}

TEST(BoundedLosses, KahanSumsOfTwoProductsRoundOnceMore) {
  Rng rng(71);
  int beyond_one_rounding = 0;
  for (int round = 0; round < 300'000; ++round) {
    std::array<float, 4> x{};
    for (float& each : x) each = static_cast<float>(rng.Normal());
    const Honest sum =
        Honest(f32{x[0]}) * Honest(f32{x[1]}) + Honest(f32{x[2]}) * Honest(f32{x[3]});
    const volatile float first = x[0] * x[1], second = x[2] * x[3];
    const double error = std::fabs(static_cast<double>(Kahan({first, second, 0})) - sum.v);
    ASSERT_LE(error, sum.hard());
    if (error > sum.e + Honest::half_ulp(sum.v, sum.e)) ++beyond_one_rounding;
    // No more than a quarter of an ulp for it.
    ASSERT_LE(sum.hard(), sum.e + Honest::half_ulp(sum.v, sum.e) + F32Format::ulp(sum.v) / 4);
  }
  EXPECT_GT(beyond_one_rounding, 0);
}

TEST(BoundedLosses, CastsOfEqualProbabilitiesConspire) {
  Rng rng(73);
  double equal = 0, different = 0, different_limits = 0;
  for (int round = 0; round < 200; ++round) {
    for (const bool same : {true, false}) {
      const int keys = 12 + static_cast<int>(rng.Below(50));
      std::vector<Honest> weights;
      Honest total = 0, sum = 0;
      for (int i = 0; i < keys; ++i) {
        weights.push_back(Honest(f32{same ? 1.0f : static_cast<float>(0.1 + rng.Unit())}));
        total += weights.back();
      }
      double got = 0;
      for (const Honest& weight : weights) {
        const Honest value = f32{static_cast<float>(200 + rng.Normal())};
        sum += may_round_to<f16>(weight, total) * value;
        got += F16Format::nearest(weight.v / total.v) * value.v;
      }
      const Honest result = sum / total;
      const double error = std::fabs(got - result.v);
      ASSERT_LE(error, result.hard());
      // The part that rows of elements have in common, and the part that they have not.
      const double common = result.typical() - std::sqrt(result.w);
      ASSERT_LE(error, common + std::sqrt(result.w) * 1.001);
      (same ? equal : different) = std::max(same ? equal : different, error / std::sqrt(result.w));
      if (!same) different_limits += common / std::sqrt(result.w) / 200;
    }
  }
  // Seven standard deviations are exceeded where all are rounded alike, not where they are rounded
  // each for itself; there hardly anything is common.
  EXPECT_GT(equal, 7);
  EXPECT_LT(different, 5);
  EXPECT_LT(different_limits, 0.4);
}

struct Bfloats : F32Contract {
  static constexpr bool tensor_cores = true;
};
struct Halves : Bfloats {
  static constexpr bool half_inputs = true;
};

/// One step of a tensor core: products are aligned by the exponents of their factors, a subnormal f16 having that of the
/// least normal one, and keep 24 bits below the largest; the sum is cut to f32.
double StepOf(const std::vector<std::array<float, 2>>& factors) {
  const auto exponent = [](float x) { return std::max(std::ilogb(x), -14); };
  int top = -1000;
  for (const auto& [x, y] : factors) {
    if (x != 0 && y != 0) top = std::max(top, exponent(x) + exponent(y));
  }
  const double unit = std::ldexp(1.0, top - 23);
  double sum = 0;
  for (const auto& [x, y] : factors)
    sum += std::trunc(static_cast<double>(x) * static_cast<double>(y) / unit) * unit;
  return sum;
}
template <class C>
Bounded<C> SumOfProducts(const std::vector<std::array<float, 2>>& factors) {
  Bounded<C> sum = 0;
  for (const auto& [x, y] : factors) sum = sum + Bounded<C>(f32{x}) * Bounded<C>(f32{y});
  return sum;
}

TEST(BoundedLosses, ATensorCoreAlignsSubnormalFactorsAsTheLeastNormalOne) {
  Rng rng(71);
  int beyond = 0;
  for (int round = 0; round < 200; ++round) {
    // -16384 times a subnormal number, among products of ordinary size: 1/512 is aligned as if it were 1.
    std::vector<std::array<float, 2>> factors = {{-16384.0F, 0x1p-23F}};
    for (int i = 0; i < 15; ++i)
      factors.push_back({static_cast<float>(std::ldexp(rng.Normal(), -11)),
                         static_cast<float>(std::ldexp(rng.Normal(), -11))});
    const auto halves = SumOfProducts<Halves>(factors);
    const double error = std::fabs(StepOf(factors) - halves.v);
    ASSERT_LE(error, halves.hard()) << round;
    beyond += error > SumOfProducts<Bfloats>(factors).hard() ? 1 : 0;
  }
  EXPECT_GT(beyond, 100) << "what other sums are charged is too little";
  const auto normal = Bounded<Halves>(f32{0x1p-14F}) * Bounded<Halves>(f32{3.0F});
  EXPECT_EQ(normal.e, 0) << "normal factors lose nothing";
}

}  // namespace
}  // namespace assay::ops
