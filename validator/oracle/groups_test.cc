// Biases: chance tips a rounding now and then, even where that is rare; a kernel that does it every
// time is refuted.
#include "validator/oracle/groups.h"

#include <gtest/gtest.h>

#include "validator/oracle/element.h"

namespace assay::oracle {
namespace {

constexpr std::int64_t kElements = 64;

/// Truths just below the middle between 1 and the next bf16, which an error of a ten-thousandth of
/// an ulp tips with a probability of about 2e-4; `tipped` of the results are.
BiasSums BiasWith(std::int64_t tipped) {
  const double ulp = 0x1p-7;
  OutputTruth truth;
  truth.shape = {1, kElements};
  truth.dtype = DType::kBF16;
  truth.value.assign(kElements, 1 + ulp / 2 * (1 - 1e-6));
  truth.allowance.assign(kElements, ulp);
  truth.typical.assign(kElements, 1e-4 * ulp);
  truth.independent.assign(kElements, 1e-4 * ulp);
  truth.contributions.assign(kElements, 8);
  Tensor got = *Tensor::Create(DType::kBF16, truth.shape);
  for (std::int64_t i = 0; i < kElements; ++i) got.Set(i, i < tipped ? 1 + ulp : 1.0);
  return GroupErrors(truth, got).bias;
}

TEST(Bias, ATippedRoundingIsChance) {
  for (const std::int64_t tipped : {0, 1, 2}) {
    const BiasSums bias = BiasWith(tipped);
    EXPECT_EQ(bias.sum, static_cast<double>(tipped));
    EXPECT_LE(bias.Mean(), bias.Limit()) << tipped;
  }
}

TEST(Bias, MostOfThemTippedIsNot) {
  for (const std::int64_t tipped : {8, 32, 64}) {
    const BiasSums bias = BiasWith(tipped);
    EXPECT_GT(bias.Mean(), bias.Limit()) << tipped;
  }
}

// Truths next to ties fall to the same side together, when a function that all elements share is off
// by no more than it may be: y = (x - mean) * rstd + bias, of rows of two.
TEST(Bias, TiesThatASharedErrorTipsAreHonest) {
  const double ulp = UlpAt(DType::kBF16, 1);
  for (const bool within : {true, false}) {
    OutputTruth truth;
    truth.shape = {1, 64};
    truth.dtype = DType::kBF16;
    truth.value.assign(64, 1.1);
    // Sixteen are a hair below a tie: within the error that all share, or beyond it.
    for (std::size_t i = 0; i < 64; i += 4)
      truth.value[i] = 1 + ulp / 2 - (within ? 1e-4 : 1e-3) * ulp;
    truth.allowance.assign(64, ulp);
    truth.typical.assign(64, 1e-4 * ulp);
    truth.independent.assign(64, 0);
    truth.contributions.assign(64, 2);
    Tensor got = *Tensor::Create(DType::kBF16, truth.shape);
    for (std::int64_t i = 0; i < 64; ++i)
      got.Set(i, i % 4 == 0 ? 1 + ulp : Rounded(DType::kBF16, 1.1));
    const BiasSums bias = GroupErrors(truth, got).bias;
    EXPECT_EQ(bias.sum, 16);
    EXPECT_EQ(bias.Mean() <= bias.Limit(), within);
    EXPECT_EQ(bias.MeanTowardZero() <= bias.Limit(), within);
  }
}

TEST(Bias, TheLimitOfManyStepsIsThatOfTheNormalDistribution) {
  const BiasSums bias{.sum = 0, .typical = 0, .variance = 1e6, .elements = 1e6};
  EXPECT_NEAR(bias.Limit() * 1e6 / 1e3, 6.48, 0.02);
}

}  // namespace
}  // namespace assay::oracle
