// What kernels may do, done right: results are exact and nothing is reported, under every schedule.
#include <gtest/gtest.h>

#include <array>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

class Features : public ::testing::TestWithParam<Schedule> {
 protected:
  Features() : run_(TestRun::TestData("features.ptx")) { run_.execution.schedule = GetParam(); }

  void RunClean() {
    run_.execution.limits.max_steps = 20'000'000;
    report_ = run_.Run();
    ASSERT_EQ(report_.stop, Stop::kCompleted) << Show(report_);
    EXPECT_TRUE(report_.findings.empty()) << Show(report_);
  }

  TestRun run_;
  Report report_;
};

struct Payload {
  int a[10];
  double d;
};

TEST_P(Features, Calls) {
  const auto out = run_.Uninitialised("out", DType::kI32, 64);
  Payload payload{};
  for (int i = 0; i < 10; ++i) payload.a[i] = 10 * i;
  payload.d = 7;
  run_.AddLaunch("calls", {1, 1, 1}, {64, 1, 1},
                 {TestRun::Value(DType::kU8, payload), TestRun::Ptr(out), TestRun::Int(3)});
  RunClean();
  constexpr int kFib[] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (int i = 0; i < 64; ++i) {
    const int f = i % 2 == 1 ? i + 1 : i * 2;
    EXPECT_EQ(run_.At(out, static_cast<std::size_t>(i)), 31 + 7 + 1000 * f + 1000000 * kFib[i % 8])
        << i;
  }
}

TEST_P(Features, HeapAndText) {
  const auto out = run_.Uninitialised("out", DType::kI32, 40);
  run_.AddLaunch("heap_and_text", {1, 1, 1}, {40, 1, 1}, {TestRun::Ptr(out), TestRun::Int(77)});
  RunClean();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(run_.At(out, i), 77.0 + static_cast<double>(i));
}

TEST_P(Features, JumpTable) {
  const auto out = run_.Uninitialised("out", DType::kI32, 32);
  run_.AddLaunch("jump_table", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(out)});
  RunClean();
  constexpr int kValues[] = {3, 14, 15, 92, 65, 35, 89, 79, -1};
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(run_.At(out, i), kValues[i % 9]);
}

TEST_P(Features, ModuleVariables) {
  const auto out = run_.Uninitialised("out", DType::kI32, 8);
  run_.AddLaunch("variables", {1, 1, 1}, {8, 1, 1}, {TestRun::Ptr(out)});
  RunClean();
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(run_.At(out, i), 10.0 * static_cast<double>(i % 4 + 1) + 5);
}

TEST_P(Features, GridSynchronisation) {
  const auto out = run_.Uninitialised("out", DType::kI32, 300);
  run_.AddLaunch("reverse_grid", {10, 1, 1}, {32, 1, 1}, {TestRun::Ptr(out), TestRun::Int(300)})
      .cooperative = true;
  RunClean();
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(run_.At(out, i), 299.0 - static_cast<double>(i));
}

TEST_P(Features, LanesOfAWarpTakeALock) {
  const auto out = run_.Zeros("out", DType::kI32, 1);
  run_.AddLaunch("spin_lock", {3, 1, 1}, {64, 1, 1}, {TestRun::Ptr(out)});
  RunClean();
  EXPECT_EQ(run_.At(out, 0), 192);
}

TEST_P(Features, ALaneWaitsForItsSibling) {
  const auto flag = run_.Zeros("flag", DType::kI32, 1, BufferRole::kWorkspace);
  const auto out = run_.Uninitialised("out", DType::kI32, 1);
  run_.AddLaunch("sibling_wait", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(flag), TestRun::Ptr(out)});
  RunClean();
  EXPECT_EQ(run_.At(out, 0), 1);
}

TEST_P(Features, LastBlockAddsUp) {
  const auto x = run_.Buffer("x", DType::kF32, std::vector<double>(1000, 1.0));
  const auto partial = run_.Uninitialised("partial", DType::kF32, 16, BufferRole::kWorkspace);
  const auto out = run_.Uninitialised("out", DType::kF32, 1);
  for (int i = 0; i < 2; ++i) {
    run_.AddLaunch("last_block", {16, 1, 1}, {64, 1, 1},
                   {TestRun::Ptr(x), TestRun::Ptr(partial), TestRun::Ptr(out), TestRun::Int(1000)});
  }
  RunClean();
  EXPECT_EQ(run_.At(out, 0), 1000);
}

TEST_P(Features, BlocksWaitForTheirPredecessors) {
  for (const char* entry : {"chain", "chain_back"}) {
    TestRun run(TestRun::TestData("features.ptx"));
    run.execution.schedule = GetParam();
    run.execution.limits.max_steps = 200'000'000;
    const auto flags = run.Zeros("flags", DType::kI32, 40, BufferRole::kWorkspace);
    const auto values = run.Uninitialised("values", DType::kI32, 40);
    run.AddLaunch(entry, {40, 1, 1}, {32, 1, 1}, {TestRun::Ptr(flags), TestRun::Ptr(values)});
    const Report report = run.Run();
    ASSERT_EQ(report.stop, Stop::kCompleted) << entry << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    EXPECT_EQ(run.At(values, entry == std::string("chain") ? 39 : 0), 40);
    EXPECT_TRUE(report.counters.used_atomics);
  }
}

TEST_P(Features, DoubleBufferedCopies) {
  std::vector<double> values(64 * 4 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const auto x = run_.Buffer("x", DType::kF32, values);
  const auto y = run_.Uninitialised("y", DType::kF32, static_cast<std::int64_t>(values.size()));
  run_.AddLaunch("pipeline", {1, 1, 1}, {64, 1, 1},
                 {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(5)});
  RunClean();
  for (std::size_t s = 0; s < 5; ++s) {
    for (std::size_t t = 0; t < 64; ++t)
      EXPECT_EQ(run_.At(y, (s * 64 + t) * 4), static_cast<double>((s * 64 + 63 - t) * 4));
  }
}

TEST_P(Features, WarpOperationsOnPartsOfAWarp) {
  const auto out = run_.Uninitialised("out", DType::kI32, 32);
  run_.AddLaunch("warp_ops", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(out)});
  RunClean();
  for (int t = 0; t < 32; ++t) {
    // Lane 7 reads lane 8, which is not in the mask, and discards what it gets.
    const int expected = t < 8 ? t + 1 + 28 + 200 + 1000 : 9;
    EXPECT_EQ(run_.At(out, static_cast<std::size_t>(t)), expected + 100000) << t;
  }
}

TEST_P(Features, ClustersShareMemory) {
  const auto out = run_.Uninitialised("out", DType::kI32, 8);
  run_.AddLaunch("cluster_sum", {8, 1, 1}, {64, 1, 1}, {TestRun::Ptr(out)});
  RunClean();
  for (std::size_t b = 0; b < 8; ++b) EXPECT_EQ(run_.At(out, b), b < 4 ? 10 : 26);
}

TEST_P(Features, ProducersAndConsumers) {
  std::vector<double> values(32 * 6);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const auto x = run_.Buffer("x", DType::kI32, values);
  const auto y = run_.Uninitialised("y", DType::kI32, 32 * 6);
  run_.AddLaunch("specialised", {1, 1, 1}, {64, 1, 1},
                 {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(6)});
  RunClean();
  for (std::size_t i = 0; i < 32 * 6; ++i)
    EXPECT_EQ(run_.At(y, i), static_cast<double>(i / 32 * 32 + 31 - i % 32));
}

TEST_P(Features, CountingBarriers) {
  const auto out = run_.Uninitialised("out", DType::kI32, 64);
  run_.AddLaunch("counting_barriers", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(out)});
  RunClean();
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(run_.At(out, i), 22 + 1000 + 10000);
}

TEST_P(Features, ThreadsMayLeaveBeforeABarrier) {
  const auto out = run_.Uninitialised("out", DType::kI32, 40);
  run_.AddLaunch("early_exit", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(out), TestRun::Int(40)});
  RunClean();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(run_.At(out, i), 39.0 - static_cast<double>(i));
}

std::string ScheduleName(const ::testing::TestParamInfo<Schedule>& tested) {
  constexpr std::array<const char*, 4> kNames = {"Sequential", "Permuted", "Reversed",
                                                 "Priorities"};
  return std::string(kNames[static_cast<std::size_t>(tested.param.policy)]) +
         std::to_string(tested.param.seed);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Features,
                         ::testing::Values(Schedule{}, Schedule{Schedule::Policy::kReversed, 0},
                                           Schedule{Schedule::Policy::kPermuted, 1},
                                           Schedule{Schedule::Policy::kPermuted, 2},
                                           Schedule{Schedule::Policy::kPriorities, 1},
                                           Schedule{Schedule::Policy::kPriorities, 7}),
                         ScheduleName);

}  // namespace
}  // namespace assay::emu
