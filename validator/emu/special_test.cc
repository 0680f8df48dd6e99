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

// Each lane writes how many lanes the mask names; a leader of each mask adds that number to a
// total.
constexpr const char* kMasks = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry masks(.param .u64 counts, .param .u64 total) {
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [counts];
  ld.param.u64 %rd2, [total];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd3, %rd1, %rd3;
  activemask.b32 %r2;
  popc.b32 %r3, %r2;
  st.global.u32 [%rd3], %r3;
  mov.u32 %r4, %lanemask_lt;
  and.b32 %r4, %r4, %r2;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra Done;
  red.global.add.u32 [%rd2], %r3;
Done:
  ret;
}
)";

TEST(Special, AMaskOfThoseWhoAreThereMayNameAnyOfThem) {
  bool whole = false;
  bool parted = false;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const auto policy : {Schedule::Policy::kSequential, Schedule::Policy::kPermuted}) {
      TestRun run(kMasks);
      const auto counts = run.Uninitialised("counts", DType::kU32, 32);
      const auto total = run.Zeros("total", DType::kU32, 1);
      run.AddLaunch("masks", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(counts), TestRun::Ptr(total)});
      run.execution.schedule = {.policy = policy, .seed = seed};
      const Report report = run.Run();
      EXPECT_TRUE(report.findings.empty()) << Show(report);
      EXPECT_EQ(run.At(total, 0), 32) << "whoever was together, each counts once";
      whole = whole || run.At(counts, 0) == 32;
      parted = parted || run.At(counts, 0) < 32;
      if (policy == Schedule::Policy::kSequential) {
        EXPECT_EQ(run.At(counts, 7), 32);
      }
    }
  }
  EXPECT_TRUE(whole);
  EXPECT_TRUE(parted);
}

// Each block counts itself, waits a while for the others, and writes how many it has seen.
constexpr const char* kResidents = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry residents(.param .u64 count, .param .u64 seen) {
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [count];
  ld.param.u64 %rd2, [seen];
  atom.global.add.u32 %r1, [%rd1], 1;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, 0;
Again:
  ld.relaxed.gpu.global.u32 %r4, [%rd1];
  add.u32 %r3, %r3, 1;
  setp.ge.u32 %p1, %r4, %r2;
  @%p1 bra Done;
  setp.lt.u32 %p2, %r3, 3000;
  @%p2 bra Again;
Done:
  mov.u32 %r5, %ctaid.x;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r4;
  ret;
}
)";

TEST(Special, AsManyBlocksAreResidentAsAChipHolds) {
  const auto most = [](std::uint32_t blocks, std::uint64_t shared) {
    TestRun run(kResidents);
    const auto count = run.Zeros("count", DType::kU32, 1);
    const auto seen = run.Uninitialised("seen", DType::kU32, blocks);
    run.AddLaunch("residents", {blocks, 1, 1}, {1, 1, 1}, {TestRun::Ptr(count), TestRun::Ptr(seen)},
                  shared);
    run.execution.schedule = {.policy = Schedule::Policy::kPermuted, .seed = 5};
    const Report report = run.Run();
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    double first = blocks;
    for (std::uint32_t i = 0; i < blocks; ++i) first = std::min(first, run.At(seen, i));
    return first;
  };
  EXPECT_EQ(most(200, 0), 200) << "every block sees all the others";
  EXPECT_LT(most(200, 200 << 10), 200) << "132 fit, one each";
}

}  // namespace
}  // namespace assay::emu
