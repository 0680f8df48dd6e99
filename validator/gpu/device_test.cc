#include "validator/gpu/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/gpu/testing/fake_driver.h"

namespace assay::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// y[i] = 2 x[i] for four floats.
struct Bench {
  Bench() {
    gpu.parameter_bytes = {8, 8, 4};
    gpu.kernel = [](FakeLaunch& launch) {
      const auto* from = launch.At<const float*>(0);
      auto* to = launch.At<float*>(1);
      for (std::int32_t i = 0; i < launch.At<std::int32_t>(2); ++i) to[i] = 2 * from[i];
      return 0;
    };
    execution.ptx = "ptx";
    execution.buffers = {{.name = "x", .elements = 4, .role = BufferRole::kInput},
                         {.name = "y",
                          .elements = 4,
                          .role = BufferRole::kOutput,
                          .fill = BufferFill::kUninitialised,
                          .misalign = 4}};
    Argument n{.kind = Argument::Kind::kScalar, .name = "n", .bytes = {4, 0, 0, 0, 0, 0, 0, 0}};
    execution.launches = {{.entry = "twice",
                           .args = {{.kind = Argument::Kind::kBuffer, .name = "x", .buffer = 0},
                                    {.kind = Argument::Kind::kBuffer, .name = "y", .buffer = 1},
                                    n}}};
    device = Device::Open(gpu.driver(), 0).value();
  }
  Report Run() {
    const std::vector<std::span<std::byte>> buffers = {std::as_writable_bytes(std::span(x)),
                                                       std::as_writable_bytes(std::span(y))};
    return device->Run(execution, buffers);
  }

  FakeGpu gpu;
  Execution execution;
  std::vector<float> x{1, 2, 3, 4};
  std::vector<float> y{0, 0, 0, 0};
  std::unique_ptr<Device> device;
};

TEST(GpuDeviceTest, RunsAKernelAndBringsItsResults) {
  Bench bench;
  const Report report = bench.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << report.reason;
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(bench.y, (std::vector<float>{2, 4, 6, 8}));
  EXPECT_THAT(bench.device->name(), HasSubstr("Fake GPU"));
}

TEST(GpuDeviceTest, SaysThatItWatchedNothing) {
  EXPECT_EQ(NotWatched(Checks{}, Bench().Run().watched), "bounds, initialisation, race, barrier");
}

TEST(GpuDeviceTest, WritesPastABufferAreFoundInItsGuards) {
  for (const int at : {-1, 4, 1000}) {
    Bench bench;
    bench.gpu.kernel = [at](FakeLaunch& launch) {
      launch.At<float*>(1)[at] = 1;
      return 0;
    };
    const Report report = bench.Run();
    ASSERT_EQ(report.findings.size(), 1u) << at;
    EXPECT_EQ(report.findings[0].kind, FindingKind::kOutOfBounds);
    EXPECT_EQ(report.findings[0].memory->buffer, "y");
    EXPECT_EQ(report.findings[0].memory->index, at);
  }
}

TEST(GpuDeviceTest, WritesToInputsAreFound) {
  Bench bench;
  bench.gpu.kernel = [](FakeLaunch& launch) {
    launch.At<float*>(0)[2] = 7;
    return 0;
  };
  const Report report = bench.Run();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kWriteToInput);
  EXPECT_EQ(report.findings[0].memory->index, 2);
  EXPECT_EQ(bench.x[2], 3);
}

TEST(GpuDeviceTest, AFaultIsAFindingAndSpendsTheProcess) {
  Bench bench;
  bench.gpu.kernel = [](FakeLaunch&) { return 700; };
  const Report report = bench.Run();
  EXPECT_EQ(report.stop, Stop::kFault);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kOutOfBounds);
  EXPECT_TRUE(bench.device->spent());
  Bench other;
  EXPECT_EQ(other.Run().stop, Stop::kCompleted);
  EXPECT_FALSE(other.device->spent());
}

TEST(GpuDeviceTest, AnotherProgramGetsAContextOfItsOwn) {
  Bench bench;
  bench.Run();
  const int before = bench.gpu.contexts;
  bench.Run();
  EXPECT_EQ(bench.gpu.contexts, before);
  bench.execution.ptx = "other";
  bench.Run();
  EXPECT_EQ(bench.gpu.contexts, before + 1);
}

TEST(GpuDeviceTest, ABrokenGpuIsNotBelieved) {
  Bench bench;
  bench.gpu.broken = true;
  EXPECT_EQ(bench.Run().stop, Stop::kEngineFailure);
  EXPECT_THAT(ToString(Device::Open(bench.gpu.driver(), 0).error()), HasSubstr("broken"));
  EXPECT_FALSE(Device::Open(bench.gpu.driver(), 3));
}

TEST(GpuDeviceTest, TooLittleMemorySaysNothingOfTheKernel) {
  Bench bench;
  bench.gpu.room = 2000;
  const Report report = bench.Run();
  EXPECT_EQ(report.stop, Stop::kResourceLimit);
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST(GpuDeviceTest, ABufferThatTakesOverAnAddressFindsItsOwnContent) {
  Bench bench;
  std::vector<float> z{0, 0};
  bench.execution.buffers.push_back({.name = "z",
                                     .elements = 2,
                                     .role = BufferRole::kOutput,
                                     .fill = BufferFill::kZero,
                                     .reuse = BufferReuse{.buffer = 1, .launch = 1}});
  bench.execution.launches.push_back(bench.execution.launches[0]);
  bench.execution.launches[1].args[1].buffer = 2;
  bench.execution.launches[1].args[2].bytes = {1};
  const std::vector<std::span<std::byte>> buffers = {std::as_writable_bytes(std::span(bench.x)),
                                                     std::as_writable_bytes(std::span(bench.y)),
                                                     std::as_writable_bytes(std::span(z))};
  const Report report = bench.device->Run(bench.execution, buffers);
  EXPECT_EQ(report.stop, Stop::kCompleted) << report.reason;
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(bench.y, (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(z, (std::vector<float>{2, 0}));
  // Its bounds are its own: what the earlier buffer had room for lies outside.
  bench.execution.launches[1].args[2].bytes = {3};
  EXPECT_EQ(bench.device->Run(bench.execution, buffers).findings.size(), 1u);
}

TEST(GpuDeviceTest, ApartForAToolNothingIsWrittenThatTheKernelDoesNotWrite) {
  Bench bench;
  bench.device->LayBuffersApart(true);
  DeviceAddress x = 0, y = 0;
  float before = 0;
  const auto twice = bench.gpu.kernel;
  bench.gpu.kernel = [&](FakeLaunch& launch) {
    x = launch.At<DeviceAddress>(0);
    y = launch.At<DeviceAddress>(1);
    before = launch.At<float*>(1)[0];
    return twice(launch);
  };
  EXPECT_EQ(bench.Run().stop, Stop::kCompleted);
  EXPECT_EQ(bench.y, (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(before, 0) << "poison would make defined what is not";
  EXPECT_EQ(y % 16, 4u);
  EXPECT_NE(x, 0u);
  // The next run has memory of its own, and what was there before is given back.
  bench.gpu.room = 64;
  EXPECT_EQ(bench.Run().stop, Stop::kCompleted);
}

TEST(GpuDeviceTest, LaunchesThatDoNotFitTheKernelAreRefused) {
  Bench missing;
  missing.execution.launches[0].entry = "missing";
  EXPECT_EQ(missing.Run().findings.at(0).kind, FindingKind::kLaunchFailure);
  Bench wide;
  wide.execution.launches[0].args[2].bytes = {0, 0, 0, 0, 1, 0, 0, 0};
  EXPECT_EQ(wide.Run().findings.at(0).kind, FindingKind::kLaunchFailure);
  Bench few;
  few.execution.launches[0].args.pop_back();
  EXPECT_EQ(few.Run().findings.at(0).kind, FindingKind::kLaunchFailure);
  EXPECT_EQ(few.gpu.launches, 0);
}

}  // namespace
}  // namespace assay::gpu
