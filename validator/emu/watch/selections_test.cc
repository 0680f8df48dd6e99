// Which ways branches and selections went (watch/selections.h).
#include "validator/emu/watch/selections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"
#include "validator/execution/coverage.h"

namespace assay::emu {
namespace {

/// Sides of what a kernel of one warp chooses by `%tid.x < limit`, in the order of the text.
std::vector<int> SidesOf(const std::string& chooses, int limit, bool coverage = true) {
  TestRun run(R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y, .param .u32 limit) {
  .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .pred %p<2>;
  ld.param.u64 %d1, [y]; ld.param.u32 %r1, [limit]; mov.u32 %r2, %tid.x;
  setp.lt.s32 %p1, %r2, %r1; mov.u32 %r3, 7;
)" + chooses + R"(
  mul.wide.u32 %d2, %r2, 4; add.s64 %d1, %d1, %d2; st.global.u32 [%d1], %r3; ret;
})");
  const auto y = run.Zeros("y", DType::kU32, 32);
  run.AddLaunch("k", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(y), TestRun::Int(limit)});
  run.execution.checks.coverage = coverage;
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  std::vector<int> sides;
  for (const BranchCoverage& each : report.coverage) sides.push_back(each.sides);
  return sides;
}

TEST(Selections, AreToldByTheWaysThatTheyWent) {
  using ::testing::ElementsAre;
  const std::string select = "selp.b32 %r3, %r1, %r2, %p1;";
  EXPECT_THAT(SidesOf(select, 32), ElementsAre(kOfSelection | kWentFirst));
  EXPECT_THAT(SidesOf(select, 0), ElementsAre(kOfSelection | kWentSecond));
  EXPECT_THAT(SidesOf(select, 5), ElementsAre(kOfSelection | kBothWays));
  EXPECT_THAT(SidesOf("selp.b32 %r3, %r1, %r2, !%p1;", 32),
              ElementsAre(kOfSelection | kWentSecond));
  // Of the lanes that run it alone.
  EXPECT_THAT(SidesOf("@%p1 bra L; selp.b32 %r3, %r1, %r2, %p1; L:", 5),
              ElementsAre(kBothWays, kOfSelection | kWentSecond));
}

TEST(Selections, AreNotToldWhereNobodyAsks) {
  EXPECT_THAT(SidesOf("selp.b32 %r3, %r1, %r2, %p1;", 5, false), ::testing::IsEmpty());
  // What no predicate chooses is no selection.
  EXPECT_THAT(SidesOf("max.s32 %r3, %r1, %r2;", 5), ::testing::IsEmpty());
}

}  // namespace
}  // namespace assay::emu
