#include "runs/transcript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs/testing/fakes.h"

namespace assay::runs {
namespace {

using ::testing::HasSubstr;

constexpr const char* kByHand =
    R"({"schema": "assay.transcript/1", "written": "by hand", "note": "written by hand for a test"}
{"type": "exchange", "reply": {"text": "one"}}

{"type": "exchange", "reply": {"text": "two", "stop": "length"}}
)";

std::string ErrorOf(const std::string& text) {
  const auto transcript = ParseTranscript(text, "t.jsonl");
  return transcript ? "(fine)" : ToString(transcript.error());
}

Exchange Recorded(const std::string& name, const std::string& asked, const std::string& answered) {
  Exchange exchange;
  exchange.name = name;
  exchange.conversation = {{{Role::kUser, asked, false}}};
  exchange.digest = DigestOf(exchange.conversation);
  exchange.reply.text = answered;
  return exchange;
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

// What ships with an op is edited as Markdown (scripts/write_transcript.py): the two must agree.
TEST(TranscriptTest, ShippedTranscriptsSayWhatTheirMarkdownSays) {
  int transcripts = 0;
  for (const auto& op : std::filesystem::directory_iterator(Path(ASSAY_SOURCE_DIR) / "ops")) {
    if (!std::filesystem::exists(op.path() / "transcript")) continue;
    const auto transcript = ReadTranscript(op.path() / "transcript.jsonl");
    ASSERT_TRUE(transcript) << ToString(transcript.error());
    ++transcripts;
    for (std::size_t i = 0; i < transcript->exchanges.size(); ++i) {
      const Path markdown = op.path() / "transcript" / (std::to_string(i + 1) + ".md");
      EXPECT_EQ(transcript->exchanges[i].reply.text, testing::Slurp(markdown));
    }
    EXPECT_EQ(testing::FilesBelow(op.path() / "transcript").size(), transcript->exchanges.size());
  }
  EXPECT_GT(transcripts, 0);
}

}  // namespace
}  // namespace assay::runs
