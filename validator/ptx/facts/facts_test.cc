#include "validator/ptx/facts/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>

#include "base/file.h"
#include "validator/ptx/facts/compute.h"
#include "validator/ptx/parser.h"

namespace assay::facts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::string_view kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";
constexpr std::string_view kRegisters =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>; .reg .f32 %f<9>;\n";

Facts Of(const std::string& text) {
  const auto module = ptx::Parse(text, "test.ptx");
  if (!module) {
    ADD_FAILURE() << ToString(module.error()) << "\n" << text;
    return {};
  }
  Facts facts = FactsOf(*module, {});
  EXPECT_EQ(facts.fault, "") << text;
  // What travels is what was computed.
  const auto read = FactsFromJson(*ParseJson(CompactJson(ToJson(facts)), "facts"), "facts");
  if (!read)
    ADD_FAILURE() << ToString(read.error());
  else
    EXPECT_TRUE(*read == facts);
  return facts;
}

/// An entry k(x, n) with `body`, behind `globals`. x is in %d1, n in %r1.
Facts Kernel(const std::string& body, const std::string& globals = "",
             const std::string& attributes = "") {
  return Of(std::string(kHead) + globals +
            ".visible .entry k(.param .u64 .ptr .align 1 k_x, .param .u32 k_n)" + attributes +
            "\n{\n" + std::string(kRegisters) +
            "ld.param.u64 %d1, [k_x];\nld.param.u32 %r1, [k_n];\n" + body + "\nret;\n}\n");
}

std::vector<std::uint32_t> OwnLines(const Use* use) {
  std::vector<std::uint32_t> lines;
  if (use == nullptr) return lines;
  for (const Site& site : use->sites) lines.push_back(site.own_line);
  return lines;
}

// --- what is used, and where

constexpr const char* kLocated = R"(.visible .entry k()
{
.reg .b64 %d<3>; .reg .pred %p<2>;
.loc 1 12 3
mov.u64 %d1, %clock64;
.loc 2 900 5, function_name $L__info_string0, inlined_at 1 14 9
@%p1 trap;
mov.u64 %d1, %globaltimer;
.loc 3 7 1
trap;
ret;
}
.file 1 "/tmp/kernel.cu"
.file 2 "/usr/local/cuda/include/cuda_bf16.hpp"
.file 3 "/tmp/mykernel.cu"
)";

TEST(UsesTest, AreNamedWithTheirPlaces) {
  const Facts facts = Of(std::string(kHead) + kLocated);
  using Kind = Use::Kind;
  EXPECT_THAT(OwnLines(facts.FindUse(Kind::kSpecialRegister, "%clock64")), ElementsAre(12));
  EXPECT_THAT(OwnLines(facts.FindUse(Kind::kSpecialRegister, "%globaltimer")), ElementsAre(14));
  const Use* trap = facts.FindUse(Kind::kOpcode, "trap");
  ASSERT_NE(trap, nullptr);
  ASSERT_EQ(trap->sites.size(), 2u);
  EXPECT_TRUE(trap->sites[0].in_header);
  EXPECT_EQ(trap->sites[0].file, "/usr/local/cuda/include/cuda_bf16.hpp");
  EXPECT_EQ(trap->sites[0].line, 900u);
  EXPECT_EQ(trap->sites[0].own_line, 14u);
  EXPECT_EQ(trap->sites[0].instruction, "@%p1 trap");
  EXPECT_TRUE(trap->sites[1].in_header);  // a name that only ends alike
  EXPECT_EQ(trap->sites[1].own_line, 0u);
  EXPECT_EQ(facts.FindUse(Kind::kSpecialRegister, "%clock"), nullptr);
}

TEST(UsesTest, NothingOnALineHides) {
  for (const char* body :
       {"{ mov.u64 %d2, %globaltimer; }", "L: mov.u64 %d2, %globaltimer;",
        "mov.u64\n%d2\n,\n%globaltimer\n;", "{ .reg .b64 %t; { mov.u64 %t, %globaltimer; } }",
        "/* */ @%p1 mov.u64 %d2, // \n %globaltimer;",
        "mov.u64 %d3, %d1; mov.u64 %d2, %globaltimer;"}) {
    EXPECT_NE(Kernel(body).FindUse(Use::Kind::kSpecialRegister, "%globaltimer"), nullptr) << body;
  }
  EXPECT_EQ(Kernel("// mov.u64 %d2, %globaltimer;\n/* %globaltimer */")
                .FindUse(Use::Kind::kSpecialRegister, "%globaltimer"),
            nullptr);
}

TEST(UsesTest, CalleesAreWhatIsNotDefined) {
  const std::string helper =
      ".func (.param .b32 r) mine(.param .b64 p) { .reg .b32 %a; mov.u32 %a, 1; st.param.b32 [r], "
      "%a; ret; }\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n";
  const std::string call =
      "{ .param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], %d1; "
      "st.param.b64 [q], %d1; call.uni (r), vprintf, (p, q); }";
  EXPECT_NE(Kernel(call, helper).FindUse(Use::Kind::kCallee, "vprintf"), nullptr);
  const std::string own =
      "{ .param .b64 p; .param .b32 r; st.param.b64 [p], %d1; "
      "call.uni (r), mine, (p); }";
  EXPECT_EQ(Kernel(own, helper).FindUse(Use::Kind::kCallee, "mine"), nullptr);
}

TEST(UsesTest, AnInconsistentModuleHasItsUsesAllTheSame) {
  const auto module = ptx::Parse(std::string(kHead) +
                                     ".visible .entry k() { .reg .f32 %f<2>; "
                                     "ld.global.f32 %f1, [139637976727552]; "
                                     "ld.shared.f32 %f1, [8]; ret; }",
                                 "test.ptx");
  ASSERT_TRUE(module) << ToString(module.error());
  const Facts facts = FactsOf(*module, {});
  EXPECT_NE(facts.fault, "");
  const Use* use = facts.FindUse(Use::Kind::kLiteralAddress, "ld");
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->count, 1u);
  EXPECT_EQ(facts.FindFunction("k")->blocks_depend, Answer::kUnknown);
  EXPECT_EQ(BlocksDepend(&facts, "k"), Answer::kUnknown);
}

// --- what outlives a launch

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

// --- constants

std::optional<Constant::How> HowIs(const Facts& facts, std::int64_t value) {
  for (const Constant& constant : facts.constants) {
    if (!constant.real && constant.integer == value) return constant.how;
  }
  return std::nullopt;
}

TEST(ConstantsTest, ThatDecideOrDivideSomething) {
  const Facts facts = Kernel(
      "setp.eq.s32 %p1, %r1, 4096;\n"
      "mul.lo.s32 %r2, %r1, 3; add.s32 %r3, %r2, 1; cvt.s64.s32 %d2, %r3; rem.s64 %d3, %d2, 77;\n"
      "mov.u32 %r4, %tid.x; and.b32 %r5, %r4, 63;\n"
      "ld.global.u32 %r6, [%d1]; setp.eq.s32 %p1, %r6, 1234;\n"
      "shr.u32 %r7, %r1, 6; setp.gt.f32 %p2, %f1, 0f42F70000;\n add.s32 %r8, %r1, 555;");
  EXPECT_EQ(HowIs(facts, 4096), Constant::How::kCompared);
  EXPECT_EQ(HowIs(facts, 77), Constant::How::kDivisor);
  EXPECT_EQ(HowIs(facts, 63), Constant::How::kMask);
  EXPECT_EQ(HowIs(facts, 1234), Constant::How::kCompared);
  EXPECT_EQ(HowIs(facts, 6), Constant::How::kShift);
  EXPECT_EQ(HowIs(facts, 555), std::nullopt);
  const auto real = std::ranges::find(facts.constants, true, &Constant::real);
  ASSERT_NE(real, facts.constants.end());
  EXPECT_EQ(real->number, 123.5);
  EXPECT_EQ(real->how, Constant::How::kCompared);
}

// --- memory

TEST(MemoryTest, AccessesHaveOrigins) {
  const Facts facts = Kernel(
      "mul.wide.s32 %d2, %r1, 4; add.s64 %d3, %d1, %d2; ld.global.f32 %f1, [%d3];\n"
      "ld.global.u64 %d4, [%d1]; st.global.f32 [%d4], %f1;\n"
      "{ .shared .b32 tile[4]; mov.u32 %r2, tile; st.shared.u32 [%r2], %r1; }");
  ASSERT_EQ(facts.memory.size(), 4u);
  EXPECT_THAT(facts.memory[0].origins, ElementsAre("k#0"));
  EXPECT_TRUE(facts.memory[0].reads && !facts.memory[0].writes);
  EXPECT_THAT(facts.memory[2].origins, ElementsAre("memory"));
  EXPECT_TRUE(facts.memory[2].writes && !facts.memory[2].reads);
  EXPECT_THAT(facts.memory[3].origins, ElementsAre("tile"));
  EXPECT_EQ(facts.memory[3].space, "shared");
}

TEST(MemoryTest, Atomics) {
  const Facts facts = Kernel(
      "red.global.add.f32 [%d1], %f1; { .shared .b32 s; atom.shared.cas.b32 %r2, [s], 0, 1; }\n"
      "atom.global.add.u32 _, [%d1], 1;");
  ASSERT_EQ(facts.atomics.size(), 3u);
  EXPECT_EQ(facts.atomics[0].operation, "add");
  EXPECT_TRUE(facts.atomics[0].on_float);
  EXPECT_FALSE(facts.atomics[0].result_used);
  EXPECT_EQ(facts.atomics[1].operation, "cas");
  EXPECT_TRUE(facts.atomics[1].shared && facts.atomics[1].result_used);
  EXPECT_FALSE(facts.atomics[2].result_used || facts.atomics[2].shared);
}

// --- functions

Answer Depend(const std::string& body, const std::string& globals = "",
              const std::string& attributes = "") {
  const Facts facts = Kernel(body, globals, attributes);
  return BlocksDepend(&facts, "k");
}

TEST(FunctionsTest, BlocksThatMeetAndThoseThatDoNot) {
  for (const char* body : {"atom.global.add.u32 %r2, [%d1], 1;", "red.add.u32 [%d1], 1;",
                           "ld.volatile.u32 %r2, [%d1];", "ld.acquire.gpu.global.u32 %r2, [%d1];",
                           "ld.relaxed.gpu.u32 %r2, [%d1];", "membar.gl;", "fence.acq_rel.gpu;",
                           "barrier.cluster.arrive; barrier.cluster.wait;",
                           "@%p1 bra L; { atom.global.add.u32 %r2, [%d1], 1; } L:"}) {
    EXPECT_EQ(Depend(body), Answer::kYes) << body;
  }
  for (const char* body :
       {"ld.global.u32 %r2, [%d1];", "bar.sync 0;",
        "{ .shared .b32 s; atom.shared.add.u32 %r2, [s], 1; ld.volatile.shared.u32 %r3, [s]; }",
        "// atom.global.add.u32 %r2, [%d1], 1;"}) {
    EXPECT_EQ(Depend(body), Answer::kNo) << body;
  }
  EXPECT_EQ(Depend("", "", ".reqnctapercluster 2, 1, 1"), Answer::kYes);
  EXPECT_EQ(Depend("", "", ".reqntid 128, 1, 1"), Answer::kNo);
  EXPECT_EQ(BlocksDepend(nullptr, "k"), Answer::kUnknown);
}

TEST(FunctionsTest, CalleesCount) {
  const std::string functions =
      ".func quiet() { ret; }\n"
      ".func loud(.param .b64 p) { .reg .b64 %a; ld.param.u64 %a, [p]; red.add.u32 [%a], 1; ret; "
      "}\n"
      ".func twice() { .reg .b32 %a; bar.sync 0; call.uni quiet; ret; }\n"
      ".extern .func far();\n";
  EXPECT_EQ(Depend("call.uni twice;", functions), Answer::kNo);
  EXPECT_EQ(Depend("{ .param .b64 a; st.param.b64 [a], %d1; call.uni loud, (a); }", functions),
            Answer::kYes);
  EXPECT_EQ(Depend("call.uni far;", functions), Answer::kUnknown);
  const Facts facts = Kernel("call.uni twice;", functions);
  EXPECT_EQ(facts.FindFunction("k")->barriers, Answer::kYes);
  EXPECT_EQ(facts.FindFunction("k")->recursive, Answer::kNo);
  EXPECT_EQ(facts.FindFunction("quiet")->barriers, Answer::kNo);
  EXPECT_THAT(facts.FindFunction("k")->calls, ElementsAre("twice"));
  EXPECT_FALSE(facts.FindFunction("far")->is_defined);
}

TEST(FunctionsTest, RecursionAndBounds) {
  const Facts facts =
      Of(std::string(kHead) +
         ".func a(); .func b() { call.uni a; ret; } .func a() { call.uni b; ret; }\n"
         ".weak .entry k() .maxntid 64, 2, 1 .reqnctapercluster 2, 1, 1 { ret; }\n");
  EXPECT_EQ(facts.FindFunction("b")->recursive, Answer::kYes);
  const Function& k = *facts.FindFunction("k");
  EXPECT_EQ(k.recursive, Answer::kNo);
  EXPECT_TRUE(k.is_entry && k.is_weak && k.is_defined);
  EXPECT_EQ(k.bounds.max_threads, (std::array<std::uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(k.bounds.cluster, (std::array<std::uint32_t, 3>{2, 1, 1}));
}

Answer Polls(const std::string& body) { return Kernel(body).FindFunction("k")->polls; }

TEST(FunctionsTest, Polling) {
  const std::string wait =
      "W: ld.relaxed.gpu.global.u32 %r3, [%d1]; setp.eq.s32 %p1, %r3, 0; @%p1 bra W;";
  EXPECT_EQ(Polls(wait), Answer::kYes);
  // Inside of a loop that counts.
  EXPECT_EQ(Polls("O: mov.u32 %r4, 0; " + wait +
                  " add.s32 %r1, %r1, -1; setp.gt.s32 %p2, %r1, 0; @%p2 bra O;"),
            Answer::kYes);
  // With one head for both.
  EXPECT_EQ(Polls("O: " + wait + " add.s32 %r1, %r1, -1; setp.gt.s32 %p2, %r1, 0; @%p2 bra O;"),
            Answer::kUnknown);
  // Laid out out of order.
  EXPECT_EQ(
      Polls("bra T; B: ld.global.u32 %r3, [%d1]; bra C; T: bra B; C: setp.eq.s32 %p1, %r3, 0; "
            "@%p1 bra T;"),
      Answer::kYes);
  const std::string spin =
      "W: atom.global.cas.b32 %r3, [%d1], 0, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra W;";
  EXPECT_EQ(Polls(spin), Answer::kYes);
  // A loop that counts and reads; one that branches by what it reads and goes on counting.
  EXPECT_EQ(Polls("L: ld.global.u32 %r3, [%d1]; add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, 0; "
                  "@%p1 bra L;"),
            Answer::kNo);
  EXPECT_EQ(
      Polls(
          "L: ld.global.u32 %r3, [%d1]; setp.eq.s32 %p2, %r3, 0; @%p2 bra S; "
          "st.global.u32 [%d1], 1; S: add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, 0; @%p1 bra L;"),
      Answer::kNo);
  EXPECT_EQ(Polls("ld.global.u32 %r3, [%d1]; setp.eq.s32 %p1, %r3, 0; @%p1 bra E; E:"),
            Answer::kNo);
}

// --- whole modules, as compilers write them

TEST(WholeModulesTest, WhatTheyKeepIsKnown) {
  const Path folder = Path(ASSAY_SOURCE_DIR) / "validator/ptx/testdata/modules";
  std::vector<std::string> written;
  std::vector<std::string> unknown;
  std::size_t modules = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    const auto text = ReadFile(entry.path());
    ASSERT_TRUE(text);
    SCOPED_TRACE(entry.path().string());
    const Facts facts = Of(*text);
    // Its strings are handed to printf and assert.
    const bool prints = facts.FindUse(Use::Kind::kCallee, "vprintf") != nullptr;
    for (const Variable& variable : facts.variables) {
      if (variable.written == Answer::kYes) written.push_back(variable.shown);
      if (variable.written == Answer::kUnknown && !prints) unknown.push_back(variable.shown);
    }
    EXPECT_FALSE(facts.functions.empty());
    EXPECT_LT(CompactJson(ToJson(facts)).size(), 20 * text->size() + 10'000);
    ++modules;
  }
  EXPECT_GE(modules, 12u);
  EXPECT_THAT(written,
              UnorderedElementsAre("ticket", "lock_word", "managed_counter", "fz", "counter"));
  EXPECT_THAT(unknown, IsEmpty());
}

// --- reading

TEST(FactsJsonTest, WhatIsNotAsItShouldBeIsRefused) {
  const Json good = ToJson(Kernel("st.global.u32 [v], %r1;", kV));
  ASSERT_TRUE(FactsFromJson(good, "facts"));
  const auto refused = [&](const std::function<void(Json&)>& change) {
    Json bad = good;
    change(bad);
    const auto read = FactsFromJson(bad, "facts");
    return read ? std::string("read") : read.error().place;
  };
  EXPECT_EQ(refused([](Json& j) { j.erase("uses"); }), "facts");
  EXPECT_EQ(refused([](Json& j) { j["variables"][0]["written"] = "maybe"; }),
            "facts: /variables/0/written");
  EXPECT_NE(refused([](Json& j) { j["functions"][0]["bounds"]["cluster"] = Json::array({1, 2}); }),
            "read");
  EXPECT_NE(refused([](Json& j) { j["memory"][0]["ptx_line"] = 5'000'000'000; }), "read");
  EXPECT_NE(refused([](Json& j) { j["more"] = 1; }), "read");
  EXPECT_NE(refused([](Json& j) { j = Json::array(); }), "read");
}

// Its address is known, so anyone may call it, and with it whatever else there is: what is only declared has no variables to pass it in.
TEST(Facts, FunctionsThatAreOnlyDeclaredHaveNoVariables) {
  std::string declared, parameters;
  for (int i = 0; i < 200; ++i)
    parameters += (i > 0 ? ", .param .b64 p" : ".param .b64 p") + std::to_string(i);
  for (int f = 0; f < 50; ++f)
    declared += ".extern .func (.param .b64 r) far" + std::to_string(f) + "(" + parameters + ");\n";
  const std::string defined = ".func near(.param .b64 a)\n{\nret;\n}\n.global .u64 table = near;\n";
  const Facts facts = Kernel("", defined + declared);
  EXPECT_EQ(facts.functions.size(), 52u);
  EXPECT_EQ(Kernel("", defined).functions.size(), 2u);
}

// --- decisions

std::vector<Node::Op> OpsOf(const Decision& decision) {
  std::vector<Node::Op> ops;
  for (const Node& node : decision.nodes) ops.push_back(node.op);
  return ops;
}

TEST(DecisionsTest, AreComputedFromParameters) {
  using enum Node::Op;
  const Facts facts = Kernel(
      "and.b32 %r2, %r1, 7;\nsetp.ne.s32 %p1, %r2, 5;\n@%p1 bra $L;\nadd.s32 %r3, %r1, 1;\n$L:");
  // What is masked, then what it is compared with.
  ASSERT_EQ(facts.decisions.size(), 2u);
  EXPECT_EQ(facts.decisions[0].branch_line, 0u);
  const Decision& compared = facts.decisions[1];
  EXPECT_EQ(compared.entry, "k");
  EXPECT_NE(compared.branch_line, 0u);
  EXPECT_THAT(OpsOf(compared), testing::Contains(kParameter));
  EXPECT_THAT(OpsOf(compared), testing::Contains(kAnd));
  EXPECT_EQ(compared.nodes[compared.right].op, kConvert);
}

TEST(DecisionsTest, LoopsCountAndWaysAreChosen) {
  using enum Node::Op;
  const Facts counted = Kernel(
      "mov.u32 %r2, 0;\n$L:\nadd.s32 %r2, %r2, 4096;\nsetp.lt.s32 %p1, %r2, %r1;\n@%p1 bra $L;");
  ASSERT_EQ(counted.decisions.size(), 1u);
  EXPECT_THAT(OpsOf(counted.decisions[0]), testing::Contains(kCounter));
  const Facts chosen = Kernel(
      "mov.u32 %r2, 3;\nsetp.lt.s32 %p1, %r1, 9;\n@%p1 bra $L;\nmov.u32 %r2, "
      "%r1;\n$L:\nsetp.eq.s32 %p2, %r2, 77;");
  ASSERT_EQ(chosen.decisions.size(), 2u);
  EXPECT_THAT(OpsOf(chosen.decisions[1]), testing::Contains(kChoice));
}

TEST(DecisionsTest, WhatOneLoopCountsIsOfOneLoop) {
  // The outer loop counts %r2 and %r3, the inner one %r4.
  const Facts facts = Kernel(
      "mov.u32 %r2, 0;\nmov.u32 %r3, 0;\n$O:\nmov.u32 %r4, 0;\n$I:\nadd.s32 %r4, %r4, "
      "32;\nsetp.lt.s32 %p1, %r4, %r1;\n@%p1 bra $I;\ncvt.s64.s32 %d2, %r3;\nadd.s32 %r3, %r3, "
      "%r1;\nadd.s32 %r2, %r2, 4;\nsetp.lt.s32 %p2, %r2, %r1;\n@%p2 bra $O;");
  const auto loop_of = [](const Decision& decision) {
    const auto counter = std::ranges::find(decision.nodes, Node::Op::kCounter, &Node::op);
    return counter == decision.nodes.end() ? 0 : counter->value;
  };
  ASSERT_EQ(facts.decisions.size(), 3u);
  const Decision& limit = facts.decisions[2];
  ASSERT_TRUE(limit.limit);
  EXPECT_NE(loop_of(limit), 0);
  EXPECT_NE(loop_of(limit), loop_of(facts.decisions[0]));
  EXPECT_EQ(loop_of(limit), loop_of(facts.decisions[1]));
}

TEST(DecisionsTest, ASelectionIsDecidedAsABranchIs) {
  const Facts alone = Kernel("setp.lt.s32 %p1, %r1, 9;\nselp.b32 %r2, 1, 0, %p1;");
  ASSERT_EQ(alone.decisions.size(), 1u);
  EXPECT_NE(alone.decisions[0].branch_line, 0u);
  const Facts together = Kernel(
      "setp.lt.s32 %p1, %r1, 9;\nsetp.gt.s32 %p2, %r1, 3;\nand.pred %p3, %p1, %p2;\nselp.b32 "
      "%r2, 1, 0, %p3;");
  ASSERT_EQ(together.decisions.size(), 2u);
  EXPECT_NE(together.decisions[0].branch_line, 0u);
  EXPECT_EQ(together.decisions[0].branch_line, together.decisions[1].branch_line);
  const Facts beside =
      Kernel("setp.lt.s32 %p1, %r1, 9;\nsetp.gt.s32 %p2, %r1, 3;\nselp.b32 %r2, 1, 0, %p2;");
  EXPECT_EQ(beside.decisions.at(0).branch_line, 0u);
}

TEST(DecisionsTest, ElementsAreNamedByTheirBuffer) {
  using enum Node::Op;
  const Facts facts = Kernel("ld.global.u32 %r2, [%d1];\nsetp.eq.s32 %p1, %r2, %r1;");
  ASSERT_EQ(facts.decisions.size(), 1u);
  const auto loaded = std::ranges::find(facts.decisions[0].nodes, kMemory, &Node::op);
  ASSERT_NE(loaded, facts.decisions[0].nodes.end());
  EXPECT_EQ(loaded->value, 0);
}

TEST(DecisionsTest, NumbersThatOutgrowTheirFormatsAreLimits) {
  using enum Node::Op;
  const auto limit_of = [](const Facts& facts) -> std::int64_t {
    if (facts.decisions.size() != 1 || !facts.decisions[0].limit) return 0;
    return facts.decisions[0].nodes[facts.decisions[0].right].value;
  };
  const Facts index = Kernel(
      "mov.u32 %r2, %ctaid.x;\nmul.lo.s32 %r3, %r2, %r1;\nmul.wide.s32 %d2, %r3, 4;\nadd.s64 %d3, "
      "%d1, %d2;\nst.global.u32 [%d3], %r2;");
  EXPECT_EQ(limit_of(index), std::int64_t{1} << 31);
  EXPECT_THAT(OpsOf(index.decisions.at(0)), testing::Contains(kMultiply));
  EXPECT_EQ(limit_of(Kernel("shl.b32 %r3, %r1, 5;\ncvt.u64.u32 %d2, %r3;")), std::int64_t{1} << 32);
  EXPECT_EQ(limit_of(Kernel("cvt.rn.f32.s32 %f1, %r1;")), 1 << 24);
  EXPECT_EQ(limit_of(Kernel("mov.u32 %r2, %ctaid.x;\ncvt.rn.f32.s32 %f1, %r2;")), 1 << 24);
  EXPECT_EQ(limit_of(Kernel("cvt.rn.f16.u32 %h1, %r1;")), 1 << 11);
  // Upper digits that are cut off, whichever way.
  const auto cut_at = [](const Facts& facts) -> std::int64_t {
    const auto limit = std::ranges::find(facts.decisions, true, &Decision::limit);
    return limit == facts.decisions.end() ? 0 : limit->nodes[limit->right].value;
  };
  EXPECT_EQ(cut_at(Kernel("mul24.lo.u32 %r2, %r1, 4;")), 1 << 24);
  EXPECT_EQ(cut_at(Kernel("mad24.lo.s32 %r2, 4, %r1, 4;")), 1 << 23);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, 16777215;")), 1 << 24);
  EXPECT_EQ(cut_at(Kernel("shl.b32 %r2, %r1, 2;\nand.b32 %r3, %r2, 67108860;")), 1 << 26);
  EXPECT_EQ(cut_at(Kernel("shl.b32 %r2, %r1, 8;\nshr.s32 %r3, %r2, 8;")), 1 << 23);
  EXPECT_EQ(cut_at(Kernel("bfe.u32 %r2, %r1, 0, 24;")), 1 << 24);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, 63;")), 0);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, -4;")), 0);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, 65537;")), 0);
  EXPECT_EQ(cut_at(Kernel("mov.u32 %r2, %tid.x;\nmul24.lo.u32 %r3, %r2, 4;")), 0);
  EXPECT_EQ(cut_at(Kernel("shr.s32 %r3, %r1, 8;")), 0);
  // Wide enough from the start; floats; what stands in memory.
  EXPECT_THAT(Kernel("mov.u32 %r2, %tid.x;\ncvt.s64.s32 %d2, %r2;").decisions, IsEmpty());
  EXPECT_THAT(Kernel("cvt.u16.u32 %h1, %r1;").decisions, IsEmpty());
  EXPECT_THAT(Kernel("ld.global.u32 %r2, [%d1];\ncvt.rn.f32.s32 %f1, %r2;").decisions, IsEmpty());
}

TEST(DecisionsTest, WhatIsNotKnownIsNoDecision) {
  // Of other lanes, of shared memory, and of nothing that a case changes.
  EXPECT_THAT(Kernel("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nsetp.eq.s32 %p1, %r2, 5;").decisions,
              IsEmpty());
  EXPECT_THAT(
      Kernel("ld.shared.u32 %r2, [s];\nsetp.eq.s32 %p1, %r2, 5;", ".shared .align 4 .b8 s[16];\n")
          .decisions,
      IsEmpty());
  EXPECT_THAT(Kernel("mov.u32 %r2, %tid.x;\nsetp.eq.s32 %p1, %r2, 5;").decisions, IsEmpty());
}

TEST(DecisionsTest, AreReadStrictly) {
  Facts facts;
  Decision& decision = facts.decisions.emplace_back();
  decision.nodes = {{Node::Op::kParameter, Node::Type::kS32, 1, {}},
                    {Node::Op::kNot, Node::Type::kS32, 0, {0}}};
  decision.left = 1;
  EXPECT_TRUE(FactsFromJson(ToJson(facts), "facts"));
  decision.nodes[1].of = {1};  // of itself
  EXPECT_FALSE(FactsFromJson(ToJson(facts), "facts"));
  decision.nodes[1].of = {0, 0};  // too many
  EXPECT_FALSE(FactsFromJson(ToJson(facts), "facts"));
  decision.nodes[1].of = {0};
  decision.right = 2;  // not there
  EXPECT_FALSE(FactsFromJson(ToJson(facts), "facts"));
}

}  // namespace
}  // namespace assay::facts
