#include "validator/ptx/facts/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>

#include "base/file.h"
#include "validator/ptx/facts/facts_of.h"

namespace assay::facts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

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

TEST(ConstantsTest, EntriesOfShortTablesAreSome) {
  const Facts facts = Kernel(
      "ld.const.u32 %r2, [starts]; mov.u64 %d3, ends; ld.const.u32 %r3, [many+4];\n"
      "ld.const.u8 %r4, [bytes]; ld.const.u32 %r5, [none];",
      ".const .align 4 .b8 starts[12] = {0, 0, 0, 0, 44, 1, 0, 0, 0, 255, 3};\n"
      ".global .align 8 .b64 ends[2] = {70001, 70002};\n"
      ".const .align 4 .b8 many[2048] = {57, 48, 0, 0};\n"
      ".global .align 4 .b8 of_a_header[4] = {68, 2, 0, 0};\n"
      ".const .align 1 .b8 bytes[2] = {201, 202};\n.const .align 4 .b32 none[4];\n");
  for (const std::int64_t entry : {300, 261888, 70001, 70002})
    EXPECT_EQ(HowIs(facts, entry), Constant::How::kTable) << entry;
  EXPECT_EQ(HowIs(facts, 12345), std::nullopt) << "of a long one";
  EXPECT_EQ(HowIs(facts, 201), std::nullopt) << "of bytes";
  EXPECT_EQ(HowIs(facts, 580), std::nullopt) << "of one that nothing names";
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
                           "@%p1 bra L; { atom.global.add.u32 %r2, [%d1], 1; } L:"}) {
    EXPECT_EQ(Depend(body), Answer::kYes) << body;
  }
  for (const char* body :
       {"ld.global.u32 %r2, [%d1];", "bar.sync 0;",
        "{ .shared .b32 s; atom.shared.add.u32 %r2, [s], 1; ld.volatile.shared.u32 %r3, [s]; }",
        "barrier.cluster.arrive; barrier.cluster.wait;", "fence.acq_rel.cluster;",
        "mapa.shared::cluster.u32 %r2, %r1, 1; st.shared::cluster.u32 [%r2], %r1;",
        "atom.shared::cluster.add.u32 %r2, [%r1], 1;", "// atom.global.add.u32 %r2, [%d1], 1;"}) {
    EXPECT_EQ(Depend(body), Answer::kNo) << body;
  }
  // What a cluster's blocks do together is seen in no other.
  EXPECT_EQ(Depend("", "", ".reqnctapercluster 2, 1, 1"), Answer::kNo);
  EXPECT_EQ(Depend("", "", ".reqntid 128, 1, 1"), Answer::kNo);
  EXPECT_EQ(BlocksDepend(nullptr, "k"), Answer::kUnknown);
}

TEST(FunctionsTest, BlocksThatOnlyAddFloats) {
  const auto only_adds = [](const std::string& body) {
    const Facts facts = Kernel(body);
    return OnlyAdds(&facts, "k");
  };
  for (const char* body :
       {"red.global.add.f32 [%d1], %f1;", "atom.global.add.f32 %f2, [%d1], %f1;",
        "atom.global.add.f32 _, [%d1], %f1; red.global.add.f32 [%d1+4], %f1; bar.sync 0;"}) {
    EXPECT_TRUE(only_adds(body)) << body;
  }
  for (const char* body : {"st.global.f32 [%d1], %f1;", "red.global.add.u32 [%d1], 1;",
                           "red.global.add.f32 [%d1], %f1; membar.gl;",
                           "red.global.add.f32 [%d1], %f1; atom.global.add.u32 _, [%d1], 1;",
                           "atom.global.add.f32 %f2, [%d1], %f1; st.global.f32 [%d1+4], %f2;",
                           "atom.global.exch.b32 %r2, [%d1], 1;",
                           "red.global.add.f32 [%d1], %f1; ld.volatile.global.f32 %f2, [%d1];"}) {
    EXPECT_FALSE(only_adds(body)) << body;
  }
  EXPECT_FALSE(OnlyAdds(nullptr, "k"));
}

Unit UnitOfKernel(const std::string& body, const std::string& globals = "") {
  const Facts facts = Kernel(body, globals);
  return UnitOf(&facts, "k");
}

TEST(FunctionsTest, UnitsThatRunByThemselves) {
  for (const char* body :
       {"ld.global.u32 %r2, [%d1]; add.s32 %r3, %r2, 1; st.global.u32 [%d1], %r3;",
        "@%p1 bra L; mov.u32 %r2, %tid.x; L:"}) {
    EXPECT_EQ(UnitOfKernel(body), Unit::kThread) << body;
  }
  for (const char* body :
       {"shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", "bar.warp.sync -1;", "activemask.b32 %r2;"}) {
    EXPECT_EQ(UnitOfKernel(body), Unit::kWarp) << body;
  }
  for (const char* body :
       {"bar.sync 0;", "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; bar.sync 0;",
        "{ .shared .b32 s; st.shared.u32 [s], %r1; }", "membar.gl;", "red.add.u32 [%d1], 1;"}) {
    EXPECT_EQ(UnitOfKernel(body), Unit::kBlock) << body;
  }
  // Shared memory may be reached by generic addresses, and callees count.
  EXPECT_EQ(UnitOfKernel("", ".shared .b32 s;\n"), Unit::kBlock);
  EXPECT_EQ(UnitOfKernel("call.uni meets;", ".func meets() { bar.sync 0; ret; }\n"), Unit::kBlock);
  EXPECT_EQ(UnitOfKernel("call.uni far;", ".extern .func far();\n"), Unit::kBlock);
  EXPECT_EQ(UnitOf(nullptr, "k"), Unit::kBlock);
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
  EXPECT_EQ(Polls("bra T; B: ld.volatile.global.u32 %r3, [%d1]; bra C; T: bra B; C: setp.eq.s32 "
                  "%p1, %r3, 0; "
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

TEST(FunctionsTest, LoopsThatChangeWhatTheyReadWaitForNobody) {
  const auto polls = [](const std::string& body) {
    return Kernel(".shared .u32 next; .shared .align 4 .b8 stages[64]; " + body,
                  ".global .u32 data[9];\n")
        .FindFunction("k")
        ->polls;
  };
  // Tickets of a queue: drawn by each thread, or by one for its block.
  EXPECT_EQ(polls("W: atom.global.add.u32 %r3, [%d1], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra W;"),
            Answer::kNo);
  const std::string handed_on =
      "W: atom.global.add.u32 %r3, [%d1], 1; st.shared.u32 [next], %r3; bar.sync 0; "
      "ld.shared.u32 %r4, [next]; ";
  EXPECT_EQ(polls(handed_on + "setp.lt.u32 %p1, %r4, 9; @%p1 bra W;"), Answer::kNo);
  // What comes from elsewhere lies in other shared memory,
  EXPECT_EQ(polls(handed_on + "ld.global.u32 %r1, [data]; st.shared.u32 [stages], %r1; "
                              "st.global.u32 [data], %r4; setp.lt.u32 %p1, %r4, 9; @%p1 bra W;"),
            Answer::kNo);
  // or in the same.
  EXPECT_EQ(polls(handed_on + "ld.global.u32 %r1, [data]; st.shared.u32 [next], %r1; "
                              "st.global.u32 [data], %r4; setp.lt.u32 %p1, %r4, 9; @%p1 bra W;"),
            Answer::kYes);
  // A lock that counts who came, and is given back; a counter that others count up; a step that may be nothing.
  const std::string lock =
      "W: atom.global.add.u32 %r3, [%d1], 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra W; ";
  EXPECT_EQ(polls(lock + "st.global.u32 [%d1], 0;"), Answer::kYes);
  EXPECT_EQ(polls(lock + "atom.global.add.u32 %r3, [%d1], -1;"), Answer::kYes);
  EXPECT_EQ(polls("atom.global.add.u32 %r4, [%d1], 1; W: ld.relaxed.gpu.global.u32 %r3, [%d1]; "
                  "setp.lt.u32 %p1, %r3, 9; @%p1 bra W;"),
            Answer::kYes);
  EXPECT_EQ(polls("W: atom.global.add.u32 %r3, [%d1], 0; setp.lt.u32 %p1, %r3, 9; @%p1 bra W;"),
            Answer::kYes);
  // A parameter stays what it is, wherever it is read.
  EXPECT_EQ(polls(handed_on + "ld.param.u32 %r5, [k_n]; setp.lt.u32 %p1, %r4, %r5; @%p1 bra W;"),
            Answer::kNo);
  // Lengths of rows that nobody writes.
  EXPECT_EQ(polls("W: ld.global.u32 %r3, [data]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1; "
                  "setp.lt.u32 %p1, %r1, %r3; @%p1 bra W;"),
            Answer::kNo);
  // Flags in shared memory, which a thread of the block sets by what it read.
  EXPECT_EQ(polls("W: ld.global.u32 %r3, [%d1]; st.shared.u32 [next], %r3; bar.sync 0; "
                  "ld.shared.u32 %r4, [next]; st.global.u32 [%d1], %r1; setp.eq.u32 %p1, %r4, 0; "
                  "@%p1 bra W;"),
            Answer::kYes);
  EXPECT_EQ(polls("W: ld.shared.u32 %r4, [next]; setp.eq.u32 %p1, %r4, 0; @%p1 bra W;"),
            Answer::kNo);
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
  const Json good = ToJson(Kernel("st.global.u32 [v], %r1;", ".global .align 8 .b8 v[64];\n"));
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

}  // namespace
}  // namespace assay::facts
