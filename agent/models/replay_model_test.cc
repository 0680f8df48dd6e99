#include "agent/models/replay_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::models {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr const char* kByHand =
    R"({"schema": "assay.transcript/1", "written": "by hand", "note": "written by hand for a test"}
{"type": "exchange", "reply": {"text": "one"}}

{"type": "exchange", "reply": {"text": "two", "stop": "length"}}
)";

ModelRequest Request(const std::string& name, const std::string& text) {
  return {.name = name, .conversation = {{{Role::kUser, text, false}}}, .temperature = {}};
}

runs::Exchange Recorded(const std::string& name, const std::string& asked,
                        const std::string& answered) {
  runs::Exchange exchange;
  exchange.name = name;
  exchange.conversation = Request(name, asked).conversation;
  exchange.digest = runs::DigestOf(exchange.conversation);
  exchange.reply.text = answered;
  return exchange;
}

ReplayModel RecordedModel(const std::vector<runs::Exchange>& exchanges) {
  runs::TranscriptWriter writer;
  std::string text = writer.Header({}) + "\n";
  for (const runs::Exchange& exchange : exchanges) text += writer.Line(exchange) + "\n";
  auto transcript = runs::ParseTranscript(text, "t.jsonl");
  EXPECT_TRUE(transcript) << ToString(transcript.error());
  return {*std::move(transcript), "t.jsonl"};
}

TEST(ReplayModelTest, HandWrittenRepliesComeInOrderAndTheNoteIsShown) {
  ReplayModel model(*runs::ParseTranscript(kByHand, "t.jsonl"), "t.jsonl");
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
  ReplayModel by_hand(*runs::ParseTranscript(kByHand, "t.jsonl"), "t.jsonl");
  by_hand.PassOver({"attempt-1"});
  EXPECT_EQ(Ask(by_hand, Request("attempt-2", "b"))->text, "two");
}

}  // namespace
}  // namespace assay::models
