// What the machine chose stays its choice whatever copies it: for each way that bytes can take through
// memory, a kernel that hands on a value which stands at a place of the machine's choosing, and its
// twin, whose place follows from the thread's number. Bodies compute %r1 for thread %r8 of one warp;
// %rd1 is the output, %rd2 workspace of 256 words, %rd3 an input of 64. %r7 is 0 or 4: by the machine
// where `$` stands for %smid, by the thread where it stands for %tid.x.
#include "validator/emu/watch/copied_bytes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

struct Case {
  const char* name;
  const char* body;
};

/// mbarrier `bar` is initialised for one arrival; all threads wait for its first phase.
#define ASSAY_WAIT "Again: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra Again;"
#define ASSAY_ONE "setp.ne.u32 %p1, %r8, 0; @%p1 bra On;"
#define ASSAY_BULK_GROUP "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"

const Case kWays[] = {
    // A store at the place, and a load of what stands beside it or under it.
    {"store_to_workspace",
     "add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; ld.global.u32 %r1, [%rd2];"},
    {"store_to_workspace_read_beside",
     "add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; ld.global.u32 %r1, [%rd2+4];"},
    {"store_of_a_vector",
     "shl.b64 %rd7, %rd7, 1; add.s64 %rd9, %rd2, %rd7; st.global.v2.u32 [%rd9], {1, 2}; bar.sync "
     "0; "
     "ld.global.u32 %r1, [%rd2+4];"},
    {"store_to_shared",
     "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; bar.sync 0; ld.shared.u32 %r1, [tile];"},
    {"atomic_in_workspace",
     "add.s64 %rd9, %rd2, %rd7; red.global.add.u32 [%rd9], 1; bar.sync 0; ld.global.u32 %r1, "
     "[%rd2+4];"},
    {"atomic_in_shared",
     "add.u32 %r2, %r6, %r7; red.shared.add.u32 [%r2], 1; bar.sync 0; ld.shared.u32 %r1, [tile];"},
    {"scaled_index",
     "shr.u32 %r2, %r7, 2; mul.wide.u32 %rd9, %r2, 12; add.s64 %rd9, %rd2, %rd9; st.global.u32 "
     "[%rd9], 1; bar.sync 0; ld.global.u32 %r1, [%rd2];"},
    // Read back by other means than ld.
    {"read_by_cp_async",
     "add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; shl.b32 %r3, %r8, 2; add.u32 "
     "%r3, %r3, %r6; cp.async.ca.shared.global [%r3], [%rd2], 4; cp.async.wait_all; ld.shared.u32 "
     "%r1, [%r3];"},
    {"read_by_bulk_copy",
     "add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; fence.proxy.async; " ASSAY_ONE
     " mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16; "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2], 16, [bar]; "
     "On: " ASSAY_WAIT " ld.shared.u32 %r1, [tile+4];"},
    {"read_by_ldmatrix",
     "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; bar.sync 0; "
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [tile];"},
    {"moved_on_by_bulk_copy",
     "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; fence.proxy.async; bar.sync 0; " ASSAY_ONE
     " cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 16; " ASSAY_BULK_GROUP
     " On: bar.sync 0; ld.global.u32 %r1, [%rd2];"},
    {"added_by_bulk_copy",
     "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; fence.proxy.async; bar.sync 0; " ASSAY_ONE
     " cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [tile], "
     "16; " ASSAY_BULK_GROUP " On: bar.sync 0; ld.global.u32 %r1, [%rd2];"},
    {"multiplied",
     "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; bar.sync 0; "
     "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2, %r3}, [tile]; mov.b32 %r4, 0; "
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3}, {%r4}, "
     "{0f00000000, 0f00000000, 0f00000000, 0f00000000}; mov.b32 %r1, %f1;"},
    // Written by other means than st.
    {"written_by_cp_async",
     "add.u32 %r2, %r6, %r7; " ASSAY_ONE
     " cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.wait_all; On: bar.sync 0; "
     "ld.shared.u32 %r1, [tile];"},
    {"written_by_bulk_copy",
     "shl.b32 %r2, %r7, 2; add.u32 %r2, %r2, %r6; " ASSAY_ONE
     " mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16; "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd3], 16, [bar]; "
     "On: " ASSAY_WAIT " ld.shared.u32 %r1, [tile];"},
    {"written_by_bulk_copy_to_workspace",
     "shl.b64 %rd7, %rd7, 2; add.s64 %rd9, %rd2, %rd7; fence.proxy.async; " ASSAY_ONE
     " cp.async.bulk.global.shared::cta.bulk_group [%rd9], [tile], 16; " ASSAY_BULK_GROUP
     " On: bar.sync 0; ld.global.u32 %r1, [%rd2];"},
    {"written_by_stmatrix",
     "shl.b32 %r2, %r7, 2; add.u32 %r2, %r2, %r6; and.b32 %r3, %r8, 7; shl.b32 %r3, %r3, 5; "
     "add.u32 "
     "%r2, %r2, %r3; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r8}; bar.sync 0; "
     "ld.shared.u32 %r1, [tile];"},
    {"written_by_st_async",
     "add.u32 %r2, %r6, %r7; " ASSAY_ONE " mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4; "
     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r8, [bar]; "
     "On: " ASSAY_WAIT " ld.shared.u32 %r1, [tile];"},
    // Read at the place by other means than ld.
    {"taken_by_cp_async",
     "add.s64 %rd9, %rd3, %rd7; shl.b32 %r3, %r8, 2; add.u32 %r3, %r3, %r6; "
     "cp.async.ca.shared.global [%r3], [%rd9], 4; cp.async.wait_all; ld.shared.u32 %r1, [%r3];"},
    {"taken_by_cp_async_in_part",
     "shl.b32 %r3, %r8, 2; add.u32 %r3, %r3, %r6; cp.async.ca.shared.global [%r3], [%rd3], 4, %r7; "
     "cp.async.wait_all; ld.shared.u32 %r1, [%r3];"},
    {"taken_by_bulk_copy",
     "shl.b64 %rd7, %rd7, 2; add.s64 %rd9, %rd3, %rd7; " ASSAY_ONE
     " mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16; "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd9], 16, [bar]; "
     "On: " ASSAY_WAIT " ld.shared.u32 %r1, [tile+4];"},
    {"taken_by_ldmatrix",
     "shl.b32 %r2, %r7, 2; add.u32 %r2, %r2, %r6; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, "
     "[%r2];"},
};

Report RunWay(const std::string& body, const char* chooses, const std::string& before = "") {
  TestRun run(fmt::format(R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 work, .param .u64 in) {{
  .shared .align 128 .b32 tile[512];
  .shared .align 8 .b64 bar;
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [work];
  ld.param.u64 %rd3, [in];
  mov.u32 %r8, %tid.x;
  mov.u32 %r6, tile;
  shl.b32 %r5, %r8, 6;
  add.u32 %r5, %r5, %r6;
  st.shared.v4.u32 [%r5], {{0, 0, 0, 0}};
  st.shared.v4.u32 [%r5+16], {{0, 0, 0, 0}};
  st.shared.v4.u32 [%r5+32], {{0, 0, 0, 0}};
  st.shared.v4.u32 [%r5+48], {{0, 0, 0, 0}};
  setp.ne.u32 %p1, %r8, 0;
  @!%p1 mbarrier.init.shared.b64 [bar], 1;
  fence.proxy.async;
  bar.sync 0;
  mov.u32 %r7, {};
  and.b32 %r7, %r7, 1;
  shl.b32 %r7, %r7, 2;
  cvt.u64.u32 %rd7, %r7;
  {}
  {}
  mul.wide.u32 %rd4, %r8, 4;
  add.s64 %rd1, %rd1, %rd4;
  st.global.u32 [%rd1], %r1;
  ret;
}})",
                          chooses, before, body));
  const auto out = run.Zeros("out", DType::kU32, 32);
  const auto work = run.Zeros("work", DType::kU32, 256, BufferRole::kWorkspace);
  const auto in = run.Buffer("in", DType::kU32, std::vector<double>(64, 3));
  run.AddLaunch("k", {1, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(out), TestRun::Ptr(work), TestRun::Ptr(in)});
  run.execution.checks.race = false;
  return run.Run();
}

class Copied : public ::testing::TestWithParam<Case> {};

TEST_P(Copied, KeepsWhatTheMachineChose) {
  const Report report = RunWay(GetParam().body, "%smid");
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  ASSERT_FALSE(report.findings.empty());
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(finding.kind, FindingKind::kMachineDependent) << Show(report);
    EXPECT_NE(finding.message.find("%smid"), std::string::npos) << Show(report);
  }
}

TEST_P(Copied, KeepsWhatTheThreadChose) {
  const Report report = RunWay(GetParam().body, "%tid.x");
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_TRUE(report.findings.empty()) << Show(report);
}

INSTANTIATE_TEST_SUITE_P(Ways, Copied, ::testing::ValuesIn(kWays),
                         [](const auto& tested) { return std::string(tested.param.name); });

// A bit of a buffer's address chooses as well as a register does, in shared memory too.
TEST(CopiedBytes, AddressesChoosePlaces) {
  constexpr const char* kBit =
      "shr.u64 %rd8, %rd3, 20; cvt.u32.u64 %r7, %rd8; and.b32 %r7, %r7, 1; "
      "shl.b32 %r7, %r7, 2; cvt.u64.u32 %rd7, %r7;";
  for (const char* const body :
       {"add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; ld.global.u32 %r1, [%rd2];",
        "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; bar.sync 0; ld.shared.u32 %r1, [tile];",
        "add.u32 %r2, %r6, %r7; ld.shared.u32 %r1, [%r2];"}) {
    const Report report = RunWay(body, "%tid.x", kBit);
    EXPECT_TRUE(HasFinding(report, FindingKind::kMachineDependent)) << body << Show(report);
  }
}

// What lies beyond all places that may have been meant is as it was, and so is what was put there
// afterwards.
TEST(CopiedBytes, OtherPlacesKeepTheirs) {
  for (const char* const body :
       {"add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; ld.global.u32 %r1, "
        "[%rd2+8];",
        "add.s64 %rd9, %rd2, %rd7; st.global.u32 [%rd9], 1; bar.sync 0; st.global.u32 [%rd2+4], 5; "
        "ld.global.u32 %r1, [%rd2+4];",
        "add.u32 %r2, %r6, %r7; st.shared.u32 [%r2], 1; bar.sync 0; ld.shared.u32 %r1, "
        "[tile+8];"}) {
    const Report report = RunWay(body, "%smid");
    EXPECT_TRUE(report.findings.empty()) << body << Show(report);
  }
}

// A pointer that a copy puts elsewhere is one all the same.
TEST(CopiedBytes, PointersStayPointers) {
  const Report report = RunWay(
      "st.global.u64 [%rd2+64], %rd3; bar.sync 0; shl.b32 %r3, %r8, 3; add.u32 %r3, %r3, %r6; "
      "add.s64 %rd9, %rd2, 64; cp.async.ca.shared.global [%r3], [%rd9], 8; cp.async.wait_all; "
      "ld.shared.u64 %rd9, [%r3]; ld.global.u32 %r1, [%rd9];",
      "%tid.x");
  EXPECT_TRUE(report.findings.empty()) << Show(report);
  const Report looked_at = RunWay(
      "st.global.u64 [%rd2+64], %rd3; bar.sync 0; shl.b32 %r3, %r8, 3; add.u32 %r3, %r3, %r6; "
      "add.s64 %rd9, %rd2, 64; cp.async.ca.shared.global [%r3], [%rd9], 8; cp.async.wait_all; "
      "ld.shared.u32 %r1, [%r3+4];",
      "%tid.x");
  EXPECT_TRUE(HasFinding(looked_at, FindingKind::kMachineDependent)) << Show(looked_at);
}

// Where a copy goes is computed from something.
TEST(CopiedBytes, PlacesAreDefined) {
  const Report report = RunWay(
      "shl.b32 %r3, %r8, 2; add.u32 %r3, %r3, %r6; and.b32 %r9, %r9, 0; and.b32 %r10, %r10, 4; "
      "cvt.u64.u32 %rd9, %r10; and.b64 %rd9, %rd9, 4; add.s64 %rd9, %rd3, %rd9; "
      "cp.async.ca.shared.global [%r3], [%rd9], 4; cp.async.wait_all; ld.shared.u32 %r1, [%r3];",
      "%tid.x");
  EXPECT_TRUE(HasFinding(report, FindingKind::kUninitialisedUse)) << Show(report);
}

}  // namespace
}  // namespace assay::emu
