#include "batch/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batch/events.h"
#include "batch/purse.h"

namespace assay::batch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SummaryTest, WordsOfEnds) {
  for (const End end :
       {End::kAccepted, End::kRefuted, End::kInconclusive, End::kFailed, End::kWaiting})
    EXPECT_EQ(ParseEnd(Name(end)), end);
  EXPECT_FALSE(ParseEnd("fine"));
}

TEST(SummaryTest, TheDriftTableSaysWhatChangedAndWhy) {
  Summary summary;
  summary.kind = "recheck";
  summary.drift = {{.instance = "softmax-T=bf16-sm_90",
                    .before = "accepted",
                    .after = "refuted",
                    .gate = "race",
                    .finding = "data_race",
                    .drifted = true,
                    .changed = {{"judge", "version assay-worker sha256", "aa", "bb"}}},
                   {.instance = "gemm-T=bf16-sm_90", .before = "accepted", .after = "accepted"}};
  const std::string table = RenderTable(summary);
  EXPECT_THAT(table, HasSubstr("softmax-T=bf16-sm_90  accepted -> refuted (race: data_race)"));
  EXPECT_THAT(table, HasSubstr("judge changed: version assay-worker sha256  aa -> bb"));
  EXPECT_THAT(table, Not(HasSubstr("gemm")));
  EXPECT_THAT(table, HasSubstr("2 kernels judged again or known, 1 verdict changed"));
}

TEST(EventsTest, ComeBackAsTheyWere) {
  InstanceEnded ended{.instance = "i",
                      .end = End::kAccepted,
                      .reason = "r",
                      .resumable = true,
                      .attempts = 3,
                      .usd = 0.5,
                      .vetted = "runs/i/vetted/i",
                      .kernel = "k",
                      .where = "w",
                      .seconds = 1.5};
  ended.tokens.output_tokens = 7;
  const DriftRow drift{.instance = "i", .changed = {{"op", "op", "a", "b"}}};
  const Event events[] = {BatchStarted{Json::object()},
                          BatchResumed{Json::object()},
                          InstanceStarted{"i", "w", "s"},
                          InstanceUpToDate{"i", "k", "d", "v"},
                          ended,
                          InstanceRechecked{drift},
                          BatchStopped{"why", true}};
  std::uint64_t number = 0;
  for (const Event& event : events) {
    const Json json = ToJson(StampedEvent{number++, "2000", 5, event});
    const auto again = EventFromJson(json, "e");
    ASSERT_TRUE(again) << ToString(again.error());
    EXPECT_EQ(ToJson(*again), json);
  }
  EXPECT_FALSE(EventFromJson({{"n", 0}, {"time", ""}, {"ms", 0}, {"type", "other"}}, "e"));
}

TEST(PurseTest, AddsUpInstancesAndSaysWhichLimit) {
  FakeClock clock;
  const loop::PriceTable prices = {
      {"openai/m", {.input = 1e6, .cached_input = 1e6, .output = 2e6}}};
  Purse purse({.usd = 10, .tokens = 8, .seconds = 100}, prices, std::chrono::seconds(90), clock);
  EXPECT_FALSE(purse.Exceeded());
  purse.Spent("a", "openai/m", {.output_tokens = 2});
  purse.Spent("b", "exec/free", {.output_tokens = 3});
  purse.Spent("a", "openai/m", {.input_tokens = 1, .output_tokens = 3});  // in place of the first
  EXPECT_EQ(purse.total().usd, 7);
  EXPECT_EQ(purse.total().tokens, 7u);
  EXPECT_FALSE(purse.Exceeded());
  purse.Spent("c", "exec/free", {.output_tokens = 1});
  EXPECT_THAT(*purse.Exceeded(), HasSubstr("8 tokens"));
  purse.Spent("c", "exec/free", {});
  EXPECT_FALSE(purse.Exceeded());
  clock.Advance(std::chrono::seconds(10));
  EXPECT_THAT(*purse.Exceeded(), HasSubstr("100 s"));
  purse.Spent("a", "openai/m", {.output_tokens = 5});
  EXPECT_THAT(*purse.Exceeded(), HasSubstr("limit of"));
  EXPECT_FALSE(purse.CostOf("openai/unknown", {.output_tokens = 1}));
  EXPECT_EQ(purse.CostOf("replay/x", {.output_tokens = 1}), 0);
}

}  // namespace
}  // namespace assay::batch
