#include "validator/ptx/facts/skeleton.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "validator/ptx/facts/facts_of.h"
#include "validator/ptx/verifier.h"

namespace assay::facts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Of an entry k(x, y, n) with `body`: x in %d1, y in %d2, n in %r1, the thread's number in %r2, its place in y in %d3.
facts::Skeleton SkeletonWith(const std::string& body, const std::string& globals = "") {
  const std::string text =
      std::string(kHead) + globals +
      ".visible .entry k(.param .u64 .ptr .align 1 k_x, .param .u64 .ptr .align 1 k_y, .param "
      ".u32 k_n)\n{\n" +
      std::string(kRegisters) +
      ".shared .align 4 .u32 ticket; .shared .align 4 .b8 tile[128];\n"
      "ld.param.u64 %d1, [k_x];\nld.param.u64 %d2, [k_y];\nld.param.u32 %r1, [k_n];\n"
      "mov.u32 %r2, %tid.x;\nmul.wide.u32 %d3, %r2, 4;\nadd.s64 %d3, %d2, %d3;\n" +
      body + "\nret;\n}\n";
  const auto module = ptx::Parse(text, "test.ptx");
  if (!module || !ptx::Verify(*module)) {
    ADD_FAILURE() << (module ? ToString(ptx::Verify(*module).error()) : ToString(module.error()))
                  << "\n"
                  << text;
    return {};
  }
  facts::Skeleton skeleton = SkeletonOf(*module);
  const auto read = ptx::Parse(skeleton.ptx, "skeleton.ptx");
  EXPECT_TRUE(skeleton.ptx.empty() || (read && ptx::Verify(*read))) << skeleton.ptx;
  return skeleton;
}
std::string TextWith(const std::string& body, const std::string& globals = "") {
  return SkeletonWith(body, globals).ptx;
}

constexpr std::string_view kSum =
    "mov.f32 %f1, 0f00000000;\nmov.u32 %r3, 0;\n"
    "loop:\nld.global.f32 %f2, [%d1];\nadd.f32 %f1, %f1, %f2;\nadd.u32 %r3, %r3, 1;\n"
    "setp.lt.u32 %p1, %r3, %r1;\n@%p1 bra loop;\n";

TEST(Skeleton, ALoopThatAddsUpWhatIsStoredIsGone) {
  EXPECT_THAT(TextWith(std::string(kSum) + "st.global.f32 [%d3], %f1;"),
              AllOf(HasSubstr("st.global.f32 [%d3], %f1"), Not(HasSubstr("bra")),
                    Not(HasSubstr("ld.global")), Not(HasSubstr("add.f32"))));
}

TEST(Skeleton, ALoopThatCountsWhereItStoresStays) {
  EXPECT_THAT(TextWith("mov.u32 %r3, 0;\nloop:\nst.global.f32 [%d3], %f1;\nadd.s64 %d3, %d3, 128;\n"
                       "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, %r1;\n@%p1 bra loop;"),
              AllOf(HasSubstr("@%p1 bra loop"), HasSubstr("add.s64 %d3, %d3, 128")));
}

TEST(Skeleton, WhatAnAddressIsReadFromStays) {
  EXPECT_THAT(TextWith("ld.global.u32 %r4, [%d1];\nmul.wide.u32 %d4, %r4, 4;\n"
                       "add.s64 %d4, %d2, %d4;\nst.global.f32 [%d4], %f1;"),
              HasSubstr("ld.global.u32 %r4, [%d1]"));
}

TEST(Skeleton, SoDoesWhatDecidesWhetherItStores) {
  EXPECT_THAT(TextWith("setp.ge.u32 %p1, %r2, %r1;\n@%p1 ret;\nst.global.f32 [%d3], %f1;"),
              AllOf(HasSubstr("setp.ge.u32"), HasSubstr("@%p1 ret")));
  EXPECT_THAT(TextWith("setp.ge.u32 %p1, %r2, %r1;\n@%p1 st.global.f32 [%d3], %f1;"),
              HasSubstr("@%p1 st.global"));
}

TEST(Skeleton, BarriersStayWhereMemoryOfTheBlockSaysWhere) {
  const std::string tile =
      "mov.u32 %r5, tile;\nst.shared.f32 [%r5], %f1;\nbar.sync 0;\nld.shared.f32 %f2, [tile+4];\n";
  EXPECT_THAT(TextWith(tile + "st.global.f32 [%d3], %f2;"),
              AllOf(Not(HasSubstr("bar.sync")), Not(HasSubstr("st.shared"))));
  // A ticket is handed to the block; the tile is another variable.
  EXPECT_THAT(
      TextWith(tile +
               "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra drawn;\n"
               "atom.global.add.u32 %r3, [%d1], 1;\nst.shared.u32 [ticket], %r3;\n"
               "drawn:\nbar.sync 0;\nld.shared.u32 %r4, [ticket];\n"
               "mul.wide.u32 %d4, %r4, 4;\nadd.s64 %d4, %d3, %d4;\nst.global.f32 [%d4], %f2;"),
      AllOf(HasSubstr("bar.sync"), HasSubstr("st.shared.u32 [ticket], %r3"),
            HasSubstr("atom.global"), Not(HasSubstr("st.shared.f32"))));
}

TEST(Skeleton, WhatIsAddedIsNotAskedForButWhatIsCounted) {
  EXPECT_THAT(TextWith(std::string(kSum) + "red.global.add.f32 [%d3], %f1;"),
              AllOf(HasSubstr("red.global.add.f32"), Not(HasSubstr("bra"))));
  EXPECT_THAT(TextWith("add.u32 %r3, %r1, 7;\nred.global.add.u32 [%d3], %r3;"),
              HasSubstr("add.u32 %r3, %r1, 7"));
}

TEST(Skeleton, ValuesThatAreReadBackToDecideStay) {
  const std::string stored = "add.u32 %r3, %r1, 7;\nst.global.u32 [%d3], %r3;\n";
  EXPECT_THAT(TextWith(stored), Not(HasSubstr("add.u32")));
  EXPECT_THAT(TextWith(stored + "ld.global.u32 %r4, [%d2];\nmul.wide.u32 %d4, %r4, 4;\n"
                                "add.s64 %d4, %d1, %d4;\nst.global.f32 [%d4], %f1;"),
              HasSubstr("add.u32 %r3, %r1, 7"));
}

// Both programs of a module: one draws a number, the other one stores sums of as many bytes.
TEST(Skeleton, AFloatIsNotWhatAnotherProgramDrawsAsAWholeNumber) {
  const std::string draws =
      ".visible .entry other(.param .u64 .ptr .align 1 other_t, .param .u64 .ptr .align 1 "
      "other_y)\n{\n" +
      std::string(kRegisters) +
      "ld.param.u64 %d1, [other_t];\nld.param.u64 %d2, [other_y];\n"
      "atom.global.add.u32 %r1, [%d1], 1;\nmul.wide.u32 %d3, %r1, 4;\nadd.s64 %d3, %d2, %d3;\n"
      "st.global.f32 [%d3], %f1;\nret;\n}\n";
  EXPECT_THAT(TextWith("add.f32 %f1, %f1, %f1;\nst.global.f32 [%d3], %f1;", draws),
              Not(HasSubstr("add.f32")));
  EXPECT_THAT(TextWith("add.u32 %r3, %r1, 7;\nst.global.u32 [%d3], %r3;", draws),
              HasSubstr("add.u32 %r3, %r1, 7"));
}

TEST(Skeleton, CopiesOutOfSharedMemoryStayWithTheirSize) {
  EXPECT_THAT(
      TextWith("mov.u32 %r5, tile;\nst.shared.f32 [%r5], %f1;\nbar.sync 0;\nshl.b32 %r6, %r1, 4;\n"
               "cp.async.bulk.global.shared::cta.bulk_group [%d3], [%r5], %r6;\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"),
      AllOf(HasSubstr("cp.async.bulk.global"), HasSubstr("shl.b32 %r6"), HasSubstr("wait_group"),
            Not(HasSubstr("st.shared"))));
}

TEST(Skeleton, CarriesComeWithWhatMadeThem) {
  EXPECT_THAT(TextWith("add.cc.u32 %r3, %r1, %r2;\naddc.u32 %r4, 0, 0;\nmul.wide.u32 %d4, %r4, 4;\n"
                       "add.s64 %d4, %d2, %d4;\nst.global.f32 [%d4], %f1;"),
              HasSubstr("add.cc.u32"));
}

TEST(Skeleton, SharedMemoryThatNobodyComesToIsLeftOut) {
  const std::string tile =
      "mov.u32 %r5, tile;\nst.shared.f32 [%r5], %f1;\nbar.sync 0;\nld.shared.f32 %f2, [tile+4];\n";
  const facts::Skeleton none = SkeletonWith(tile + "st.global.f32 [%d3], %f2;");
  EXPECT_FALSE(none.in_shared);
  EXPECT_THAT(none.ptx, Not(HasSubstr("tile[128]")));
  const facts::Skeleton some = SkeletonWith(
      "ld.shared.u32 %r4, [tile+4];\nmul.wide.u32 %d4, %r4, 4;\n"
      "add.s64 %d4, %d2, %d4;\nst.global.f32 [%d4], %f1;");
  EXPECT_TRUE(some.in_shared);
  EXPECT_THAT(some.ptx, HasSubstr("tile[128]"));
}

TEST(Skeleton, ANumberThatWasRoundedIsSaid) {
  const auto stored_at = [](const std::string& number) {
    return SkeletonWith(number +
                        "mul.wide.s32 %d4, %r4, 4;\nadd.s64 %d4, %d2, %d4;\n"
                        "st.global.f32 [%d4], %f1;")
        .rounds;
  };
  EXPECT_TRUE(stored_at("cvt.rn.f32.s32 %f2, %r2;\ncvt.rzi.s32.f32 %r4, %f2;\n"));
  EXPECT_TRUE(stored_at("mul.hi.u32 %r4, %r2, %r1;\n"));
  // Quotients by constants are exact; so are quotients.
  EXPECT_FALSE(stored_at("mul.hi.u32 %r4, %r2, 715827883;\n"));
  EXPECT_FALSE(stored_at("mov.u32 %r5, 715827883;\nmul.hi.u32 %r4, %r2, %r5;\n"));
  EXPECT_FALSE(stored_at("div.u32 %r4, %r2, %r1;\n"));
  // What is stored decides nothing.
  EXPECT_FALSE(SkeletonWith("cvt.rn.f32.s32 %f2, %r2;\ncvt.rzi.s32.f32 %r4, %f2;\n"
                            "st.global.u32 [%d3], %r4;")
                   .rounds);
}

// Blocks of one program of a module come to each other's memory; another program does not.
TEST(Skeleton, OneProgramOfAModuleMayHaveNone) {
  const std::string with_others =
      ".visible .entry other(.param .u64 .ptr .align 1 other_y)\n{\n" + std::string(kRegisters) +
      ".shared .align 4 .b8 tile[128];\nld.param.u64 %d1, [other_y];\nmov.u32 %r5, tile;\n"
      "mapa.shared::cluster.u32 %r6, %r5, 0;\nst.shared::cluster.u32 [%r6], %r1;\n"
      "st.global.f32 [%d1], %f1;\nret;\n}\n";
  const facts::Skeleton skeleton =
      SkeletonWith(std::string(kSum) + "st.global.f32 [%d3], %f1;", with_others);
  EXPECT_THAT(skeleton.ptx, AllOf(HasSubstr("st.global.f32 [%d3], %f1"), Not(HasSubstr("mapa"))));
  EXPECT_THAT(skeleton.without, testing::ElementsAre("other"));
}

TEST(Skeleton, ThereIsNoneOfWhatNeverEndsOrIsNotThere) {
  EXPECT_EQ(TextWith("st.global.f32 [%d3], %f1;\nloop:\nbra loop;"), "");
  EXPECT_EQ(TextWith("mov.u32 %r5, tile;\nmapa.shared::cluster.u32 %r6, %r5, 0;\n"
                     "st.shared::cluster.u32 [%r6], %r1;\nst.global.f32 [%d3], %f1;"),
            "");
  EXPECT_EQ(TextWith("call other;\nst.global.f32 [%d3], %f1;", ".extern .func other;\n"), "");
}

}  // namespace
}  // namespace assay::facts
