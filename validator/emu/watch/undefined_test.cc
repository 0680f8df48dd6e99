// Definedness of registers by bits. Each case starts from registers whose lower half is defined and
// whose upper half is not (%r1, %r4 another one), does something, and stores a result to an output.
#include "validator/emu/watch/undefined.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

struct Case {
  const char* name;
  const char* body;  ///< From %r1 (and %r4) to %r2.
  bool low;          ///< Are the lower two bytes of the result undefined,
  bool high;         ///< and the upper two?
};

const Case kCases[] = {
    {"mov", "mov.b32 %r2, %r1;", false, true},
    {"split_and_join", "mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h1, %h1};", false, false},
    {"swapped", "mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h2, %h1};", true, false},
    {"through_64_bits", "mov.b64 %rd5, {%r1, %r3}; shr.u64 %rd5, %rd5, 16; cvt.u32.u64 %r2, %rd5;",
     true, false},
    {"masked", "and.b32 %r2, %r1, 65535;", false, false},
    {"masked_the_wrong_way", "and.b32 %r2, %r1, 0xffff0000;", false, true},
    {"filled", "or.b32 %r2, %r1, 0xffff0000;", false, false},
    {"exclusive_or", "xor.b32 %r2, %r1, 0xffff0000;", false, true},
    {"lop3_keeps_low", "lop3.b32 %r2, %r1, 65535, %r3, 0xc0;", false, false},
    {"lop3_mixes", "lop3.b32 %r2, %r1, %r3, %r3, 0x96;", false, true},
    {"shifted_up", "shl.b32 %r2, %r1, 16;", false, false},
    {"shifted_down", "shr.u32 %r2, %r1, 16;", true, false},
    {"shifted_down_with_sign", "shr.s32 %r2, %r1, 16;", true, true},
    {"shifted_by_undefined", "shl.b32 %r2, %r3, %r1;", true, true},
    {"shifted_by_itself", "shl.b32 %r2, %r1, %r1;", true, true},
    {"funnel", "shf.l.wrap.b32 %r2, %r1, %r3, 16;", true, false},
    {"bytes_in_order", "prmt.b32 %r2, %r1, %r4, 0x5410;", false, false},
    {"bytes_out_of_order", "prmt.b32 %r2, %r1, %r4, 0x7610;", false, true},
    {"field_below", "bfe.u32 %r2, %r1, 3, 8;", false, false},
    {"field_across", "bfe.u32 %r2, %r1, 12, 8;", true, false},
    {"inserted", "bfi.b32 %r2, %r3, %r1, 16, 16;", false, false},
    {"narrowed", "cvt.u32.u16 %r2, %h1;", false, false},
    {"sum", "add.s32 %r2, %r1, %r3;", false, true},
    {"product", "mul.lo.s32 %r2, %r1, %r3;", false, true},
    {"high_product", "mul.hi.u32 %r2, %r1, %r3;", true, true},
    {"pairs_added", "add.f16x2 %r2, %r1, %r4;", false, true},
    {"pairs_multiplied", "fma.rn.bf16x2 %r2, %r1, %r4, %r1;", false, true},
    {"float_sum", "add.f32 %r2, %r1, %r3;", true, true},
    {"largest", "max.s32 %r2, %r1, %r3;", true, true},
    {"selected", "setp.eq.s32 %p1, %r3, %r3; selp.b32 %r2, %r3, %r1, %p1;", false, false},
    {"not_selected", "setp.ne.s32 %p1, %r3, %r3; selp.b32 %r2, %r3, %r1, %p1;", false, true},
    {"chosen_by_undefined", "setp.eq.s32 %p1, %r1, 0; selp.b32 %r2, %r3, %r3, %p1;", true, true},
    {"shuffled", "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", false, true},
    {"stored_and_loaded", "st.local.b32 [spill], %r1; ld.local.b32 %r2, [spill];", false, true},
    {"loaded_with_sign", "st.local.b32 [spill], %r1; ld.local.s16 %r2, [spill];", false, false},
    {"wrong_half_loaded", "st.local.b32 [spill], %r1; ld.local.u16 %r2, [spill+2];", true, false},
    {"made_whole_again", "mov.b32 %r2, %r1; mov.u32 %r2, 7;", false, false},
};

class Undefined : public ::testing::TestWithParam<Case> {};

/// Stores the half of %r2 that begins at byte `at` to the output.
bool Fires(const Case& tested, int at) {
  TestRun run(fmt::format(R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
  .local .align 8 .b8 spill[8];
  .shared .align 8 .b8 half[256];
  .reg .pred %p<4>;
  .reg .b16 %h<6>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r8, %tid.x;
  mul.wide.u32 %rd2, %r8, 8;
  mov.u64 %rd3, half;
  add.s64 %rd3, %rd3, %rd2;
  mov.u16 %h3, 3;
  st.shared.u16 [%rd3], %h3;
  st.shared.u16 [%rd3+4], %h3;
  ld.shared.b32 %r1, [%rd3];
  ld.shared.b32 %r4, [%rd3+4];
  mov.b32 {{%h1, %h2}}, %r1;
  mov.u32 %r3, 5;
  {}
  mul.wide.u32 %rd4, %r8, 2;
  add.s64 %rd1, %rd1, %rd4;
  shr.u32 %r9, %r2, {};
  cvt.u16.u32 %h4, %r9;
  st.global.u16 [%rd1], %h4;
  ret;
}})",
                          tested.body, 8 * at));
  const auto y = run.Uninitialised("y", DType::kI16, 32);
  run.AddLaunch("k", {1, 1, 1}, {32, 1, 1}, {TestRun::Ptr(y)});
  const Report report = run.Run();
  EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
  for (const Finding& finding : report.findings)
    EXPECT_EQ(finding.kind, FindingKind::kUninitialisedUse) << Show(report);
  return !report.findings.empty();
}

TEST_P(Undefined, ByBits) {
  EXPECT_EQ(Fires(GetParam(), 0), GetParam().low) << "low half";
  EXPECT_EQ(Fires(GetParam(), 2), GetParam().high) << "high half";
}

INSTANTIATE_TEST_SUITE_P(All, Undefined, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// What a value that nobody handed on decides, where that is the machine's choice (Execution::follow_undefined).
struct Followed {
  const char* name;
  const char* body;  ///< From the undefined %r1 and the place [%rd2] of the output.
  bool told;         ///< Does whether or where something is stored hang on it?
};

const Followed kFollowed[] = {
    {"stored", "st.global.u32 [%rd2], %r1;", false},
    {"decides_a_value",
     "setp.eq.s32 %p1, %r1, 0; mov.u32 %r2, 1; @%p1 bra JOIN; mov.u32 %r2, 2; JOIN: "
     "st.global.u32 [%rd2], %r2;",
     false},
    {"decides_an_instruction",
     "setp.eq.s32 %p1, %r1, 0; mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2; st.global.u32 [%rd2], %r2;",
     false},
    {"decides_a_store", "setp.eq.s32 %p1, %r1, 0; @%p1 st.global.u32 [%rd2], 1;", true},
    {"decides_the_end", "setp.eq.s32 %p1, %r1, 0; @%p1 ret; st.global.u32 [%rd2], 1;", true},
    {"decides_the_place",
     "and.b32 %r2, %r1, 4; cvt.u64.u32 %rd3, %r2; add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], "
     "1;",
     true},
    {"decides_the_place_by_a_branch",
     "setp.eq.s32 %p1, %r1, 0; mov.u64 %rd3, 0; @%p1 bra JOIN; mov.u64 %rd3, 4; JOIN: "
     "add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], 1;",
     true},
};

class FollowUndefined : public testing::TestWithParam<Followed> {};

TEST_P(FollowUndefined, TellsWhatLastsFromWhatIsAValue) {
  TestRun run(fmt::format(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.global.u32 %r1, [%rd1];
  {}
  ret;
}})",
                          GetParam().body));
  const std::uint32_t from = run.Uninitialised("parts", DType::kU32, 1, BufferRole::kWorkspace);
  const std::uint32_t to = run.Uninitialised("y", DType::kU32, 2);
  run.AddLaunch("k", {1, 1, 1}, {1, 1, 1}, {TestRun::Ptr(from), TestRun::Ptr(to)});
  run.execution.follow_undefined = run.execution.note_missing = true;
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  const bool told =
      std::ranges::any_of(report.findings, [](const Finding& finding) { return !finding.memory; });
  EXPECT_EQ(told, GetParam().told) << Show(report);
  ASSERT_TRUE(report.missing);
  EXPECT_EQ(*report.missing, (std::vector<BufferRange>{{from, 0, 4}}));
}

INSTANTIATE_TEST_SUITE_P(All, FollowUndefined, testing::ValuesIn(kFollowed),
                         [](const auto& each) { return std::string(each.param.name); });

// Two launches of four blocks over the same words: each block writes one, the second launch all but the last.
TEST(Writers, TheLastOneOfSomeBytes) {
  TestRun run(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 to, .param .u32 end)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [end];
  mov.u32 %r2, %ctaid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  mul.wide.u32 %rd2, %r2, 8;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
})");
  const std::uint32_t to = run.Uninitialised("parts", DType::kU32, 8, BufferRole::kWorkspace);
  for (const std::int32_t end : {4, 3})
    run.AddLaunch("k", {4, 1, 1}, {1, 1, 1}, {TestRun::Ptr(to), TestRun::Int(end)});
  run.execution.whose = {{to, 2, 4}, {to, 16, 16}};
  const Report report = run.Run();
  ASSERT_EQ(report.stop, Stop::kCompleted) << Show(report);
  ASSERT_TRUE(report.writers);
  EXPECT_EQ(*report.writers, (std::vector<WrittenRange>{
                                 {{to, 2, 2}, 1, 0}, {{to, 16, 4}, 1, 2}, {{to, 24, 4}, 0, 3}}));
  // The same where nothing else is kept.
  TestRun other = run;
  const std::vector<std::byte> before = other.Bytes(to);
  other.execution.drop_stores = true;
  other.execution.buffers[to].fill = BufferFill::kProvided;
  EXPECT_EQ(other.Run().writers, report.writers);
  EXPECT_EQ(other.Bytes(to), before);
}

}  // namespace
}  // namespace assay::emu
