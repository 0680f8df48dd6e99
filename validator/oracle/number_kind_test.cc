#include "validator/oracle/number_kind.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::oracle {
namespace {

constexpr std::string_view kProgram =
    ".visible .const .align 4 .u32 assay_run = 1934623233;\n"
    ".visible .entry f() { .reg .u32 %r<2>; ld.const.u32 %r1, [assay_run]; ret; }\n";

TEST(NumberKind, IsAnotherInitialValueAndNothingElse) {
  const auto text = WithRunFlags(kProgram, 5);
  ASSERT_TRUE(text) << ToString(text.error());
  EXPECT_EQ(*text,
            ".visible .const .align 4 .u32 assay_run = 5;\n"
            ".visible .entry f() { .reg .u32 %r<2>; ld.const.u32 %r1, [assay_run]; ret; }\n");
}

TEST(NumberKind, ProgramsThatDoNotAskStayAsTheyAre) {
  const std::string program = ".visible .entry f() { ret; }\n";
  EXPECT_EQ(WithRunFlags(program, 3).value(), program);
}

TEST(NumberKind, UnexpectedDefinitionsAreRefused) {
  for (const std::string& program :
       {std::string(".const .align 4 .u32 assay_run = 7;\nld.const.u32 %r1, [assay_run];"),
        std::string(".const .align 4 .u32 assay_run;"),
        std::string(kProgram) + std::string(kProgram)}) {
    const auto text = WithRunFlags(program, 3);
    ASSERT_FALSE(text) << program;
    EXPECT_EQ(text.error().kind, ErrorKind::kInternal);
  }
}

TEST(NumberKind, KindsThatDifferInAnythingHaveTheirOwnValue) {
  std::set<unsigned> seen;
  for (const bool independent : {false, true}) {
    for (const bool in_order : {false, true}) {
      NumberType type;
      type.independent = independent;
      type.in_order = in_order;
      seen.insert(RunFlags(type));
    }
  }
  EXPECT_EQ(seen.size(), 4u);
}

}  // namespace
}  // namespace assay::oracle
