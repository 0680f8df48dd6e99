// The prelude's further functions and its decisions (assay/functions.cuh), against f32 twins.
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "ops/reference_on_host.h"

namespace assay::ops {
namespace {

using Honest = Bounded<F32Contract>;
struct Exactly : F32Contract {
  static constexpr bool approximate = false;
};
using Careful = Bounded<Exactly>;

// A number with an error of its own, and what f32 makes of it.
struct Pair {
  Honest truth;
  float got;
};
Pair Product(Rng& rng, double scale) {
  const auto a = static_cast<float>(rng.Normal() * scale), b = static_cast<float>(rng.Normal());
  return {Honest(f32{a}) * Honest(f32{b}), a * b};
}

template <class N>
N square_plus(const N& x) {
  return x * x + N(0.75);
}

TEST(Functions, BoundTheirFloatTwins) {
  Rng rng(31);
  for (int i = 0; i < 20000; ++i) {
    const Pair x = Product(rng, 3);
    const auto check = [&](const Honest& truth, float got, const char* what) {
      ASSERT_LE(std::fabs(static_cast<double>(got) - truth.v), truth.hard())
          << what << " of " << x.got;
      ASSERT_LT(truth.hard(), 1e-4 * (1 + std::fabs(truth.v))) << what << " of " << x.got;
      ASSERT_LE(truth.typical(), truth.hard()) << what << " of " << x.got;
    };
    check(sin(x.truth), std::sin(x.got), "sin");
    check(cos(x.truth), std::cos(x.got), "cos");
    check(atan(x.truth), std::atan(x.got), "atan");
    check(expm1(x.truth), std::expm1(x.got), "expm1");
    check(asinh(x.truth), std::asinh(x.got), "asinh");
    const Pair y = Product(rng, 1);
    check(atan2(square_plus(y.truth), x.truth), std::atan2(square_plus(y.got), x.got), "atan2");
    // Away from the ends, where the slopes have none.
    const Honest inner = x.truth / (Honest(1) + abs(x.truth));
    const float within = x.got / (1.0f + std::fabs(x.got));
    if (std::fabs(within) < 0.97f) {
      check(asin(inner), std::asin(within), "asin");
      check(acos(inner), std::acos(within), "acos");
      check(atanh(inner), std::atanh(within), "atanh");
    }
    check(acosh(square_plus(x.truth) + Honest(0.5)), std::acosh(square_plus(x.got) + 0.5f),
          "acosh");
    check(sigmoid(x.truth), 1.0f / (1.0f + std::exp(-x.got)), "sigmoid");
    check(softplus(x.truth), std::fmax(x.got, 0.0f) + std::log1p(std::exp(-std::fabs(x.got))),
          "softplus");
    const Honest square = x.truth * x.truth;
    const float squared = x.got * x.got;
    check(log1p(square), std::log1p(squared), "log1p");
    check(log2(square + Honest(0.25)), std::log2(squared + 0.25f), "log2");
    check(log10(square + Honest(0.25)), std::log10(squared + 0.25f), "log10");
    check(pow(square + Honest(0.5), Honest(0.75)), std::pow(squared + 0.5f, 0.75f), "pow");
  }
}

TEST(Functions, AreRight) {
  EXPECT_NEAR(asin(Honest(1)).v, 1.5707963267948966, 1e-15);
  EXPECT_NEAR(acos(Honest(-1)).v, 3.141592653589793, 1e-15);
  EXPECT_NEAR(atan2(Honest(-1), Honest(-1)).v, -2.356194490192345, 1e-15);
  EXPECT_EQ(acosh(Honest(1)).v, 0);
  EXPECT_NEAR(erfinv(Honest(0.5)).v, 0.47693627620446987, 1e-15);
  EXPECT_NEAR(erfinv(Honest(-0.999)).v, -2.326753765513524, 1e-13);
  EXPECT_TRUE(std::isinf(erfinv(Honest(1)).v));
  EXPECT_EQ(sigmoid(Honest(0)).v, 0.5);
  EXPECT_NEAR(softplus(Honest(-40)).v, 4.248354255291589e-18, 1e-32);
  EXPECT_EQ(floor(Honest(-2.5)).v, -3);
  EXPECT_EQ(ceil(Honest(-2.5)).v, -2);
  EXPECT_EQ(round(Honest(2.5)).v, 2) << "ties to even";
  EXPECT_EQ(trunc(Honest(-2.5)).v, -2);
  EXPECT_EQ(sign(Honest(-2.5)).v, -1);
  EXPECT_EQ(pow(Honest(0), Honest(2)).v, 0);
  EXPECT_EQ(pow(Honest(0), Honest(2)).hard(), 0);
  EXPECT_EQ(pow(Honest(-2), Honest(3)).v, -8);
}

TEST(Functions, AreNoWiderThanTheyNeed) {
  // A wrong twin of each falls outside.
  EXPECT_GT(std::fabs(std::log(1 + 1e-5f) - std::log1p(1e-5)), log1p(Honest(f32{1e-5f})).hard())
      << "log(1 + x) loses small x";
  EXPECT_GT(std::fabs(std::exp(1e-5f) - 1 - std::expm1(1e-5)), expm1(Honest(f32{1e-5f})).hard())
      << "exp(x) - 1 loses small x";
  EXPECT_GT(std::fabs(0.5f + 0.25f * 0.5f - sigmoid(Honest(0.5)).v), sigmoid(Honest(0.5)).hard())
      << "hard sigmoid";
  const Careful careful = sin(Careful(f32{3.0f}));
  EXPECT_LT(careful.hard(), sin(Honest(f32{3.0f})).hard()) << "__sinf only where it is allowed";
  // Far from pi __sinf promises nothing, so that it is not honest there.
  EXPECT_LT(sin(Honest(f32{100.0f})).hard(), 3e-7);
}

TEST(Functions, StepsCoverBothSidesOfAnEdge) {
  const Honest sure = Honest::result(2.5, 0.1, 0.1, 0, -1),
               near = Honest::result(2.95, 0.1, 0.1, 0, -1);
  EXPECT_EQ(floor(sure).hard(), 0);
  EXPECT_EQ(floor(near).v, 2);
  EXPECT_EQ(floor(near).hard(), 1);
  EXPECT_EQ(trunc(near).hard(), 1);
  EXPECT_EQ(round(near).hard(), 0);
  EXPECT_EQ(round(sure).hard(), 1);
  EXPECT_EQ(sign(Honest::result(0.05, 0.1, 0.1, 0, -1)).hard(), 2);
  EXPECT_EQ(sign(near).hard(), 0);
}

TEST(Decisions, AreInDoubtWithinTheErrorAlone) {
  const Honest a = Honest::result(1, 0.1, 0.1, 0, -1), b = Honest::result(1.05, 0.1, 0.1, 0, -1),
               c(2);
  EXPECT_TRUE(less(a, c).sure);
  EXPECT_FALSE(less(a, b).sure);
  EXPECT_TRUE(less(Honest(1), Honest(1)).sure) << "exact numbers are never in doubt";
  EXPECT_FALSE(less(Honest(1), Honest(1)).v);
  EXPECT_TRUE(less_equal(Honest(1), Honest(1)).v);
  EXPECT_TRUE(equal(Honest(0), Honest(0)).v);
  EXPECT_FALSE(equal(a, Honest(1)).sure);
  const Honest infinite = Honest(-INFINITY);
  EXPECT_TRUE(less(infinite, a).sure);
  EXPECT_TRUE(less(infinite, a).v);
  // What one side settles needs no other.
  EXPECT_TRUE((less(a, b) && less(c, a)).sure);
  EXPECT_FALSE((less(a, b) && less(a, c)).sure);
  EXPECT_TRUE((less(a, b) || less(a, c)).sure);
  EXPECT_FALSE((!less(a, b)).sure);
}

TEST(Decisions, SelectCoversWhatIsInDoubt) {
  const Honest a = Honest::result(1, 0.1, 0.1, 0, -1), b = Honest::result(1.05, 0.1, 0.1, 0, -1),
               c(2);
  EXPECT_EQ(select(less(a, c), Honest(5), Honest(9)).v, 5);
  EXPECT_EQ(select(less(a, c), Honest(5), Honest(9)).hard(), 0);
  EXPECT_GE(select(less(a, b), Honest(5), Honest(9)).hard(), 4);
  EXPECT_EQ(select(less(a, b), Honest(5), Honest(5)).hard(), 0) << "both sides are the same";
  // An open sum stays open on its way through a decision that is sure.
  Honest sum = 0;
  for (int i = 0; i < 8; ++i) sum += Honest(f32{0.1f});
  EXPECT_EQ(select(less(a, c), sum, Honest(9)).n, 8);
}

TEST(Functions, ScaledSumsMayBeMultipliedTermByTerm) {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    Honest sum = 0;
    float termwise = 0, plain = 0;
    const auto factor = static_cast<float>(rng.Normal() + 3);
    for (int k = 0; k < 20; ++k) {
      const auto x = static_cast<float>(rng.Normal());
      sum += Honest(f32{x});
      termwise += x * factor;
      plain += x;
    }
    const Honest truth = scaled(sum, Honest(f32{factor}));
    ASSERT_LE(std::fabs(static_cast<double>(termwise) - truth.v), truth.hard());
    ASSERT_LE(std::fabs(static_cast<double>(plain * factor) - truth.v), truth.hard());
  }
  Honest sum = Honest(1) + Honest(2);
  EXPECT_EQ(scaled(sum, Honest(0.5)).hard(), 0) << "a power of two rounds nothing";
}

TEST(Functions, IntegersCountFromTheEndAndRoundDown) {
  EXPECT_EQ(wrapped(-1, 5), 4);
  EXPECT_EQ(wrapped(3, 5), 3);
  EXPECT_EQ(floor_div(-7, 2), -4);
  EXPECT_EQ(floor_mod(-7, 2), 1);
  EXPECT_EQ(floor_div(7, -2), -4);
  EXPECT_EQ(floor_mod(7, -2), -1);
  EXPECT_EQ(floor_div(6, 3), 2);
}

TEST(Functions, RoundedHasThemAll) {
  using Float = Rounded<F32Format>;
  const Float x(f32{0.75f});
  EXPECT_EQ(sin(x).v, F32Format::nearest(std::sin(0.75)));
  EXPECT_EQ(select(less(x, Float(1)), x, Float(1)).v, 0.75);
  EXPECT_EQ(whole(floor(Float(f32{2.5f}))), 2);
  EXPECT_EQ(pow(x, Float(2)).v, 0.5625);
  EXPECT_EQ(scaled(x, Float(2)).v, 1.5);
}

TEST(Functions, AnAngleInDoubtMayBeATurnOff) {
  const Honest doubtful = Honest(0.1) * Honest(0.1) - Honest(0.01);
  EXPECT_GT(atan2(doubtful, Honest(-1)).hard(), 6.28);
  EXPECT_LT(atan2(doubtful, Honest(1)).hard(), 1e-6) << "on the other side there is no jump";
  EXPECT_LT(atan2(Honest(0.25), Honest(-1)).hard(), 2e-6);
}

}  // namespace
}  // namespace assay::ops
