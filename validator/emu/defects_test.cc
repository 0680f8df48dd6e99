// Each detector fires on its defect, at the right place, and not on the twin.
#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

struct DefectCase {
  const char* entry;
  std::optional<FindingKind> kind;  ///< None: clean.
  std::uint32_t threads = 32;
  std::uint32_t blocks = 1;
  int n = 32;
  const char* message = "";  ///< Part of the message, or of what is missing.
  std::int64_t elements = 256;
};

std::ostream& operator<<(std::ostream& out, const DefectCase& tested) {
  return out << tested.entry;
}

using K = FindingKind;

const DefectCase kCases[] = {
    {"past_the_end", K::kOutOfBounds, 64, 1, 32, "x[32]", 32},
    {"past_the_end_ok", std::nullopt, 64, 1, 32, "", 32},
    {"before_the_start", K::kOutOfBounds, 32, 1, 32, "x[-1]"},
    {"null_pointer", K::kOutOfBounds, 32, 1, 32, "no allocation"},
    {"misaligned", K::kMisaligned, 32, 1, 32, "multiple of 16"},
    {"misaligned_ok", std::nullopt, 256},
    {"writes_input", K::kWriteToInput, 32, 1, 32, "'x' is an input"},
    {"shared_overrun", K::kOutOfBounds, 32, 1, 1, "a[32]"},
    {"shared_overrun", std::nullopt, 32, 1, 0},
    {"use_after_free", K::kUseAfterFree, 32, 1, 0},
    {"double_free", K::kInvalidFree, 32, 1, 0, "freed before"},
    {"double_free", std::nullopt, 32, 1, 1},
    {"index_overflow", K::kIndexOverflow, 32, 1, 70000, "70000 * 70000 + 0 = 4900000000"},
    {"local_overrun", K::kOutOfBounds, 32, 1, 9, "[8]"},
    {"local_overrun", std::nullopt, 32, 1, 8},
    {"uninitialised_shared", K::kUninitialisedUse, 64, 1, 32, "output y[32]"},
    {"uninitialised_shared_ok", std::nullopt, 64},
    {"unwritten", std::nullopt, 32},
    {"missing_barrier", K::kDataRace, 64, 1, 32, "no barrier between"},
    {"missing_barrier_ok", std::nullopt, 64},
    {"missing_second_barrier", K::kDataRace, 64, 1, 3, "no barrier between"},
    {"missing_second_barrier", std::nullopt, 64, 1, 1},
    {"blocks_collide", K::kDataRace, 32, 3, 32, "in another"},
    {"blocks_collide", std::nullopt, 32, 1},
    {"blocks_collide_same", K::kSameValueRace, 32, 3},
    {"load_add_store", K::kDataRace, 32},
    {"load_add_store_ok", std::nullopt, 32, 4},
    {"flag_without_fence", K::kDataRace, 1, 2},
    {"copy_without_wait", K::kDataRace, 32},
    {"copy_without_barrier", K::kDataRace, 32},
    {"divergent_barrier", K::kBarrierDivergence, 64},
    {"wrong_count", K::kBarrierMisuse, 64, 1, 32, "waits for 96 threads"},
    {"missing_lane", K::kBarrierMisuse, 32, 1, 32, "never reach it"},
    {"spins_for_ever", K::kLivelock, 1, 1, 32, "spin"},
    {"traps", K::kTrap, 32},
};

class Defects : public ::testing::TestWithParam<DefectCase> {};

TEST_P(Defects, FiresWhereItMust) {
  const DefectCase& tested = GetParam();
  TestRun run(TestRun::TestData("defects.ptx"));
  run.execution.limits.max_steps = 2'000'000;
  const auto x = run.Buffer("x", DType::kF32,
                            std::vector<double>(static_cast<std::size_t>(tested.elements), 1.0));
  const auto y = run.Zeros("y", DType::kF32, 1024);
  run.AddLaunch(tested.entry, {tested.blocks, 1, 1}, {tested.threads, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(tested.n)});
  const Report report = run.Run();
  if (!tested.kind) {
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    return;
  }
  ASSERT_TRUE(HasFinding(report, *tested.kind)) << Show(report);
  for (const Finding& finding : report.findings) {
    // Beside a race there may be others, and behind a read out of bounds; other faults leave
    // unfinished what else was wrong.
    const bool other_race = FamilyOf(finding.kind) == "race" && finding.kind != *tested.kind;
    if (other_race && (finding.kind == K::kSameValueRace || *tested.kind == K::kOutOfBounds))
      continue;
    EXPECT_EQ(finding.kind, *tested.kind) << Show(report);
    EXPECT_NE((finding.message + finding.missing).find(tested.message), std::string::npos)
        << Show(report);
    ASSERT_FALSE(finding.accesses.empty());
    EXPECT_EQ(finding.accesses[0].site.file, "defects.cu");
    EXPECT_GT(finding.accesses[0].site.line, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Defects, ::testing::ValuesIn(kCases), [](const auto& tested) {
  return std::string(tested.param.entry) + "_" + std::to_string(tested.index);
});

TEST(IndexOverflow, NamesWhatTheProductWasComputedFrom) {
  TestRun run(TestRun::TestData("defects.ptx"));
  const auto x = run.Buffer("x", DType::kF32, std::vector<double>(256, 1.0));
  const auto y = run.Zeros("y", DType::kF32, 256);
  run.AddLaunch("index_overflow", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(70000)});
  const Report report = run.Run();
  ASSERT_EQ(report.findings.size(), 1u) << Show(report);
  EXPECT_NE(report.findings[0].cause.find("value = 70000"), std::string::npos)
      << report.findings[0].cause;
}

TEST(Definedness, WhatIsUndefinedAndUsed) {
  struct Use {
    const char* entry;
    const char* message;
  };
  for (const Use& use :
       {Use{"uninitialised_branch", ""}, Use{"uninitialised_address", "address"}}) {
    TestRun run(TestRun::TestData("defects.ptx"));
    const auto w = run.Uninitialised("w", DType::kF32, 64, BufferRole::kWorkspace);
    const auto y = run.Zeros("y", DType::kF32, 64);
    run.AddLaunch(use.entry, {1, 1, 1}, {32, 1, 1},
                  {TestRun::Ptr(w), TestRun::Ptr(y), TestRun::Int(1)});
    const Report report = run.Run();
    ASSERT_TRUE(HasFinding(report, FindingKind::kUninitialisedUse)) << use.entry << Show(report);
    const Finding& finding = report.findings.back();
    EXPECT_NE(finding.message.find(use.message), std::string::npos) << Show(report);
    EXPECT_NE(finding.missing.find("read at line"), std::string::npos) << Show(report);
  }
}

TEST(Definedness, UnwrittenElementsAreCounted) {
  TestRun run(TestRun::TestData("defects.ptx"));
  const auto x = run.Buffer("x", DType::kF32, std::vector<double>(32, 1.0));
  const auto y = run.Uninitialised("y", DType::kF32, 32);
  run.AddLaunch("unwritten", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(32)});
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(report.unwritten_bytes[y], 4u);
  EXPECT_EQ(report.first_unwritten[y], 31);
  EXPECT_EQ(report.unwritten_bytes[x], 0u);
}

TEST(Definedness, WhatIsReadUndefinedIsNotedOnRequest) {
  for (const bool asked : {false, true}) {
    TestRun run(TestRun::TestData("defects.ptx"));
    const auto w = run.Uninitialised("w", DType::kF32, 64, BufferRole::kWorkspace);
    const auto y = run.Zeros("y", DType::kF32, 64);
    run.AddLaunch("uninitialised_branch", {1, 1, 1}, {32, 1, 1},
                  {TestRun::Ptr(w), TestRun::Ptr(y), TestRun::Int(1)});
    run.execution.note_missing = asked;
    const Report report = run.Run();
    ASSERT_EQ(report.missing.has_value(), asked);
    if (!asked) continue;
    ASSERT_FALSE(report.missing->empty());
    for (const BufferRange& range : *report.missing) {
      EXPECT_EQ(range.buffer, w);
      EXPECT_LE(range.first + range.bytes, 64 * sizeof(float));
    }
  }
  // Nothing is missing of what was provided.
  TestRun run(TestRun::TestData("defects.ptx"));
  const auto w = run.Buffer("w", DType::kF32, std::vector<double>(64, 1.0), BufferRole::kWorkspace);
  const auto y = run.Zeros("y", DType::kF32, 64);
  run.AddLaunch("uninitialised_branch", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(w), TestRun::Ptr(y), TestRun::Int(1)});
  run.execution.note_missing = true;
  const Report report = run.Run();
  ASSERT_TRUE(report.missing);
  EXPECT_TRUE(report.missing->empty());
}

// All bytes of it alike: what an element holds when they are the poison.
constexpr std::uint8_t kPoison = 0x3f;
constexpr float kPoisonValue = std::bit_cast<float>(0x3f3f3f3fu);

// y[i] = x[63 - i], through shared memory, of a y of that many elements.
Report ReportOfReversed(const std::vector<double>& values, std::int64_t elements, bool asked) {
  TestRun run(TestRun::TestData("defects.ptx"));
  const auto x = run.Buffer("x", DType::kF32, values);
  const auto y = run.Uninitialised("y", DType::kF32, elements);
  run.execution.buffers[y].poison = kPoison;
  run.AddLaunch("missing_barrier_ok", {1, 1, 1}, {64, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(64)});
  run.execution.note_disguised = asked;
  return run.Run();
}

TEST(Definedness, WhatWasWrittenAndLooksUntouchedIsNotedOnRequest) {
  std::vector<double> values(64, 1.0);
  values[63] = values[62] = values[41] = kPoisonValue;
  for (const bool asked : {false, true}) {
    const Report report = ReportOfReversed(values, 72, asked);
    // Not the last ones, which nobody wrote.
    const std::vector<BufferRange> expected = {{1, 0, 8}, {1, 88, 4}};
    EXPECT_EQ(report.disguised, asked ? expected : std::vector<BufferRange>()) << Show(report);
  }
}

TEST(Definedness, PagesOfZerosAreNotedWhereTheyWereWritten) {
  const std::vector<double> zeros(64, 0.0);
  const std::vector<BufferRange> whole = {{1, 0, 256}};
  EXPECT_EQ(ReportOfReversed(zeros, 64, true).disguised, whole);
  // Beside the poison of elements that were not written, zeros do not look untouched.
  EXPECT_TRUE(ReportOfReversed(zeros, 72, true).disguised.empty());
}

TEST(Shared, DynamicMemoryHasTheLaunchsBounds) {
  for (const std::int32_t past : {0, 1}) {
    TestRun run(TestRun::TestData("defects.ptx"));
    const auto x = run.Buffer("x", DType::kF32, std::vector<double>(32, 1.0));
    const auto y = run.Uninitialised("y", DType::kF32, 32);
    run.AddLaunch("dynamic_overrun", {1, 1, 1}, {32, 1, 1},
                  {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(past)}, 128);
    const Report report = run.Run();
    EXPECT_EQ(HasFinding(report, FindingKind::kOutOfBounds), past != 0) << Show(report);
  }
}

// A number is added onto memory that nobody wrote: a defect where the number is known. Where nothing was set there either the
// sum is no better than before, and who reads it is told.
TEST(AtomicsOntoUndefinedBytes, AreReportedWhereWhatIsAddedIsKnown) {
  constexpr std::string_view kKernel = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 y)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [sums];
  ld.param.u64 %rd2, [y];
  SET
  red.global.add.u32 [%rd1], %r1;
  red.global.add.u32 [%rd1], %r1;
  READ
  ret;
}
)";
  struct Tested {
    std::string_view set, read;
    std::string_view message;  ///< Of the only finding; empty: there is none.
  };
  for (const Tested& each :
       {Tested{"mov.u32 %r1, 1;", "", "onto sums[0], which nothing has written"},
        Tested{"", "", ""},
        Tested{"", "ld.global.u32 %r2, [%rd1];\n st.global.u32 [%rd2], %r2;", "output y[0]"}}) {
    std::string text(kKernel);
    text.replace(text.find("SET"), 3, each.set);
    text.replace(text.find("READ"), 4, each.read);
    TestRun run(text);
    const auto sums = run.Uninitialised("sums", DType::kI32, 1, BufferRole::kWorkspace);
    const auto y = run.Zeros("y", DType::kI32, 1);
    run.AddLaunch("k", {1, 1, 1}, {1, 1, 1}, {TestRun::Ptr(sums), TestRun::Ptr(y)});
    const Report report = run.Run();
    ASSERT_EQ(report.findings.size(), each.message.empty() ? 0u : 1u) << Show(report);
    if (each.message.empty()) continue;
    EXPECT_NE(report.findings[0].message.find(each.message), std::string::npos) << Show(report);
  }
}

// Each thread reads x, hands it on in shared memory, and reads what the next warp handed on: with a
// barrier in between, or without.
TEST(ReadsOutOfBounds, RacesBehindThemAreSeen) {
  constexpr std::string_view kKernel = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  mov.u32 %r2, 0;
  ld.global.u32 %r2, [%rd4];
  mov.u32 %r3, tile;
  shl.b32 %r4, %r1, 2;
  add.s32 %r5, %r3, %r4;
  st.shared.u32 [%r5], %r2;
  BARRIER
  xor.b32 %r4, %r4, 128;
  add.s32 %r5, %r3, %r4;
  ld.shared.u32 %r2, [%r5];
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r2;
  ret;
}
)";
  for (const bool barrier : {false, true}) {
    for (const int elements : {40, 64}) {
      std::string text(kKernel);
      text.replace(text.find("BARRIER"), 7, barrier ? "bar.sync 0;" : "");
      TestRun run(std::move(text));
      const auto x = run.Zeros("x", DType::kU32, elements, BufferRole::kInput);
      const auto y = run.Uninitialised("y", DType::kU32, 64);
      // Behind a fault no other launch runs.
      for (int launch = 0; launch < 2; ++launch)
        run.AddLaunch("k", {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(x), TestRun::Ptr(y)});
      const Report report = run.Run();
      EXPECT_EQ(HasFinding(report, FindingKind::kDataRace), !barrier) << Show(report);
      EXPECT_EQ(HasFinding(report, FindingKind::kOutOfBounds), elements < 64) << Show(report);
      EXPECT_EQ(report.findings.size(), (barrier ? 0u : 1u) + (elements < 64 ? 1u : 0u))
          << Show(report);
      EXPECT_EQ(report.stop, elements < 64 ? Stop::kFault : Stop::kCompleted) << Show(report);
    }
  }
}

TEST(Launches, ThatDoNotFitAreFindings) {
  struct Wrong {
    const char* entry;
    Dim3 grid;
    Dim3 block;
    std::size_t args;
  };
  for (const Wrong& wrong :
       {Wrong{"traps", {1, 1, 1}, {2048, 1, 1}, 3}, Wrong{"traps", {0, 1, 1}, {32, 1, 1}, 3},
        Wrong{"traps", {1, 1, 1}, {32, 1, 1}, 2}, Wrong{"nobody", {1, 1, 1}, {32, 1, 1}, 3}}) {
    TestRun run(TestRun::TestData("defects.ptx"));
    const auto y = run.Zeros("y", DType::kF32, 8);
    std::vector<Argument> args = {TestRun::Ptr(y), TestRun::Ptr(y), TestRun::Int(1)};
    args.resize(wrong.args);
    run.AddLaunch(wrong.entry, wrong.grid, wrong.block, args);
    const Report report = run.Run();
    EXPECT_EQ(report.stop, Stop::kFault);
    EXPECT_TRUE(HasFinding(report, FindingKind::kLaunchFailure)) << Show(report);
  }
}

TEST(Checks, EachMonitorWorksWithoutTheOther) {
  for (const bool race : {false, true}) {
    for (const char* entry : {"missing_barrier", "missing_barrier_ok", "uninitialised_shared"}) {
      TestRun run(TestRun::TestData("defects.ptx"));
      run.execution.checks.race = race;
      run.execution.checks.initialisation = !race;
      const auto x = run.Buffer("x", DType::kF32, std::vector<double>(256, 1.0));
      const auto y = run.Zeros("y", DType::kF32, 1024);
      run.AddLaunch(entry, {1, 1, 1}, {64, 1, 1},
                    {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(32)});
      const Report report = run.Run();
      const bool has_race = std::string(entry) == "missing_barrier" && race;
      EXPECT_EQ(HasFinding(report, FindingKind::kDataRace), has_race) << entry << Show(report);
      if (race || std::string(entry) == "missing_barrier_ok") {
        EXPECT_FALSE(HasFinding(report, FindingKind::kUninitialisedUse)) << entry << Show(report);
      } else {
        EXPECT_TRUE(HasFinding(report, FindingKind::kUninitialisedUse)) << entry << Show(report);
      }
    }
  }
}

TEST(Checks, NoMonitorsLeaveBoundsOn) {
  TestRun run(TestRun::TestData("defects.ptx"));
  run.execution.checks = {.initialisation = false, .race = false, .barrier = false};
  const auto x = run.Buffer("x", DType::kF32, std::vector<double>(32, 1.0));
  const auto y = run.Zeros("y", DType::kF32, 1024);
  run.AddLaunch("before_the_start", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(32)});
  EXPECT_TRUE(HasFinding(run.Run(), FindingKind::kOutOfBounds));
}

TEST(Determinism, TheSameExecutionGivesTheSameReport) {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    TestRun run(TestRun::TestData("defects.ptx"));
    run.execution.schedule = {Schedule::Policy::kPriorities, 3};
    const auto x = run.Buffer("x", DType::kF32, std::vector<double>(256, 1.0));
    const auto y = run.Zeros("y", DType::kF32, 1024);
    run.AddLaunch("missing_second_barrier", {2, 1, 1}, {64, 1, 1},
                  {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(3)});
    const std::string text = CompactJson(ToJson(run.Run()));
    if (round == 0) first = text;
    EXPECT_EQ(text, first);
  }
}

}  // namespace
}  // namespace assay::emu
