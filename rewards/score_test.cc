#include "rewards/score.h"

#include <gtest/gtest.h>

#include "runs/testing/fakes.h"

namespace assay::rewards {
namespace {

Score Of(const std::string& words) {
  return ScoreOf(testing::VerdictOf(testing::RmsNorm(), {.kernel = "k", .launch = "{}"}, words));
}

TEST(Score, OnlyAcceptanceEarnsAll) {
  EXPECT_EQ(Of("accept").reward, 1.0);
  EXPECT_TRUE(Of("accept").conclusive);
  for (const char* const gate : {"format", "compile", "memory", "race", "numeric", "holdout"})
    EXPECT_LT(Of(std::string("refute ") + gate + " wrong_value").reward, 1.0) << gate;
}

TEST(Score, TheFurtherTheMore) {
  double before = -1;
  for (const char* const gate :
       {"format", "policy", "compile", "memory", "race", "numeric", "precision", "holdout"}) {
    const Score score = Of(std::string("refute ") + gate + " wrong_value");
    ASSERT_TRUE(score.reward);
    EXPECT_GT(*score.reward, before) << gate;
    before = *score.reward;
    EXPECT_EQ(score.gates.back().reward, 0.0);
  }
}

TEST(Score, NothingIsEarnedBehindARefutation) {
  verdict::Verdict verdict = testing::VerdictOf(testing::RmsNorm(), {.kernel = "k", .launch = "{}"},
                                                "refute race data_race");
  const double before = *ScoreOf(verdict).reward;
  verdict::GateResult numeric;
  numeric.gate = "numeric";
  numeric.status = verdict::GateStatus::kPassed;
  verdict.gates.push_back(numeric);
  EXPECT_EQ(*ScoreOf(verdict).reward, before);
  EXPECT_EQ(ScoreOf(verdict).gates.back().reward, 1.0);
}

// One campaign serves memory, race, numeric and precision: what refutes one of them ends it for all.
TEST(Score, WhatHadFoundNothingUntilTheRefutationEarnsHalf) {
  verdict::Verdict judged = testing::VerdictOf(testing::RmsNorm(), {.kernel = "k", .launch = "{}"},
                                               "refute numeric wrong_value");
  const double passed = *ScoreOf(judged).reward;
  for (verdict::GateResult& result : judged.gates) {
    if (result.gate == "memory" || result.gate == "race")
      result.status = verdict::GateStatus::kInconclusive;
  }
  EXPECT_DOUBLE_EQ(*ScoreOf(judged).reward, passed - (WeightOf("memory") + WeightOf("race")) / 2);
  EXPECT_GT(*ScoreOf(judged).reward, *Of("refute memory out_of_bounds").reward);
}

TEST(Score, WhatIsNotDecidedIsSaid) {
  const Score open = Of("inconclusive");
  EXPECT_FALSE(open.conclusive);
  ASSERT_TRUE(open.reward);
  EXPECT_LT(*open.reward, 1.0);
  EXPECT_EQ(open.gates.back().reward, std::nullopt);
  EXPECT_EQ(Of("internal").reward, std::nullopt);
}

}  // namespace
}  // namespace assay::rewards
