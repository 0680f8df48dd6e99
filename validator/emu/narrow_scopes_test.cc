// Program::Impl::narrow_scopes: which modules have strong accesses that another block's access may be
// too narrow for. The race detector keeps more for those (race.h, Shape).
#include <gtest/gtest.h>

#include "validator/emu/program.h"

namespace assay::emu {
namespace {

bool IsNarrow(const std::string& body) {
  const auto program = Program::Load(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .b32 %r<4>; .reg .b64 %rd<4>; .shared .align 8 .b8 s[16];\n"
      "ld.param.u64 %rd1, [p];\n" +
      body + "\nret;\n}\n");
  if (!program) ADD_FAILURE() << ToString(program.error());
  return program && (*program)->impl().narrow_scopes;
}

TEST(NarrowScopes, AreOfMemoryThatSeveralBlocksReach) {
  for (const char* body :
       {"ld.relaxed.cta.global.u32 %r1, [%rd1];", "ld.acquire.cta.u32 %r1, [%rd1];",
        "st.release.cluster.global.u32 [%rd1], %r1;", "atom.cta.global.add.u32 %r1, [%rd1], 1;",
        "atom.cta.add.u32 %r1, [%rd1], 1;", "red.relaxed.cluster.global.add.u32 [%rd1], 1;"}) {
    EXPECT_TRUE(IsNarrow(body)) << body;
  }
}

TEST(NarrowScopes, AreNotWhatOneBlockOrAllOfTheDeviceSees) {
  for (const char* body :
       {"ld.global.u32 %r1, [%rd1];", "ld.relaxed.gpu.global.u32 %r1, [%rd1];",
        "ld.volatile.global.u32 %r1, [%rd1];", "atom.global.add.u32 %r1, [%rd1], 1;",
        // Of shared memory.
        "ld.relaxed.cta.shared.u32 %r1, [s];", "atom.shared.cta.add.u32 %r1, [s], 1;",
        "mbarrier.init.shared.b64 [s], 1;\nmbarrier.arrive.shared.b64 %rd2, [s];",
        // Of no memory.
        "fence.acq_rel.cta;", "membar.cta;",
        "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;"}) {
    EXPECT_FALSE(IsNarrow(body)) << body;
  }
}

}  // namespace
}  // namespace assay::emu
