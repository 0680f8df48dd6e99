// Steps count what the emulator does: a matrix product is more than one instruction a lane.
#include "validator/emu/work.h"

#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

/// `rounds` products, or additions in their place.
std::string Rounds(const std::string& step) {
  return R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry rounds(.param .u64 x, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f00000000;
  mov.f32 %f3, 0f00000000;
  mov.f32 %f4, 0f00000000;
$again:
)" + step +
         R"(
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $again;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd2, %rd1, %rd2;
  st.global.f32 [%rd2], %f1;
  ret;
}
)";
}

Counters CountersOf(const std::string& step, int rounds, std::uint64_t limit, Stop stop) {
  TestRun run(Rounds(step));
  const std::uint32_t x = run.Zeros("x", DType::kF32, 32);
  run.AddLaunch("rounds", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(x), TestRun::Int(rounds)});
  run.execution.limits.max_steps = limit;
  const Report report = run.Run();
  EXPECT_EQ(report.stop, stop) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  return report.counters;
}
std::uint64_t StepsOf(const std::string& step, int rounds, std::uint64_t limit, Stop stop) {
  return CountersOf(step, rounds, limit, stop).steps;
}

constexpr const char* kProduct =
    "  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r2, %r2, "
    "%r2},"
    " {%r2, %r2}, {%f1, %f2, %f3, %f4};";
constexpr const char* kAddition = "  add.f32 %f1, %f1, %f2;";

TEST(Work, ProductsCountByTheirMultiplications) {
  constexpr std::uint64_t kEnough = 1'000'000'000;
  const std::uint64_t products = StepsOf(kProduct, 100, kEnough, Stop::kCompleted);
  const std::uint64_t additions = StepsOf(kAddition, 100, kEnough, Stop::kCompleted);
  EXPECT_EQ(products - additions, 100 * 16 * 8 * 16 / kProductsOfStep);
}

// Beyond what the loop around them takes, whatever the number of lanes.
TEST(Work, LoadsAndProductsTakeAsLongAsManyAdditions) {
  constexpr std::uint64_t kEnough = 1'000'000'000;
  const auto work_of = [](const std::string& step) {
    return CountersOf(step, 100, kEnough, Stop::kCompleted).work;
  };
  const std::uint64_t additions = work_of(kAddition);
  EXPECT_GT(work_of(kProduct), additions + 100 * 16 * 8 * 16 / 32);
  const std::string own =
      "  mov.u32 %r5, %tid.x;\n  mul.wide.u32 %rd3, %r5, 4;\n  add.s64 %rd3, %rd1, %rd3;\n";
  EXPECT_GT(work_of(own + "  ld.global.f32 %f1, [%rd3];"), additions + 100 * 16);
  EXPECT_EQ(work_of("  ld.param.u32 %r4, [n];"), additions);
}

TEST(Work, ALimitEndsProductsAtTheirCount) {
  // As instructions a lane alone, these would fit.
  StepsOf(kProduct, 10'000, 1'500'000, Stop::kStepLimit);
  StepsOf(kAddition, 10'000, 1'500'000, Stop::kCompleted);
}

TEST(Work, ALimitEndsARoundOfManyBlocks) {
  constexpr std::uint64_t kLimit = 1'000'000;
  TestRun run(Rounds(kAddition));
  const std::uint32_t x = run.Zeros("x", DType::kF32, 32);
  run.AddLaunch("rounds", {64, 1, 1}, {32, 1, 1}, {TestRun::Ptr(x), TestRun::Int(100'000)});
  run.execution.checks.race = false;
  run.execution.limits.max_steps = kLimit;
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kStepLimit) << Show(report);
  // A turn of one block more, not of all.
  EXPECT_LT(report.counters.steps, kLimit + 500'000);
}

}  // namespace
}  // namespace assay::emu
