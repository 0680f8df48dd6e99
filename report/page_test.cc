// Pages of runs: what they say, that nothing of a run becomes markup, and that they stay small.
#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "report/sections.h"
#include "report/testing/pages.h"
#include "runs/folder.h"
#include "runs/testing/fakes.h"

namespace assay::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

// How often `part` stands in `text`.
std::size_t Times(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++times;
  return times;
}

TEST(Page, TheDemoRunFromItsEvents) {
  const TemporaryFolder folder;
  const std::string page = testing::DemoPage(folder.path());
  EXPECT_LT(page.size(), 1'000'000u);
  for (const char* const part :
       {"embedding_rmsnorm_backward", "<strong>accepted</strong>", "planned cases", "Attempt 4",
        "What changed since attempt 1", "class=\"guilty\"", "Error against allowance",
        "Map of errors", "What was tried, and what was not", "assay replay", "list prices"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  for (const char* const never :
       {"<script", "<img", "<link", "url(", "@import", "http://", "https://"})
    EXPECT_EQ(Times(page, never), 0u) << never;
}

TEST(Page, NothingOfAHostileRunBecomesMarkup) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "<script>alert(1)<";
  testing::WriteHostileRun(path);
  const auto view = ReadRunView(path, {});
  ASSERT_TRUE(view) << ToString(view.error());
  const std::string page = RunPage(*view);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_EQ(Times(page, "<script"), 0u);
  EXPECT_EQ(Times(page, "<img"), 0u);
  EXPECT_EQ(Times(page, "</style>"), 1u);
  EXPECT_EQ(Times(page, "</html>"), 1u);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, HasSubstr("left out"));
}

TEST(Page, ARunThatHasBarelyBegunHasAPage) {
  const TemporaryFolder folder;
  FakeClock clock;
  {
    auto run = runs::RunFolder::Create(folder.path() / "run", clock, "go on");
    ASSERT_TRUE(run);
    ASSERT_TRUE(run->Record(runs::RunStarted{Json::object(), "digest"}));
  }
  const auto view = ReadRunView(folder.path() / "run", {});
  ASSERT_TRUE(view);
  EXPECT_THAT(RunPage(*view), AllOf(HasSubstr("not finished"), HasSubstr("None was made")));
}

TEST(Page, WhatIsNoRunIsAnErrorWithACure) {
  const TemporaryFolder folder;
  for (const char* const text : {"", "{}\n{}\n", "{\"schema\": 1}\n", "\xff\xfe\n\n", "[]\n[]\n"}) {
    const Path path = folder.path() / "run";
    std::filesystem::create_directories(path);
    std::ofstream(path / "events.jsonl") << text;
    const auto view = ReadRunView(path, {});
    ASSERT_FALSE(view) << text;
    EXPECT_FALSE(view.error().place.empty());
    EXPECT_FALSE(view.error().cure.empty()) << ToString(view.error());
  }
  const Path large = folder.path() / "large";
  std::filesystem::create_directories(large);
  std::ofstream(large / "events.jsonl") << "x";
  std::filesystem::resize_file(large / "events.jsonl", kLargestLog + 1);
  const auto view = ReadRunView(large, {});
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error().message, HasSubstr("more than a page can show"));
}

// --- the race diagram

Finding Race(std::uint32_t one, std::uint32_t two, bool same_block = true) {
  Finding finding{.kind = FindingKind::kDataRace, .message = "m"};
  Access a{.what = "read", .site = {.file = "kernel.cu", .line = one}};
  Access b{.what = "write", .site = {.file = "kernel.cu", .line = two}};
  b.thread.thread = {32, 0, 0};
  if (!same_block) b.thread.block = {1, 0, 0};
  finding.accesses = {a, b};
  finding.missing = "no barrier between line 2 and line 4";
  return finding;
}

TEST(RaceDiagram, ShowsBothThreadsAndTheMissingEdge) {
  const std::string drawn = RaceDiagram(Race(4, 2), "a\ns[i] = x;\n\ny = s[j];\n").markup();
  EXPECT_THAT(drawn, AllOf(HasSubstr("thread (32, 0, 0)"), HasSubstr("read, line 4"),
                           HasSubstr("write, line 2"), HasSubstr("missing-edge"),
                           HasSubstr("no barrier between"), Not(HasSubstr("the next round"))));
  EXPECT_EQ(Times(drawn, "class=\"barrier\""), 0u);
}

TEST(RaceDiagram, ABarrierBetweenThemLeavesTheWayRoundTheLoop) {
  const std::string drawn =
      RaceDiagram(Race(4, 2), "a\ns[i] = x;\n__syncthreads();\ny = s[j];\n").markup();
  EXPECT_THAT(drawn, AllOf(HasSubstr("the next round"), HasSubstr("__syncthreads(), 3")));
  EXPECT_EQ(Times(drawn, "class=\"barrier\""), 1u);
  // The access that is raced with stands twice: before the barrier, and in the next round.
  EXPECT_EQ(Times(drawn, "write, line 2"), 2u);
}

TEST(RaceDiagram, ABarrierOrdersNoThreadsOfOtherBlocks) {
  const std::string drawn =
      RaceDiagram(Race(4, 2, false), "a\ns[i] = x;\n__syncthreads();\ny = s[j];\n").markup();
  EXPECT_EQ(Times(drawn, "class=\"barrier\""), 0u);
  EXPECT_THAT(drawn, HasSubstr("two blocks"));
}

TEST(RaceDiagram, IsDrawnOfTwoAccessesInTheSourceAlone) {
  Finding one = Race(4, 2);
  one.accesses.pop_back();
  EXPECT_TRUE(RaceDiagram(one, "").empty());
  Finding elsewhere = Race(0, 2);
  EXPECT_TRUE(RaceDiagram(elsewhere, "").empty());
  Finding numeric = Race(4, 2);
  numeric.kind = FindingKind::kWrongValue;
  EXPECT_TRUE(RaceDiagram(numeric, "").empty());
}

// --- errors

std::string PlotsOf(std::initializer_list<double> allowances) {
  ErrorProfile profile = ErrorProfile::Of("y", 2, 2);
  std::int64_t element = 0;
  for (const double each : allowances) profile.Add(element++, each);
  verdict::GateResult gate{.gate = "precision"};
  gate.errors = {profile};
  verdict::Verdict verdict;
  verdict.gates = {gate};
  return ErrorPlots(verdict).markup();
}

TEST(ErrorPlots, SayHowManyElementsAreBeyond) {
  EXPECT_THAT(PlotsOf({0, 0.25, 0.5, 0.9}), HasSubstr("All 4 elements"));
  EXPECT_THAT(PlotsOf({0, 0.25, 0.5, 3}), HasSubstr("1 of 4 elements"));
  EXPECT_EQ(Times(PlotsOf({0, 0.25, 0.5, 0.9}), "class=\"h5\""), 0u);
  EXPECT_EQ(Times(PlotsOf({0, 0.25, 0.5, 30}), "class=\"h5\""), 1u);
}

}  // namespace
}  // namespace assay::report
