// Whole modules as compilers write them: nvcc 13.0, NVRTC 12.8 and LLVM 19, from testdata/sources.
// testdata/regenerate.sh compiles them anew; ASSAY_PTX_MODULES names a further folder of modules to
// take.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier.h"

namespace assay::ptx {
namespace {

const Path kFolder = Path(ASSAY_SOURCE_DIR) / "validator/ptx/testdata/modules";

std::vector<Path> ModuleFiles() {
  std::vector<Path> files;
  std::vector<Path> folders = {kFolder};
  if (const char* const more = std::getenv("ASSAY_PTX_MODULES")) folders.emplace_back(more);
  for (const Path& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".ptx") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ModulesTest, ParseVerifyAndComeBack) {
  const std::vector<Path> files = ModuleFiles();
  ASSERT_GE(files.size(), 12u);
  std::size_t instructions = 0;
  for (const Path& file : files) {
    SCOPED_TRACE(file.filename().string());
    const auto text = ReadFile(file);
    ASSERT_TRUE(text);
    const auto module = Parse(*text, file.string());
    ASSERT_TRUE(module) << ToString(module.error());
    const Status verified = Verify(*module, file.string());
    EXPECT_TRUE(verified) << ToString(verified.error());
    const std::string printed = Print(*module);
    const auto again = Parse(printed, "printed.ptx");
    ASSERT_TRUE(again) << ToString(again.error());
    EXPECT_TRUE(*again == *module);
    EXPECT_EQ(Print(*again), printed);
    for (const Function& function : module->functions) instructions += function.body.size();
  }
  EXPECT_GT(instructions, 5000u);
}

TEST(ModulesTest, InlinedFramesLeadToTheUsersLine) {
  const auto text = ReadFile(kFolder / "cub_blocks_80.ptx");
  ASSERT_TRUE(text);
  const auto module = Parse(*text, "cub_blocks_80.ptx");
  ASSERT_TRUE(module);
  std::size_t inlined = 0;
  for (const Function& function : module->functions) {
    if (function.name.find("EmptyKernel") != std::string::npos) continue;  // The library's own.
    for (const Instruction& in : function.body) {
      if (in.location < 0) continue;
      const SourceLocation& inner = module->locations[static_cast<std::size_t>(in.location)];
      const SourceLocation outer = UserFrame(*module, in.location);
      EXPECT_TRUE(module->files[outer.file].ends_with("cub_blocks.cu")) << in.ptx_line;
      EXPECT_EQ(outer.inlined_at, -1);
      inlined += inner.inlined_at >= 0 ? 1 : 0;
      EXPECT_EQ(inner.inlined_at >= 0, !inner.function.empty());
    }
  }
  EXPECT_GT(inlined, 100u);
}

}  // namespace
}  // namespace assay::ptx
