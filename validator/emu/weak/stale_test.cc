// Loads that return earlier values: protocols with an edge too few fail in a run that lets them, and
// say which edge; with all edges they do not.
#include "validator/emu/weak/stale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using Policy = Schedule::Policy;

constexpr int kBlocks = 6;

TestRun LastBlock(const std::string& entry, const Schedule& schedule) {
  TestRun run(TestRun::TestData("stale.ptx"));
  std::vector<double> x(kBlocks * 32, 1.0);
  const auto in = run.Buffer("x", DType::kF32, x);
  const auto partial = run.Uninitialised("partial", DType::kF32, kBlocks, BufferRole::kWorkspace);
  const auto ticket = run.Zeros("ticket", DType::kI32, 1, BufferRole::kWorkspace);
  const auto out = run.Zeros("out", DType::kF32, 1);
  run.AddLaunch(entry, {kBlocks, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(in), TestRun::Ptr(partial), TestRun::Ptr(ticket), TestRun::Ptr(out)});
  run.execution.schedule = schedule;
  return run;
}

TestRun Scan(const std::string& entry, const Schedule& schedule) {
  TestRun run(TestRun::TestData("stale.ptx"));
  const auto in = run.Buffer("x", DType::kF32, std::vector<double>(kBlocks, 1.0));
  const auto prefix = run.Zeros("prefix", DType::kF32, kBlocks, BufferRole::kWorkspace);
  const auto flag = run.Zeros("flag", DType::kI32, kBlocks, BufferRole::kWorkspace);
  const auto out = run.Zeros("out", DType::kF32, kBlocks);
  run.AddLaunch(entry, {kBlocks, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(in), TestRun::Ptr(prefix), TestRun::Ptr(flag), TestRun::Ptr(out)});
  run.execution.schedule = schedule;
  return run;
}

std::vector<Schedule> Stale() {
  std::vector<Schedule> schedules;
  for (const Policy policy :
       {Policy::kSequential, Policy::kReversed, Policy::kPermuted, Policy::kPriorities}) {
    schedules.push_back({policy, 3, 100});
    schedules.push_back({policy, 4, 50});
  }
  return schedules;
}

TEST(StaleReads, NoneWithoutTheWish) {
  TestRun run = LastBlock("last_block_no_release", {});
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  EXPECT_TRUE(report.counters.strong_loads);
  EXPECT_EQ(report.counters.stale_chances, 0u);
  EXPECT_EQ(run.At(3, 0), kBlocks * 32);
}

TEST(StaleReads, ALastBlockWithoutReleaseAddsWhatNobodyHasWritten) {
  // Some block fences behind its ticket when the last one has done so.
  Report report;
  for (std::uint64_t seed = 0; seed < 40 && report.stale_reads.empty(); ++seed)
    report = LastBlock("last_block_no_release", {Policy::kSequential, seed, 100}).Run();
  // The sums of the other blocks are not there yet: the buffer was never written.
  EXPECT_TRUE(HasFinding(report, FindingKind::kUninitialisedUse)) << Show(report);
  ASSERT_FALSE(report.stale_reads.empty());
  const Finding& first = report.stale_reads.front();
  EXPECT_EQ(first.kind, FindingKind::kStaleRead);
  ASSERT_EQ(first.accesses.size(), 2u);
  EXPECT_EQ(first.accesses[0].site.line, 23u);  // The load.
  EXPECT_EQ(first.accesses[1].site.line, 15u);  // The store.
  EXPECT_EQ(first.accesses[0].value, "uninitialised memory");
  EXPECT_EQ(first.memory->buffer, "partial");
  EXPECT_NE(first.missing.find("a release behind line 15"), std::string::npos) << first.missing;
}

TEST(StaleReads, WhatIsMissingIsNamed) {
  const Schedule oldest{Policy::kSequential, 0, 100};
  const auto missing = [&](const std::string& entry) {
    const Report report = LastBlock(entry, oldest).Run();
    return report.stale_reads.empty() ? "" : report.stale_reads.front().missing;
  };
  EXPECT_NE(missing("last_thread_no_acquire").find("an acquire before line 52"), std::string::npos)
      << missing("last_thread_no_acquire");
  EXPECT_NE(missing("last_thread_no_acquire").find("ld.acquire after line 49, where the signal"),
            std::string::npos)
      << missing("last_thread_no_acquire");
  EXPECT_NE(missing("last_thread_narrow").find("scope"), std::string::npos)
      << missing("last_thread_narrow");
}

// Whoever reads behind the barrier has not acquired what another thread has only read.
TEST(StaleReads, ABarrierIsNoAcquire) {
  for (const std::string entry : {"last_block_barrier", "handed_on_no_acquire"}) {
    std::string missing;
    // The last block must have fenced before another one did.
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Report report = LastBlock(entry, {Policy::kSequential, seed, 100}).Run();
      if (!HasFinding(report, FindingKind::kUninitialisedUse)) continue;
      ASSERT_FALSE(report.stale_reads.empty()) << entry;
      missing = report.stale_reads.front().missing;
      if (missing.find("ld.acquire after") != std::string::npos) break;
    }
    EXPECT_NE(missing.find("needs a fence (__threadfence()) or ld.acquire after line"),
              std::string::npos)
        << entry << ": " << missing;
    EXPECT_EQ(missing.find("another thread of the block reads it") != std::string::npos,
              entry == "handed_on_no_acquire")
        << missing;
  }
}

TEST(StaleReads, AStoreThatHasNotSeenTheOtherMayEndBehindIt) {
  const auto slot = [](const std::string& entry, std::uint64_t seed, Report& report) {
    TestRun run(TestRun::TestData("stale.ptx"));
    const auto at = run.Zeros("slot", DType::kI32, 1, BufferRole::kOutput);
    const auto flag = run.Zeros("flag", DType::kI32, 1, BufferRole::kWorkspace);
    run.AddLaunch(entry, {2, 1, 1}, {32, 1, 1}, {TestRun::Ptr(at), TestRun::Ptr(flag)});
    run.execution.schedule = {Policy::kSequential, seed, 100};
    report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    return run.At(at, 0);
  };
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Report report;
    EXPECT_EQ(slot("overwrite", seed, report), 2);
    seen.insert(slot("overwrite_no_fences", seed, report));
    if (*seen.begin() != 1) continue;
    const auto note = std::ranges::find_if(report.stale_reads, [](const Finding& each) {
      return each.memory && each.memory->buffer == "slot";
    });
    ASSERT_NE(note, report.stale_reads.end());
    EXPECT_NE(note->message.find("ended behind"), std::string::npos) << note->message;
    EXPECT_NE(note->missing.find("a release behind line 162"), std::string::npos) << note->missing;
    break;
  }
  EXPECT_EQ(*seen.begin(), 1);
}

TEST(StaleReads, ALastBlockWithBothEdgesIsRightUnderAll) {
  for (const Schedule& schedule : Stale()) {
    for (const std::string entry : {"last_block", "handed_on", "last_thread"}) {
      TestRun run = LastBlock(entry, schedule);
      const Report report = run.Run();
      EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
      EXPECT_TRUE(report.findings.empty()) << Show(report);
      EXPECT_EQ(run.At(3, 0), kBlocks * 32) << entry;
      EXPECT_EQ(report.counters.stale_reads, 0u) << entry;
    }
  }
}

TEST(StaleReads, AScanWithoutFencesReadsTheFlagButNotTheSum) {
  TestRun run = Scan("chained_scan_no_fences", {Policy::kSequential, 0, 100});
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  EXPECT_NE(run.At(3, kBlocks - 1), kBlocks);
  // The polls missed flags, too, and saw them later: what they did not look at again comes first.
  ASSERT_GE(report.stale_reads.size(), 2u);
  EXPECT_EQ(report.stale_reads[0].memory->buffer, "prefix");
  EXPECT_EQ(report.stale_reads[1].memory->buffer, "flag");
}

TEST(StaleReads, AScanWithFencesPollsLongerAndIsRight) {
  std::uint64_t taken = 0;
  for (const Schedule& schedule : Stale()) {
    TestRun run = Scan("chained_scan", schedule);
    const Report report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    for (std::size_t i = 0; i < kBlocks; ++i) EXPECT_EQ(run.At(3, i), i + 1);
    taken += report.counters.stale_reads;
  }
  EXPECT_GT(taken, 0u);  // Of flags.
}

TEST(StaleReads, SharedMemoryIsNoDifferent) {
  const auto result = [](const std::string& entry, const Schedule& schedule) {
    TestRun run(TestRun::TestData("stale.ptx"));
    const auto out = run.Zeros("out", DType::kF32, 1);
    run.AddLaunch(entry, {1, 1, 1}, {64, 1, 1}, {TestRun::Ptr(out)});
    run.execution.schedule = schedule;
    const Report report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    return run.At(out, 0);
  };
  EXPECT_EQ(result("shared_flag", {Policy::kReversed, 0, 100}), 0);
  for (const Schedule& schedule : Stale()) EXPECT_EQ(result("shared_flag_fenced", schedule), 7);
}

TEST(StaleReads, AValueThatNobodyDependsOnMayBeOld) {
  for (const Schedule& schedule : Stale()) {
    TestRun run(TestRun::TestData("stale.ptx"));
    const auto best = run.Zeros("best", DType::kI32, 1, BufferRole::kOutput);
    const auto out = run.Zeros("out", DType::kI32, kBlocks);
    run.AddLaunch("benign_peek", {kBlocks, 1, 1}, {32, 1, 1},
                  {TestRun::Ptr(best), TestRun::Ptr(out)});
    run.execution.schedule = schedule;
    const Report report = run.Run();
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    EXPECT_EQ(run.At(best, 0), 40);
  }
}

TEST(StaleReads, FollowFromTheSeed) {
  const auto result = [](std::uint64_t seed) {
    TestRun run = Scan("chained_scan_no_fences", {Policy::kSequential, seed, 50});
    const Report report = run.Run();
    std::vector<double> out;
    for (std::size_t i = 0; i < kBlocks; ++i) out.push_back(run.At(3, i));
    out.push_back(static_cast<double>(report.counters.stale_reads));
    return out;
  };
  std::set<std::vector<double>> seen;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(result(seed), result(seed));
    seen.insert(result(seed));
  }
  EXPECT_GT(seen.size(), 1u);
}

}  // namespace
}  // namespace assay::emu
