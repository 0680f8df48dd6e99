#include "agent/models/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::models {
namespace {

std::vector<std::string> Read(SseParser& parser, std::string_view bytes) {
  EXPECT_TRUE(parser.Feed(bytes));
  std::vector<std::string> events;
  while (auto event = parser.Next()) events.push_back(event->name + "|" + event->data);
  return events;
}

const std::string kStream =
    "\xef\xbb\xbf: a comment\r\nevent: first\r\ndata: one\r\ndata:two\r\n\r\n"
    "data\n\n"
    "id: 7\nretry: 100\nunknown: x\n\n"
    "data: {\"a\": 1}\r\r"
    "data: unfinished";

TEST(SseTest, ReadsTheStandardsForms) {
  SseParser parser;
  EXPECT_EQ(Read(parser, kStream),
            (std::vector<std::string>{"first|one\ntwo", "|", "|{\"a\": 1}"}));
}

TEST(SseTest, AnySplitOfTheBytesGivesTheSameEvents) {
  SseParser whole;
  const std::vector<std::string> expected = Read(whole, kStream);
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    SseParser parser;
    std::vector<std::string> events = Read(parser, std::string_view(kStream).substr(0, cut));
    for (std::string& event : Read(parser, std::string_view(kStream).substr(cut)))
      events.push_back(event);
    EXPECT_EQ(events, expected) << "cut at " << cut;
  }
}

TEST(SseTest, AnEventIsLimited) {
  SseParser parser(100);
  EXPECT_FALSE(parser.Feed("data: " + std::string(200, 'x')));
  SseParser lines(100);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "data: 0123456789\n";
  EXPECT_FALSE(lines.Feed(many));
}

}  // namespace
}  // namespace assay::models
