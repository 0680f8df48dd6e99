// Loops that a step limit cut off: shown to be without end, or not. Each with a twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

/// for (i = tid; i < n; i += step) `body`, where i has 32 bits and is compared as `compared` says.
std::string Loop(const std::string& body, const std::string& compared) {
  return R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry loops(.param .u64 x, .param .u64 n, .param .u32 step)
{
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [n];
  ld.param.u32 %r2, [step];
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd5, %r1;
AGAIN:
)" + body +
         R"(
  add.u32 %r1, %r1, %r2;
  cvt.u64.u32 %rd6, %r2;
  add.u64 %rd5, %rd5, %rd6;
)" + compared +
         R"(
  @%p1 bra AGAIN;
  ret;
}
)";
}

const char* const kNarrow = "cvt.u64.u32 %rd3, %r1;\nsetp.lt.u64 %p1, %rd3, %rd2;";
const char* const kWide = "setp.lt.u64 %p1, %rd5, %rd2;";
const char* const kAdds = "cvta.to.global.u64 %rd4, %rd1;\nred.global.add.u32 [%rd4], 1;";
/// The bound is what memory holds.
const char* const kAsks =
    "cvta.to.global.u64 %rd4, %rd1;\nld.global.u32 %r5, [%rd4];\n"
    "setp.ne.u32 %p2, %r5, 77;\n@!%p2 bra DONE;\n";
const char* const kMeets = "bar.sync 0;";

class Endless : public ::testing::Test {
 protected:
  static Report Run(const std::string& ptx, std::uint64_t n, std::uint32_t step,
                    std::uint32_t threads = 64) {
    TestRun run(ptx);
    const std::uint32_t x = run.Buffer("x", DType::kI32, {0}, BufferRole::kOutput);
    run.AddLaunch(
        "loops", {2, 1, 1}, {threads, 1, 1},
        {TestRun::Ptr(x), TestRun::Value(DType::kI64, n), TestRun::Value(DType::kI32, step)});
    run.execution.limits.max_steps = 40'000'000;
    run.execution.checks = {};
    return run.Run();
  }
};

constexpr std::uint64_t kPast32 = std::uint64_t{1} << 32;

TEST_F(Endless, AnIndexThatWrapsBelowItsBoundIs) {
  for (const std::uint64_t n : {kPast32 - 4096, kPast32, kPast32 + 5}) {
    const Report report = Run(Loop(kAdds, kNarrow), n, 1 << 20);
    ASSERT_TRUE(HasFinding(report, FindingKind::kLivelock)) << n << Show(report);
    EXPECT_THAT(report.findings.front().message, testing::HasSubstr("after 4096 rounds"));
    EXPECT_EQ(report.findings.front().missing, "");
    EXPECT_EQ(report.stop, Stop::kFault);
  }
}

TEST_F(Endless, TheSameCountedIn64BitsIsNot) {
  const Report report = Run(Loop(kAdds, kWide), kPast32 * 1024, 1 << 20);
  EXPECT_EQ(report.stop, Stop::kStepLimit) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
}

TEST_F(Endless, OneThatEndsBeforeItWrapsIsNot) {
  const Report report = Run(Loop(kAdds, kNarrow), kPast32 - (1 << 20), 1 << 20);
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
}

TEST_F(Endless, AStepOfNothingIs) {
  const Report report = Run(Loop(kAdds, kWide), 1000, 0);
  ASSERT_TRUE(HasFinding(report, FindingKind::kLivelock)) << Show(report);
  EXPECT_THAT(report.findings.front().message, testing::HasSubstr("after 1 round "));
}

TEST_F(Endless, BarriersOnTheWayDoNotMatter) {
  EXPECT_TRUE(HasFinding(Run(Loop(kMeets, kNarrow), kPast32, 1 << 22), FindingKind::kLivelock));
  EXPECT_EQ(Run(Loop(kMeets, kWide), kPast32 * 1024, 1 << 20).stop, Stop::kStepLimit);
}

TEST_F(Endless, WhereMemoryMayEndItNothingIsSaid) {
  std::string text = Loop(std::string(kAdds) + kAsks, kNarrow);
  text.replace(text.rfind("ret;"), 4, "DONE: ret;");
  const Report report = Run(text, kPast32, 1 << 20);
  EXPECT_EQ(report.stop, Stop::kStepLimit) << Show(report);
  EXPECT_FALSE(HasFinding(report, FindingKind::kLivelock)) << Show(report);
}

TEST_F(Endless, AClockOrAnotherLaneMayEndItToo) {
  for (const char* const decides :
       {"mov.u32 %r5, %clock;", "shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;"}) {
    std::string text =
        Loop(std::string(kAdds) + decides + "\nsetp.eq.u32 %p2, %r5, 3;\n@%p2 bra DONE;", kNarrow);
    text.replace(text.rfind("ret;"), 4, "DONE: ret;");
    const Report report = Run(text, kPast32, 1 << 20);
    EXPECT_FALSE(HasFinding(report, FindingKind::kLivelock)) << decides << Show(report);
  }
}

}  // namespace
}  // namespace assay::emu
