#include "runs/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

using ::testing::HasSubstr;
using testing::ReplyWith;

class RunFolderTest : public ::testing::Test {
 protected:
  Path path() const { return folder_.path() / "run"; }

  // Two attempts: one judged, one answered.
  void WriteRun() {
    auto run = RunFolder::Create(path(), clock_, "go on");
    ASSERT_TRUE(run) << ToString(run.error());
    Fill(*run);
  }

  void Fill(RunFolder& run) {
    const ops::Instance instance = testing::RmsNorm();
    const std::vector<Message> task = {{Role::kSystem, "s", true}, {Role::kUser, "t", true}};
    ASSERT_TRUE(run.Record(RunStarted{{{"instance", "i"}, {"settings", {{"seed", 1}}}}, "digest"}));
    ASSERT_TRUE(run.Record(AttemptsPlanned{{{1, DraftKind::kFirst, 0, task}}}));
    ASSERT_TRUE(run.Record(ReplyReceived{
        1, {.text = ReplyWith("refute race data_race"), .usage = {.output_tokens = 5}}, true}));
    ASSERT_TRUE(run.Record(
        AttemptJudged{1, testing::VerdictOf(instance, {}, "refute race data_race"), {7, 8}, ""}));
    ASSERT_TRUE(
        run.Record(AttemptsPlanned{{{2, DraftKind::kRepair, 1, {{Role::kUser, "again", false}}}}}));
    ASSERT_TRUE(run.Record(TryFailed{2, "reset", {.output_tokens = 3}}));
    ASSERT_TRUE(run.Record(ReplyReceived{
        2, {.text = "half", .stop = StopReason::kLength, .usage = {.output_tokens = 2}}, false}));
  }

  testing::TemporaryFolder folder_;
  FakeClock clock_;
};

TEST_F(RunFolderTest, StateFollowsFromTheEventsAlone) {
  WriteRun();
  auto run = RunFolder::Open(path(), clock_, "go on");
  ASSERT_TRUE(run) << ToString(run.error());
  const RunState& state = run->state();
  ASSERT_EQ(state.attempts.size(), 2u);
  EXPECT_EQ(state.attempts[0].verdict->outcome, verdict::Outcome::kRefuted);
  EXPECT_EQ(state.attempts[0].holdout_seeds, (std::vector<std::uint64_t>{7, 8}));
  EXPECT_FALSE(state.attempts[1].answered);
  EXPECT_EQ(state.attempts[1].replies.size(), 1u);
  EXPECT_EQ(state.answered.output_tokens, 7u);
  EXPECT_EQ(state.lost.output_tokens, 3u);
}

TEST_F(RunFolderTest, EveryOtherFileIsRebuiltFromTheEvents) {
  WriteRun();
  std::map<std::string, std::string> before;
  for (const std::string& file : testing::FilesBelow(path()))
    before[file] = testing::Slurp(path() / file);
  EXPECT_EQ(before.size(), 11u);
  for (const auto& [file, text] : before) {
    if (file != "events.jsonl") std::filesystem::remove(path() / file);
  }
  ASSERT_TRUE(RunFolder::Open(path(), clock_, "go on"));
  std::map<std::string, std::string> after;
  for (const std::string& file : testing::FilesBelow(path()))
    after[file] = testing::Slurp(path() / file);
  EXPECT_EQ(before, after);
}

// A process may die while it writes a line, at any byte of it.
TEST_F(RunFolderTest, ATornLastLineIsCutOffWhereverItWasTorn) {
  WriteRun();
  const std::string whole = testing::Slurp(path() / "events.jsonl");
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t length = last; length < whole.size(); length += 7) {
    ASSERT_TRUE(WriteFileAtomically(path() / "events.jsonl", whole.substr(0, length)));
    auto run = RunFolder::Open(path(), clock_, "go on");
    ASSERT_TRUE(run) << ToString(run.error());
    EXPECT_TRUE(run->state().attempts[1].replies.empty());
    EXPECT_EQ(testing::Slurp(path() / "events.jsonl"), whole.substr(0, last));
    ASSERT_TRUE(run->Record(RunStopped{verdict::Outcome::kInconclusive, "x", true}));
  }
}

TEST_F(RunFolderTest, ATailOfZerosAfterAPowerCutIsCutOff) {
  WriteRun();
  const std::string whole = testing::Slurp(path() / "events.jsonl");
  ASSERT_TRUE(WriteFileAtomically(path() / "events.jsonl", whole + std::string(100, '\0') + "\n"));
  EXPECT_TRUE(RunFolder::Open(path(), clock_, "go on"));
}

TEST_F(RunFolderTest, DamageInTheMiddleIsAnErrorWithItsLine) {
  WriteRun();
  const std::string whole = testing::Slurp(path() / "events.jsonl");
  const auto open_with = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path() / "events.jsonl", text));
    auto run = RunFolder::Open(path(), clock_, "go on");
    return run ? std::string("(fine)") : ToString(run.error());
  };
  std::string broken = whole;
  broken[whole.find('\n') + 1] = '#';
  EXPECT_THAT(open_with(broken), HasSubstr("events.jsonl:2: not valid JSON"));
  // What stands above it is a run still, and that is said.
  EXPECT_THAT(open_with(broken), HasSubstr("keep its first 1 lines"));
  EXPECT_EQ(open_with(whole.substr(0, whole.find('\n') + 1)), "(fine)");
  // A line lost.
  const std::size_t first = whole.find('\n') + 1;
  const std::size_t second = whole.find('\n', first) + 1;
  EXPECT_THAT(open_with(whole.substr(0, first) + whole.substr(second)),
              HasSubstr("missing or out of order"));
  EXPECT_THAT(open_with(whole.substr(0, first) +
                        "{\"n\": 1, \"time\": \"\", \"ms\": 0, \"type\": \"surprise\"}\n{}\n"),
              HasSubstr("surprise"));
  EXPECT_THAT(
      open_with(
          whole.substr(0, first) +
          "{\"n\": 1, \"time\": \"\", \"ms\": 0, \"type\": \"attempt_judged\", \"attempt\": 9, "
          "\"verdict\": 3, \"holdout_seeds\": [], \"vetted\": \"\"}\n"),
      HasSubstr("verdict"));
}

TEST_F(RunFolderTest, OneProcessAtATime) {
  auto run = RunFolder::Create(path(), clock_, "go on");
  ASSERT_TRUE(run);
  Fill(*run);
  const auto second = RunFolder::Open(path(), clock_, "go on");
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another process"));
  // Nor has the one that was refused done any harm.
  EXPECT_THAT(testing::Slurp(path() / "transcript.jsonl"), HasSubstr("attempt-1"));
}

// Derived files are written again: none of it may land outside of the folder.
TEST_F(RunFolderTest, LinksAndPipesAreRefusedAndNothingIsWrittenThroughThem) {
  const Path outside = folder_.path() / "outside";
  const auto laid = [&](const char* where, bool folder, bool pipe) {
    std::filesystem::remove_all(path());
    std::filesystem::remove_all(outside);
    WriteRun();
    if (folder) {
      std::filesystem::create_directory(outside);
    } else {
      EXPECT_TRUE(WriteFileAtomically(outside, "mine"));
    }
    const Path link = path() / where;
    std::filesystem::remove_all(link);
    if (pipe) {
      EXPECT_EQ(::mkfifo(link.c_str(), 0600), 0);
    } else {
      std::filesystem::create_symlink(outside, link);
    }
    auto run = RunFolder::Open(path(), clock_, "go on");
    const auto request = RunFolder::ReadRequest(path());
    EXPECT_FALSE(request) << where;
    EXPECT_TRUE(folder ? std::filesystem::is_empty(outside) : testing::Slurp(outside) == "mine")
        << where;
    return run ? std::string("(fine)") : ToString(run.error());
  };
  for (const char* const file :
       {"events.jsonl", "transcript.jsonl", "run.json", "attempts/1/kernel.cu",
        "attempts/1/prompt.md.tmp", "vetted.new"}) {
    EXPECT_THAT(laid(file, false, false), HasSubstr("no links or pipes")) << file;
    EXPECT_THAT(laid(file, false, true), HasSubstr("no links or pipes")) << file;
  }
  for (const char* const folder : {"attempts", "attempts/1", "vetted"})
    EXPECT_THAT(laid(folder, true, false), HasSubstr("no links or pipes")) << folder;
  // The twin: a left-over of a crash is replaced, and the folder itself may be reached by a link.
  std::filesystem::remove_all(path());
  WriteRun();
  ASSERT_TRUE(WriteFileAtomically(path() / "attempts/1/prompt.md.tmp", "half"));
  const Path link = folder_.path() / "link";
  std::filesystem::create_directory_symlink(path(), link);
  EXPECT_TRUE(RunFolder::Open(link, clock_, "go on"));
  EXPECT_FALSE(std::filesystem::exists(path() / "attempts/1/prompt.md.tmp"));
}

TEST_F(RunFolderTest, AVettedFolderElsewhereIsDamage) {
  WriteRun();
  const std::string whole = testing::Slurp(path() / "events.jsonl");
  for (const char* const folder : {"vetted/..", "vetted/", "../vetted/x", "/etc", "vetted/a/b"}) {
    std::string forged = whole;
    const std::string field = "\"vetted\":\"\"";
    ASSERT_NE(forged.find(field), std::string::npos);
    forged.replace(forged.find(field), field.size(), "\"vetted\":\"" + std::string(folder) + "\"");
    ASSERT_TRUE(WriteFileAtomically(path() / "events.jsonl", forged));
    const auto run = RunFolder::Open(path(), clock_, "go on");
    ASSERT_FALSE(run) << folder;
    EXPECT_THAT(ToString(run.error()), HasSubstr("vetted/<instance>")) << folder;
  }
}

TEST_F(RunFolderTest, NoRunHereSaysSo) {
  EXPECT_THAT(ToString(RunFolder::Open(folder_.path(), clock_, "").error()),
              HasSubstr("no events.jsonl"));
  ASSERT_TRUE(WriteFileAtomically(folder_.path() / "events.jsonl", ""));
  EXPECT_THAT(ToString(RunFolder::Open(folder_.path(), clock_, "").error()),
              HasSubstr("had not begun"));
}

TEST_F(RunFolderTest, ConversationsKeepTheTaskAndTheLastFewExchanges) {
  auto run = RunFolder::Create(path(), clock_, "go on");
  ASSERT_TRUE(run);
  const ops::Instance instance = testing::RmsNorm();
  const std::vector<Message> task = {{Role::kSystem, "s", true}, {Role::kUser, "t", true}};
  ASSERT_TRUE(run->Record(RunStarted{Json::object(), ""}));
  for (int n = 1; n <= 8; ++n) {
    const auto messages =
        n == 1 ? task : std::vector<Message>{{Role::kUser, "finding " + std::to_string(n), false}};
    ASSERT_TRUE(run->Record(
        AttemptsPlanned{{{n, n == 1 ? DraftKind::kFirst : DraftKind::kRepair, n - 1, messages}}}));
    ASSERT_TRUE(run->Record(ReplyReceived{n, {.text = "answer " + std::to_string(n)}, true}));
    ASSERT_TRUE(run->Record(
        AttemptJudged{n, testing::VerdictOf(instance, {}, "refute race data_race"), {}, ""}));
  }
  const RunState& state = run->state();
  const Conversation conversation = ConversationFor(state, state.attempts.back(), "go on");
  std::string shape;
  for (const Message& message : conversation.messages) shape += message.text + "|";
  EXPECT_EQ(shape, "s|t|answer 5|finding 6|answer 6|finding 7|answer 7|finding 8|answer 8|go on|");
  // Roles alternate, whatever was left out.
  for (std::size_t i = 1; i < conversation.messages.size(); ++i) {
    EXPECT_NE(conversation.messages[i].role, conversation.messages[i - 1].role);
  }
}

}  // namespace
}  // namespace assay::runs
