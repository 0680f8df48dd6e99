#include "sandbox/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sandbox/jail.h"
#include "sandbox/policies.h"

namespace assay::sandbox {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Policy, DescribesItself) {
  Policy policy("example");
  policy.SystemLibraries()
      .ReadOnly("/opt/tool", "/tool")
      .Tmpfs("/tmp", 4096)
      .Environment("LANG", "C")
      .Limit(Resource::kOpenFiles, 64)
      .Limit(Resource::kOpenFiles, 32)
      .ResidentBytes(1024)
      .Allow(SyscallSet::kRuntime)
      .Allow(SyscallSet::kRuntime);
  EXPECT_EQ(policy.Describe(),
            "policy example\n"
            "  namespaces: user pid net mount ipc uts cgroup, all new; no network; root read-only\n"
            "  read-only: system libraries\n"
            "  read-only: /opt/tool as /tool\n"
            "  tmpfs: /tmp of 4096 bytes\n"
            "  environment: LANG=C\n"
            "  limit: open_files 32\n"
            "  resident memory: 1024 bytes\n"
            "  system calls: runtime\n");
}

TEST(Policy, WeakeningIsLoud) {
  Policy policy("example");
  policy.Tmpfs("/tmp", 4096).Allow(Weakening::kNoJail);
  EXPECT_EQ(policy.Describe(),
            "policy example\n"
            "  namespaces: none, the host's\n"
            "  WEAKENED: no_jail\n");
}

TEST(Policy, SanitizersLoseTheAddressSpaceLimitOnly) {
  Policy policy("example");
  policy.Limit(Resource::kAddressSpace, 1)
      .Limit(Resource::kOpenFiles, 2)
      .Allow(Weakening::kSanitizerRuntime);
  EXPECT_EQ(policy.LimitOf(Resource::kAddressSpace), std::nullopt);
  EXPECT_EQ(policy.LimitOf(Resource::kOpenFiles), 2u);
  EXPECT_TRUE(policy.proc());
}

TEST(Policy, PathsAreTranslatedByTheDeepestBind) {
  Policy policy("example");
  policy.ReadOnly("/opt/cuda/include", "/cuda/include")
      .ReadOnly("/opt/cuda/include/special", "/special");
  EXPECT_EQ(policy.Inside("/opt/cuda/include/cccl"), "/cuda/include/cccl");
  EXPECT_EQ(policy.Inside("/opt/cuda/include"), "/cuda/include");
  EXPECT_EQ(policy.Inside("/opt/cuda/include/special/x.h"), "/special/x.h");
  EXPECT_EQ(policy.Inside("/opt/cuda/include2"), "/opt/cuda/include2");
  EXPECT_EQ(policy.Inside("/opt/cuda"), "/opt/cuda");
  policy.Allow(Weakening::kNoJail);
  EXPECT_EQ(policy.Inside("/opt/cuda/include/cccl"), "/opt/cuda/include/cccl");
}

TEST(Policies, NeverShareTheNetworkOrBindAnythingWritable) {
  for (const WorkerKind kind : {WorkerKind::kCompile, WorkerKind::kEmulate}) {
    Policy policy = PolicyFor(kind);
    BindWorker(policy, "/somewhere/bin/assay-worker");
    const std::vector<std::string> arguments = BubblewrapArguments(policy, 9);
    for (const char* needed :
         {"--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
          "--new-session", "--clearenv", "--disable-userns"}) {
      EXPECT_THAT(arguments, Contains(needed)) << Name(kind);
    }
    for (const char* forbidden : {"--share-net", "--bind", "--bind-try", "--dev-bind", "--dev",
                                  "--cap-add", "--unshare-user-try"}) {
      EXPECT_THAT(arguments, Not(Contains(forbidden))) << Name(kind);
    }
    EXPECT_THAT(policy.Describe(), Not(HasSubstr("no_jail")));
    EXPECT_NE(policy.resident_bytes(), 0u);
  }
}

TEST(Policies, OnlyAVendorsToolGoesWithoutAFilter) {
  for (const WorkerKind kind :
       {WorkerKind::kCompile, WorkerKind::kEmulate, WorkerKind::kGpu, WorkerKind::kGpuTool}) {
    const Policy policy = PolicyFor(kind);
    const std::vector<std::string> arguments = BubblewrapArguments(policy, 9);
    const bool tool = kind == WorkerKind::kGpuTool;
    EXPECT_EQ(std::ranges::find(arguments, "--seccomp") == arguments.end(), tool) << Name(kind);
    EXPECT_EQ(policy.Describe().find("WEAKENED: vendor_tool") != std::string::npos, tool);
    EXPECT_THAT(arguments, Contains("--unshare-net")) << Name(kind);
  }
}

TEST(Policies, KindsHaveNames) {
  for (const WorkerKind kind :
       {WorkerKind::kCompile, WorkerKind::kEmulate, WorkerKind::kGpu, WorkerKind::kGpuTool}) {
    EXPECT_EQ(ParseWorkerKind(Name(kind)), kind);
  }
  EXPECT_EQ(ParseWorkerKind("nosuch"), std::nullopt);
}

TEST(Policies, TheToolkitHasFixedPathsInside) {
  Policy policy("example");
  const Toolkit toolkit{"/opt/cuda",
                        "/opt/cuda/lib/libnvrtc.so.13.0.88",
                        "/opt/cuda/lib/libnvrtc-builtins.so.13.0.88",
                        "libnvrtc-builtins.so.13.0",
                        {"/opt/cuda/include", "/opt/cuda/include/cccl", "/else/include"}};
  EXPECT_THAT(
      BindToolkit(policy, toolkit),
      testing::ElementsAre("--nvrtc", "/cuda/lib/libnvrtc.so.13.0.88", "--builtins",
                           "/cuda/lib/libnvrtc-builtins.so.13.0", "--include", "/cuda/include",
                           "--include", "/cuda/include/cccl", "--include", "/cuda/include2"));
}

}  // namespace
}  // namespace assay::sandbox
