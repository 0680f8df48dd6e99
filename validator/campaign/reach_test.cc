#include "validator/campaign/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "validator/campaign/testing/decisions.h"
#include "validator/campaign/turns.h"

namespace assay::campaign {
namespace {

using facts::Node;
using testing::Any, testing::AxisModulo, testing::AxisPast, testing::Builder, testing::Given;
using Op = Node::Op;
using Type = Node::Type;

TEST(DecisionsTest, PointsAreAlikeThatDifferInNothingADecisionLooksAt) {
  Builder of_grid;
  const auto last = of_grid.Add(Op::kSpecial, 12);  // %nctaid.x
  const Given given("ceil_div(rows, 4)",
                    {AxisPast(1, 5), AxisPast(2, 64), of_grid.Compare(last, 3)});
  const Decisions decisions(given.instance, given.plan, given.compiled);
  const auto at = [&](std::int64_t rows, std::int64_t columns) {
    return decisions.At({{"rows", rows}, {"columns", columns}, {"table", 9}}).value();
  };
  const auto here = at(3, 7), more_rows = at(40, 7), more_columns = at(3, 99);
  int of_rows = 0, of_columns = 0;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (decisions.IsOfPlan(i) || decisions.IsQuotient(i)) continue;
    EXPECT_TRUE(decisions.IsAlike(i, here, here));
    for (const auto* there : {&more_rows, &more_columns}) {
      const auto one = decisions.Of(i, here), other = decisions.Of(i, *there);
      ASSERT_TRUE(one && other);
      if (decisions.IsAlike(i, here, *there)) {
        EXPECT_EQ(one->gap, other->gap);
      }
      if (!decisions.IsAlike(i, here, *there)) {
        ++(there == &more_rows ? of_rows : of_columns);
      }
    }
  }
  EXPECT_GE(of_rows, 2) << "rows, and blocks, which rows make";
  EXPECT_EQ(of_columns, 1);
}

TEST(ReachTest, MeetsTwoConditionsOnOneAxis) {
  const Given given("ceil_div(rows, 4)", {AxisPast(2, 1024), AxisModulo(2, 8, 5)});
  EXPECT_TRUE(Any(given.Reach(), [](const ops::AxisValues& axes) {
    return axes.at("columns") > 1024 && axes.at("columns") % 8 == 5;
  }));
}

TEST(ReachTest, MeetsEachRestOfALongRow) {
  // A switch may treat two rests alike: no comparison tells 5 from 4.
  Builder builder;
  const auto columns = builder.Add(Op::kParameter, 2);
  const auto seven = builder.Add(Op::kConstant, 7);
  const Given given(
      "ceil_div(rows, 4)",
      {AxisPast(2, 1024), builder.Compare(builder.Add(Op::kAnd, 0, {columns, seven}), 0)});
  EXPECT_TRUE(Any(given.Reach(), [](const ops::AxisValues& axes) {
    return axes.at("columns") > 1024 && axes.at("columns") % 8 == 5;
  }));
}

TEST(ReachTest, MeetsConditionsOnTwoAxes) {
  const Given given("ceil_div(rows, 4)", {AxisPast(1, 5), AxisModulo(2, 37, 36)});
  EXPECT_TRUE(Any(given.Reach(), [](const ops::AxisValues& axes) {
    return axes.at("rows") > 5 && axes.at("columns") % 37 == 36;
  }));
}

TEST(ReachTest, MeetsWhatOnlyLongAxesShowWithSeveralTilesOfTheOthers) {
  const auto past_with_several = [](const ops::AxisValues& axes) {
    return axes.at("rows") > 512 && axes.at("columns") > 64;
  };
  const Given tiled("ceil_div(rows, 64) * ceil_div(columns, 64)", {AxisPast(1, 512)});
  EXPECT_TRUE(Any(tiled.Reach(), past_with_several));
  const Given rows("rows", {AxisPast(1, 512)});
  EXPECT_FALSE(Any(rows.Reach(), past_with_several));
}

TEST(ReachTest, SolvesEquationsOfAxes) {
  Builder builder;
  const auto rows = builder.Add(Op::kParameter, 1);
  const auto columns = builder.Add(Op::kParameter, 2);
  const auto seven = builder.Add(Op::kConstant, 7);
  const auto product = builder.Add(Op::kMultiply, 0, {rows, seven});
  const auto sum = builder.Add(Op::kAdd, 0, {product, columns});
  const Given given("ceil_div(rows, 4)", {builder.Compare(sum, 1999)});
  EXPECT_TRUE(Any(given.Reach(), [](const ops::AxisValues& axes) {
    return 7 * axes.at("rows") + axes.at("columns") == 1999;
  }));
}

TEST(ReachTest, SolvesEquationsBesideAnotherCondition) {
  // 3 * rows == columns + 11 && rows > 9
  Builder builder;
  const auto rows = builder.Add(Op::kParameter, 1);
  const auto three = builder.Add(Op::kConstant, 3);
  const auto product = builder.Add(Op::kMultiply, 0, {rows, three});
  const auto columns = builder.Add(Op::kParameter, 2);
  const auto difference = builder.Add(Op::kSubtract, 0, {product, columns});
  const Given given("ceil_div(rows, 4)", {builder.Compare(difference, 11), AxisPast(1, 9)});
  EXPECT_TRUE(Any(given.Reach(), [](const ops::AxisValues& axes) {
    return 3 * axes.at("rows") == axes.at("columns") + 11 && axes.at("rows") > 9;
  }));
}

TEST(ReachTest, FollowsLoopsToTheTurnThatIsTreatedInItsOwnWay) {
  // start += 32: start >= 4064 && start + 33 == columns
  const auto counter = [](Builder& builder) {
    const auto start = builder.Add(Op::kConstant, 0);
    const auto step = builder.Add(Op::kConstant, 32);
    return builder.Add(Op::kCounter, 0, {start, step});
  };
  Builder limit;
  Builder last;
  const auto columns = last.Add(Op::kParameter, 2);
  const auto rest = last.Add(Op::kSubtract, 0, {columns, counter(last)});
  const Given given("ceil_div(rows, 4)",
                    {limit.Compare(counter(limit), 4064), last.Compare(rest, 33)});
  EXPECT_TRUE(Any(given.Reach(),
                  [](const ops::AxisValues& axes) { return axes.at("columns") == 4064 + 33; }));
}

TEST(ReachTest, GoesPastLimitsThatStandInThePlanAlone) {
  const Given capped("min(ceil_div(rows, 8), 2112)", {});
  EXPECT_TRUE(Any(capped.Reach(), [](const ops::AxisValues& axes) {
    return axes.at("rows") > 8 * 2112 && axes.at("rows") <= 8 * 2112 + 16;
  }));
  // Without one there is nothing to aim at.
  EXPECT_TRUE(Given("rows", {}).Reach().cases.empty());
}

TEST(ReachTest, WhatIsTooLargeIsLeftToItsEnds) {
  const Given capped("min(rows, 1000000)", {});
  const ReachedCases reached = capped.Reach({.max_elements = 1 << 16});
  EXPECT_FALSE(
      Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 1'000'000; }));
  EXPECT_TRUE(std::ranges::any_of(
      reached.too_large, [](const ops::AxisValues& axes) { return axes.at("rows") > 1'000'000; }));
}

// A second turn of blocks and what only long rows do: each alone fits the budget, both do in a slice.
TEST(ReachTest, WhatOnlyComesTogetherBeyondTheBudgetGoesToSlices) {
  const Given given("min(rows, 264)", {AxisPast(2, 4096)});
  const auto both = [](const ops::AxisValues& axes) {
    return axes.at("rows") > 264 && axes.at("columns") > 4096;
  };
  const auto in_slices = [&](const ReachRequest& request) {
    const ReachedCases reached = given.Reach(request);
    EXPECT_TRUE(Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 264; }));
    EXPECT_TRUE(
        Any(reached, [](const ops::AxisValues& axes) { return axes.at("columns") > 4096; }));
    EXPECT_FALSE(Any(reached, both) && !reached.together.empty());
    const bool slices = std::ranges::any_of(reached.together, both);
    // What no slice shows is asked where it writes.
    EXPECT_EQ(std::ranges::any_of(reached.written_together, both), request.part_cost && !slices);
    return slices;
  };
  ReachRequest request{.max_elements = 1 << 18};
  EXPECT_FALSE(in_slices(request)) << "nobody says what a slice takes";
  request.part_cost = [](const ops::AxisValues&) { return 1e6; };
  EXPECT_TRUE(in_slices(request));
  request.part_cost = [](const ops::AxisValues&) { return 1e12; };
  EXPECT_FALSE(in_slices(request)) << "too dear";
  EXPECT_TRUE(Any(given.Reach({.max_elements = 1 << 24}), both)) << "whole, where there is room";
}

TEST(ReachTest, TurnsAreTheSameAheadAndAbandonedOnesEnd) {
  const Given given("min(rows, 264)", {AxisPast(2, 4096)});
  const std::vector<ops::AxisValues> turns =
      TurnsOf(given.instance, Decisions(given.instance, given.plan, given.compiled));
  EXPECT_GT(turns.size(), 3u);
  EXPECT_EQ(TurnsAhead(given.instance, given.plan, given.compiled).Take(), turns);
  for (int i = 0; i < 50; ++i)
    const TurnsAhead abandoned(given.instance, given.plan, given.compiled);
}

TEST(ReachTest, GoesPastExtentsThatAreTheSameAtAllShapes) {
  const ReachedCases reached = Given("400", {}).Reach();
  EXPECT_TRUE(Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 400; }));
  EXPECT_TRUE(
      Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 400 * 128; }));
}

TEST(ReachTest, WhatCasesHadIsNotTriedAgain) {
  const Given given("rows", {AxisPast(2, 100)});
  ReachRequest request;
  for (const std::int64_t columns : {1, 99, 100, 101, 200})
    request.tried.push_back({{"rows", 2}, {"columns", columns}, {"table", 2}});
  EXPECT_TRUE(given.Reach(request).cases.empty());
  request.tried.pop_back();
  request.tried.pop_back();
  EXPECT_TRUE(Any(given.Reach(request),
                  [](const ops::AxisValues& axes) { return axes.at("columns") > 100; }));
}

TEST(ReachTest, AimsElementsAtWhatTheyAreComparedWith) {
  // ids[i] == table / 2
  Builder builder;
  const auto element = builder.Add(Op::kMemory, 0, {}, Type::kReal);
  const auto whole = builder.Add(Op::kConvert, 0, {element});
  const auto table = builder.Add(Op::kParameter, 3);
  const auto one = builder.Add(Op::kConstant, 1);
  const auto half = builder.Add(Op::kShiftRight, 0, {table, one});
  const auto difference = builder.Add(Op::kSubtract, 0, {whole, half});
  const Given given("rows", {builder.Compare(difference, 0)});
  const ReachedCases reached = given.Reach();
  ASSERT_FALSE(reached.cases.empty());
  for (const cases::Case& value : reached.cases) {
    const auto& ids = value.profiles.at("ids");
    ASSERT_EQ(ids.kind, "literal");
    EXPECT_EQ(ids.literal.front(), static_cast<double>(value.axes.at("table") / 2));
  }
}

TEST(ReachTest, MakesTablesLongEnoughForWhatAnIndexIsComparedWith) {
  Builder builder;
  const auto element = builder.Add(Op::kMemory, 0, {}, Type::kReal);
  const auto whole = builder.Add(Op::kConvert, 0, {element});
  const Given given("rows", {builder.Compare(whole, 40'000)});
  const ReachedCases reached = given.Reach();
  EXPECT_TRUE(std::ranges::any_of(reached.cases, [](const cases::Case& value) {
    const auto ids = value.profiles.find("ids");
    return value.axes.at("table") > 40'000 && ids != value.profiles.end() &&
           ids->second.kind == "literal" && ids->second.literal.front() == 40'000;
  }));
  // No table that the op allows is that long.
  Builder beyond;
  const auto index = beyond.Add(Op::kMemory, 0, {}, Type::kReal);
  const auto of_index = beyond.Add(Op::kConvert, 0, {index});
  const auto longest = given.instance.op.FindAxis("table")->max;
  EXPECT_TRUE(Given("rows", {beyond.Compare(of_index, longest + 5)}).Reach().cases.empty());
}

TEST(DecisionsTest, SeeLoopsInTheirFirstAndSecondTurn) {
  Builder builder;
  const auto start = builder.Add(Op::kConstant, 0);
  const auto step = builder.Add(Op::kConstant, 4096);
  const auto at = builder.Add(Op::kCounter, 0, {start, step});
  const auto columns = builder.Add(Op::kParameter, 2);
  const auto rest = builder.Add(Op::kSubtract, 0, {columns, at});
  const Given given("rows", {builder.Compare(rest, 4095)});
  const Decisions decisions(given.instance, given.plan, given.compiled);
  ASSERT_EQ(decisions.size(), 2u);
  const auto point = decisions.At({{"rows", 2}, {"columns", 5000}, {"table", 2}});
  ASSERT_TRUE(point);
  EXPECT_EQ(decisions.Of(0, *point)->sign, 1);
  EXPECT_EQ(decisions.Of(1, *point)->sign, -1);
  EXPECT_EQ(decisions.Of(1, *point)->gap, 5000 - 4096 - 4095);
}

}  // namespace
}  // namespace assay::campaign
