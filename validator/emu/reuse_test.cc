// Buffers that take over the addresses of earlier ones.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

/// Calls of one kernel (x, y, n) with one thread or more, x and y of each at the addresses of the
/// call before.
class Calls : public TestRun {
 public:
  explicit Calls(std::string entry, std::uint32_t threads = 1, bool reuse = true)
      : TestRun(TestData("reuse.ptx")),
        entry_(std::move(entry)),
        threads_(threads),
        reuse_(reuse) {}

  /// Returns the index of x; y is the next one.
  std::uint32_t Add(const std::vector<double>& values, std::int64_t outputs = 1, int n = -1) {
    const auto number = static_cast<std::uint32_t>(execution.launches.size());
    const auto x = Buffer("x", DType::kF32, values);
    const auto y = Uninitialised("y", DType::kF32, outputs);
    if (number > 0 && reuse_) {
      execution.buffers[x].reuse = BufferReuse{.buffer = x - 2, .launch = number};
      execution.buffers[y].reuse = BufferReuse{.buffer = y - 2, .launch = number};
    }
    AddLaunch(entry_, {1, 1, 1}, {threads_, 1, 1},
              {Ptr(x), Ptr(y), Int(n < 0 ? static_cast<int>(values.size()) : n)});
    return x;
  }

 private:
  std::string entry_;
  std::uint32_t threads_;
  bool reuse_;
};

TEST(Reuse, TheAddressComesBackWithOtherContents) {
  for (const bool reuse : {false, true}) {
    Calls run("memoised", 1, reuse);
    run.Add({1, 2, 3});
    const auto second = run.Add({10, 20, 30});
    const auto third = run.Add({100, 200, 300});
    const Report report = run.Run();
    ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    // The first result comes back all along the chain.
    EXPECT_EQ(run.At(second + 1, 0), reuse ? 6 : 60);
    EXPECT_EQ(run.At(third + 1, 0), reuse ? 6 : 600);
  }
}

TEST(Reuse, WhatAKeptAddressReachesIsTheNewBuffer) {
  Calls run("kept_address");
  run.Add({1, 2, 3});
  const auto second = run.Add({10, 20, 30});
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(run.At(second + 1, 0), 60);
}

TEST(Reuse, TheNewBufferHasItsOwnBounds) {
  for (const bool smaller : {false, true}) {
    Calls run("kept_address");
    run.Add({1, 2, 3, 4});
    run.Add(smaller ? std::vector<double>{10, 20, 30} : std::vector<double>{10, 20, 30, 40, 50}, 1,
            4);
    const Report report = run.Run();
    EXPECT_EQ(HasFinding(report, FindingKind::kOutOfBounds), smaller) << Show(report);
    if (!smaller) continue;
    EXPECT_NE(report.findings.at(0).message.find("x[3], outside of 'x', which has 3"),
              std::string::npos)
        << Show(report);
  }
}

TEST(Reuse, EachBufferKeepsItsOwnAlignment) {
  for (const std::uint32_t misalign : {0u, 4u}) {
    Calls run("memoised");
    run.Add({1, 2, 3});
    const auto second = run.Add({10, 20, 30});
    run.execution.buffers[second].misalign = misalign;
    const Report report = run.Run();
    ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_EQ(run.At(second + 1, 0), misalign == 0 ? 6 : 60);
  }
}

TEST(Reuse, DefinednessIsEachBuffersOwn) {
  Calls run("copy", 32);
  const auto first = run.Add({1, 2, 3, 4}, 4);
  const auto second = run.Add({1, 2, 3, 4, 5, 6}, 6, 5);
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(report.unwritten_bytes[first + 1], 0u);
  EXPECT_EQ(report.unwritten_bytes[second + 1], 4u);
  EXPECT_EQ(report.first_unwritten[second + 1], 5);
  EXPECT_EQ(run.At(first + 1, 3), 4);
  EXPECT_EQ(run.At(second + 1, 4), 5);
}

TEST(Reuse, RolesAreEachBuffersOwn) {
  // The second call's input lies where the first one's output lay: writable then, not now.
  for (const bool writes : {false, true}) {
    TestRun run(TestRun::TestData("reuse.ptx"));
    const auto x = run.Buffer("x", DType::kF32, {1, 2, 3, 4});
    const auto first = run.Uninitialised("y", DType::kF32, 4);
    const auto second = run.Buffer("z", DType::kF32, {5, 6, 7, 8});
    const auto out = run.Uninitialised("out", DType::kF32, 4);
    run.execution.buffers[second].reuse = BufferReuse{.buffer = first, .launch = 1};
    run.AddLaunch("copy", {1, 1, 1}, {32, 1, 1},
                  {TestRun::Ptr(x), TestRun::Ptr(first), TestRun::Int(4)});
    run.AddLaunch("copy", {1, 1, 1}, {32, 1, 1},
                  {TestRun::Ptr(second), TestRun::Ptr(writes ? second : out), TestRun::Int(4)});
    const Report report = run.Run();
    EXPECT_EQ(HasFinding(report, FindingKind::kWriteToInput), writes) << Show(report);
    if (!writes) {
      EXPECT_EQ(run.At(out, 3), 8);
    }
  }
}

TEST(Reuse, RacesAreWithinALaunchAndNameTheBuffer) {
  Calls run("collide", 32);
  run.Add({1}, 4, 0);
  run.Add({1}, 4, 3);
  run.execution.launches[0].block = {1, 1, 1};
  const Report report = run.Run();
  ASSERT_EQ(report.findings.size(), 1u) << Show(report);
  ASSERT_TRUE(report.findings[0].memory) << Show(report);
  EXPECT_EQ(report.findings[0].memory->buffer, "y");
  EXPECT_EQ(report.findings[0].memory->index, 3);
}

TEST(Reuse, ShadowValuesFollowTheNewBuffer) {
  Calls run("add_third", 32);
  run.Add({1, 2, 3, 4}, 4);
  const auto second = run.Add({4, 5, 6, 7}, 4);
  run.execution.checks = {
      .initialisation = false, .race = false, .barrier = false, .shadow_values = true};
  run.execution.focus = {.buffer = second + 1, .first = 1, .elements = 2};
  const Report report = run.Run();
  ASSERT_TRUE(report.origin) << Show(report);
  ASSERT_EQ(report.origin->exact.size(), 2u);
  EXPECT_NEAR(report.origin->exact[0], 5 + 1.0 / 3, 1e-7);
  EXPECT_NE(report.origin->exact[0], run.At(second + 1, 1));
}

TEST(Reuse, LargeBuffersAreFilledWhereTheyAreTouched) {
  constexpr std::int64_t kElements = 20 << 20;  // 80 MiB
  Calls run("sparse", 8);
  const auto first = run.Add({1, 2, 3, 4, 5, 6, 7, 8}, kElements);
  const auto second = run.Add({8, 7, 6, 5, 4, 3, 2, 1}, kElements);
  run.execution.checks.initialisation = false;
  run.execution.buffers[second + 1].poison = 0xa5;
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(run.At(first + 1, 7 * 2097152), 8);
  EXPECT_EQ(run.At(second + 1, 7 * 2097152), 1);
  EXPECT_EQ(run.Bytes(second + 1)[4], std::byte{0xa5});
  EXPECT_EQ(run.Bytes(first + 1)[4], std::byte{0xff});
}

TEST(Reuse, TensorMapsReachTheNewBuffer) {
  TestRun run(TestRun::TestData("reuse.ptx"));
  std::vector<std::uint32_t> outputs;
  for (std::uint32_t call = 0; call < 3; ++call) {
    const auto x = run.Buffer("x", DType::kF32, std::vector<double>(32, 10.0 + call));
    outputs.push_back(run.Uninitialised("y", DType::kF32, 32));
    if (call > 0) run.execution.buffers[x].reuse = BufferReuse{.buffer = x - 2, .launch = call};
    Argument map{.kind = Argument::Kind::kTensorMap, .name = "map", .buffer = x};
    map.map = {.dtype = DType::kF32, .shape = {32}, .strides = {}, .box = {32}};
    run.AddLaunch("tile", {1, 1, 1}, {32, 1, 1}, {map, TestRun::Ptr(outputs.back())});
  }
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  for (std::uint32_t call = 0; call < 3; ++call) EXPECT_EQ(run.At(outputs[call], 31), 10.0 + call);
}

TEST(Addresses, FollowFromTheScheduleAlone) {
  const auto place = [](const Schedule& schedule) {
    Calls run("where");
    const auto x = run.Add({1}, 4);
    run.execution.buffers[x].misalign = 16;
    run.execution.schedule = schedule;
    const Report report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    std::vector<double> values;
    for (std::size_t i = 0; i < 4; ++i) values.push_back(run.At(x + 1, i));
    return values;
  };
  EXPECT_EQ(place({}), (std::vector<double>{1, 0, 16, 1}));
  std::array<std::set<double>, 4> seen;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const Schedule schedule{.policy = Schedule::Policy::kPermuted, .seed = seed};
    const std::vector<double> values = place(schedule);
    EXPECT_EQ(values, place(schedule));
    for (std::size_t i = 0; i < 4; ++i) seen[i].insert(values[i]);
  }
  EXPECT_GT(seen[0].size(), 8u);
  EXPECT_GT(seen[1].size(), 8u);
  EXPECT_EQ(seen[2], (std::set<double>{16}));
  EXPECT_EQ(seen[3], (std::set<double>{0, 1}));
}

TEST(Reuse, TheAddressComesBackUnderEverySchedule) {
  Calls run("memoised");
  run.Add({1, 2, 3});
  const auto second = run.Add({10, 20, 30});
  run.execution.schedule = {.policy = Schedule::Policy::kPermuted, .seed = 5};
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(run.At(second + 1, 0), 6);
}

TEST(Fresh, ACallIsMadeAgainOnTheSameMemory) {
  // Two calls; the second writes less. What the first wrote is gone.
  for (const bool fresh : {false, true}) {
    Calls run("copy", 32);
    const auto x = run.Add({1, 2, 3, 4}, 4);
    run.execution.launches.push_back(run.execution.launches[0]);
    run.execution.launches[1].args[2] = TestRun::Int(3);
    if (fresh) run.execution.launches[1].fresh = {x + 1};
    const Report report = run.Run();
    ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_EQ(report.unwritten_bytes[x + 1], fresh ? 4u : 0u);
    EXPECT_EQ(run.Bytes(x + 1)[12], fresh ? std::byte{0xff} : std::byte{0});
    EXPECT_EQ(run.At(x + 1, 2), 3);
  }
}

TEST(Fresh, WhatWasHandedOverIsThereAgain) {
  for (const bool fresh : {false, true}) {
    Calls run("copy", 32);
    const auto x = run.Add({1, 2, 3, 4}, 4);
    const auto state = run.Buffer("state", DType::kF32, {9, 8, 7, 6}, BufferRole::kOutput);
    run.execution.launches[0].args[1] = TestRun::Ptr(state);
    run.execution.launches.push_back(run.execution.launches[0]);
    run.execution.launches[1].args[2] = TestRun::Int(3);
    if (fresh) run.execution.launches[1].fresh = {state};
    const Report report = run.Run();
    ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    EXPECT_EQ(report.unwritten_bytes[state], 0u);
    EXPECT_EQ(run.At(state, 2), 3);
    EXPECT_EQ(run.At(state, 3), fresh ? 6 : 4);
    EXPECT_EQ(run.At(x, 3), 4);
  }
}

TEST(Fresh, LargeBuffersAreFilledAgainWhereTheyWereTouched) {
  Calls run("sparse", 8);
  const auto x = run.Add({1, 2, 3, 4, 5, 6, 7, 8}, 20 << 20);
  run.execution.checks.initialisation = false;
  run.execution.buffers[x + 1].poison = 0xa5;
  run.execution.launches.push_back(run.execution.launches[0]);
  run.execution.launches[1].block = {4, 1, 1};
  run.execution.launches[1].fresh = {x + 1};
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(run.At(x + 1, 3 * 2097152), 4);
  EXPECT_EQ(run.Bytes(x + 1)[4 * std::size_t{7} * 2097152], std::byte{0xa5});
  EXPECT_EQ(run.Bytes(x + 1)[4], std::byte{0xa5});
}

TEST(Reuse, LivesThatDoNotFitTogetherEndTheRun) {
  Calls run("memoised");
  run.Add({1, 2, 3});
  const auto second = run.Add({10, 20, 30});
  run.execution.buffers[second].reuse = BufferReuse{.buffer = second, .launch = 9};
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kEngineFailure);
  EXPECT_NE(report.reason.find("does not come before"), std::string::npos) << report.reason;
}

}  // namespace
}  // namespace assay::emu
