#include "agent/models/exec_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "runs/testing/fakes.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelRequest Request(const std::string& text) {
  return {.name = "attempt-1",
          .conversation = {{{Role::kSystem, "be right", false}, {Role::kUser, text, false}}},
          .temperature = {}};
}

class ExecModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<Model> Make(const std::string& command, Clock& clock,
                              std::size_t max_text = 1u << 20) {
    auto model = MakeExecModel(
        {.command = command, .total_timeout = milliseconds(60'000), .max_text_bytes = max_text},
        clock);
    EXPECT_TRUE(model) << ToString(model.error());
    return *std::move(model);
  }
  Result<ModelReply> Run(const std::string& command, const std::string& prompt = "hello") {
    return Ask(*Make(command, clock_), Request(prompt));
  }

  SystemClock clock_;
};

TEST(SplitCommandTest, WordsQuotesAndBackslashes) {
  EXPECT_THAT(*SplitCommand("a 'b c'  \"d \\\" e\" f\\ g ''"),
              ElementsAre("a", "b c", "d \" e", "f g", ""));
  EXPECT_THAT(*SplitCommand("a'b'\"c\""), ElementsAre("abc"));
  // Nothing else of a shell: no variables, no substitution, no pipes.
  EXPECT_THAT(*SplitCommand("echo $HOME `id` | x ; y"),
              ElementsAre("echo", "$HOME", "`id`", "|", "x", ";", "y"));
  EXPECT_FALSE(SplitCommand("a 'b"));
  EXPECT_FALSE(SplitCommand("  "));
  EXPECT_FALSE(SplitCommand(std::string("a\0b", 3)));
}

TEST_F(ExecModelTest, PromptOnStandardInputReplyOnStandardOutput) {
  const auto reply = Run("cat");
  ASSERT_TRUE(reply) << ToString(reply.error());
  EXPECT_EQ(reply->text, "# System\n\nbe right\n\n# User\n\nhello\n");
  EXPECT_EQ(reply->stop, StopReason::kEnd);
  EXPECT_TRUE(reply->usage.estimated);
}

TEST_F(ExecModelTest, ALongPromptAndALongReplyDoNotBlockEachOther) {
  const std::string prompt(900 * 1024, 'x');
  const auto reply = Run("cat", prompt);
  ASSERT_TRUE(reply);
  EXPECT_THAT(reply->text.size(), prompt.size() + 29);
}

TEST_F(ExecModelTest, AProgramThatDoesNotReadIsFine) {
  const auto reply = Run("echo done", std::string(1 << 20, 'x'));
  ASSERT_TRUE(reply) << ToString(reply.error());
  EXPECT_EQ(reply->text, "done\n");
}

TEST_F(ExecModelTest, FailureTellsExitCodeAndStandardError) {
  const auto reply = Run("sh -c 'echo partial; echo no licence >&2; exit 3'");
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr("exit code 3: no licence"));
  const auto missing = Run("/nonexistent/program");
  ASSERT_FALSE(missing);
  EXPECT_THAT(ToString(missing.error()), HasSubstr("/nonexistent/program"));
}

TEST_F(ExecModelTest, EndlessOutputIsCut) {
  auto model = Make("yes", clock_, 10'000);
  const auto reply = Ask(*model, Request("go"));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text.size(), 10'000u);
  EXPECT_EQ(reply->stop, StopReason::kLength);
}

TEST_F(ExecModelTest, InvalidUtf8IsReplaced) {
  EXPECT_EQ(Run("printf 'a\\377b'")->text,
            "a\xef\xbf\xbd"
            "b");
}

TEST(ExecModelTimeTest, ATimeOutKillsTheWholeGroup) {
  testing::TemporaryFolder folder;
  const Path pid_file = folder.path() / "pid";
  FakeClock clock;
  auto model =
      MakeExecModel({.command = "sh -c 'sleep 1000 & echo $! > " + pid_file.string() + "; wait'",
                     .total_timeout = milliseconds(60'000)},
                    clock);
  ASSERT_TRUE(model);
  (*model)->Start(1, Request("go"));
  while (testing::Slurp(pid_file).find('\n') == std::string::npos) (*model)->Poll(milliseconds(1));
  clock.Advance(milliseconds(60'000));
  std::vector<ModelEvent> events;
  while (events.empty()) events = (*model)->Poll(milliseconds(10));
  ASSERT_FALSE(events[0].reply);
  EXPECT_THAT(events[0].reply.error().message, HasSubstr("within 60 s"));
  // The grandchild is gone too, or a zombie of init's at most.
  const int grandchild = std::stoi(testing::Slurp(pid_file));
  const std::string stat = "/proc/" + std::to_string(grandchild) + "/stat";
  const auto alive = [&] {
    const std::string text = testing::Slurp(stat);
    return ::kill(grandchild, 0) == 0 && text.find(") Z") == std::string::npos &&
           text.find("cannot read") == std::string::npos;
  };
  for (int i = 0; i < 1'000'000 && alive(); ++i) std::this_thread::yield();
  EXPECT_FALSE(alive());
}

TEST_F(ExecModelTest, SeveralRunAtOnceAndCancelledOnesAreSilent) {
  testing::TemporaryFolder folder;
  const std::string fifo = (folder.path() / "fifo").string();
  // The first waits for the second: only concurrency gets both done. The third is cancelled.
  auto model = Make(
      "sh -c 'read -r a; read -r a; read -r a; read -r a; read -r a; read -r a; read -r who; "
      "if [ \"$who\" = reader ]; then cat " +
          fifo + "; elif [ \"$who\" = writer ]; then echo met > " + fifo +
          "; echo wrote; else sleep 1000; fi'",
      clock_);
  ASSERT_EQ(::system(("mkfifo " + fifo).c_str()), 0);
  model->Start(1, Request("reader\n"));
  model->Start(2, Request("writer\n"));
  model->Start(3, Request("sleeper\n"));
  std::map<Ticket, std::string> replies;
  while (replies.size() < 2) {
    for (const ModelEvent& event : model->Poll(milliseconds(1000))) {
      if (event.kind != ModelEvent::Kind::kDone) continue;
      ASSERT_TRUE(event.reply) << ToString(event.reply.error());
      replies[event.ticket] = event.reply->text;
    }
  }
  EXPECT_EQ(replies[1], "met\n");
  EXPECT_EQ(replies[2], "wrote\n");
  model->Cancel(3);
  EXPECT_TRUE(model->Poll(milliseconds(0)).empty());
}

std::string Environment(std::map<std::string, std::string> variables,
                        const std::vector<std::string>& named) {
  const auto environment = ExecEnvironment(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      named);
  if (!environment) return ToString(environment.error());
  std::string text;
  for (const std::string& variable : *environment) text += variable + ";";
  return text;
}

TEST(ExecEnvironmentTest, KeysAreNotPassedOnUnlessNamed) {
  const std::map<std::string, std::string> ours = {{"PATH", "/bin"},
                                                   {"HOME", "/home/u"},
                                                   {"OPENAI_API_KEY", "sk-1"},
                                                   {"AWS_SECRET_ACCESS_KEY", "s"},
                                                   {"MY_TOKEN", "t"}};
  EXPECT_EQ(Environment(ours, {}), "PATH=/bin;HOME=/home/u;");
  EXPECT_EQ(Environment(ours, {"MY_TOKEN"}), "PATH=/bin;HOME=/home/u;MY_TOKEN=t;");
  EXPECT_EQ(Environment(ours, {"PATH"}), "PATH=/bin;HOME=/home/u;");
  EXPECT_THAT(Environment(ours, {"MISSING"}), HasSubstr("$MISSING: the variable is not set"));
  EXPECT_THAT(Environment(ours, {"A=b"}), HasSubstr("no name of a variable"));
}

TEST_F(ExecModelTest, AProgramSeesWhatItIsGivenAndNothingOfOurs) {
  ASSERT_EQ(::setenv("ASSAY_TEST_API_KEY", "sk-ours", 1), 0);
  auto model = MakeExecModel({.command = "env", .environment = {"GIVEN=1"}}, clock_);
  ASSERT_TRUE(model);
  EXPECT_EQ(Ask(**model, Request("go"))->text, "GIVEN=1\n");
  ::unsetenv("ASSAY_TEST_API_KEY");
}

TEST_F(ExecModelTest, WakeEndsAPoll) {
  auto model = Make("cat", clock_);
  model->Wake();
  EXPECT_TRUE(model->Poll(milliseconds(60'000)).empty());
}

}  // namespace
}  // namespace assay::models
