// Special registers that tell where a thread runs, which is for the scheduler to choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

// Two warps a block write the block's multiprocessor and their own warp slots.
constexpr const char* kWhere = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry where(.param .u64 sm, .param .u64 slot) {
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [sm];
  ld.param.u64 %rd2, [slot];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra Done;
  mov.u32 %r3, %ctaid.x;
  shr.u32 %r4, %r1, 5;
  mad.lo.u32 %r5, %r3, 2, %r4;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  mov.u32 %r6, %smid;
  st.global.u32 [%rd4], %r6;
  mov.u32 %r7, %warpid;
  st.global.u32 [%rd5], %r7;
Done:
  ret;
}
)";

TEST(Special, WhereABlockRunsFollowsFromTheScheduleAlone) {
  constexpr std::size_t kBlocks = 40;
  const auto places = [](const Schedule& schedule) {
    TestRun run(kWhere);
    const auto sm = run.Uninitialised("sm", DType::kU32, 2 * kBlocks);
    const auto slot = run.Uninitialised("slot", DType::kU32, 2 * kBlocks);
    run.AddLaunch("where", {kBlocks, 1, 1}, {64, 1, 1}, {TestRun::Ptr(sm), TestRun::Ptr(slot)});
    run.execution.schedule = schedule;
    const Report report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    std::vector<double> values;
    for (const auto buffer : {sm, slot}) {
      for (std::size_t i = 0; i < 2 * kBlocks; ++i) values.push_back(run.At(buffer, i));
    }
    return values;
  };
  const std::vector<double> plain = places({});
  const Schedule permuted{.policy = Schedule::Policy::kPermuted, .seed = 3};
  const std::vector<double> other = places(permuted);
  EXPECT_EQ(other, places(permuted));
  std::set<double> used;
  bool elsewhere = false;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const double* sm = other.data() + 2 * block;
    const double* slot = sm + 2 * kBlocks;
    // In turn under the plain schedule.
    EXPECT_EQ(plain[2 * block], static_cast<double>(block));
    EXPECT_EQ(plain[2 * kBlocks + 2 * block + 1], 1);
    // One multiprocessor and two slots a block, wherever they are.
    EXPECT_EQ(sm[0], sm[1]);
    EXPECT_LT(sm[0], 132);
    EXPECT_NE(slot[0], slot[1]);
    EXPECT_LT(std::max(slot[0], slot[1]), 64);
    used.insert(sm[0]);
    elsewhere = elsewhere || slot[0] != 0;
  }
  EXPECT_GT(used.size(), kBlocks / 2);
  EXPECT_TRUE(elsewhere);
}

}  // namespace
}  // namespace assay::emu
