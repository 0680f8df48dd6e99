#include "validator/verdict/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/verdict/render.h"

namespace assay::verdict {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Ledger Sample() {
  Ledger ledger;
  ledger.Planned("smoke", 8);
  for (int i = 0; i < 8; ++i) ledger.Examined("smoke");
  ledger.Planned("huge", 6);
  for (int i = 0; i < 3; ++i) ledger.Examined("huge");
  ledger.LeaveOut("huge", "blocks of this plan may depend on each other", "rows=3");
  ledger.LeaveOut("huge", "blocks of this plan may depend on each other", "rows=9");
  ledger.LeaveOut("huge", "takes too long even at its ends", "rows=7");
  ledger.Tried("rows", 65, Extent::kWhole, 1000);
  ledger.Tried("rows", 12, Extent::kWhole, 1000);
  ledger.Tried("rows", 300, Extent::kSlice, 1000);
  ledger.Tried("rows", 900, Extent::kEnds, 1000);
  ledger.Ran("row_sum", 3, 3);
  ledger.Ran("row_sum", 65, 65);
  ledger.Ran("row_sum", 9, 300);
  ledger.Ran("row_sum", 40, 200);
  ledger.NotReached({{.what = "kernel.cu:7: the branch, taken", .copies = 60}});
  return ledger;
}

TEST(LedgerTest, CountsReasonsOnceAndKeepsTheFirstExample) {
  const Ledger ledger = Sample();
  EXPECT_EQ(ledger.planned(), 14u);
  EXPECT_EQ(ledger.examined(), 11u);
  EXPECT_EQ(ledger.left_out(), 3u);
  ASSERT_EQ(ledger.rows()[1].left_out.size(), 2u);
  EXPECT_EQ(ledger.rows()[1].left_out[0].count, 2u);
  EXPECT_EQ(ledger.rows()[1].left_out[0].example, "rows=3");
  EXPECT_EQ(ledger.axes()[0].whole, 65);
  EXPECT_EQ(ledger.axes()[0].in_slices, 300);
  EXPECT_EQ(ledger.axes()[0].at_ends, 900);
  ASSERT_EQ(ledger.launches().size(), 1u);
  EXPECT_EQ(ledger.launches()[0],
            (LaunchReach{.entry = "row_sum", .whole = 65, .run = 9, .all = 300}));
}

TEST(LedgerTest, WhatIsUnaccountedForShows) {
  Ledger ledger = Sample();
  EXPECT_TRUE(ledger.Balanced());
  ledger.Planned("long");
  EXPECT_FALSE(ledger.Balanced());
  ledger.Examined("long");
  EXPECT_TRUE(ledger.Balanced());
}

TEST(LedgerTest, AnAcceptanceIsQualifiedExactlyWhereSomethingIsMissing) {
  EXPECT_EQ(Sample().Qualification(),
            "3 of 14 planned cases left out, rows tried to 900 of 1000, 1 side of branches never "
            "reached");
  Ledger whole;
  whole.Planned("smoke");
  whole.Examined("smoke");
  whole.Tried("rows", 7, Extent::kWhole, 1000);
  whole.Tried("rows", 1000, Extent::kSlice, 1000);
  EXPECT_EQ(whole.Qualification(), "");
}

TEST(LedgerTest, AddsUp) {
  Ledger ledger = Sample();
  ledger.Add(Sample());
  EXPECT_EQ(ledger.planned(), 28u);
  EXPECT_EQ(ledger.rows().size(), 2u);
  EXPECT_EQ(ledger.rows()[1].left_out[0].count, 4u);
  EXPECT_TRUE(ledger.Balanced());
}

TEST(LedgerTest, RoundTripsThroughJson) {
  const auto read = LedgerFromJson(ToJson(Sample()), "ledger");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(*read, Sample());
  EXPECT_FALSE(LedgerFromJson(Json{{"rows", 3}}, "ledger"));
}

TEST(LedgerTest, PrintsEachWaveOnceAndEachReasonWithItsExample) {
  const std::string text = RenderLedger(Sample());
  EXPECT_THAT(text, HasSubstr("tried: 11 of 14 planned cases: 8 smoke, 3 of 6 huge\n"));
  EXPECT_THAT(text, HasSubstr("longest: rows 65 (in slices 300) (at its ends 900) of 1000\n"));
  EXPECT_THAT(text,
              HasSubstr("blocks of the largest launches: row_sum 65 (9 of 300 in a slice)\n"));
  EXPECT_THAT(
      text, HasSubstr("left out: 2 huge: blocks of this plan may depend on each other [rows=3]\n"));
  EXPECT_THAT(text, HasSubstr("no case reached: kernel.cu:7: the branch, taken (60 copies)\n"));
  EXPECT_THAT(RenderLedger(Ledger{}), Not(HasSubstr("tried")));
}

}  // namespace
}  // namespace assay::verdict
