// How large numbers became of which instructions keep few digits (watch/narrow_numbers.h).
#include "validator/emu/watch/narrow_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Something hangs on all of %d2.
const std::string kUse = "setp.lt.u64 %p1, %d2, %d1;";

/// What is told of a kernel of one warp whose threads have `%r1`, which is `times` their own number, and `%r2`, which is
/// one less than nothing: which of its factors, how many digits, and the largest.
std::vector<std::vector<std::uint64_t>> NumbersOf(const std::string& uses, int times = 100,
                                                  bool coverage = true) {
  TestRun run(R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y, .param .u32 times) {
  .reg .b16 %h<3>; .reg .b32 %r<6>; .reg .b64 %d<5>; .reg .pred %p<2>;
  ld.param.u64 %d1, [y]; ld.param.u32 %r3, [times]; mov.u32 %r4, %tid.x;
  mul.lo.s32 %r1, %r4, %r3; mov.s32 %r2, -1;
  setp.lt.u32 %p1, %r4, 5;
)" + uses + R"(
  ret;
})");
  const auto y = run.Zeros("y", DType::kU32, 32);
  run.AddLaunch("k", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(y), TestRun::Int(times)});
  run.execution.checks.coverage = coverage;
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  std::vector<std::vector<std::uint64_t>> numbers;
  for (const NarrowNumber& each : report.numbers)
    numbers.push_back({each.which, each.digits, each.most});
  return numbers;
}

TEST(NarrowNumbers, AreToldWhereTheyAreWidened) {
  EXPECT_THAT(NumbersOf("cvt.u64.u32 %d2, %r1;" + kUse), ElementsAre(ElementsAre(0, 32, 3100)));
  EXPECT_THAT(NumbersOf("cvt.s64.s32 %d2, %r1;" + kUse), ElementsAre(ElementsAre(0, 31, 3100)));
  EXPECT_THAT(NumbersOf("mul.wide.s32 %d2, %r1, 4;" + kUse), ElementsAre(ElementsAre(0, 31, 3100)));
  EXPECT_THAT(NumbersOf("mad.wide.u32 %d2, %r1, %r4, %d1;" + kUse),
              ElementsAre(ElementsAre(0, 32, 3100), ElementsAre(1, 32, 31)));
  // What is computed in full is whole whatever it comes to, and so is what stays as it is.
  EXPECT_THAT(NumbersOf("add.u64 %d2, %d1, 3100; mov.u32 %r5, %r1;"), IsEmpty());
}

TEST(NarrowNumbers, AreToldWhereLessOfThemIsKept) {
  EXPECT_THAT(NumbersOf("cvt.u16.u32 %h1, %r1;"), ElementsAre(ElementsAre(0, 16, 3100)));
  EXPECT_THAT(NumbersOf("cvt.u16.u32 %h1, %r1;", 10'000), ElementsAre(ElementsAre(0, 16, 310'000)))
      << "as it was before";
}

// A buffer's bytes of 16 bits: what is shifted out of them is lost before they are widened.
TEST(NarrowNumbers, AreToldWhereTheyWereComputedInSixteenBits) {
  const std::string half = "cvt.u16.u32 %h1, %r4; shl.b16 %h2, %h1, 2; ";
  EXPECT_THAT(NumbersOf(half + "cvt.u32.u16 %r5, %h2;"),
              ElementsAre(ElementsAre(0, 16, 31), ElementsAre(0, 16, 124)));
  EXPECT_THAT(NumbersOf(half + "mul.wide.u16 %r5, %h2, 16;"),
              ElementsAre(ElementsAre(0, 16, 31), ElementsAre(0, 16, 124)));
  // All of it was put there.
  EXPECT_THAT(NumbersOf("mov.u16 %h2, 5; cvt.u32.u16 %r5, %h2;"), IsEmpty());
}

TEST(NarrowNumbers, OrCutOffByAMaskOrAStore) {
  // A compiler's way to write x[static_cast<unsigned>(offset)] with offsets of 64 bits, in bytes.
  const std::string bytes = "mul.wide.u32 %d2, %r4, 200; ";
  EXPECT_THAT(NumbersOf(bytes + "and.b64 %d3, %d2, 8589934590;"),
              ElementsAre(ElementsAre(0, 33, 6200)));
  EXPECT_THAT(NumbersOf("and.b32 %r5, %r1, 65535;"), ElementsAre(ElementsAre(0, 16, 3100)));
  EXPECT_THAT(NumbersOf("st.global.u16 [%d1], %r1;"), ElementsAre(ElementsAre(0, 16, 3100)));
  // Digits of something smaller, whole multiples, and what is stored as it is.
  EXPECT_THAT(NumbersOf("and.b32 %r5, %r1, 255;"), IsEmpty());
  EXPECT_THAT(NumbersOf("and.b32 %r5, %r1, -4;"), IsEmpty());
  EXPECT_THAT(NumbersOf("st.global.u32 [%d1], %r1; mov.u16 %h1, 5; st.global.u16 [%d1], %h1;"),
              IsEmpty());
}

TEST(NarrowNumbers, NotWhereNothingIsLost) {
  EXPECT_THAT(NumbersOf("cvt.u64.u32 %d2, %r1;"), IsEmpty()) << "nobody uses it";
  // The compiler's way to divide in 32 bits what fits in them.
  EXPECT_THAT(NumbersOf("cvt.u64.u32 %d2, %r1; add.s64 %d3, %d2, %d1; cvt.u32.u64 %r5, %d3;"),
              IsEmpty());
  EXPECT_THAT(NumbersOf("div.u32 %r5, %r1, %r3; cvt.u64.u32 %d2, %r5;" + kUse), IsEmpty());
  const std::string low = "mul.lo.u32 %r5, %r1, %r3; cvt.u64.u32 %d2, %r5;" + kUse;
  EXPECT_THAT(NumbersOf(low), ElementsAre(ElementsAre(0, 32, 310'000)));
  EXPECT_THAT(NumbersOf(low + "mul.hi.u32 %r4, %r3, %r1;"), IsEmpty());
}

TEST(NarrowNumbers, OfLanesThatRunAndAreNotNegative) {
  EXPECT_THAT(NumbersOf("mov.u64 %d2, 0; @%p1 cvt.u64.u32 %d2, %r1;" + kUse),
              ElementsAre(ElementsAre(0, 32, 400)));
  EXPECT_THAT(NumbersOf("cvt.s64.s32 %d2, %r2;" + kUse), IsEmpty());
  EXPECT_THAT(NumbersOf("cvt.u64.u32 %d2, %r1;" + kUse, 100, /*coverage=*/false), IsEmpty());
}

}  // namespace
}  // namespace assay::emu
