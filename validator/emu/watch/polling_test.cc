// Warps that wait: what they wait for comes, under all schedules and with old values, and waiting costs
// next to nothing where it can be told from going on.
#include <gtest/gtest.h>

#include <tuple>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using Policy = Schedule::Policy;

/// Policy, and what part of loads return old values.
class Polls : public ::testing::TestWithParam<std::tuple<Policy, std::uint32_t>> {
 protected:
  Polls() : run_(TestRun::TestData("polls.ptx")) {
    const std::vector<double> ones(256, 1.0);
    x_ = run_.Buffer("x", DType::kI32, ones);
    y_ = run_.Zeros("y", DType::kI32, 512);
    run_.execution.schedule = {
        .policy = std::get<0>(GetParam()), .seed = 3, .stale = std::get<1>(GetParam())};
  }
  Report Run(const char* entry, std::uint32_t blocks, std::uint32_t threads, int n) {
    run_.AddLaunch(entry, {blocks, 1, 1}, {threads, 1, 1},
                   {TestRun::Ptr(x_), TestRun::Ptr(y_), TestRun::Int(n)});
    // All are there at once, so that all wait.
    run_.execution.launches.back().cooperative = true;
    const Report report = run_.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    return report;
  }

  TestRun run_;
  std::uint32_t x_ = 0, y_ = 0;
};

// 128 blocks whose turns take 4,000 instructions each: those who wait would run a hundred times as
// many.
TEST_P(Polls, WaitingForATicketCostsLittle) {
  const Report report = Run("tickets", 128, 32, 400);
  EXPECT_EQ(run_.At(y_, 2), 128 * 400);
  EXPECT_LT(report.counters.warp_steps, 128u * 4'000u * 4u);
}

TEST_P(Polls, WaitingByExchangeCostsLittle) {
  const Report report = Run("exchanges", 64, 32, 400);
  EXPECT_EQ(run_.At(y_, 2), 64 * 400);
  EXPECT_LT(report.counters.warp_steps, 64u * 4'000u * 4u);
}

TEST_P(Polls, WaitingForItsBlockCostsLittle) {
  const Report report = Run("for_its_block", 128, 64, 400);
  EXPECT_EQ(run_.At(y_, 2), 128 * 400);
  EXPECT_LT(report.counters.warp_steps, 128u * 2u * 4'000u * 4u);
}

TEST_P(Polls, EitherOfTwoWordsWakes) {
  Run("either", 6, 32, 20'000);
  EXPECT_EQ(run_.At(y_, 2), 1);
}

TEST_P(Polls, WordsOfTheBlockWake) {
  Run("within_a_block", 3, 64, 5'000);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(run_.At(y_, i), 5'000);
}

// The twin: nobody can know that it will not do something at its thousandth look.
TEST_P(Polls, WhoCountsItsLooksGoesOnLooking) {
  Run("counts_looks", 4, 32, 20'000);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GT(run_.At(y_, i), 1);
}

TEST_P(Polls, WhatIsThereInTheEndIsSeen) {
  Run("back_and_forth", 8, 32, 3'000);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(run_.At(y_, i), 1);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Polls,
                         testing::Combine(testing::Values(Policy::kSequential, Policy::kReversed,
                                                          Policy::kPermuted, Policy::kPriorities),
                                          testing::Values(0u, 50u, 100u)));

}  // namespace
}  // namespace assay::emu
