#include "agent/transcript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "agent/generate.h"
#include "agent/testing/fakes.h"

namespace assay::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::ReplyWith;

constexpr const char* kByHand =
    R"({"schema": "assay.transcript/1", "written": "by hand", "note": "written by hand for a test"}
{"type": "exchange", "reply": {"text": "one"}}

{"type": "exchange", "reply": {"text": "two", "stop": "length"}}
)";

std::string ErrorOf(const std::string& text) {
  const auto transcript = ParseTranscript(text, "t.jsonl");
  return transcript ? "(fine)" : ToString(transcript.error());
}

ModelRequest Request(const std::string& name, const std::string& text) {
  return {.name = name, .conversation = {{{Role::kUser, text, false}}}, .temperature = {}};
}

Exchange Recorded(const std::string& name, const std::string& asked, const std::string& answered) {
  Exchange exchange;
  exchange.name = name;
  exchange.conversation = Request(name, asked).conversation;
  exchange.digest = DigestOf(exchange.conversation);
  exchange.reply.text = answered;
  return exchange;
}

ReplayModel RecordedModel(const std::vector<Exchange>& exchanges) {
  TranscriptWriter writer;
  std::string text = writer.Header({}) + "\n";
  for (const Exchange& exchange : exchanges) text += writer.Line(exchange) + "\n";
  auto transcript = ParseTranscript(text, "t.jsonl");
  EXPECT_TRUE(transcript) << ToString(transcript.error());
  return {*std::move(transcript), "t.jsonl"};
}

TEST(TranscriptTest, ReadsOneWrittenByHand) {
  const auto transcript = ParseTranscript(kByHand, "t.jsonl");
  ASSERT_TRUE(transcript) << ToString(transcript.error());
  EXPECT_TRUE(transcript->header.by_hand);
  ASSERT_EQ(transcript->exchanges.size(), 2u);
  EXPECT_EQ(transcript->exchanges[1].reply.stop, StopReason::kLength);
  EXPECT_EQ(transcript->exchanges[1].line, 4u);
}

TEST(TranscriptTest, RefusesWhatItDoesNotUnderstandWithThePlace) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("'schema' is missing"));
  EXPECT_THAT(ErrorOf(R"({"schema": "assay.transcript/9", "written": "by hand"})"),
              HasSubstr("assay.transcript/1"));
  EXPECT_THAT(ErrorOf(R"({"schema": "assay.transcript/1", "written": "by hand"})"),
              HasSubstr("must say so in its note"));
  EXPECT_THAT(ErrorOf(std::string(kByHand) + R"({"type": "exchange", "replay": {}})"),
              HasSubstr("t.jsonl:5"));
  EXPECT_THAT(ErrorOf(std::string(kByHand) + R"({"type": "exchange", "reply": {"text": 1}})"),
              HasSubstr("must be a string"));
  EXPECT_THAT(ErrorOf(std::string(kByHand) + R"({"type": "chat"})"), HasSubstr("unknown type"));
  EXPECT_THAT(ErrorOf(std::string(kByHand) + "{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(std::string(kByHand) +
                      R"({"type": "exchange", "messages": 7, "reply": {"text": ""}})"),
              HasSubstr("array"));
  EXPECT_THAT(
      ErrorOf(std::string(kByHand) + R"({"type": "judged", "attempt": 1, "holdout_seeds": 3})"),
      HasSubstr("array"));
}

TEST(TranscriptTest, WritesEachTextOnceAndReadsItBack) {
  const std::string long_text(5000, 'x');
  TranscriptWriter writer;
  std::string text = writer.Header({}) + "\n";
  Exchange first = Recorded("attempt-1", long_text, "answer one");
  Exchange second = Recorded("attempt-2", long_text, "answer two");
  second.conversation.messages.push_back({Role::kAssistant, "answer one", false});
  second.conversation.messages.push_back({Role::kUser, "again", false});
  second.digest = DigestOf(second.conversation);
  text += writer.Line(first) + "\n";
  text += writer.Line(second) + "\n";
  text += writer.Judged(2, {17, 4}) + "\n";
  EXPECT_LT(text.size(), 7000u);
  const auto transcript = ParseTranscript(text, "t.jsonl");
  ASSERT_TRUE(transcript) << ToString(transcript.error());
  EXPECT_EQ(transcript->exchanges[1].conversation, second.conversation);
  EXPECT_EQ(DigestOf(transcript->exchanges[1].conversation), second.digest);
  EXPECT_EQ(transcript->holdout_seeds.at(2), (std::vector<std::uint64_t>{17, 4}));
}

TEST(ReplayModelTest, HandWrittenRepliesComeInOrderAndTheNoteIsShown) {
  ReplayModel model(*ParseTranscript(kByHand, "t.jsonl"), "t.jsonl");
  EXPECT_THAT(model.Notice(), HasSubstr("written by hand for a test"));
  EXPECT_EQ(Ask(model, Request("anything", "x"))->text, "one");
  EXPECT_EQ(Ask(model, Request("else", "y"))->text, "two");
  model.Start(3, Request("third", "z"));
  ASSERT_TRUE(model.Stuck());
  EXPECT_THAT(ToString(*model.Stuck()), HasSubstr("ends after 2 replies"));
}

TEST(ReplayModelTest, RecordedRepliesArriveInRecordedOrder) {
  ReplayModel model =
      RecordedModel({Recorded("attempt-2", "b", "B"), Recorded("attempt-1", "a", "A")});
  model.Start(1, Request("attempt-1", "a"));
  EXPECT_FALSE(model.Poll(milliseconds(0)).size());  // attempt-2 answered first then
  ASSERT_TRUE(model.Stuck());
  model.Start(2, Request("attempt-2", "b"));
  EXPECT_FALSE(model.Stuck());
  EXPECT_EQ(model.Poll(milliseconds(0)).at(0).reply->text, "B");
  EXPECT_EQ(model.Poll(milliseconds(0)).at(0).reply->text, "A");
}

TEST(ReplayModelTest, DivergenceNamesLineMessageAndTexts) {
  ReplayModel model = RecordedModel({Recorded("attempt-1", "same\nold line\n", "A")});
  const auto reply = Ask(model, Request("attempt-1", "same\nnew line\n"));
  ASSERT_FALSE(reply);
  const std::string error = ToString(reply.error());
  EXPECT_THAT(error, HasSubstr("t.jsonl:2"));
  EXPECT_THAT(error, HasSubstr("message 1, line 2"));
  EXPECT_THAT(error, HasSubstr("recorded: old line"));
  EXPECT_THAT(error, HasSubstr("now:      new line"));
}

TEST(ReplayModelTest, AResumedRunIsNotGivenWhatItHas) {
  ReplayModel recorded =
      RecordedModel({Recorded("attempt-1", "a", "A"), Recorded("attempt-2", "b", "B")});
  recorded.PassOver({"attempt-1"});
  EXPECT_EQ(Ask(recorded, Request("attempt-2", "b"))->text, "B");
  ReplayModel by_hand(*ParseTranscript(kByHand, "t.jsonl"), "t.jsonl");
  by_hand.PassOver({"attempt-1"});
  EXPECT_EQ(Ask(by_hand, Request("attempt-2", "b"))->text, "two");
}

// A recorded run, replayed, takes the same course: same verdicts, same transcript, same usage.
class RecordReplayTest : public ::testing::TestWithParam<StrategyKind> {};

TEST_P(RecordReplayTest, ReplayIsTheSameRun) {
  testing::TemporaryFolder folder;
  FakeClock clock;
  std::uint64_t entropy = 0;
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.strategy = {.kind = GetParam(),
                      .attempts = 8,
                      .samples = 3,
                      .width = 2,
                      .stagnation = 2,
                      .optimize = false};
  const auto run = [&](const Path& out, const std::string& spec, Model* model) {
    request.out = out;
    request.model.spec = spec;
    Environment environment{.clock = clock,
                            .make_judges = testing::ScriptedJudges(),
                            .entropy = [&] { return ++entropy; },
                            .prompts = testing::PromptsFolder(),
                            .model = model};
    return Generate(request, environment);
  };
  testing::ScriptedModel model({ReplyWith("refute race data_race"), "nonsense",
                                ReplyWith("refute memory misaligned"),
                                ReplyWith("refute compile compile_error"),
                                ReplyWith("inconclusive"), ReplyWith("refute holdout wrong_value"),
                                ReplyWith("refute numeric wrong_value"), ReplyWith("accept")});
  const auto recorded = run(folder.path() / "a", "exec/scripted", &model);
  ASSERT_TRUE(recorded) << ToString(recorded.error());
  const std::string transcript = (folder.path() / "a" / "transcript.jsonl").string();
  const auto replayed = run(folder.path() / "b", "replay/" + transcript, nullptr);
  ASSERT_TRUE(replayed) << ToString(replayed.error());
  EXPECT_EQ(replayed->outcome, recorded->outcome);
  EXPECT_EQ(replayed->usage, recorded->usage);
  const auto below = [&](const char* name) {
    return testing::FilesBelow(folder.path() / name / "attempts");
  };
  ASSERT_EQ(below("a"), below("b"));
  for (const std::string& file : below("a")) {
    EXPECT_EQ(testing::Slurp(folder.path() / "a/attempts" / file),
              testing::Slurp(folder.path() / "b/attempts" / file))
        << file;
  }
  // Whose replies they are is recorded, not how they were had. When a verdict falls among the replies is up to the threads that
  // judge: the lines agree, not their order.
  const auto exchanges = [&](const char* name) {
    std::istringstream text(testing::Slurp(folder.path() / name / "transcript.jsonl"));
    std::multiset<std::string> lines;
    std::string line;
    std::getline(text, line);
    while (std::getline(text, line)) lines.insert(line);
    return lines;
  };
  EXPECT_EQ(exchanges("a"), exchanges("b"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, RecordReplayTest,
                         ::testing::Values(StrategyKind::kRefine, StrategyKind::kRestart,
                                           StrategyKind::kBeam),
                         [](const auto& strategy) { return std::string(Name(strategy.param)); });

TEST(ReplayTest, AChangedPromptIsFoundOut) {
  testing::TemporaryFolder folder;
  FakeClock clock;
  GenerateRequest request{.instance = testing::RmsNorm(), .model = {.spec = "exec/scripted"}};
  request.out = folder.path() / "a";
  testing::ScriptedModel model({ReplyWith("refute race data_race"), ReplyWith("accept")});
  Environment environment{.clock = clock,
                          .make_judges = testing::ScriptedJudges(),
                          .prompts = testing::PromptsFolder(),
                          .model = &model};
  ASSERT_TRUE(Generate(request, environment));
  std::filesystem::copy(testing::PromptsFolder(), folder.path() / "prompts",
                        std::filesystem::copy_options::recursive);
  ASSERT_TRUE(AppendLine(folder.path() / "prompts/repair.md", "And be quick."));
  environment.prompts = folder.path() / "prompts";
  environment.model = nullptr;
  request.out = folder.path() / "b";
  request.model.spec = "replay/" + (folder.path() / "a/transcript.jsonl").string();
  const auto outcome = Generate(request, environment);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("attempt-2"));
  EXPECT_THAT(outcome.error().message, HasSubstr("And be quick."));
}

}  // namespace
}  // namespace assay::agent
