#include "base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace assay {
namespace {

TEST(Environment, OfATestIsItsCheckout) {
  const Environment own = OwnEnvironment();
  ASSERT_FALSE(own.ops.empty());
  EXPECT_EQ(own.ops.front(), Path(ASSAY_SOURCE_DIR) / "ops");
  EXPECT_EQ(own.prompts, Path(ASSAY_SOURCE_DIR) / "prompts");
  EXPECT_EQ(own.worker, Path(ASSAY_BINARY_DIR) / "bin" / "assay-worker");
  EXPECT_TRUE(own.toolkit.empty());
}

TEST(Environment, AnInstallationIsFoundAboveItsProgramsAndACheckoutIsNone) {
  EXPECT_TRUE(Environment::Installed().ops.empty());
  const Environment moved = Environment::Installed("/srv/moved");
  EXPECT_EQ(moved.ops, std::vector<Path>{"/srv/moved/share/assay/ops"});
  EXPECT_EQ(moved.worker, "/srv/moved/libexec/assay/assay-worker");
}

TEST(Environment, VariablesAddOpsAndReplacePrompts) {
  const Path folder = Path(testing::TempDir()) / "assay_environment_test";
  ASSERT_TRUE(MakeFolders(folder / "more").has_value());
  const Path more = folder / "more";
  ::setenv("ASSAY_OPS", (":/nonexistent:" + more.string()).c_str(), 1);
  ::setenv("ASSAY_PROMPTS", folder.c_str(), 1);
  const Environment own = OwnEnvironment();
  ::unsetenv("ASSAY_OPS");
  ::unsetenv("ASSAY_PROMPTS");
  ASSERT_EQ(own.ops.size(), 2u);
  EXPECT_EQ(own.ops.back(), more);
  EXPECT_EQ(own.prompts, folder);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay
