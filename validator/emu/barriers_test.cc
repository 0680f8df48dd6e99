// mbarriers, bulk copies, libcu++ and cooperative groups.
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

std::vector<double> Iota(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i);
  return values;
}

class Barriers : public ::testing::TestWithParam<Schedule::Policy> {
 protected:
  Barriers() : run_(TestRun::TestData("barriers.ptx")) {
    run_.execution.schedule = {GetParam(), 5};
    run_.execution.limits.max_steps = 10'000'000;
  }
  void RunClean() {
    const Report report = run_.Run();
    ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
  }
  TestRun run_;
};

TEST_P(Barriers, ArriveAndWait) {
  const auto x = run_.Buffer("x", DType::kI32, Iota(64));
  const auto y = run_.Uninitialised("y", DType::kI32, 192);
  run_.AddLaunch("arrive_wait", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
  RunClean();
  for (std::size_t i = 0; i < 192; ++i)
    EXPECT_EQ(run_.At(y, i), static_cast<double>(63 - i % 64 + i / 64));
}

TEST_P(Barriers, BulkCopiesPublishTheirBytes) {
  const auto x = run_.Buffer("x", DType::kI32, Iota(512));
  const auto y = run_.Uninitialised("y", DType::kI32, 512);
  run_.AddLaunch("bulk", {2, 1, 1}, {96, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
  RunClean();
  for (std::size_t i = 0; i < 512; ++i) EXPECT_EQ(run_.At(y, i), static_cast<double>(i + 1));
}

TEST_P(Barriers, BulkCopiesThatNobodyWaitsForRace) {
  const auto x = run_.Buffer("x", DType::kI32, Iota(64));
  const auto y = run_.Uninitialised("y", DType::kI32, 64);
  run_.AddLaunch("bulk_without_wait", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
  const Report report = run_.Run();
  EXPECT_TRUE(HasFinding(report, FindingKind::kDataRace)) << Show(report);
}

TEST_P(Barriers, UninitialisedBarriersAreMisuse) {
  const auto x = run_.Buffer("x", DType::kI32, Iota(64));
  const auto y = run_.Uninitialised("y", DType::kI32, 64);
  run_.AddLaunch("not_initialised", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
  const Report report = run_.Run();
  EXPECT_EQ(report.stop, Stop::kFault);
  EXPECT_TRUE(HasFinding(report, FindingKind::kBarrierMisuse)) << Show(report);
}

TEST_P(Barriers, PipelinesOfTheBlock) {
  const auto x = run_.Buffer("x", DType::kI32, Iota(64 * 5));
  const auto y = run_.Uninitialised("y", DType::kI32, 64 * 5);
  run_.AddLaunch("block_pipeline", {1, 1, 1}, {64, 1, 1},
                 {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(5)});
  RunClean();
  for (std::size_t i = 0; i < 320; ++i)
    EXPECT_EQ(run_.At(y, i), static_cast<double>(i / 64 * 64 + 63 - i % 64));
}

TEST_P(Barriers, GroupsOfThreads) {
  const auto x = run_.Buffer("x", DType::kI32, Iota(64));
  const auto y = run_.Uninitialised("y", DType::kI32, 64);
  run_.AddLaunch("groups", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
  RunClean();
  for (std::size_t i = 0; i < 64; ++i) {
    const double sum = static_cast<double>(i / 8 * 8 * 8 + 28);
    const double odd = i % 2 == 1 ? 16000.0 + static_cast<double>(i % 32 / 2) : 0;
    if (GetParam() == Schedule::Policy::kSequential || i % 2 == 0) {
      EXPECT_EQ(run_.At(y, i), sum + odd) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Barriers,
                         ::testing::Values(Schedule::Policy::kSequential,
                                           Schedule::Policy::kReversed, Schedule::Policy::kPermuted,
                                           Schedule::Policy::kPriorities));

}  // namespace
}  // namespace assay::emu
