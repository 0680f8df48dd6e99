#include "validator/findings/finding.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

Finding Race(std::uint32_t first_line, std::uint32_t second_line, std::uint32_t thread) {
  Finding finding;
  finding.kind = FindingKind::kDataRace;
  finding.message = "two threads";
  Access one{.what = "write",
             .site = {.file = "kernel.cu", .line = first_line},
             .thread = {.thread = {thread, 0, 0}}};
  Access two{.what = "read",
             .site = {.file = "kernel.cu", .line = second_line},
             .thread = {.thread = {7, 0, 0}}};
  finding.accesses = {one, two};
  finding.memory = MemoryPlace{
      .space = "shared", .buffer = "tile", .index = -3, .elements = 32, .address = 4, .bytes = 4};
  return finding;
}

TEST(Finding, NamesAreUniqueAndParseBack) {
  std::vector<std::string_view> seen;
#define X(name, json, family, meaning)                              \
  EXPECT_EQ(Name(FindingKind::k##name), json);                      \
  EXPECT_EQ(ParseFindingKind(json), FindingKind::k##name);          \
  EXPECT_EQ(FamilyOf(FindingKind::k##name), family);                \
  EXPECT_EQ(std::find(seen.begin(), seen.end(), json), seen.end()); \
  seen.push_back(json);
  ASSAY_FINDING_KINDS(X)
#undef X
  EXPECT_FALSE(ParseFindingKind("no_such_kind"));
}

TEST(Finding, JsonRoundTripKeepsEveryField) {
  Finding finding = Race(14, 18, 3);
  finding.accesses[0].site.column = 5;
  finding.accesses[0].site.ptx_line = 99;
  finding.accesses[0].site.instruction = "st.shared.f32 [%r1], %f1;";
  finding.accesses[0].site.excerpt = "  tile[i] = x;";
  finding.accesses[0].value = "1.5";
  finding.element = ElementPlace{
      .output = "y", .index = {1, 2}, .expected = 1, .got = HUGE_VAL, .allowance = 0.5};
  finding.statistics = {{.name = "bias", .value = -HUGE_VAL, .limit = 3, .note = "row 1"}};
  finding.missing = "no barrier";
  finding.cause = "because";
  finding.origins = {
      {.site = {.file = "kernel.cu", .line = 3, .excerpt = "s += x;"}, .share = 0.75}};
  finding.origin = "75 % of the error enters at line 3";
  const auto back = FindingFromJson(*ParseJson(CompactJson(ToJson(finding)), "f"), "f");
  ASSERT_TRUE(back) << ToString(back.error());
  EXPECT_EQ(*back, finding);
}

TEST(Finding, NotANumberSurvivesJson) {
  Finding finding;
  finding.kind = FindingKind::kWrongValue;
  finding.element = ElementPlace{.output = "y", .index = {0}, .expected = 1, .got = std::nan("")};
  const auto back = FindingFromJson(ToJson(finding), "f");
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(back->element->got));
}

TEST(Finding, MalformedJsonIsLocated) {
  Json json = ToJson(Race(1, 2, 3));
  json["accesses"][1]["thred"] = 1;
  auto result = FindingFromJson(json, "report.json");
  ASSERT_FALSE(result);
  EXPECT_NE(ToString(result.error()).find("accesses/1"), std::string::npos);
  json = ToJson(Race(1, 2, 3));
  json["kind"] = "nonsense";
  EXPECT_FALSE(FindingFromJson(json, "f"));
  json = ToJson(Race(1, 2, 3));
  json["accesses"][0]["thread"] = {1, -2, 3};
  EXPECT_FALSE(FindingFromJson(json, "f"));
}

TEST(Finding, SortsByKindThenLineThenThreadAndMergesDuplicates) {
  Finding bounds;
  bounds.kind = FindingKind::kOutOfBounds;
  std::vector<Finding> findings = {Race(20, 3, 0), Race(14, 18, 9), bounds, Race(14, 18, 2)};
  SortAndMerge(findings);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].kind, FindingKind::kOutOfBounds);
  EXPECT_EQ(findings[1].accesses[0].site.line, 14u);
  EXPECT_EQ(findings[1].accesses[0].thread.thread[0], 2u);
  EXPECT_EQ(findings[1].accesses[0].threads, 2u);
  EXPECT_EQ(findings[2].accesses[0].site.line, 20u);
}

TEST(Finding, CallSitesAndTheReachOfARaceTravelAsJson) {
  Finding race = Race(14, 18, 1);
  race.accesses[0].site.called_at = {30, 41};
  race.statistics = {StatisticOf(RaceReach::kBlock)};
  const auto back = FindingFromJson(ToJson(race), "f");
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, race);
  EXPECT_EQ(RaceReachOf(*back), RaceReach::kBlock);
  EXPECT_EQ(RaceReachOf(Race(14, 18, 1)), RaceReach::kUnknown);
  race.accesses[0].site.called_at.assign(kMostCallSites + 1, 1);
  EXPECT_FALSE(FindingFromJson(ToJson(race), "f"));
}

TEST(Finding, MergedRacesAskForTheOrderThatTheWidestNeeds) {
  Finding warp = Race(14, 18, 1), block = Race(14, 18, 40);
  warp.missing = "no __syncwarp()";
  warp.statistics = {StatisticOf(RaceReach::kWarp)};
  block.missing = "no barrier";
  block.statistics = {StatisticOf(RaceReach::kBlock)};
  for (std::vector<Finding> findings : {std::vector{warp, block}, std::vector{block, warp}}) {
    SortAndMerge(findings);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].missing, "no barrier");
  }
  std::vector<Finding> narrow = {warp, warp};
  SortAndMerge(narrow);
  EXPECT_EQ(narrow[0].missing, "no __syncwarp()");
}

TEST(Finding, SameDefectIgnoresThreadsAndTheOrderOfSides) {
  EXPECT_TRUE(SameDefect(Race(14, 18, 1), Race(14, 18, 30)));
  EXPECT_TRUE(SameDefect(Race(14, 18, 1), Race(18, 14, 1)));
  EXPECT_FALSE(SameDefect(Race(14, 18, 1), Race(14, 19, 1)));
  Finding other = Race(14, 18, 1);
  other.kind = FindingKind::kSameValueRace;
  EXPECT_FALSE(SameDefect(Race(14, 18, 1), other));
}

}  // namespace
}  // namespace assay
