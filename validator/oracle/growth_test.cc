#include "validator/oracle/growth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace assay::oracle {
namespace {

// Sums of positive terms in f32, in order, rounded to nearest or towards zero.
Growth SumsOf(bool truncate, std::uint64_t seed) {
  Growth growth;
  Rng rng(seed);
  for (std::size_t length = 4; length <= 2048; length *= 2) {
    for (int repeat = 0; repeat < 60; ++repeat) {
      double truth = 0, squares = 0;
      float sum = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const auto term = static_cast<float>(1 + rng.Unit());
        truth += static_cast<double>(term);
        squares += static_cast<double>(term) * static_cast<double>(term);
        const double exact = static_cast<double>(sum) + static_cast<double>(term);
        sum = static_cast<float>(exact);
        if (truncate && static_cast<double>(sum) > exact) sum = std::nextafter(sum, 0.0f);
      }
      const double typical =
          0x1p-24 * std::sqrt(static_cast<double>(length - 1) * (truth * truth + squares));
      growth.Add({.length = static_cast<double>(length),
                  .error = static_cast<double>(sum) - truth,
                  .ideal = static_cast<double>(static_cast<float>(truth)) - truth,
                  .typical = typical});
    }
  }
  return growth;
}

TEST(Growth, RoundingToNearestGrowsLikeASquareRoot) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto fit = SumsOf(false, seed).Fit();
    ASSERT_TRUE(fit.has_value());
    EXPECT_LT(fit->exponent, 0.5 + 4 * fit->standard_error) << seed;
    EXPECT_GT(fit->exponent, 0.3) << seed;
    EXPECT_LT(fit->in_typicals, 1);
    EXPECT_GE(fit->octaves, 6);
  }
}

TEST(Growth, TruncationGrowsLikeTheLength) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto fit = SumsOf(true, seed).Fit();
    ASSERT_TRUE(fit.has_value());
    EXPECT_GT(fit->exponent, 0.5 + 4 * fit->standard_error) << seed;
    EXPECT_NEAR(fit->exponent, 1, 0.15) << seed;
    EXPECT_GT(fit->in_typicals, 1);
  }
}

TEST(Growth, BinsAddUpOverCases) {
  Growth all = SumsOf(false, 1);
  const double alone = all.Fit()->standard_error;
  for (std::uint64_t seed = 2; seed <= 9; ++seed) all.Merge(SumsOf(false, seed));
  EXPECT_LT(all.Fit()->standard_error, alone);
}

TEST(Growth, NothingIsFittedToOneLengthOrToPerfectResults) {
  Growth one;
  for (int i = 0; i < 1000; ++i)
    one.Add({.length = 64, .error = 1e-6, .ideal = 0, .typical = 1e-6});
  EXPECT_FALSE(one.Fit().has_value());
  Growth perfect;
  for (int i = 0; i < 1000; ++i) {
    perfect.Add(
        {.length = static_cast<double>(2 + i), .error = 1e-3, .ideal = 1e-3, .typical = 1e-7});
  }
  EXPECT_FALSE(perfect.Fit().has_value());
}

}  // namespace
}  // namespace assay::oracle
