// kill -9 at random points of a run, then resume, until it is done: the same end as without,
// nothing judged or asked for twice.
//
// The child process runs `Generate` with a scripted model and judge. The parent watches the event
// log grow and kills when it has reached a random length, plus a random number of turns of its own
// loop: before, within and after each write.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>

#include "agent/loop/generate.h"
#include "agent/testing/fakes.h"
#include "base/rng.h"

namespace assay::loop {
namespace {

using testing::ReplyWith;

constexpr int kKills = 50;  // for each of two strategies

// What the model says is a function of the request's name, so that every process gives the same
// answers.
Result<runs::ModelReply> Answer(const models::ModelRequest& request) {
  static const std::map<std::string, std::string> kReplies = {
      {"attempt-1", ReplyWith("refute compile compile_error")},
      {"attempt-2", ReplyWith("refute race data_race")},
      {"attempt-3", "no code at all"},
      {"attempt-4", ReplyWith("refute holdout wrong_value")},
      {"attempt-5", "```cuda\n// judge: refute memory misaligned\n"},
      {"attempt-5.2", "__global__ void k() {}\n```\n```json\n{}\n```\n"},
      {"attempt-6", ReplyWith("inconclusive")},
      {"attempt-7", ReplyWith("accept")}};
  const auto found = kReplies.find(request.name);
  if (found == kReplies.end())
    return Fail(ErrorKind::kInternal, "nobody should ask for " + request.name);
  runs::ModelReply reply;
  reply.text = found->second;
  reply.stop = request.name == "attempt-5" ? runs::StopReason::kLength : runs::StopReason::kEnd;
  reply.usage.output_tokens = 10;
  return reply;
}

class ResumeTest : public ::testing::TestWithParam<StrategyKind> {
 protected:
  // In the child: appends to a file outside of the run what is asked and judged.
  void Log(const std::string& line) const {
    ASSAY_CHECK(AppendLine(folder_.path() / "log", line).has_value());
  }

  int RunIn(const Path& out) const {
    FakeClock clock;
    const ops::Instance instance = testing::RmsNorm();
    GenerateRequest request{.instance = instance, .model = {.spec = "exec/scripted"}};
    request.strategy = {.kind = GetParam(),
                        .attempts = 8,
                        .samples = GetParam() == StrategyKind::kBeam ? 3 : 1,
                        .width = 2};
    request.out = out;
    std::error_code error;
    request.resume = std::filesystem::exists(out / "events.jsonl", error) &&
                     testing::Slurp(out / "events.jsonl").find('\n') != std::string::npos;
    testing::ScriptedModel model([this](const models::ModelRequest& asked) {
      Log("ask " + asked.name);
      return Answer(asked);
    });
    Environment environment{
        .clock = clock,
        .make_judges = testing::ScriptedJudges(
            [this](const verdict::Candidate& candidate, const JudgeContext&) {
              Log("judge " + candidate.kernel.substr(0, candidate.kernel.find('\n')));
            }),
        .entropy = [] { return std::uint64_t{5}; },
        .prompts = testing::PromptsFolder(),
        .model = &model};
    const auto outcome = Generate(request, environment);
    if (!outcome) {
      Log("FAILED " + ToString(outcome.error()));
      return 99;
    }
    return outcome->ExitCode();
  }

  // Events of a log, as far as they are whole.
  static std::vector<Json> EventsOf(const Path& out) {
    std::error_code error;
    if (!std::filesystem::exists(out / "events.jsonl", error)) return {};
    const std::string text = testing::Slurp(out / "events.jsonl");
    std::vector<Json> events;
    for (std::size_t at = 0; text.find('\n', at) != std::string::npos;) {
      const std::size_t end = text.find('\n', at);
      if (auto event = ParseJson(std::string_view(text).substr(at, end - at), "event"))
        events.push_back(*std::move(event));
      at = end + 1;
    }
    return events;
  }

  // Everything of a run that does not carry a time. Where several requests and judgements overlap,
  // which of them ends first is a matter of timing: the transcript's lines are compared as a set.
  static std::map<std::string, std::string> FilesOf(const Path& out) {
    std::map<std::string, std::string> files;
    for (const std::string& file : testing::FilesBelow(out)) {
      if (file != "events.jsonl") files[file] = testing::Slurp(out / file);
      if (file == "transcript.jsonl") files[file] = testing::SortedLines(files[file]);
    }
    return files;
  }

  testing::TemporaryFolder folder_;
};

off_t SizeOf(const Path& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 ? info.st_size : 0;
}

TEST_P(ResumeTest, KilledAtRandomPoints) {
  const Path whole = folder_.path() / "whole";
  ASSERT_EQ(RunIn(whole), 0);
  const off_t length = SizeOf(whole / "events.jsonl");
  const std::map<std::string, std::string> expected = FilesOf(whole);
  ASSERT_GT(expected.size(), 30u);

  Rng rng(static_cast<std::uint64_t>(GetParam()) + 9);
  int kills = 0;
  for (int run = 0; kills < kKills; ++run) {
    const Path out = folder_.path() / ("run-" + std::to_string(run));
    while (true) {
      std::set<int> judged, answered;
      for (const Json& event : EventsOf(out)) {
        if (event.at("type") == "attempt_judged") judged.insert(event.at("attempt").get<int>());
        if (event.at("type") == "reply_received" && event.at("final") == true)
          answered.insert(event.at("attempt").get<int>());
      }
      std::filesystem::remove(folder_.path() / "log");
      const off_t before = SizeOf(out / "events.jsonl");
      const off_t target =
          before + static_cast<off_t>(rng.Below(static_cast<std::uint64_t>(length) * 2 / 3));
      std::uint64_t turns = rng.Below(3000);
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) ::_exit(RunIn(out));
      int status = 0;
      bool killed = false;
      while (::waitpid(child, &status, WNOHANG) == 0) {
        if (killed || SizeOf(out / "events.jsonl") < target || turns-- > 0) {
          ::sched_yield();
          continue;
        }
        ::kill(child, SIGKILL);
        killed = true;
      }
      const std::string log = testing::Slurp(folder_.path() / "log");
      ASSERT_EQ(log.find("FAILED "), std::string::npos) << log;
      for (const int attempt : answered) {
        ASSERT_EQ(log.find("ask attempt-" + std::to_string(attempt) + "\n"), std::string::npos)
            << "asked again: " << attempt;
      }
      for (const int attempt : judged) {
        const std::string kernel =
            expected.contains("attempts/" + std::to_string(attempt) + "/kernel.cu")
                ? expected.at("attempts/" + std::to_string(attempt) + "/kernel.cu")
                : "(none)";
        ASSERT_EQ(log.find("judge " + kernel.substr(0, kernel.find('\n')) + "\n"),
                  std::string::npos)
            << "judged again: " << attempt;
      }
      if (!WIFSIGNALED(status)) {
        ASSERT_EQ(WEXITSTATUS(status), 0) << log;
        break;
      }
      ++kills;
    }
    const std::map<std::string, std::string> files = FilesOf(out);
    for (const auto& [file, text] : files) {
      const auto found = expected.find(file);
      ASSERT_NE(found, expected.end()) << file << " is too many";
      ASSERT_TRUE(text == found->second)
          << file << " differs:\n"
          << text.substr(text.size() > 900 ? text.size() - 900 : 0) << "\n-- instead of --\n"
          << found->second.substr(found->second.size() > 900 ? found->second.size() - 900 : 0);
    }
    ASSERT_EQ(files.size(), expected.size());
    // In the log itself nothing happened twice.
    std::set<std::string> seen;
    for (const Json& event : EventsOf(out)) {
      const std::string type = event.at("type").get<std::string>();
      if (type == "attempt_judged" || (type == "reply_received" && event.at("final") == true)) {
        EXPECT_TRUE(seen.insert(type + std::to_string(event.at("attempt").get<int>())).second);
      }
    }
    std::filesystem::remove_all(out);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, ResumeTest,
                         ::testing::Values(StrategyKind::kRefine, StrategyKind::kBeam),
                         [](const auto& strategy) { return std::string(Name(strategy.param)); });

}  // namespace
}  // namespace assay::loop
