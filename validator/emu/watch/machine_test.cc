// What the machine chooses must not reach a result: for each source and each way, a kernel that shows
// it and one, nearly the same, that uses it for its purpose. Bodies compute %r1 for thread %r8, with
// the buffers' addresses in %rd1 (out), %rd2 (x, 64 words) and %rd3 (z, 64 words).
#include "validator/emu/watch/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

struct Case {
  const char* name;
  const char* body;
  const char* names;  ///< Part of the message; null: nothing may be found.
};

const Case kSpecials[] = {
    {"smid", "mov.u32 %r1, %smid;", "%smid"},
    {"smid_unused", "mov.u32 %r2, %smid; mov.u32 %r1, 7;", nullptr},
    {"smid_in_sum", "mov.u32 %r2, %smid; add.u32 %r1, %r8, %r2;", "%smid"},
    {"smid_masked_out", "mov.u32 %r2, %smid; and.b32 %r1, %r2, 0;", nullptr},
    {"smid_as_float", "mov.u32 %r2, %smid; cvt.rn.f32.u32 %f1, %r2; cvt.rzi.u32.f32 %r1, %f1;",
     "%smid"},
    {"warpid", "mov.u32 %r1, %warpid;", "%warpid"},
    {"nwarpid", "mov.u32 %r1, %nwarpid;", "%nwarpid"},
    {"nsmid", "mov.u32 %r1, %nsmid;", "%nsmid"},
    {"gridid", "mov.u64 %rd9, %gridid; cvt.u32.u64 %r1, %rd9;", "%gridid"},
    {"clock", "mov.u32 %r1, %clock;", "%clock"},
    {"globaltimer", "mov.u64 %rd9, %globaltimer; shr.u64 %rd9, %rd9, 40; cvt.u32.u64 %r1, %rd9;",
     "%globaltimer"},
    {"envreg", "mov.b32 %r1, %envreg0;", "%envreg0"},
    {"total_smem_size", "mov.u32 %r1, %total_smem_size;", "%total_smem_size"},
    {"promised",
     "mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; add.u32 %r1, %r1, %r2; mov.u32 %r2, "
     "%nctaid.x; add.u32 %r1, %r1, %r2; mov.u32 %r2, %dynamic_smem_size; add.u32 %r1, %r1, %r2;",
     nullptr},
    {"shuffled", "mov.u32 %r2, %smid; shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "%smid"},
    {"voted", "mov.u32 %r2, %smid; setp.eq.u32 %p1, %r2, 3; vote.sync.ballot.b32 %r1, %p1, -1;",
     "%smid"},
    {"through_shared",
     "mov.u32 %r2, %smid; st.shared.u32 [tile], %r2; bar.sync 0; ld.shared.u32 %r1, [tile];",
     "%smid"},
    {"through_local", "mov.u32 %r2, %smid; st.local.u32 [stack], %r2; ld.local.u32 %r1, [stack];",
     "%smid"},
    {"through_atomics",
     "mov.u32 %r2, %smid; st.shared.u32 [tile], 0; bar.sync 0; atom.shared.add.u32 %r3, [tile], "
     "%r2; bar.sync 0; ld.shared.u32 %r1, [tile];",
     "%smid"},
    {"overwritten",
     "mov.u32 %r2, %smid; st.local.u32 [stack], %r2; st.local.u32 [stack], 5; ld.local.u32 %r1, "
     "[stack];",
     nullptr},
    {"selects", "mov.u32 %r2, %smid; setp.gt.u32 %p1, %r2, 9; selp.u32 %r1, 1, 0, %p1;", "%smid"},
    {"under_guard",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.gt.u32 %p1, %r2, 900; @%p1 mov.u32 %r1, 2;",
     "%smid"},
    {"under_branch",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.gt.u32 %p1, %r2, 900; @!%p1 bra On; mov.u32 %r1, 2; "
     "On:",
     "%smid"},
    {"branch_that_leaves_it",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.gt.u32 %p1, %r2, 900; @%p1 bra On; mov.u32 %r3, 2; "
     "On:",
     nullptr},
    {"set_again_after_branch",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.gt.u32 %p1, %r2, 900; @!%p1 bra On; mov.u32 %r1, 2; "
     "On: mov.u32 %r1, 4;",
     nullptr},
    {"guards_a_store",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.lt.u32 %p1, %r2, 900; @%p1 st.shared.u32 [tile], 1;",
     "whether the write"},
    {"branches_round_a_store",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.lt.u32 %p1, %r2, 900; @%p1 bra On; st.shared.u32 "
     "[tile], 1; On:",
     "whether the write"},
    {"leaves_early", "mov.u32 %r1, 1; mov.u32 %r2, %smid; setp.gt.u32 %p1, %r2, 900; @%p1 ret;",
     "whether the end of the thread"},
    {"waits_by_the_clock",
     "mov.u32 %r1, 1; mov.u32 %r2, %clock; Again: mov.u32 %r3, %clock; sub.u32 %r3, %r3, %r2; "
     "setp.lt.u32 %p1, %r3, 50; @%p1 bra Again;",
     nullptr},
    {"counts_while_waiting",
     "mov.u32 %r1, 0; mov.u32 %r2, %clock; Again: add.u32 %r1, %r1, 1; mov.u32 %r3, %clock; "
     "sub.u32 "
     "%r3, %r3, %r2; setp.lt.u32 %p1, %r3, 50; @%p1 bra Again;",
     "%clock"},
    {"indexes_a_table",
     "mov.u32 %r2, %smid; and.b32 %r2, %r2, 1; mul.wide.u32 %rd9, %r2, 4; add.s64 %rd9, %rd2, "
     "%rd9; "
     "ld.global.u32 %r1, [%rd9];",
     "%smid"},
    {"indexes_a_store",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; and.b32 %r2, %r2, 1; mul.wide.u32 %rd9, %r2, 4; add.s64 "
     "%rd9, %rd1, %rd9; st.global.u32 [%rd9], %r1;",
     "%smid"},
    {"jumps_by_table",
     "mov.u32 %r1, 1; mov.u32 %r2, %smid; and.b32 %r2, %r2, 1; ts: .branchtargets One, Two; "
     "brx.idx "
     "%r2, ts; One: mov.u32 %r1, 2; Two:",
     "%smid"},
};

const Case kAddresses[] = {
    {"high_bits", "shr.u64 %rd9, %rd2, 40; cvt.u32.u64 %r1, %rd9;", "the address of 'x'"},
    {"low_word", "cvt.u32.u64 %r1, %rd2;", "the address of 'x'"},
    {"as_it_is", "st.global.u64 [%rd1+256], %rd2; mov.u32 %r1, 0;", "the address of 'x'"},
    {"split", "mov.b64 {%r1, %r2}, %rd2;", "the address of 'x'"},
    {"alignment", "and.b64 %rd9, %rd2, 15; cvt.u32.u64 %r1, %rd9;", nullptr},
    {"alignment_narrowed", "cvt.u32.u64 %r1, %rd2; and.b32 %r1, %r1, 15;", nullptr},
    {"alignment_unpromised", "and.b64 %rd9, %rd2, 4095; cvt.u32.u64 %r1, %rd9;", "the address of"},
    {"difference", "add.s64 %rd9, %rd2, 64; sub.s64 %rd9, %rd9, %rd2; cvt.u32.u64 %r1, %rd9;",
     nullptr},
    {"distance", "sub.s64 %rd9, %rd3, %rd2; shr.s64 %rd9, %rd9, 9; cvt.u32.u64 %r1, %rd9;",
     "the address of"},
    // A register that shares no more with an address than the constant that both are compared with.
    {"number_like_an_address",
     "mov.u32 %r5, tile; setp.ne.s32 %p2, %r5, 0; @%p2 st.shared.u32 [%r5], 1; st.local.u32 "
     "[stack], 419608; ld.local.u32 %r2, [stack]; setp.lt.s32 %p1, %r2, 0; or.b32 %r1, %r2, "
     "-2147483648; "
     "@%p1 not.b32 %r1, %r2;",
     nullptr},
    {"address_like_a_number",
     "mov.u32 %r5, tile; setp.ne.s32 %p2, %r5, 0; @%p2 st.shared.u32 [%r5], 1; setp.lt.s32 %p1, "
     "%r5, 0; or.b32 %r1, %r5, -2147483648; @%p1 not.b32 %r1, %r5;",
     "the address of 'tile'"},
    {"order_within",
     "add.s64 %rd9, %rd2, 256; setp.lt.u64 %p1, %rd2, %rd9; selp.u32 %r1, 1, 0, %p1;", nullptr},
    {"order_between", "setp.lt.u64 %p1, %rd2, %rd3; selp.u32 %r1, 1, 0, %p1;", "the address of"},
    {"same_buffer", "setp.eq.s64 %p1, %rd2, %rd3; selp.u32 %r1, 1, 0, %p1;", nullptr},
    {"null", "setp.ne.s64 %p1, %rd2, 0; selp.u32 %r1, 1, 0, %p1;", nullptr},
    {"above_a_number", "setp.gt.u64 %p1, %rd2, 0x7f0000000000; selp.u32 %r1, 1, 0, %p1;",
     "the address of 'x'"},
    {"hashed_into_an_index",
     "shr.u64 %rd9, %rd2, 9; xor.b64 %rd9, %rd9, %rd3; and.b64 %rd9, %rd9, 4; add.s64 %rd9, %rd2, "
     "%rd9; ld.global.u32 %r1, [%rd9];",
     "the address of"},
    {"aligned_down", "and.b64 %rd9, %rd2, -16; ld.global.u32 %r1, [%rd9];", nullptr},
    {"with_a_bit_set",
     "or.b64 %rd9, %rd2, 4; ld.global.u32 %r1, [%rd9]; sub.s64 %rd9, %rd9, %rd2; cvt.u32.u64 %r2, "
     "%rd9; add.u32 %r1, %r1, %r2;",
     nullptr},
    {"put_away",
     "st.local.u64 [stack], %rd2; ld.local.u64 %rd9, [stack]; ld.global.u32 %r1, [%rd9]; sub.s64 "
     "%rd9, %rd9, %rd2; cvt.u32.u64 %r2, %rd9; add.u32 %r1, %r1, %r2;",
     nullptr},
    {"put_away_and_read_as_words", "st.local.u64 [stack], %rd2; ld.local.u32 %r1, [stack+4];",
     "the address of 'x'"},
    {"taken_apart_and_put_together",
     "mov.b64 {%r2, %r3}, %rd2; shfl.sync.idx.b32 %r2, %r2, 0, 31, -1; shfl.sync.idx.b32 %r3, %r3, "
     "0, 31, -1; mov.b64 %rd9, {%r2, %r3}; ld.global.u32 %r1, [%rd9];",
     nullptr},
    {"parameter_as_words", "ld.param.u32 %r1, [unused+4];", "the address of"},
    {"shared_bits", "mov.u32 %r2, tile; shr.u32 %r1, %r2, 10;", "the address of 'tile'"},
    {"shared_alignment", "mov.u32 %r2, tile; and.b32 %r1, %r2, 127;", nullptr},
    {"shared_generic",
     "mov.u64 %rd9, tile; cvta.shared.u64 %rd9, %rd9; shr.u64 %rd9, %rd9, 32; cvt.u32.u64 %r1, "
     "%rd9;",
     "the address of 'tile'"},
    {"shared_used",
     "mov.u64 %rd9, tile; cvta.shared.u64 %rd9, %rd9; st.u32 [%rd9], 5; cvta.to.shared.u64 %rd9, "
     "%rd9; cvt.u32.u64 %r2, %rd9; bar.sync 0; ld.shared.u32 %r1, [%r2];",
     nullptr},
    {"shared_swizzled",
     "mov.u32 %r2, tile; shl.b32 %r3, %r8, 2; add.u32 %r2, %r2, %r3; shr.u32 %r3, %r2, 7; and.b32 "
     "%r3, %r3, 7; shl.b32 %r3, %r3, 4; xor.b32 %r2, %r2, %r3; st.shared.u32 [%r2], %r8; "
     "ld.shared.u32 %r1, [%r2];",
     nullptr},
    {"local_bits", "mov.u64 %rd9, stack; shr.u64 %rd9, %rd9, 8; cvt.u32.u64 %r1, %rd9;",
     "a local variable"},
    {"local_index_from_its_address",
     "st.local.u32 [stack], 1; st.local.u32 [stack+4], 2; mov.u64 %rd9, stack; shr.u64 %rd10, "
     "%rd9, "
     "22; and.b64 %rd10, %rd10, 4; add.s64 %rd10, %rd9, %rd10; st.local.u32 [%rd10], 3; "
     "ld.local.u32 %r1, [stack+4];",
     "a local variable"},
    {"code", "mov.u64 %rd9, k; cvt.u32.u64 %r1, %rd9;", "an address"},
    {"variable", "mov.u64 %rd9, table; shr.u64 %rd9, %rd9, 12; cvt.u32.u64 %r1, %rd9;",
     "the address of 'table'"},
    {"variable_read", "mov.u64 %rd9, table; ld.global.u32 %r1, [%rd9+4];", nullptr},
    {"in_predicate_arithmetic",
     "shr.u64 %rd9, %rd2, 41; setp.eq.s64 %p1, %rd9, 63; setp.ne.or.s32 %p2, %r8, %r8, %p1; "
     "selp.u32 "
     "%r1, 1, 0, %p2;",
     "the address of 'x'"},
};

const Case kApproximations[] = {
    {"last_bit", "mov.b32 %r2, %f2; and.b32 %r1, %r2, 1;", "approximate function"},
    {"last_bits_shifted", "mov.b32 %r2, %f2; shr.u32 %r2, %r2, 2; and.b32 %r1, %r2, 1;",
     "approximate function"},
    {"after_a_sum", "add.f32 %f2, %f2, 0f3F800000; mov.b32 %r2, %f2; and.b32 %r1, %r2, 3;",
     "approximate function"},
    {"shifted_to_the_top", "mov.b32 %r2, %f2; shl.b32 %r1, %r2, 31;", "approximate function"},
    {"a_field_of_them", "mov.b32 %r2, %f2; bfe.u32 %r1, %r2, 1, 2;", "approximate function"},
    {"next_to_a_constant", "setp.eq.f32 %p1, %f2, 0f40400005; selp.u32 %r1, 1, 0, %p1;",
     "approximate function"},
    {"bits_next_to_a_constant",
     "mov.b32 %r2, %f2; setp.eq.b32 %p1, %r2, 0x40400003; selp.u32 %r1, 1, 0, %p1;",
     "approximate function"},
    {"far_from_a_constant", "setp.eq.f32 %p1, %f2, 0f40500005; selp.u32 %r1, 1, 0, %p1;", nullptr},
    {"round_constant", "setp.eq.f32 %p1, %f2, 0f40400000; selp.u32 %r1, 1, 0, %p1;", nullptr},
    {"as_a_number", "mov.b32 %r1, %f2;", nullptr},
    {"sign", "mov.b32 %r2, %f2; and.b32 %r1, %r2, 0x7fffffff;", nullptr},
    {"exponent", "mov.b32 %r2, %f2; bfe.u32 %r1, %r2, 23, 8;", nullptr},
    {"rounded_by_hand",
     "mov.b32 %r2, %f2; shr.u32 %r3, %r2, 16; and.b32 %r3, %r3, 1; add.u32 %r2, %r2, %r3; add.u32 "
     "%r2, %r2, 32767; and.b32 %r1, %r2, 0xffff0000;",
     nullptr},
    {"last_bit_of_exact", "mov.b32 %r2, %f1; and.b32 %r1, %r2, 1;", nullptr},
};

class Machine : public ::testing::TestWithParam<Case> {};

TEST_P(Machine, Chooses) {
  TestRun run(fmt::format(R"(.version 8.3
.target sm_90
.address_size 64
.global .align 4 .u32 table[2] = {{1, 2}};
.visible .entry k(.param .u64 out, .param .u64 xs, .param .u64 zs, .param .u64 unused) {{
  .local .align 16 .b8 stack[16];
  .shared .align 128 .b8 tile[1024];
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [xs];
  cvta.to.global.u64 %rd2, %rd2;
  ld.param.u64 %rd3, [zs];
  mov.u32 %r8, %tid.x;
  mov.f32 %f1, 0f3EAAAAAB;
  rcp.approx.f32 %f2, %f1;
  {}
  mul.wide.u32 %rd4, %r8, 4;
  add.s64 %rd1, %rd1, %rd4;
  st.global.u32 [%rd1], %r1;
  ret;
}})",
                          GetParam().body));
  const auto out = run.Zeros("out", DType::kU32, 128);
  const auto x = run.Buffer("x", DType::kU32, std::vector<double>(64, 3));
  const auto z = run.Buffer("z", DType::kU32, std::vector<double>(64, 4));
  run.AddLaunch("k", {2, 1, 1}, {32, 1, 1},
                {TestRun::Ptr(out), TestRun::Ptr(x), TestRun::Ptr(z), TestRun::Ptr(x)});
  run.execution.checks.race = false;
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  EXPECT_EQ(report.findings.empty(), GetParam().names == nullptr) << Show(report);
  for (const Finding& finding : report.findings)
    EXPECT_EQ(finding.kind, FindingKind::kMachineDependent) << Show(report);
  if (GetParam().names != nullptr && !report.findings.empty()) {
    EXPECT_NE(report.findings[0].message.find(GetParam().names), std::string::npos) << Show(report);
  }
}

INSTANTIATE_TEST_SUITE_P(Specials, Machine, ::testing::ValuesIn(kSpecials),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(Approximations, Machine, ::testing::ValuesIn(kApproximations),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(Addresses, Machine, ::testing::ValuesIn(kAddresses),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace assay::emu
