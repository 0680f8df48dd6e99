// SIGKILL and SIGTERM at twenty points each of `assay generate` itself, with a program and with a server as the model: no process, no
// temporary file and no shared memory is left, and the resumed run ends as one that nobody killed.
//
// This process is the subreaper of what it starts: whatever outlives the killed program becomes its child, and is waited for. A
// process that stays makes the test run into its time limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <map>
#include <set>

#include "agent/testing/fakes.h"
#include "agent/testing/fault_server.h"
#include "base/json.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

const Path kAssay = Path(ASSAY_BINARY_DIR) / "bin" / "assay";
constexpr int kPoints = 20;
constexpr const char* kAttempts = "3";

/// Refuted by the policy, after it was compiled.
constexpr const char* kReply =
    "```cuda\n// kernel.cu\n#include \"/etc/hostname\"\n__global__ void k() {}\n```\n"
    "```json\n{\"schema\": \"assay.launch/1\", \"kernels\": [{\"entry\": \"k\", \"grid\": [1], "
    "\"block\": [32], \"args\": []}]}\n```\n";

off_t SizeOf(const Path& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 ? info.st_size : 0;
}

std::set<std::string> Names(const Path& folder, const std::string& begin) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(begin))
      names.insert(entry.path().filename().string());
  }
  return names;
}

/// A verdict without what differs from run to run: times and seeds.
std::string Lasting(const std::string& text) {
  auto json = ParseJson(text, "verdict.json");
  if (!json || !json->is_object() || !json->contains("gates")) return text;
  for (Json& gate : (*json)["gates"]) {
    gate.erase("seconds");
    gate.erase("seeds");
  }
  return PrettyJson(*json);
}

class KillPoints : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    server_.Say(kReply);
    ASSERT_TRUE(WriteFileAtomically(scratch_ / "reply.md", kReply));
    // Two processes, one of which would stay.
    ASSERT_TRUE(
        WriteFileAtomically(scratch_ / "model.sh", "cat >/dev/null\nsleep 600 &\ncat \"$1\"\n"));
    std::filesystem::create_directory(scratch_ / "tmp");
    const std::string program =
        "exec/sh " + (scratch_ / "model.sh").string() + " " + (scratch_ / "reply.md").string();
    if (std::string_view(GetParam()) == "exec") {
      model_ = {"--model", program};
    } else {
      model_ = {"--model", "openai/m", "--base-url", server_.base_url()};
    }
  }

  pid_t Start(const Path& out) const {
    std::vector<std::string> arguments = {"generate"};
    if (SizeOf(out / "events.jsonl") > 0) {
      arguments.insert(arguments.end(), {"--resume", out.string()});
    } else {
      arguments.insert(arguments.end(), {"rms_norm", "--attempts", kAttempts, "--effort", "quick",
                                         "--out", out.string()});
    }
    arguments.insert(arguments.end(), model_.begin(), model_.end());
    return StartProgram(kAssay, arguments,
                        {"TMPDIR=" + (scratch_ / "tmp").string(), "ASSAY_API_KEY=k-0123456789"},
                        scratch_ / "said");
  }

  /// Starts it, waits for its end, and for that of all it left.
  int RunToEnd(const Path& out) const {
    const pid_t child = Start(out);
    int status = 0;
    ::waitpid(child, &status, 0);
    ReapAll();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  static void ReapAll() {
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
  }

  std::map<std::string, std::string> FilesOf(const Path& out) const {
    std::map<std::string, std::string> files;
    for (const std::string& file : testing::FilesBelow(out / "attempts"))
      files[file] = Lasting(testing::Slurp(out / "attempts" / file));
    return files;
  }

  Scratch scratch_;
  testing::FaultServer server_;
  std::vector<std::string> model_;
};

TEST_P(KillPoints, NothingIsLeftAndTheRunGoesOn) {
  const Path whole = scratch_ / "whole";
  ASSERT_EQ(RunToEnd(whole), 1) << testing::Slurp(scratch_ / "said");
  const off_t length = SizeOf(whole / "events.jsonl");
  const auto expected = FilesOf(whole);
  ASSERT_GE(expected.size(), 9u);
  const std::set<std::string> shared = Names("/dev/shm", "assay");

  double longest = 0;
  for (const int signal : {SIGKILL, SIGTERM}) {
    for (int point = 0; point < kPoints; ++point) {
      const Path out = scratch_ / ("run-" + std::to_string(signal) + "-" + std::to_string(point));
      const off_t target = length * point / kPoints;
      const pid_t child = Start(out);
      int status = 0;
      bool killed = false;
      auto at = std::chrono::steady_clock::now();
      while (::waitpid(child, &status, WNOHANG) == 0) {
        if (!killed && SizeOf(out / "events.jsonl") >= target) {
          ::kill(child, signal);
          killed = true;
          at = std::chrono::steady_clock::now();
        }
        ::sched_yield();
      }
      ReapAll();
      longest = std::max(
          longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - at).count());
      EXPECT_TRUE(WIFSIGNALED(status) || WIFEXITED(status));
      EXPECT_TRUE(Names(scratch_ / "tmp", "").empty());
      EXPECT_EQ(Names("/dev/shm", "assay"), shared);
      ASSERT_EQ(RunToEnd(out), 1) << "point " << point << ": " << testing::Slurp(scratch_ / "said");
      EXPECT_EQ(FilesOf(out), expected) << "point " << point;
      std::filesystem::remove_all(out);
    }
  }
  RecordProperty("longest_ending_seconds", std::to_string(longest));
  std::printf("the longest until all had ended: %.2f s\n", longest);
}

INSTANTIATE_TEST_SUITE_P(Models, KillPoints, ::testing::Values("exec", "http"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace assay::tests
