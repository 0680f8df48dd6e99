#include "validator/emu/watch/coverage.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace assay::emu {
namespace {

TEST(Coverage, TheDocumentIsWhatTheTablesSay) {
  const auto committed = ReadFile(std::string(ASSAY_SOURCE_DIR) + "/docs/ptx-coverage.md");
  ASSERT_TRUE(committed) << ToString(committed.error());
  EXPECT_TRUE(*committed == PtxCoverage())
      << "regenerate it: build/release/bin/ptx_coverage > docs/ptx-coverage.md";
}

/// What is not executed says so at load, with the line and the instruction.
TEST(Coverage, RefusedSpellingsAreLocated) {
  for (const ptx::Form& form : ptx::Forms().subspan(1)) {
    for (const std::string& refused : RefusedSpellings(form)) {
      EXPECT_NE(refused.find("kernel.ptx:"), std::string::npos) << refused;
    }
  }
}

}  // namespace
}  // namespace assay::emu
