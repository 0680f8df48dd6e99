// alloca, stacksave and stackrestore, with a twin for each thing that can go wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

constexpr std::uint32_t kThreads = 64;

struct Ran {
  Report report;
  std::vector<double> x;
};

Ran RunKernel(const std::string& ptx, const char* entry, int n) {
  TestRun run(ptx);
  const std::uint32_t x = run.Zeros("x", DType::kF32, kThreads);
  run.AddLaunch(entry, {1, 1, 1}, {kThreads, 1, 1}, {TestRun::Ptr(x), TestRun::Int(n)});
  Ran ran{.report = run.Run(), .x = {}};
  for (std::uint32_t i = 0; i < kThreads; ++i) ran.x.push_back(run.At(x, i));
  return ran;
}

TEST(Stack, BlocksAreTheLanesOwnAndLastUntilTheFunctionReturns) {
  for (const int n : {1, 7, 300}) {
    const Ran ran = RunKernel(TestRun::TestData("stack.ptx"), "sums", n);
    ASSERT_EQ(ran.report.stop, Stop::kCompleted) << Show(ran.report);
    EXPECT_TRUE(ran.report.findings.empty()) << Show(ran.report);
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      const int mine = n + static_cast<int>(t % 3);
      EXPECT_EQ(ran.x[t], mine * (mine - 1) / 2 + 0.5 * n + 400 + 0.25 * n) << t;
    }
  }
}

TEST(Stack, AnOverrunIsOutOfBounds) {
  const Ran ran = RunKernel(TestRun::TestData("stack.ptx"), "overruns", 5);
  ASSERT_TRUE(HasFinding(ran.report, FindingKind::kOutOfBounds)) << Show(ran.report);
  EXPECT_THAT(ran.report.findings.front().message, testing::HasSubstr("alloca[5]"));
}

TEST(Stack, WhatNobodyWroteIsUndefined) {
  const Ran ran = RunKernel(TestRun::TestData("stack.ptx"), "forgets", 5);
  EXPECT_FALSE(ran.report.findings.empty());
  for (const Finding& finding : ran.report.findings)
    EXPECT_NE(finding.kind, FindingKind::kOutOfBounds) << Show(ran.report);
}

TEST(Stack, TooMuchOverflows) {
  const Ran ran = RunKernel(TestRun::TestData("stack.ptx"), "overflows", 1 << 20);
  ASSERT_EQ(ran.report.stop, Stop::kFault);
  EXPECT_THAT(ran.report.findings.front().message, testing::HasSubstr("overflows the stack"));
}

// Takes 16 bytes a round, and gives them back where %restore says so.
std::string Rounds(bool restores) {
  return R"(.version 8.5
.target sm_90
.address_size 64
.visible .entry rounds(.param .u64 x, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.f32 %f1, 0f00000000;
  mov.u64 %rd3, 1024;
$again:
  stacksave.u64 %rd2;
  alloca.u64 %rd4, %rd3, 64;
  and.b64 %rd6, %rd4, 63;
  cvt.rn.f32.u64 %f3, %rd6;
  st.local.f32 [%rd4+1020], 0f3F800000;
  ld.local.f32 %f2, [%rd4+1020];
  add.f32 %f1, %f1, %f2;
  add.f32 %f1, %f1, %f3;
)" + std::string(restores ? "  stackrestore.u64 %rd2;\n" : "") +
         R"(  sub.s32 %r1, %r1, 1;
  setp.gt.s32 %p1, %r1, 0;
  @%p1 bra $again;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd5, %rd1, %rd5;
  st.global.f32 [%rd5], %f1;
  ret;
}
)";
}

TEST(Stack, RestoringGivesBack) {
  const Ran restored = RunKernel(Rounds(true), "rounds", 3000);
  ASSERT_EQ(restored.report.stop, Stop::kCompleted) << Show(restored.report);
  EXPECT_TRUE(restored.report.findings.empty()) << Show(restored.report);
  EXPECT_EQ(restored.x[5], 3000);
  const Ran kept = RunKernel(Rounds(false), "rounds", 3000);
  EXPECT_EQ(kept.report.stop, Stop::kFault) << "3 MB a thread";
}

}  // namespace
}  // namespace assay::emu
