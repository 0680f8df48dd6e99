// What a kernel decides by, as expressions of its parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "validator/ptx/facts/facts_of.h"

namespace assay::facts {
namespace {

using testing::IsEmpty;

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

TEST(DecisionsTest, FloatsOfIntegersBecomeIntegers) {
  using Becomes = Decision::Becomes;
  const auto becomes = [](const std::string& body) -> std::vector<Becomes> {
    std::vector<Becomes> all;
    for (const Decision& each : Kernel(body).decisions) {
      if (each.becomes != Becomes::kNothing) all.push_back(each.becomes);
    }
    return all;
  };
  const std::string quotient =
      "mov.u32 %r2, %ctaid.x;\ncvt.rn.f32.s32 %f1, %r2;\ncvt.rn.f32.s32 %f2, %r1;\n"
      "rcp.rn.f32 %f3, %f2;\nmul.f32 %f4, %f1, %f3;\n";
  EXPECT_THAT(becomes(quotient + "cvt.rzi.s32.f32 %r3, %f4;"),
              testing::ElementsAre(Becomes::kLower));
  EXPECT_THAT(becomes(quotient + "cvt.rni.s32.f32 %r3, %f4;"),
              testing::ElementsAre(Becomes::kNearest));
  EXPECT_THAT(becomes(quotient + "sqrt.rn.f32 %f3, %f4;\ncvt.rpi.s32.f32 %r3, %f3;"),
              testing::ElementsAre(Becomes::kUpper));
  // A float that is whole already has been rounded to one.
  EXPECT_THAT(becomes(quotient + "cvt.rpi.f32.f32 %f3, %f4;\ncvt.rzi.s32.f32 %r3, %f3;"),
              testing::ElementsAre(Becomes::kUpper));
  // Floats that were loaded are data, and one that hangs on nothing is the same at all shapes.
  EXPECT_THAT(becomes("ld.global.f32 %f1, [%d1];\ncvt.rzi.s32.f32 %r3, %f1;"), IsEmpty());
  EXPECT_THAT(becomes("mov.f32 %f1, 0f40A00000;\ncvt.rzi.s32.f32 %r3, %f1;"), IsEmpty());
}

TEST(DecisionsTest, WhatEndsALoopIsKeptWhereMuchIsCompared) {
  std::string body = "mov.u32 %r2, 0;\n$L:\nadd.s32 %r2, %r2, 4096;\n";
  for (int i = 0; i < 200; ++i) body += "setp.lt.s32 %p2, %r1, " + std::to_string(i) + ";\n";
  const Facts facts = Kernel(body + "setp.lt.s32 %p1, %r2, %r1;\n@%p1 bra $L;");
  EXPECT_LT(facts.decisions.size(), 200u);
  EXPECT_TRUE(std::ranges::any_of(facts.decisions, [](const Decision& decision) {
    return std::ranges::find(decision.nodes, Node::Op::kCounter, &Node::op) != decision.nodes.end();
  }));
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
  // Both halves of a product are all of it.
  const std::string low =
      "mov.u32 %r2, %ctaid.x;\nmul.lo.u32 %r3, %r2, %r1;\ncvt.u64.u32 %d2, %r3;\n";
  EXPECT_EQ(limit_of(Kernel(low)), std::int64_t{1} << 32);
  EXPECT_EQ(limit_of(Kernel(low + "mul.hi.u32 %r4, %r1, %r2;")), 0);
  EXPECT_EQ(limit_of(Kernel(low + "mul.hi.u32 %r4, %r1, %r1;")), std::int64_t{1} << 32);
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
  EXPECT_EQ(cut_at(Kernel("cvt.u16.u32 %h1, %r1;")), 1 << 16);
  EXPECT_EQ(cut_at(Kernel("cvt.s16.u32 %h1, %r1;")), 1 << 15);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, 63;")), 0);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, -4;")), 0);
  EXPECT_EQ(cut_at(Kernel("and.b32 %r2, %r1, 65537;")), 0);
  EXPECT_EQ(cut_at(Kernel("mov.u32 %r2, %tid.x;\nmul24.lo.u32 %r3, %r2, 4;")), 0);
  EXPECT_EQ(cut_at(Kernel("shr.s32 %r3, %r1, 8;")), 0);
  // Both what a product of 24-bit numbers takes and what it gives.
  const Facts product =
      Kernel("mov.u32 %r2, %ctaid.x;\nmul24.lo.u32 %r3, %r2, %r1;\nmul.wide.u32 %d2, %r3, 4;\n");
  EXPECT_EQ(std::ranges::count_if(product.decisions,
                                  [](const Decision& each) {
                                    return each.limit &&
                                           each.nodes[each.right].value == std::int64_t{1} << 32;
                                  }),
            1);
  // Wide enough from the start; floats; what stands in memory.
  EXPECT_THAT(Kernel("mov.u32 %r2, %tid.x;\ncvt.s64.s32 %d2, %r2;").decisions, IsEmpty());
  EXPECT_THAT(Kernel("mov.u32 %r2, %tid.x;\ncvt.u16.u32 %h1, %r2;").decisions, IsEmpty());
  EXPECT_THAT(Kernel("ld.global.u32 %r2, [%d1];\ncvt.rn.f32.s32 %f1, %r2;").decisions, IsEmpty());
}

TEST(DecisionsTest, WhatIsDividedIsTakenForWhole) {
  const auto limits = [](const std::string& body) {
    const Facts facts = Kernel(body);
    std::vector<std::int64_t> numbers;
    for (const Decision& each : facts.decisions) {
      if (each.limit) numbers.push_back(each.nodes[each.right].value);
    }
    return numbers;
  };
  // ceil_div(n, 1024), and the end of a part of n.
  EXPECT_THAT(limits("add.s32 %r2, %r1, 1023;\ndiv.u32 %r3, %r2, 1024;"),
              testing::ElementsAre(std::int64_t{1} << 32));
  EXPECT_THAT(limits("mov.u32 %r2, %ctaid.x;\nmul.lo.s32 %r3, %r2, %r1;\ndiv.s32 %r4, %r3, 7;"),
              testing::ElementsAre(std::int64_t{1} << 31));
  EXPECT_THAT(limits("mov.u32 %r2, %tid.x;\ndiv.u32 %r3, %r2, 7;"), IsEmpty());
  // A compiler's way to divide what fits in 32 bits.
  EXPECT_THAT(limits("cvt.s64.s32 %d2, %r1;\nmul.lo.s64 %d3, %d2, %d2;\ncvt.u32.u64 %r2, "
                     "%d3;\ndiv.u32 %r3, %r2, 7;"),
              testing::Not(testing::Contains(std::int64_t{1} << 32)));
}

TEST(DecisionsTest, ADrawnNumberIsTheBlocksAndGoesThroughSharedMemory) {
  using enum Node::Op;
  const std::string draw = "atom.global.add.u32 %r2, [%d1], 1;\nshr.u32 %r3, %r2, 2;\n";
  const auto limits = [](const Facts& facts) {
    return std::ranges::count(facts.decisions, true, &Decision::limit);
  };
  const Facts cut = Kernel(draw + "cvt.u16.u32 %h1, %r3;");
  ASSERT_EQ(limits(cut), 1);
  EXPECT_THAT(OpsOf(cut.decisions.at(0)),
              testing::IsSupersetOf({kSpecial, kMultiply, kShiftRight}));
  // Stored by one thread and loaded by all, as a pair.
  const char* const shared = ".shared .align 4 .b8 s[16];\n";
  const std::string hand = draw + "st.shared.v2.u32 [s+8], {%r1, %r3};\nbar.sync 0;\n";
  const std::string use = "cvt.u16.u32 %h1, %r5;";
  EXPECT_EQ(limits(Kernel(hand + "ld.shared.v2.u32 {%r4, %r5}, [s+8];\n" + use, shared)), 1);
  EXPECT_EQ(limits(Kernel(hand + "ld.shared.u32 %r5, [s+12];\n" + use, shared)), 1);
  // Another place, a place that two stores write, a counter of the block's own, and one that goes down.
  EXPECT_EQ(limits(Kernel(hand + "ld.shared.u32 %r5, [s+4];\n" + use, shared)), 0);
  EXPECT_EQ(limits(Kernel(hand + "st.shared.u32 [s+12], %r1;\nld.shared.u32 %r5, [s+12];\n" + use,
                          shared)),
            0);
  EXPECT_EQ(limits(Kernel("atom.shared.add.u32 %r2, [s], 1;\ncvt.u16.u32 %h1, %r2;", shared)), 0);
  EXPECT_EQ(limits(Kernel("atom.global.add.u32 %r2, [%d1], -1;\ncvt.u16.u32 %h1, %r2;")), 0);
}

TEST(DecisionsTest, AStoreKeepsTheLowerBitsOfAWiderRegister) {
  const auto limit_of = [](const std::string& text) -> std::int64_t {
    const Facts facts = Kernel("atom.global.add.u32 %r2, [%d1], 1;\n" + text);
    const auto limit = std::ranges::find(facts.decisions, true, &Decision::limit);
    return limit == facts.decisions.end() ? 0 : limit->nodes[limit->right].value;
  };
  EXPECT_EQ(limit_of("st.global.u16 [%d1], %r2;"), 1 << 16);
  EXPECT_EQ(limit_of("st.global.v2.u16 [%d1], {%h1, %r2};"), 1 << 16);
  EXPECT_EQ(limit_of("st.global.u32 [%d1], %r2;"), 0);
  EXPECT_EQ(limit_of("st.global.u8 [%d1], %r2;"), 0) << "digits of something smaller than an index";
}

// The largest of forty, as an unrolled loop takes it within another: each step looks at the one before twice.
TEST(DecisionsTest, WhatIsMadeOfTheSameIsLookedUpOnce) {
  std::string text =
      ".reg .u32 %q<64>;\n.reg .pred %w<64>;\nmov.u32 %q0, 0;\n$L:\n"
      "setp.lt.u32 %p1, %q0, %r1;\nshfl.sync.bfly.b32 %q1, %q0, 1, 31, -1;\n";
  for (int i = 2; i < 42; ++i) {
    const std::string now = std::to_string(i), before = "%q" + std::to_string(i - 1);
    text += "setp.gt.u32 %w" + now + ", " + before + ", %r1;\nselp.b32 %q" + now + ", %r1, " +
            before + ", %w" + now + ";\n";
  }
  text += "mov.u32 %q0, %q41;\n@%p1 bra $L;\n";
  EXPECT_LE(Kernel(text).decisions.size(), 1u);
  // And what is simple beside it is found.
  EXPECT_FALSE(Kernel(text + "setp.eq.s32 %p2, %r1, 4711;\n").decisions.empty());
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
