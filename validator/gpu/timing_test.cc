// Device::Time and Device::Repeat on the driver of device_test.cc: what a kernel that behaves
// otherwise from call to call cannot hide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "validator/gpu/device.h"
#include "validator/gpu/testing/fake_driver.h"

namespace assay::gpu {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Two slots of y[i] = 2 x[i] with a counter in workspace.
struct Bench {
  explicit Bench(BufferFill workspace = BufferFill::kUninitialised, std::uint32_t slots = 2) {
    gpu.parameter_bytes = {8, 8, 8};
    gpu.kernel = [this](FakeLaunch& launch) {
      if (before) before(launch);
      for (int i = 0; i < 4; ++i) launch.At<float*>(1)[i] = 2 * launch.At<const float*>(0)[i];
      if (after) after(launch);
      return code;
    };
    execution.ptx = "ptx";
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      x.push_back({1.0f + static_cast<float>(slot), 2, 3, 4});
      y.push_back({0, 0, 0, 0});
      w.push_back({0, 0, 0, 0});
      execution.buffers.push_back({.name = "x", .elements = 4, .role = BufferRole::kInput});
      execution.buffers.push_back({.name = "y",
                                   .elements = 4,
                                   .role = BufferRole::kOutput,
                                   .fill = BufferFill::kUninitialised});
      execution.buffers.push_back({.name = "w",
                                   .dtype = DType::kI32,
                                   .elements = 4,
                                   .role = BufferRole::kWorkspace,
                                   .fill = workspace});
      assay::Launch launch{.entry = "twice", .args = {}};
      for (std::uint32_t i = 0; i < 3; ++i)
        launch.args.push_back(
            {.kind = Argument::Kind::kBuffer, .name = "", .buffer = 3 * slot + i});
      execution.launches.push_back(launch);
    }
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      buffers.push_back(std::as_writable_bytes(std::span(x[slot])));
      buffers.push_back(std::as_writable_bytes(std::span(y[slot])));
      buffers.push_back(std::as_writable_bytes(std::span(w[slot])));
    }
    device = Device::Open(gpu.driver(), 0).value();
  }
  Report Time(TimingPlan plan = {.slots = 2}) {
    plan.most_seconds = 1e6;
    return device->Time(execution, plan, buffers, timing);
  }

  FakeGpu gpu;
  Execution execution;
  std::vector<std::vector<float>> x, y;
  std::vector<std::vector<std::int32_t>> w;
  std::vector<std::span<std::byte>> buffers;
  std::function<void(FakeLaunch&)> before, after;
  int code = 0;
  std::unique_ptr<Device> device;
  Timing timing;
};

TEST(GpuTimingTest, EverySlotIsTimedOnceARoundOnColdCaches) {
  Bench bench;
  const Report report = bench.Time({.slots = 2, .warm_ups = 3, .rounds = 5});
  EXPECT_EQ(report.stop, Stop::kCompleted) << report.reason;
  EXPECT_THAT(report.findings, IsEmpty());
  ASSERT_THAT(bench.timing.calls, SizeIs(10));
  for (std::size_t round = 0; round < 5; ++round) {
    EXPECT_NE(bench.timing.calls[2 * round].slot, bench.timing.calls[2 * round + 1].slot);
    EXPECT_DOUBLE_EQ(bench.timing.calls[round].seconds, 1);
  }
  EXPECT_EQ(bench.gpu.launches, 13);
  EXPECT_EQ(bench.gpu.sweeps, 13);
  EXPECT_EQ(bench.y[0], (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(bench.y[1], (std::vector<float>{4, 4, 6, 8}));
  EXPECT_THAT(bench.timing.before.unknown, HasSubstr("not opened"));
}

TEST(GpuTimingTest, ZerosThatThePlanAsksForAreCountedAndPoisonIsNot) {
  Bench zero(BufferFill::kZero);
  zero.Time();
  for (const TimedCall& call : zero.timing.calls) EXPECT_DOUBLE_EQ(call.seconds, 1.25);
  Bench poison(BufferFill::kUninitialised);
  poison.Time();
  for (const TimedCall& call : poison.timing.calls) EXPECT_DOUBLE_EQ(call.seconds, 1);
}

TEST(GpuTimingTest, NothingIsKeptFromOneCallToTheNext) {
  std::set<std::int32_t> seen;
  std::set<float> outputs;
  Bench bench;
  bench.before = [&](FakeLaunch& launch) {
    seen.insert(launch.At<std::int32_t*>(2)[0]);
    outputs.insert(static_cast<float>(std::isnan(launch.At<float*>(1)[0])));
    launch.At<std::int32_t*>(2)[0] = 7;
  };
  bench.Time();
  EXPECT_THAT(seen, testing::ElementsAre(-1));
  EXPECT_THAT(outputs, testing::ElementsAre(1.0f));
}

TEST(GpuTimingTest, WorkSkippedAfterTheFirstCallsIsSeen) {
  Bench bench;
  int calls = 0;
  bench.after = [&](FakeLaunch& launch) {
    if (++calls > 9) launch.At<float*>(1)[3] = 0;
  };
  bench.Time({.slots = 2, .warm_ups = 3, .rounds = 5});
  ASSERT_THAT(bench.timing.changed, SizeIs(1));
  // Its slot holds what was wrong.
  EXPECT_EQ(bench.y[bench.timing.changed[0]][3], 0);
  EXPECT_THAT(bench.timing.calls, SizeIs(7));
}

TEST(GpuTimingTest, AnOutputThatOverwritesItsInputStartsAnewEachTime) {
  for (const bool repeated : {false, true}) {
    Bench bench;
    for (std::size_t slot = 0; slot < 2; ++slot) {
      bench.execution.buffers[3 * slot + 1].fill = BufferFill::kProvided;
      bench.y[slot] = {10, 20, 30, 40};
    }
    std::set<float> found;
    bench.before = [&](FakeLaunch& launch) { found.insert(launch.At<float*>(1)[0]); };
    if (repeated) {
      Stress stress;
      bench.device->Repeat(bench.execution, {.beside = StressPlan::Beside::kItself}, bench.buffers,
                           stress);
      EXPECT_EQ(stress.changed, -1);
    } else {
      bench.Time();
      EXPECT_THAT(bench.timing.changed, IsEmpty());
    }
    EXPECT_THAT(found, testing::ElementsAre(10.0f));
  }
}

TEST(GpuTimingTest, NoInputsComeTwiceInARow) {
  Bench bench;
  bench.Time({.slots = 2, .warm_ups = 3, .rounds = 9});
  for (std::size_t i = 1; i < bench.timing.calls.size(); ++i)
    EXPECT_NE(bench.timing.calls[i].slot, bench.timing.calls[i - 1].slot) << i;
}

TEST(GpuTimingTest, AFaultOfATimedCallIsAFinding) {
  Bench bench;
  bench.code = 700;
  const Report report = bench.Time();
  EXPECT_EQ(report.stop, Stop::kFault);
  EXPECT_THAT(report.findings, SizeIs(1));
  EXPECT_TRUE(bench.device->spent());
}

TEST(GpuTimingTest, WhatCannotBeDividedIsNotTimed) {
  Bench bench;
  EXPECT_EQ(bench.Time({.slots = 4}).stop, Stop::kUnsupported);
  EXPECT_EQ(bench.Time({.slots = 0}).stop, Stop::kUnsupported);
  EXPECT_THAT(bench.timing.calls, IsEmpty());
}

TEST(GpuStressTest, OtherBitsAreFoundWhereverTheyCome) {
  using Beside = StressPlan::Beside;
  struct Row {
    Beside beside;
    bool graph;
    std::uint32_t slots;
  };
  for (const Row& row : {Row{Beside::kNothing, false, 1}, Row{Beside::kNothing, true, 1},
                         Row{Beside::kItself, false, 2}, Row{Beside::kBandwidth, false, 1},
                         Row{Beside::kFewProcessors, false, 1}}) {
    for (const bool steady : {true, false}) {
      Bench bench(BufferFill::kUninitialised, row.slots);
      int calls = 0;
      bench.after = [&](FakeLaunch& launch) {
        if (!steady && ++calls == 33) launch.At<float*>(1)[1] += 1;
      };
      Stress stress;
      const Report report = bench.device->Repeat(
          bench.execution, {.beside = row.beside, .graph = row.graph}, bench.buffers, stress);
      EXPECT_EQ(report.stop, Stop::kCompleted) << report.reason;
      if (steady) {
        EXPECT_EQ(stress.made, 50u);
        EXPECT_EQ(stress.changed, -1);
      } else {
        EXPECT_EQ(stress.changed, 32 / row.slots);
        EXPECT_THAT(stress.slots, SizeIs(1));
      }
    }
  }
}

TEST(GpuRatesTest, AreMeasuredAndSayWhatIsMissing) {
  Bench bench;
  const auto rates = bench.device->MeasureRates();
  ASSERT_TRUE(rates) << ToString(rates.error());
  EXPECT_EQ(rates->device, bench.device->name());
  EXPECT_GT(rates->copy_bytes_per_second, 0);
  EXPECT_EQ(rates->matrix.empty(), !rates->no_matrix.empty());
}

}  // namespace
}  // namespace assay::gpu
