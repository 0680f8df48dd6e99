#include "report/diff.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "base/text.h"
#include "report/run_text.h"

namespace assay::report {
namespace {

// What stands before, and what stands after, follow from the changes.
std::string Before(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    if (change.kind != ChangeKind::kAdded) text += std::string(change.text) + "\n";
  }
  return text;
}
std::string After(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    if (change.kind != ChangeKind::kRemoved) text += std::string(change.text) + "\n";
  }
  return text;
}

TEST(Diff, OneLineInTheMiddle) {
  const auto changes = Diff("a\nb\nc\n", "a\nB\nc\n");
  const std::vector<Change> expected = {{ChangeKind::kSame, 1, 1, "a"},
                                        {ChangeKind::kRemoved, 2, 0, "b"},
                                        {ChangeKind::kAdded, 0, 2, "B"},
                                        {ChangeKind::kSame, 3, 3, "c"}};
  EXPECT_EQ(changes, expected);
}

TEST(Diff, IsTheShortestOne) {
  // The example of Myers' paper: five edits.
  const auto changes = Diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n");
  const Counts counts = CountsOf(changes);
  EXPECT_EQ(counts.added + counts.removed, 5u);
}

TEST(Diff, BothTextsFollowFromIt) {
  Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    std::string before, after;
    for (std::string* const text : {&before, &after}) {
      const std::uint64_t lines = rng.Below(12);
      for (std::uint64_t i = 0; i < lines; ++i)
        *text += std::string(1, static_cast<char>('a' + rng.Below(4))) + "\n";
    }
    const auto changes = Diff(before, after);
    EXPECT_EQ(Before(changes), before);
    EXPECT_EQ(After(changes), after);
  }
}

TEST(Diff, EmptyTexts) {
  EXPECT_TRUE(Diff("", "").empty());
  EXPECT_EQ(CountsOf(Diff("", "a\nb\n")).added, 2u);
  EXPECT_EQ(CountsOf(Diff("a\nb\n", "")).removed, 2u);
}

TEST(Diff, TextsThatHaveLittleInCommonAreReplaced) {
  std::string before = "head\n", after = "head\n";
  for (int i = 0; i < 5000; ++i) {
    before += "b" + std::to_string(i) + "\n";
    after += "a" + std::to_string(i) + "\n";
  }
  const auto changes = Diff(before + "tail\n", after + "tail\n");
  EXPECT_EQ(CountsOf(changes).added, 5000u);
  EXPECT_EQ(CountsOf(changes).removed, 5000u);
  EXPECT_EQ(changes.front().kind, ChangeKind::kSame);
  EXPECT_EQ(changes.back().kind, ChangeKind::kSame);
}

TEST(Diff, HunksHoldWhatBelongsTogether) {
  std::string before, after;
  for (int i = 0; i < 40; ++i) {
    before += "line " + std::to_string(i) + "\n";
    after += (i == 5 || i == 9 || i == 30 ? "other " : "line ") + std::to_string(i) + "\n";
  }
  const auto changes = Diff(before, after);
  const auto hunks = Hunks(changes, 3);
  ASSERT_EQ(hunks.size(), 2u);
  EXPECT_EQ(hunks[0].front().text, "line 2");
  EXPECT_EQ(hunks[0].back().text, "line 12");
  EXPECT_TRUE(Hunks(Diff(before, before), 3).empty());
}

TEST(Diff, UnifiedFormIsWhatPatchReads) {
  EXPECT_EQ(UnifiedDiff("a", "b", "1\n2\n3\n", "1\n2\nx\n3\n"),
            "--- a\n+++ b\n@@ -1,3 +1,4 @@\n 1\n 2\n+x\n 3\n");
  EXPECT_EQ(UnifiedDiff("a", "b", "1\n", "1\n"), "");
}

}  // namespace
}  // namespace assay::report
