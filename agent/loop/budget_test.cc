#include "agent/loop/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fakes.h"

namespace assay::loop {
namespace {

using ::testing::HasSubstr;

TEST(PricesTest, TheLongestNameWins) {
  const PriceTable prices = {{"openai/gpt-5", {1, 1, 1}}, {"openai/gpt-5-mini", {2, 2, 2}}};
  EXPECT_EQ(PriceOf(prices, "openai/gpt-5-2025-08-07")->input, 1);
  EXPECT_EQ(PriceOf(prices, "openai/gpt-5-mini-2025")->input, 2);
  EXPECT_FALSE(PriceOf(prices, "openai/gpt-4"));
  EXPECT_EQ(PriceOf(prices, "exec/anything")->output, 0);
}

TEST(PricesTest, AUsersTableOverridesRows) {
  testing::TemporaryFolder folder;
  const Path file = folder.path() / "prices.json";
  ASSERT_TRUE(WriteFileAtomically(
      file,
      R"({"schema": "assay.prices/1", "models": {"openai/gpt-5": {"input": 7, "output": 8}}})"));
  const auto prices = LoadPrices(file);
  ASSERT_TRUE(prices) << ToString(prices.error());
  EXPECT_EQ(PriceOf(*prices, "openai/gpt-5")->input, 7);
  EXPECT_EQ(PriceOf(*prices, "openai/gpt-5")->cached_input, 7);  // no discount that nobody promised
  EXPECT_TRUE(PriceOf(*prices, "anthropic/claude-sonnet-4-5"));
}

TEST(PricesTest, MisspeltAndNegativePricesAreRefused) {
  EXPECT_THAT(
      ToString(
          ParsePrices(R"({"schema": "assay.prices/1", "models": {"m": {"input": 1, "ouput": 2}}})",
                      "p")
              .error()),
      HasSubstr("output"));
  EXPECT_FALSE(ParsePrices(
      R"({"schema": "assay.prices/1", "models": {"m": {"input": -1, "output": 2}}})", "p"));
  EXPECT_FALSE(ParsePrices(R"({"schema": "assay.prices/1", "models": []})", "p"));
}

TEST(CostTest, CachedTokensAreCheaper) {
  const runs::Usage usage{
      .input_tokens = 1'000'000, .cached_input_tokens = 400'000, .output_tokens = 100'000};
  EXPECT_DOUBLE_EQ(CostOf(usage, {.input = 1, .cached_input = 0.1, .output = 10}),
                   0.6 + 0.04 + 1.0);
}

TEST(MeterTest, CountsRepliesLossesAndWhatIsUnderWay) {
  const auto meter = Meter::Make({.usd = 0, .tokens = 100, .seconds = 60, .prices = {}}, "exec/x");
  ASSERT_TRUE(meter);
  runs::RunState state;
  state.answered.output_tokens = 40;
  state.lost.input_tokens = 20;
  EXPECT_FALSE(meter->Exceeded(state, {.output_tokens = 39}, 0));
  EXPECT_THAT(meter->Exceeded(state, {.output_tokens = 40}, 0)->why, HasSubstr("100 tokens"));
  state.earlier_milliseconds = 50'000;
  EXPECT_FALSE(meter->Exceeded(state, {}, 9));
  EXPECT_TRUE(meter->Exceeded(state, {}, 10)->time);
}

TEST(MeterTest, Dollars) {
  EXPECT_FALSE(Meter::Make({.usd = 1, .prices = {}}, "openai/unheard-of"));
  const auto meter = Meter::Make({.usd = 1, .prices = {}}, "openai/gpt-5");
  ASSERT_TRUE(meter);
  runs::RunState state;
  state.answered.output_tokens = 99'999;  // at $10 a million
  EXPECT_FALSE(meter->Exceeded(state, {}, 0));
  state.answered.output_tokens = 100'000;
  EXPECT_TRUE(meter->Exceeded(state, {}, 0));
  EXPECT_DOUBLE_EQ(*meter->Spent(state), 1.0);
}

}  // namespace
}  // namespace assay::loop
