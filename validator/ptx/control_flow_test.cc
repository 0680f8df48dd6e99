#include "validator/ptx/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "validator/ptx/parser.h"
#include "validator/ptx/verifier.h"

namespace assay::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Registers of an entry with `body` that may be read before they are written, by name.
std::vector<std::string> UnsetOf(const std::string& body) {
  const std::string text = R"(.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) {
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [y]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;
)" + body + "\n  ret;\n}\n";
  const auto module = Parse(text, "test.ptx");
  if (!module || !Verify(*module)) {
    ADD_FAILURE() << (module ? ToString(Verify(*module).error()) : ToString(module.error()));
    return {};
  }
  const Function& function = module->functions.front();
  const std::vector<bool> unset = MayBeUnset(function);
  std::vector<std::string> names;
  for (std::size_t reg = 0; reg < unset.size(); ++reg) {
    if (unset[reg]) names.push_back(function.registers[reg].name);
  }
  return names;
}

TEST(MayBeUnsetTest, NotWhatIsWrittenBeforeItIsRead) {
  EXPECT_THAT(UnsetOf("add.u32 %r2, %r1, 1; st.global.u32 [%d1], %r2;"), IsEmpty());
  EXPECT_THAT(UnsetOf("st.global.u32 [%d1], %r2;"), ElementsAre("%r2"));
  EXPECT_THAT(UnsetOf("add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;"), ElementsAre("%r2"));
}

TEST(MayBeUnsetTest, WhatOneOfTwoWaysWritesMayBe) {
  const std::string use = "join:\n  st.global.u32 [%d1], %r2;";
  EXPECT_THAT(UnsetOf("@%p1 bra join; mov.u32 %r2, 1;\n" + use), ElementsAre("%r2"));
  EXPECT_THAT(UnsetOf("mov.u32 %r2, 0; @%p1 bra join; mov.u32 %r2, 1;\n" + use), IsEmpty());
  EXPECT_THAT(UnsetOf("@%p1 mov.u32 %r2, 1;\n" + use), ElementsAre("%r2"));
}

TEST(MayBeUnsetTest, ALoopIsGoneThroughAsOftenAsItTakes) {
  // The sum is read in the second round, and the number of rounds set in the first.
  EXPECT_THAT(UnsetOf("mov.u32 %r3, 0;\nloop:\n  add.u32 %r2, %r2, %r3; add.u32 %r3, %r3, 1;\n"
                      "  setp.lt.u32 %p1, %r3, 9; @%p1 bra loop; st.global.u32 [%d1], %r2;"),
              ElementsAre("%r2"));
  EXPECT_THAT(UnsetOf("mov.u32 %r3, 0;\nloop:\n  mov.u32 %r2, %r3; add.u32 %r3, %r2, 1;\n"
                      "  setp.lt.u32 %p1, %r3, 9; @%p1 bra loop; st.global.u32 [%d1], %r2;"),
              IsEmpty());
}

}  // namespace
}  // namespace assay::ptx
