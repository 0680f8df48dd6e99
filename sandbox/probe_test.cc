// What the machine lacks, told from a machine that is described by files, and tried on this one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sandbox/jail.h"
#include "sandbox/toolkit.h"

namespace assay::sandbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Machine : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        Path(testing::TempDir()) / ("assay-probe-" + std::to_string(::getpid()) + "-" +
                                    testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(root_);
    Put("self/mountinfo", "21 1 0:19 / /sys rw - sysfs s rw\n22 1 8:1 / / rw - ext4 d rw\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Put(const Path& path, std::string_view text = "") {
    std::filesystem::create_directories((root_ / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically(root_ / path, text));
  }

  Path root_;
};

TEST_F(Machine, UbuntusAppArmorIsExplained) {
  Put("sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  const auto problems =
      ExplainNoUserNamespaces(root_, "bwrap: setting up uid map: Permission denied");
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(problems[0].cure, HasSubstr("kernel.apparmor_restrict_unprivileged_userns=0"));
}

TEST_F(Machine, SysctlsAreExplained) {
  Put("sys/kernel/unprivileged_userns_clone", "0\n");
  Put("sys/user/max_user_namespaces", "0\n");
  const auto problems = ExplainNoUserNamespaces(root_, "");
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_THAT(problems[0].cure, HasSubstr("kernel.unprivileged_userns_clone=1"));
  EXPECT_THAT(problems[1].cure, HasSubstr("user.max_user_namespaces="));
}

TEST_F(Machine, GoodSettingsPointToTheContainer) {
  Put("sys/kernel/unprivileged_userns_clone", "1\n");
  Put("sys/kernel/apparmor_restrict_unprivileged_userns", "0\n");
  Put("sys/user/max_user_namespaces", "96365\n");
  const auto problems =
      ExplainNoUserNamespaces(root_, "bwrap: No permissions to create new namespace");
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(problems[0].what, HasSubstr("No permissions to create new namespace"));
  EXPECT_THAT(problems[0].cure, HasSubstr("docker run"));
}

TEST_F(Machine, AChrootAndAMissingProcAreExplained) {
  const char* const kOutput = "bwrap: No permissions to create a new namespace";
  Put("self/mountinfo", "30 22 8:1 /srv/jail/home /home rw - ext4 d rw\n");
  const auto chroot = ExplainNoUserNamespaces(root_, kOutput);
  ASSERT_THAT(chroot, SizeIs(1));
  EXPECT_THAT(chroot[0].what, HasSubstr("a chroot"));
  std::filesystem::remove_all(root_ / "self");
  const auto nothing = ExplainNoUserNamespaces(root_, kOutput);
  ASSERT_THAT(nothing, SizeIs(1));
  EXPECT_THAT(nothing[0].cure, HasSubstr("mount -t proc"));
}

TEST_F(Machine, WithoutBubblewrapTheCureIsItsPackage) {
  const auto report = ProbeJail({.search_path = root_.string(), .proc = root_});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->works);
  const Error error = report->AsError();
  EXPECT_EQ(error.kind, ErrorKind::kEnvironment);
  EXPECT_THAT(error.message, HasSubstr("bubblewrap"));
  EXPECT_THAT(error.cure, HasSubstr("apt-get install bubblewrap"));
}

TEST_F(Machine, ThisOneHasAJail) {
  const auto report = ProbeJail();
  ASSERT_TRUE(report) << ToString(report.error());
  EXPECT_TRUE(report->works) << ToString(report->AsError());
  EXPECT_THAT(report->version, HasSubstr("bubblewrap"));
  EXPECT_TRUE(report->problems.empty());
}

TEST_F(Machine, ABrokenBubblewrapIsNoJail) {
  Put("bwrap", "not a program");
  std::filesystem::permissions(root_ / "bwrap", std::filesystem::perms::owner_all);
  const auto report = ProbeJail({.search_path = root_.string(), .proc = root_});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->works);
  EXPECT_FALSE(report->problems.empty());
}

TEST_F(Machine, AnInstalledToolkitIsFound) {
  Put("lib64/libnvrtc.so.12");
  Put("lib64/libnvrtc-builtins.so.12.8");
  Put("lib64/libnvrtc-builtins.so.12.8.93");
  Put("include/cuda_bf16.h");
  const auto toolkit = ToolkitIn(root_);
  ASSERT_TRUE(toolkit);
  EXPECT_EQ(toolkit->nvrtc, std::filesystem::canonical(root_) / "lib64/libnvrtc.so.12");
  EXPECT_EQ(toolkit->builtins_name, "libnvrtc-builtins.so.12.8");
  EXPECT_THAT(toolkit->includes, ElementsAre(std::filesystem::canonical(root_) / "include"));
}

TEST_F(Machine, Cuda13KeepsCcclBelowInclude) {
  Put("nvidia/cu13/lib/libnvrtc.so.13");
  Put("nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
  Put("nvidia/cu13/include/cuda_bf16.h");
  Put("nvidia/cu13/include/cccl/cuda/std/array");
  const auto toolkit = ToolkitIn(root_);
  ASSERT_TRUE(toolkit);
  const Path include = std::filesystem::canonical(root_) / "nvidia/cu13/include";
  EXPECT_THAT(toolkit->includes, ElementsAre(include, include / "cccl"));
}

TEST_F(Machine, Cuda12WheelsSpreadTheirHeaders) {
  Put("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  Put("nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9");
  Put("nvidia/cuda_nvrtc/include/nvrtc.h");
  Put("nvidia/cuda_runtime/include/cuda_bf16.h");
  Put("nvidia/cuda_cccl/include/cuda/std/array");
  const auto toolkit = ToolkitIn(root_);
  ASSERT_TRUE(toolkit);
  EXPECT_THAT(toolkit->includes, SizeIs(3));
}

TEST_F(Machine, AToolkitNeedsItsHeadersAndBuiltins) {
  Put("lib64/libnvrtc.so.13");
  EXPECT_FALSE(ToolkitIn(root_));
  Put("lib64/libnvrtc-builtins.so.13.0");
  EXPECT_FALSE(ToolkitIn(root_));
  Put("include/cuda_bf16.h");
  EXPECT_TRUE(ToolkitIn(root_));
}

TEST_F(Machine, AnExplicitRootIsNotSecondGuessed) {
  Put("good/lib64/libnvrtc.so.13");
  Put("good/lib64/libnvrtc-builtins.so.13.0");
  Put("good/include/cuda_bf16.h");
  ToolkitSearch search{"", {root_ / "none", root_ / "good"}};
  EXPECT_TRUE(FindToolkit(search));
  search.explicit_root = (root_ / "empty").string();
  const auto toolkit = FindToolkit(search);
  ASSERT_FALSE(toolkit);
  EXPECT_EQ(toolkit.error().place, (root_ / "empty").string());
}

TEST_F(Machine, TheEnvironmentNamesRoots) {
  const auto search = ToolkitSearch::Default(
      [](const char* name) { return std::string(name) == "CUDA_HOME" ? "/a/cuda" : ""; });
  EXPECT_TRUE(search.explicit_root.empty());
  ASSERT_FALSE(search.roots.empty());
  EXPECT_EQ(search.roots[0], "/a/cuda");
  const auto forced = ToolkitSearch::Default(
      [](const char* name) { return std::string(name) == "ASSAY_CUDA_ROOT" ? "/b" : ""; });
  EXPECT_EQ(forced.explicit_root, "/b");
}

}  // namespace
}  // namespace assay::sandbox
