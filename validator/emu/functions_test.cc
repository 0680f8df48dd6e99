// Calls: parameters in registers, prototypes that do not fit, recursion without an end.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

constexpr std::uint32_t kThreads = 64;

std::string Module(const std::string& functions, const std::string& body) {
  return R"(.version 9.0
.target sm_90
.address_size 64
)" + functions +
         R"(
.visible .entry test(.param .u64 x, .param .u32 n)
{
  .reg .pred %p<4>;
  .reg .b16 %h<4>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<10>;
  .reg .f32 %f<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd2, %rd1, %rd2;
)" + body +
         "\n  st.global.u32 [%rd2], %r10;\n  ret;\n}\n";
}

struct Ran {
  Report report;
  std::vector<double> x;
};

Ran RunModule(const std::string& functions, const std::string& body, int n) {
  TestRun run(Module(functions, body));
  const std::uint32_t x = run.Zeros("x", DType::kI32, kThreads);
  run.AddLaunch("test", {1, 1, 1}, {kThreads, 1, 1}, {TestRun::Ptr(x), TestRun::Int(n)});
  Ran ran{.report = run.Run(), .x = {}};
  for (std::uint32_t i = 0; i < kThreads; ++i) ran.x.push_back(run.At(x, i));
  return ran;
}

void ExpectClean(const Ran& ran) {
  EXPECT_EQ(ran.report.stop, Stop::kCompleted) << Show(ran.report);
  EXPECT_TRUE(ran.report.findings.empty()) << Show(ran.report);
}

/// d = a * 3 + low half of w + h, e = w >> 32: all sizes, two results.
constexpr const char* kMixes = R"(
.func (.reg .u32 d, .reg .u64 e) mixes(.reg .u32 a, .reg .u64 w, .reg .b16 h)
{
  .reg .b32 %r<4>;
  cvt.u32.u64 %r1, w;
  mad.lo.u32 d, a, 3, %r1;
  cvt.u32.u16 %r2, h;
  add.u32 d, d, %r2;
  shr.u64 e, w, 32;
  ret;
}
)";

TEST(Functions, RegistersCarryArgumentsAndResults) {
  const Ran ran = RunModule(kMixes, R"(
  cvt.u64.u32 %rd3, %r2;
  shl.b64 %rd3, %rd3, 32;
  add.u64 %rd3, %rd3, 100;
  cvt.u16.u32 %h1, %r1;
  call (%r3, %rd4), mixes, (%r2, %rd3, %h1);
  cvt.u32.u64 %r4, %rd4;
  mad.lo.u32 %r10, %r4, 10000, %r3;)",
                            7);
  ExpectClean(ran);
  for (std::uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(ran.x[t], 10000 * t + 3 * t + 107) << t;
}

TEST(Functions, DivergentCallsAndEarlyReturnsKeepLanesApart) {
  const Ran ran = RunModule(R"(
.func (.reg .u32 d) steps(.reg .u32 a)
{
  .reg .pred %p<2>;
  mov.u32 d, a;
  setp.lt.u32 %p1, a, 20;
  @%p1 ret;
  add.u32 d, d, 1000;
  ret;
}
)",
                            R"(
  mov.u32 %r10, 5;
  and.b32 %r3, %r2, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 call (%r10), steps, (%r2);)",
                            0);
  ExpectClean(ran);
  for (std::uint32_t t = 0; t < kThreads; ++t)
    EXPECT_EQ(ran.x[t], t % 2 == 1 ? 5 : t < 20 ? t : t + 1000) << t;
}

/// n + (n - 1) + ... + 1, by recursion; without the test for 0, for ever.
std::string Triangle(bool ends) {
  return std::string(R"(
.func (.reg .u32 d) triangle(.reg .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  mov.u32 d, 0;
  setp.eq.u32 %p1, n, 0;
)") + (ends ? "  @%p1 ret;\n" : "") +
         R"(
  sub.u32 %r1, n, 1;
  call (%r2), triangle, (%r1);
  add.u32 d, n, %r2;
  ret;
}
)";
}
constexpr const char* kCallTriangle = R"(
  add.u32 %r3, %r1, %r2;
  call (%r10), triangle, (%r3);)";

TEST(Functions, RecursionKeepsEachLevelsRegisters) {
  const Ran ran = RunModule(Triangle(true), kCallTriangle, 3);
  ExpectClean(ran);
  for (std::uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(ran.x[t], (t + 3) * (t + 4) / 2) << t;
}

TEST(Functions, RecursionWithoutAnEndOverflowsTheStack) {
  const Ran ran = RunModule(Triangle(false), kCallTriangle, 3);
  ASSERT_EQ(ran.report.stop, Stop::kFault) << Show(ran.report);
  EXPECT_EQ(ran.report.findings.front().kind, FindingKind::kTrap);
  EXPECT_THAT(ran.report.findings.front().message, testing::HasSubstr("call stack overflows"));
  EXPECT_LT(ran.report.counters.steps, 1'000'000u);
}

TEST(Functions, WhatIsUndefinedStaysSoThroughACall) {
  const char* const kPasses = R"(
.func (.reg .u32 d) passes(.reg .u32 a, .reg .u32 b)
{
  mov.u32 d, a;
  ret;
}
)";
  // %r5 is never written. Passing it on is no use of it; storing what comes of it is.
  ExpectClean(RunModule(kPasses, "  call (%r10), passes, (%r2, %r5);", 0));
  const Ran ran = RunModule(kPasses, "  call (%r10), passes, (%r5, %r2);", 0);
  EXPECT_TRUE(HasFinding(ran.report, FindingKind::kUninitialisedUse)) << Show(ran.report);
}

TEST(Functions, AResultThatIsNeverSetIsUndefined) {
  const Ran ran = RunModule(R"(
.func (.reg .u32 d) forgets(.reg .u32 a)
{
  .reg .pred %p<2>;
  setp.eq.u32 %p1, a, 9;
  @%p1 mov.u32 d, a;
  ret;
}
)",
                            "  call (%r10), forgets, (%r2);", 0);
  EXPECT_TRUE(HasFinding(ran.report, FindingKind::kUninitialisedUse)) << Show(ran.report);
}

/// What is not run is refused before anything runs, with its line, and as not covered: that is no
/// fault of the kernel's.
TEST(Functions, WhatIsNotCoveredIsRefusedAtLoad) {
  const char* const kBodies[] = {
      "vshr.u32.u32.u32.clamp %r10, %r2, %r1;",
      "vadd.s32.s32.s32 %r10, %r2, %r1;",
      "vset4.u32.u32.eq.add %r10, %r2, %r1, %r2;",
      "ld.global.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd1];",
      ".reg .v4 .f32 %v;",
      ".global .u32 here;",
      "mov.b32 %r10, %r2.h0;",
  };
  for (const char* const body : kBodies) {
    const auto program = Program::Load(Module("", body));
    ASSERT_FALSE(program) << body;
    EXPECT_EQ(program.error().kind, ErrorKind::kUnsupported) << ToString(program.error());
    EXPECT_THAT(ToString(program.error()), testing::HasSubstr("ptx:17:")) << body;
  }
  EXPECT_TRUE(Program::Load(Module("", "mov.u32 %r10, %r2;")));
}

/// Calls `twice` through a pointer, with a prototype of our choice.
Ran RunIndirect(const std::string& prototype, const std::string& arguments) {
  return RunModule(R"(
.func (.param .b32 d) twice(.param .b32 a)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [a];
  add.u32 %r1, %r1, %r1;
  st.param.b32 [d], %r1;
  ret;
}
)",
                   R"(
  mov.u64 %rd5, twice;
  {
  .param .b32 one;
  .param .b64 wide;
  .param .b32 result;
  st.param.b32 [one], %r2;
  st.param.b64 [wide], %rd2;
  fits: .callprototype )" +
                       prototype + R"(;
  call (result), %rd5, ()" +
                       arguments + R"(), fits;
  ld.param.b32 %r10, [result];
  })",
                   0);
}

TEST(Functions, AnIndirectCallWithAnotherPrototypeIsAFinding) {
  const Ran right = RunIndirect("(.param .b32 _) _ (.param .b32 _)", "one");
  ExpectClean(right);
  EXPECT_EQ(right.x[5], 10);
  const struct {
    const char* prototype;
    const char* arguments;
    const char* problem;
  } kWrong[] = {
      {"(.param .b32 _) _ (.param .b64 _)", "wide", "argument 1 has 8 bytes where 4 are declared"},
      {"(.param .b32 _) _ (.param .b32 _, .param .b64 _)", "one, wide",
       "passes 2 arguments where 1 are declared"},
      {"(.param .b32 _) _ (.reg .b32 _)", "%r2", "argument 1"},
  };
  for (const auto& wrong : kWrong) {
    const Ran ran = RunIndirect(wrong.prototype, wrong.arguments);
    ASSERT_EQ(ran.report.stop, Stop::kFault) << wrong.prototype;
    ASSERT_EQ(ran.report.findings.size(), 1u);
    EXPECT_THAT(ran.report.findings[0].message, testing::HasSubstr("with another prototype"));
    EXPECT_THAT(ran.report.findings[0].message, testing::HasSubstr(wrong.problem));
  }
}

}  // namespace
}  // namespace assay::emu
