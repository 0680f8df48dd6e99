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

/// Four rows of 64, each off by what one rounding of the factors of its own terms may do.
OutputTruth RowsOfSharedDraws(std::int64_t rows) {
  constexpr std::int64_t kColumns = 64;
  OutputTruth truth;
  truth.shape = {rows, kColumns};
  truth.dtype = DType::kBF16;
  const double ulp = UlpAt(DType::kBF16, 1);
  for (std::int64_t i = 0; i < rows * kColumns; ++i)
    truth.value.push_back(1 +
                          ulp * (static_cast<double>(i % 97) / 97 + static_cast<double>(i % 89)));
  const std::size_t count = truth.value.size();
  truth.allowance.assign(count, ulp);
  truth.typical.assign(count, 0.1 * ulp);
  truth.independent.assign(count, 0.1 * ulp);
  truth.contributions.assign(count, 8);
  return truth;
}

BiasSums BiasOf(const OutputTruth& truth, double (*off_by)(std::int64_t row)) {
  const double ulp = UlpAt(DType::kBF16, 1);
  Tensor got = *Tensor::Create(DType::kBF16, truth.shape);
  for (std::int64_t i = 0; i < got.elements; ++i)
    got.Set(i, truth.value[static_cast<std::size_t>(i)] + ulp * off_by(i / truth.shape[1]));
  return GroupErrors(truth, got).bias;
}

// A row's probabilities are rounded once, for all columns: three rows of four, whose draws are two standard deviations
// down, are chance; a quarter of an ulp off everywhere, over many rows, is none.
TEST(Bias, ARowIsOneDraw) {
  const BiasSums chance =
      BiasOf(RowsOfSharedDraws(4), [](std::int64_t row) { return row == 0 ? 0.1 : -0.2; });
  EXPECT_LT(chance.Mean(), -0.1);
  EXPECT_LE(-chance.Mean(), chance.Limit());
  const BiasSums biased = BiasOf(RowsOfSharedDraws(64), [](std::int64_t) { return -0.25; });
  EXPECT_GT(-biased.Mean(), biased.Limit());
  const BiasSums truncated = BiasOf(RowsOfSharedDraws(8), [](std::int64_t) { return -0.5; });
  EXPECT_GT(-truncated.Mean(), truncated.Limit());
}

TEST(Bias, RowsThatAreTheSameAreToldFromRowsThatAreNot) {
  OutputTruth truth = RowsOfSharedDraws(6);
  EXPECT_FALSE(RowsRepeat(truth));
  for (std::size_t i = 64; i < truth.value.size(); ++i) truth.value[i] = truth.value[i % 64];
  EXPECT_TRUE(RowsRepeat(truth));
  // Without casts that are allowed, nothing is level.
  truth.independent.assign(truth.value.size(), 0);
  EXPECT_FALSE(RowsRepeat(truth));
}

TEST(Bias, TheLimitOfManyStepsIsThatOfTheNormalDistribution) {
  const BiasSums bias{.sum = 0, .typical = 0, .variance = 1e6, .elements = 1e6};
  EXPECT_NEAR(bias.Limit() * 1e6 / 1e3, 6.48, 0.02);
}

}  // namespace
}  // namespace assay::oracle
