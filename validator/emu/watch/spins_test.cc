// Livelocks, lanes that pass a mask by, and undefined operands that do not matter: each with a twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using Policy = Schedule::Policy;

class Spins : public ::testing::TestWithParam<Policy> {
 protected:
  Spins() : run_(TestRun::TestData("spins.ptx")) {
    std::vector<double> ones(256, 1.0);
    x_ = run_.Buffer("x", DType::kI32, ones);
    y_ = run_.Zeros("y", DType::kI32, 256);
    run_.execution.schedule = {GetParam(), 3};
  }
  Report Run(const char* entry, std::uint32_t blocks, std::uint32_t threads, int n) {
    run_.AddLaunch(entry, {blocks, 1, 1}, {threads, 1, 1},
                   {TestRun::Ptr(x_), TestRun::Ptr(y_), TestRun::Int(n)});
    return run_.Run();
  }
  void ExpectClean(const Report& report) {
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
  }

  TestRun run_;
  std::uint32_t x_ = 0, y_ = 0;
};

TEST_P(Spins, WaitingForABlockThatIsNotThereIsALivelock) {
  const Report report = Run("waits_for_block", 12, 32, 13);
  ASSERT_TRUE(HasFinding(report, FindingKind::kLivelock)) << Show(report);
  const Finding& finding = report.findings.front();
  EXPECT_THAT(finding.message, testing::HasSubstr("spin on y[0], which holds 0"));
  EXPECT_THAT(finding.missing, testing::HasSubstr("11 of 12 blocks have ended"));
  EXPECT_EQ(finding.accesses.front().what, "polls y[0]");
  EXPECT_LT(report.counters.steps, 3'000'000u);
}

TEST_P(Spins, WaitingForALaterBlockIsNot) { ExpectClean(Run("waits_for_block", 400, 32, 400)); }

TEST_P(Spins, LoopsThatCountAreNot) { ExpectClean(Run("gives_up", 1, 32, 20'000)); }

TEST_P(Spins, LongComputationsAreNot) { ExpectClean(Run("computes", 1, 64, 100'000)); }

// How long a loop takes says nothing of whether it ends, whatever the limit is.
TEST_P(Spins, ALimitInTheMiddleOfALongLoopIsNoFinding) {
  for (const std::uint64_t limit : {20'000u, 200'000u, 3'000'000u}) {
    for (const char* const entry : {"computes", "gives_up"}) {
      run_.execution.launches.clear();
      run_.execution.limits.max_steps = limit;
      const Report report = Run(entry, 1, 64, 10'000'000);
      EXPECT_EQ(report.stop, Stop::kStepLimit) << Show(report);
      EXPECT_TRUE(report.findings.empty()) << Show(report);
    }
  }
}

TEST_P(Spins, WhoWaitsAtABarrierIsNamed) {
  const Report report = Run("waits_before_a_barrier", 1, 64, 32);
  ASSERT_TRUE(HasFinding(report, FindingKind::kLivelock)) << Show(report);
  for (const Finding& finding : report.findings) {
    if (finding.kind != FindingKind::kLivelock) continue;
    ASSERT_EQ(finding.accesses.size(), 2u);
    EXPECT_THAT(finding.accesses[1].what, testing::HasSubstr("waits at barrier 0"));
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, Spins,
                         testing::Values(Policy::kSequential, Policy::kReversed, Policy::kPermuted,
                                         Policy::kPriorities));

using Plain = Spins;

TEST_P(Plain, LanesThatPassAMaskByAreReported) {
  const Report report = Run("passes_by", 1, 32, 20);
  ASSERT_EQ(report.findings.size(), 1u) << Show(report);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kBarrierMisuse);
  EXPECT_THAT(report.findings[0].message, testing::HasSubstr("0xfff00000 go on to line"));
}

TEST_P(Plain, LanesThatReturnedBeforeAreNot) { ExpectClean(Run("returns_early", 1, 32, 20)); }

TEST_P(Plain, UndefinedOperandsThatDoNotDecideAreNotReported) {
  ExpectClean(Run("decided", 1, 32, 32));
}

TEST_P(Plain, UndefinedOperandsThatDecideAre) {
  const Report report = Run("decided", 1, 32, 33);
  ASSERT_TRUE(HasFinding(report, FindingKind::kUninitialisedUse)) << Show(report);
  EXPECT_THAT(report.findings[0].missing, testing::HasSubstr("tile[32]"));
}

TEST_P(Plain, AtomicsOntoUndefinedBytesAreReportedOnce) {
  const Report report = Run("adds_to_unset", 1, 32, 1);
  ASSERT_EQ(report.findings.size(), 1u) << Show(report);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kUninitialisedUse);
  EXPECT_THAT(report.findings[0].message, testing::HasSubstr("sum[0], which nothing has written"));
}

TEST_P(Plain, AtomicsOntoDefinedBytesAndExchangesAreNot) {
  ExpectClean(Run("adds_to_unset", 1, 32, 0));
  ExpectClean(Run("exchanges_unset", 1, 32, 0));
}

INSTANTIATE_TEST_SUITE_P(Sequential, Plain, testing::Values(Policy::kSequential));

}  // namespace
}  // namespace assay::emu
