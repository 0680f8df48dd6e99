// What outlives a launch: which variables of a module are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/ptx/facts/facts_of.h"

namespace assay::facts {
namespace {

Answer Written(const std::string& body, const std::string& globals) {
  const Facts facts = Kernel(body, globals);
  for (const Variable& variable : facts.variables) {
    if (variable.name == "v") return variable.written;
  }
  ADD_FAILURE() << "no variable v";
  return Answer::kUnknown;
}

constexpr const char* kV = ".global .align 8 .b8 v[64];\n";

TEST(StateTest, WritesAreSeen) {
  for (const char* body : {
           "st.global.u32 [v], %r1;",
           "atom.global.add.u32 %r2, [v+4], 1;",
           "red.global.add.u32 [v], 1;",
           "mov.u64 %d2, v; st.global.u32 [%d2], %r1;",
           "mov.u64 %d2, v; cvta.global.u64 %d3, %d2; add.s64 %d4, %d3, 8; st.u32 [%d4], %r1;",
           // The chosen one of two.
           "setp.eq.s32 %p1, %r1, 1; mov.u64 %d2, v; selp.b64 %d3, %d1, %d2, %p1; st.u32 [%d3], 1;",
           // Behind a branch.
           "setp.eq.s32 %p1, %r1, 1; mov.u64 %d2, %d1; @%p1 bra L; mov.u64 %d2, v; L: st.u32 "
           "[%d2], 1;",
           // Through memory of the thread, and in halves.
           "{ .local .b64 keep[2]; mov.u64 %d2, v; st.local.u64 [keep], %d2; ld.local.u64 %d3, "
           "[keep]; st.global.u32 [%d3], 1; }",
           "mov.u64 %d2, v; mov.b64 {%r2, %r3}, %d2; mov.b64 %d3, {%r2, %r3}; st.global.u32 [%d3], "
           "1;",
           "mov.u64 %d2, v; mov.b64 {%r2, %r3}, %d2; shfl.sync.idx.b32 %r4, %r2, 0, 31, -1; "
           "mov.b64 "
           "%d3, {%r4, %r3}; st.global.u32 [%d3], 1;",
           // With carries.
           "mov.u64 %d2, v; mov.b64 {%r2, %r3}, %d2; add.cc.u32 %r4, %r2, 0; addc.u32 %r5, %r3, 0; "
           "mov.b64 %d3, {%r4, %r5}; st.global.u32 [%d3], 1;",
           "cp.async.bulk.global.shared::cta.bulk_group [v], [%r2], 16;",
       }) {
    EXPECT_EQ(Written(body, kV), Answer::kYes) << body;
  }
}

TEST(StateTest, ReadsAreNotWrites) {
  for (const char* body : {
           "ld.global.u32 %r2, [v]; st.global.u32 [%d1], %r2;",
           "mov.u64 %d2, v; add.s64 %d3, %d2, 8; ld.global.f32 %f1, [%d3]; st.global.f32 [%d1], "
           "%f1;",
           // An index from memory, then a scatter: neither is an address of v.
           "ld.global.u32 %r2, [%d1]; mul.wide.u32 %d2, %r2, 4; mov.u64 %d3, v; add.s64 %d4, %d3, "
           "%d2; "
           "ld.global.u32 %r3, [%d4]; add.s64 %d5, %d1, %d2; st.global.u32 [%d5], %r3;",
           // Pointers to it in memory of the thread.
           "{ .local .b64 keep[2]; mov.u64 %d2, v; st.local.u64 [keep+8], %d2; ld.local.u64 %d3, "
           "[keep+8]; ld.global.u32 %r2, [%d3]; st.global.u32 [%d1], %r2; }",
           "prefetch.global.L2 [v];",
           "",
       }) {
    EXPECT_EQ(Written(body, kV), Answer::kNo) << body;
  }
}

TEST(StateTest, AnAddressOutOfSightMayBeWrittenThrough) {
  for (const char* body : {
           // Stored where anyone can read it.
           "mov.u64 %d2, v; st.global.u64 [%d1], %d2; ld.global.u64 %d3, [%d1+8]; st.global.u32 "
           "[%d3], 1;",
           "{ .shared .b64 keep; mov.u64 %d2, v; st.shared.u64 [keep], %d2; mov.u32 %r2, 8; "
           "ld.shared.u64 %d3, "
           "[%r2]; "
           "st.global.u32 [%d3], 1; }",
           // Made into something else and back.
           "mov.u64 %d2, v; xor.b64 %d3, %d2, 85; xor.b64 %d4, %d3, 85; st.global.u32 [%d4], 1;",
           // Told bit by bit: by branches, by a table, by where something is written.
           "mov.u64 %d2, v; and.b64 %d3, %d2, 64; setp.eq.s64 %p1, %d3, 0; mov.u64 %d4, 0; @%p1 "
           "bra L; "
           "mov.u64 %d4, 64; L: st.global.u32 [%d4], 1;",
           "mov.u64 %d2, v; and.b64 %d3, %d2, 8; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], 1; "
           "ld.global.u64 %d5, [%d1]; st.global.u32 [%d5], 1;",
       }) {
    EXPECT_EQ(Written(body, kV), Answer::kUnknown) << body;
  }
  // The same, where nothing is stored through what comes back.
  EXPECT_EQ(Written("mov.u64 %d2, v; st.global.u64 [%d1], %d2; ld.global.u64 %d3, [%d1+8]; "
                    "ld.global.u32 %r2, [%d3]; st.global.u32 [%d1], %r2;",
                    kV),
            Answer::kNo);
  // A table of bits gives back what it is asked with.
  EXPECT_NE(Written("mov.u64 %d2, v; shr.u64 %d3, %d2, 3; and.b64 %d4, %d3, 8; mov.u64 %d5, t; "
                    "add.s64 %d6, %d5, %d4; ld.global.u64 %d7, [%d6]; st.global.u32 [%d7], 1;",
                    std::string(kV) + ".global .align 8 .u64 t[2] = {0, 1};\n"),
            Answer::kNo);
}

TEST(StateTest, ThroughCallsAndInitialisers) {
  const std::string store =
      std::string(kV) +
      ".func put(.param .b64 p) { .reg .b64 %a; ld.param.u64 %a, [p]; st.u32 [%a], 1; ret; }\n"
      ".func get(.param .b64 p) { .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [p]; ld.u32 %b, "
      "[%a]; "
      "ret; }\n";
  const auto call = [](const std::string& callee) {
    return "{ .param .b64 a; mov.u64 %d2, v; st.param.b64 [a], %d2; call.uni " + callee +
           ", (a); }";
  };
  EXPECT_EQ(Written(call("put"), store), Answer::kYes);
  EXPECT_EQ(Written(call("get"), store), Answer::kNo);
  const std::string registers =
      std::string(kV) + ".func put(.reg .b64 %a) { st.u32 [%a], 1; ret; }\n";
  EXPECT_EQ(Written("mov.u64 %d2, v; call.uni put, (%d2);", registers), Answer::kYes);
  EXPECT_EQ(Written("call.uni put, (%d1);", registers), Answer::kNo);
  const std::string unknown = std::string(kV) + ".extern .func other(.param .b64 p);\n";
  EXPECT_EQ(Written(call("other"), unknown), Answer::kUnknown);
  EXPECT_EQ(Written("ld.global.u64 %d2, [t]; st.global.u32 [%d2], 1;",
                    std::string(kV) + ".global .align 8 .u64 t = v;\n"),
            Answer::kYes);
  EXPECT_EQ(Written("ld.global.u64 %d2, [t]; ld.global.u32 %r2, [%d2];",
                    std::string(kV) + ".global .align 8 .u64 t = v;\n"),
            Answer::kNo);
}

TEST(StateTest, SharedMemoryDoesNotOutliveALaunch) {
  const Facts facts = Kernel("st.shared.u32 [s], %r1;",
                             ".shared .align 4 .u32 s;\n.const .align 4 .u32 c = 3;\n"
                             ".visible .global .align 4 .u32 _ZN2ns5countE;\n");
  ASSERT_EQ(facts.variables.size(), 2u);
  EXPECT_EQ(facts.variables[1].shown, "ns::count");
  EXPECT_EQ(facts.variables[1].written, Answer::kNo);
  // Constant memory can be reached by its generic address.
  EXPECT_EQ(Written("mov.u64 %d2, v; cvta.const.u64 %d3, %d2; st.u32 [%d3], 1;",
                    ".const .align 4 .u32 v = 3;\n"),
            Answer::kYes);
  EXPECT_EQ(
      Written("ld.const.u32 %r2, [v]; st.global.u32 [%d1], %r2;", ".const .align 4 .u32 v = 3;\n"),
      Answer::kNo);
}

}  // namespace
}  // namespace assay::facts
