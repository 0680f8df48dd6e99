// What findings say beyond their kind: the order that is missing, the guard, the wait, the call, the
// index that wrapped. Each word has a twin of which it must not be said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Report RunWords(const std::string& entry, std::uint32_t threads, std::int32_t n,
                std::uint32_t blocks = 1) {
  TestRun run(TestRun::TestData("words.ptx"));
  run.execution.limits.max_steps = 2'000'000;
  const auto x = run.Buffer("x", DType::kF32, std::vector<double>(512));
  const auto y = run.Zeros("y", DType::kF32, 512);
  run.AddLaunch(entry, {blocks, 1, 1}, {threads, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(n)});
  return run.Run();
}

/// copy_in_order, which is right, with `from` replaced.
Report RunEditedCopy(std::string_view from, std::string_view to) {
  std::string ptx = TestRun::TestData("words.ptx");
  for (std::size_t at = ptx.find(from); at != std::string::npos; at = ptx.find(from, at))
    ptx.replace(at, from.size(), to);
  TestRun run(ptx);
  const auto x = run.Buffer("x", DType::kF32, std::vector<double>(512));
  const auto y = run.Zeros("y", DType::kF32, 512);
  run.AddLaunch("copy_in_order", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(0)});
  return run.Run();
}

Finding Only(const Report& report) {
  EXPECT_EQ(report.findings.size(), 1u) << Show(report);
  return report.findings.empty() ? Finding{} : report.findings.front();
}

// --- writes of one element

TEST(MissingGuard, LanesThatWriteOneElementNeedAGuardAndNoBarrier) {
  const Finding finding = Only(RunWords("lanes_write_one", 32, 0));
  EXPECT_THAT(finding.missing, HasSubstr("a guard"));
  EXPECT_THAT(finding.missing, Not(HasSubstr("__syncwarp")));
  EXPECT_THAT(finding.missing, Not(HasSubstr("barrier")));
}

TEST(MissingGuard, SoDoWarpsAndBlocks) {
  const Finding warps = Only(RunWords("warps_write_one", 64, 0));
  EXPECT_THAT(warps.missing, HasSubstr("a guard"));
  EXPECT_THAT(warps.missing, Not(HasSubstr("barrier")));
  const Finding blocks = Only(RunWords("warps_write_one", 32, 0, 2));
  EXPECT_THAT(blocks.missing, HasSubstr("in another"));
  EXPECT_THAT(blocks.missing, HasSubstr("a guard"));
}

TEST(MissingGuard, WritesOfDifferentRoundsMayNeedABarrier) {
  const Finding finding = Only(RunWords("rounds_write_one", 64, 2));
  EXPECT_THAT(finding.missing, HasSubstr("barrier"));
}

TEST(MissingGuard, IsNotSaidOfAWriteAndARead) {
  EXPECT_THAT(Only(RunWords("neighbour", 64, 1)).missing, Not(HasSubstr("guard")));
}

// --- how far apart

TEST(MissingEdge, WithinAWarpASyncwarpIsEnough) {
  const Finding finding = Only(RunWords("neighbour", 64, 1));
  EXPECT_THAT(finding.missing, HasSubstr("no __syncwarp() between"));
  EXPECT_EQ(RaceReachOf(finding), RaceReach::kWarp);
}

TEST(MissingEdge, AcrossWarpsItIsNot) {
  const Finding finding = Only(RunWords("neighbour", 64, 32));
  EXPECT_THAT(finding.missing, HasSubstr("no barrier between"));
  EXPECT_THAT(finding.missing, Not(HasSubstr("__syncwarp")));
  EXPECT_EQ(RaceReachOf(finding), RaceReach::kBlock);
}

TEST(MissingEdge, TheWidestOfALinesCopiesDecides) {
  const Report report = RunWords("widens", 64, 0);
  ASSERT_FALSE(report.findings.empty());
  for (const Finding& finding : report.findings)
    EXPECT_THAT(finding.missing, Not(HasSubstr("__syncwarp"))) << Show(report);
}

TEST(MissingEdge, ABarrierThatOneSidePassedByIsNoMatterOfRounds) {
  const Report report = RunWords("passes_by", 64, 0);
  bool raced = false;
  for (const Finding& finding : report.findings) {
    if (finding.kind != FindingKind::kDataRace) continue;
    raced = true;
    EXPECT_THAT(finding.missing, HasSubstr("that both threads take part in"));
    EXPECT_THAT(finding.missing, Not(HasSubstr("next round")));
  }
  EXPECT_TRUE(raced) << Show(report);
}

// --- asynchronous copies

TEST(MissingWait, ACopyThatNobodyWaitedForNeedsItsWait) {
  const Finding others = Only(RunWords("copy_without_wait", 32, 0));
  EXPECT_THAT(others.missing, HasSubstr("no cp.async.wait_group"));
  EXPECT_THAT(others.missing, Not(HasSubstr("__syncwarp")));
  const Finding own = Only(RunWords("copy_unwaited_by_its_own", 32, 0));
  EXPECT_THAT(own.missing, HasSubstr("no cp.async.wait_group"));
  EXPECT_THAT(own.missing, Not(HasSubstr("barrier")));
}

TEST(MissingWait, OneThatWasWaitedForNeedsABarrierBehind) {
  const Finding finding = Only(RunWords("copy_without_barrier", 32, 0));
  EXPECT_THAT(finding.missing, HasSubstr("a barrier behind the wait at"));
  const Report right = RunWords("copy_in_order", 32, 0);
  EXPECT_TRUE(right.findings.empty()) << Show(right);
}

TEST(MissingWait, OneThatWaitsForTooLittleIsNamed) {
  const Finding left = Only(RunEditedCopy("cp.async.wait_group 0;", "cp.async.wait_group 1;"));
  EXPECT_THAT(left.missing, HasSubstr("leaves the last group out"));
  EXPECT_THAT(left.missing, Not(HasSubstr("barrier")));
  const Finding never = Only(RunEditedCopy("cp.async.commit_group;", ""));
  EXPECT_THAT(never.missing, HasSubstr("no cp.async.commit_group between the copy"));
  EXPECT_THAT(never.missing, Not(HasSubstr("barrier")));
  const Report all = RunEditedCopy("cp.async.wait_group 0;", "cp.async.wait_all;");
  EXPECT_TRUE(all.findings.empty()) << Show(all);
}

// --- indices

TEST(WrappedIndex, IsToldWhereALoopAddedToIt) {
  const Finding finding = Only(RunWords("wraps_in_a_loop", 1, 2'147'480'000));
  EXPECT_EQ(finding.kind, FindingKind::kIndexOverflow);
  EXPECT_THAT(finding.message, HasSubstr("the index wrapped: 2147483072 + 1024"));
}

TEST(WrappedIndex, IsNotSaidOfAnIndexThatIsNegativeByItself) {
  for (const std::int32_t n : {-3, -2'147'483'000}) {
    const Finding finding = Only(RunWords("negative", 1, n));
    EXPECT_EQ(finding.kind, FindingKind::kOutOfBounds);
    EXPECT_THAT(finding.cause, HasSubstr("is negative"));
  }
}

TEST(WrappedIndex, IsToldWhereItWasHandedOn) {
  struct Row {
    const char* entry;
    const char* says;
    const char* cure;
  };
  // 65000 * 65000 does not fit into 32 signed bits, and comes out negative.
  constexpr Row kRows[] = {
      {"wraps_when_cut", "the index wrapped: 4225000000 does not fit", "cut down to 32 bits"},
      {"wraps_through_shared", "the index wrapped: 65000 * 65000", "widen one factor"},
      {"wraps_in_one_lane", "the index wrapped: 65000 * 65000", "widen one factor"},
      {"wraps_before_a_quotient", "the index wrapped: 65000 * 65000", "widen one factor"},
      {"wraps_for_a_call", "the index wrapped: 65000 * 65000", "widen one factor"},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.entry);
    const Finding finding = Only(RunWords(row.entry, 32, 65'000));
    EXPECT_EQ(finding.kind, FindingKind::kIndexOverflow);
    EXPECT_THAT(finding.message, HasSubstr(row.says));
    EXPECT_THAT(finding.cause, HasSubstr(row.cure));
    EXPECT_THAT(finding.cause, Not(HasSubstr("is negative")));
  }
}

TEST(WrappedIndex, IsToldWhereALoopFurtherOutAddedToIt) {
  const Finding finding = Only(RunWords("wraps_around_a_loop", 32, 2'147'483'000));
  EXPECT_EQ(finding.kind, FindingKind::kIndexOverflow);
  EXPECT_THAT(finding.message, HasSubstr("the index wrapped: 2147483000 + 1000 = 2147484000"));
}

TEST(WrappedIndex, IsNotSaidOfAHashThatIsMeantToWrap) {
  const Finding finding = Only(RunWords("hashes_and_reads_beyond", 1, 65'000));
  EXPECT_EQ(finding.kind, FindingKind::kOutOfBounds);
  EXPECT_THAT(finding.message, Not(HasSubstr("wrapped")));
}

// --- fences

TEST(MissingFence, IsNamedWhereAnAtomicLiesBetween) {
  const Finding finding = Only(RunWords("hands_on_by_atomic", 1, 0, 4));
  EXPECT_EQ(finding.kind, FindingKind::kDataRace);
  EXPECT_THAT(finding.missing, HasSubstr("__threadfence() between it and the atomic add at line"));
  EXPECT_THAT(finding.missing, HasSubstr("and an acquire before line"));
  EXPECT_THAT(finding.missing, Not(HasSubstr("use atomics")));
}

TEST(MissingFence, IsNotSaidWhereNobodyLooksAtTheAtomic) {
  const Finding finding = Only(RunWords("counts_beside", 1, 0, 2));
  EXPECT_EQ(finding.kind, FindingKind::kDataRace);
  EXPECT_THAT(finding.missing, Not(HasSubstr("__threadfence")));
}

// --- calls

TEST(CallSites, ALineOfAHelperComesWithTheCall) {
  const Finding finding = Only(RunWords("through_a_helper", 1, 511));
  ASSERT_FALSE(finding.accesses.empty());
  const SourceSite& site = finding.accesses[0].site;
  EXPECT_EQ(site.line, 76u);
  EXPECT_THAT(site.called_at, ElementsAre(81u));
}

TEST(CallSites, ALineOfTheKernelHasNone) {
  const Finding finding = Only(RunWords("negative", 1, -3));
  EXPECT_TRUE(finding.accesses.at(0).site.called_at.empty());
}

// --- strong stores

TEST(StrongStores, AreRunUnderSeveralSchedules) {
  const Report conflict = RunWords("volatile_stores", 1, 0, 3);
  EXPECT_TRUE(conflict.findings.empty()) << Show(conflict);  // No race by PTX.
  EXPECT_TRUE(conflict.counters.used_atomics);
  EXPECT_FALSE(RunWords("plain_stores", 1, 0, 3).counters.used_atomics);
}

// --- meetings

TEST(Meetings, AreAtomicsAndStrongAccessesButNotPlainOnes) {
  EXPECT_TRUE(RunWords("volatile_stores", 1, 0, 3).counters.may_meet);
  EXPECT_TRUE(RunWords("counts_beside", 1, 0, 2).counters.may_meet);
  EXPECT_FALSE(RunWords("plain_stores", 1, 0, 3).counters.may_meet);
}

TEST(Meetings, AreFencesForMoreThanABlock) {
  for (const bool beyond : {false, true}) {
    std::string ptx = TestRun::TestData("words.ptx");
    const std::size_t at = ptx.find("ret;", ptx.find(".entry plain_stores("));
    ASSERT_NE(at, std::string::npos);
    ptx.insert(at, beyond ? "membar.gl; " : "membar.cta; ");
    TestRun run(ptx);
    const auto x = run.Buffer("x", DType::kF32, std::vector<double>(512));
    const auto y = run.Zeros("y", DType::kF32, 512);
    run.AddLaunch("plain_stores", {3, 1, 1}, {1, 1, 1},
                  {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(0)});
    EXPECT_EQ(run.Run().counters.may_meet, beyond);
  }
}

// --- undefined outputs

TEST(UndefinedOutput, BytesThatACopyTookThereAreWritten) {
  TestRun run(TestRun::TestData("words.ptx"));
  const auto x = run.Buffer("x", DType::kF32, {0});
  const auto y = run.Uninitialised("y", DType::kF32, 32);
  for (const std::int32_t n : {20, 32}) {
    TestRun each = run;
    each.AddLaunch("copies_undefined", {1, 1, 1}, {32, 1, 1},
                   {TestRun::Ptr(x), TestRun::Ptr(y), TestRun::Int(n)});
    const Report report = each.Run();
    if (n == 32) {
      EXPECT_TRUE(report.findings.empty()) << Show(report);
      EXPECT_EQ(report.unwritten_bytes[y], 0u);
      continue;
    }
    const Finding finding = Only(report);
    EXPECT_EQ(finding.kind, FindingKind::kUninitialisedUse);
    ASSERT_TRUE(finding.memory);
    EXPECT_EQ(finding.memory->buffer, "y");
    EXPECT_EQ(finding.memory->index, 20);
  }
}

}  // namespace
}  // namespace assay::emu
