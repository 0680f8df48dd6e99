#include "base/text.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"

namespace assay {
namespace {

TEST(ValidUtf8Test, LeavesValidTextAlone) {
  const std::string text = "plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80, \xef\xbf\xbd";
  EXPECT_EQ(ValidUtf8(text), text);
}

TEST(ValidUtf8Test, ReplacesMaximalIllFormedSubparts) {
  // Unicode 15, table 3-8: 61 F1 80 80 E1 80 C2 62 80 63 80 BF 64.
  EXPECT_EQ(ValidUtf8("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"),
            "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "b\xef\xbf\xbd"
            "c\xef\xbf\xbd\xef\xbf\xbd"
            "d");
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(ValidUtf8("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");                  // overlong
}

TEST(ValidUtf8Test, AnyBytesBecomeValidAndStaySo) {
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(rng.Below(40), '\0');
    for (char& c : bytes)
      c = static_cast<char>(rng.Below(4) == 0 ? rng.Below(256) : 0x80 + rng.Below(128));
    const std::string once = ValidUtf8(bytes);
    EXPECT_EQ(ValidUtf8(once), once);
  }
}

TEST(NewlinesTest, WindowsAndOldMac) {
  EXPECT_EQ(UnixNewlines("a\r\nb\rc\n\r\n"), "a\nb\nc\n\n");
  EXPECT_EQ(UnixNewlines("\r"), "\n");
}

TEST(ShortenTest, KeepsHeadAndTailAndSaysHowMuchIsGone) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string shorter = Shorten(text, 1000);
  EXPECT_LE(shorter.size(), 1000u);
  EXPECT_TRUE(shorter.starts_with("line 0\n"));
  EXPECT_TRUE(shorter.ends_with("line 999\n"));
  EXPECT_NE(shorter.find("bytes left out ...]\n"), std::string::npos);
  EXPECT_EQ(Shorten("short", 1000), "short");
}

TEST(ShortenTest, NeverSplitsACharacter) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "\xe2\x82\xac";
  for (std::size_t limit = 0; limit < 300; ++limit) {
    EXPECT_EQ(ValidUtf8(Shorten(text, limit)), Shorten(text, limit));
    EXPECT_EQ(ValidUtf8(Head(text, limit)), Head(text, limit));
  }
}

TEST(SplitLinesTest, FinalNewlineEndsTheLastLine) {
  EXPECT_EQ(SplitLines("a\nb\n").size(), 2u);
  EXPECT_EQ(SplitLines("a\n\nb").size(), 3u);
  EXPECT_TRUE(SplitLines("").empty());
}

TEST(Text, OneLineHasNoLineOfItsOwn) {
  EXPECT_EQ(OneLine("  a\n  fix: b\r\n\tc ", 100), "a fix: b c");
  EXPECT_EQ(OneLine("plain", 100), "plain");
  EXPECT_EQ(OneLine(std::string(1000, 'x'), 10), Head(std::string(1000, 'x'), 10));
}

}  // namespace
}  // namespace assay
