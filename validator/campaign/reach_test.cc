#include "validator/campaign/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "validator/campaign/costs.h"
#include "validator/cases/test_instance.h"

namespace assay::campaign {
namespace {

using facts::Node;
using Op = Node::Op;
using Type = Node::Type;

/// y[rows, columns] from ids[rows] in [0, table): an op without constraints.
ops::Instance Instance() {
  ops::Instance instance = cases::GatherInstance();
  instance.op.constraints.clear();
  return instance;
}

/// One kernel k(ids, rows, columns, table) on a grid of `blocks`.
ops::LaunchPlan Plan(const std::string& blocks) {
  ops::LaunchPlan plan;
  ops::KernelPlan& kernel = plan.kernels.emplace_back();
  kernel.entry = "k";
  kernel.grid = {cases::Parse(blocks), cases::Parse("1"), cases::Parse("1")};
  kernel.block = {cases::Parse("128"), cases::Parse("1"), cases::Parse("1")};
  kernel.args = {"ids", "rows", "columns", "table"};
  return plan;
}

/// Makes decisions node by node.
class Builder {
 public:
  std::uint32_t Add(Op op, std::int64_t value, std::vector<std::uint32_t> of = {},
                    Type type = Type::kS64) {
    decision.nodes.push_back({op, type, value, std::move(of)});
    return static_cast<std::uint32_t>(decision.nodes.size() - 1);
  }
  facts::Decision Compare(std::uint32_t left, std::int64_t right) {
    decision.entry = "k";
    decision.left = left;
    decision.right = Add(Op::kConstant, right);
    return decision;
  }
  facts::Decision decision;
};

facts::Decision AxisPast(std::int64_t parameter, std::int64_t limit) {
  Builder builder;
  return builder.Compare(builder.Add(Op::kParameter, parameter), limit);
}

facts::Decision AxisModulo(std::int64_t parameter, std::int64_t by, std::int64_t rest) {
  Builder builder;
  const auto axis = builder.Add(Op::kParameter, parameter);
  const auto divisor = builder.Add(Op::kConstant, by);
  return builder.Compare(builder.Add(Op::kRemainder, 0, {axis, divisor}), rest);
}

struct Given {
  ops::Instance instance = Instance();
  ops::LaunchPlan plan;
  engine::CompiledKernel compiled;

  Given(const std::string& blocks, std::vector<facts::Decision> list) : plan(Plan(blocks)) {
    facts::Facts program;
    program.decisions = std::move(list);
    compiled.facts = std::make_shared<const facts::Facts>(std::move(program));
    compiled.lowered["k"] = "k";
  }
  ReachedCases Reach(ReachRequest request = {}) const {
    const Decisions decisions(instance, plan, compiled);
    request.cost = [this](const ops::AxisValues& axes) {
      return static_cast<double>(cases::TotalElements(instance, axes));
    };
    request.steps = 1e8;
    request.pair_steps = 1e8;
    request.shapes = 24;
    request.values = 8;
    return CasesThatReach(instance, decisions, request);
  }
};

template <class Holds>
bool Any(const ReachedCases& reached, Holds holds) {
  return std::ranges::any_of(reached.cases,
                             [&](const cases::Case& value) { return holds(value.axes); });
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
  EXPECT_TRUE(Given("ceil_div(rows, 8)", {}).Reach().cases.empty());
}

TEST(ReachTest, WhatIsTooLargeIsLeftToItsEnds) {
  const Given capped("min(rows, 1000000)", {});
  const ReachedCases reached = capped.Reach({.max_elements = 1 << 16});
  EXPECT_FALSE(
      Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 1'000'000; }));
  EXPECT_TRUE(std::ranges::any_of(
      reached.too_large, [](const ops::AxisValues& axes) { return axes.at("rows") > 1'000'000; }));
}

TEST(ReachTest, GoesPastExtentsThatAreTheSameAtAllShapes) {
  const ReachedCases reached = Given("400", {}).Reach();
  EXPECT_TRUE(Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 400; }));
  EXPECT_TRUE(
      Any(reached, [](const ops::AxisValues& axes) { return axes.at("rows") > 400 * 128; }));
}

/// `left` of 32 bits, widened to reach memory.
facts::Decision Widened(Builder& builder, std::uint32_t left) {
  facts::Decision decision = builder.Compare(left, std::int64_t{1} << 31);
  decision.limit = true;
  return decision;
}

TEST(ReachTest, NumbersOutgrowTheirFormats) {
  Builder builder;
  const auto rows = builder.Add(Op::kParameter, 1, {}, Type::kS32);
  const auto columns = builder.Add(Op::kParameter, 2, {}, Type::kS32);
  const auto product = builder.Add(Op::kMultiply, 0, {rows, columns}, Type::kS32);
  const ReachedCases reached = Given("ceil_div(rows, 4)", {Widened(builder, product)}).Reach();
  // By no more than it takes, and by an eighth.
  ASSERT_EQ(reached.past_limits.size(), 2u);
  const auto elements = [&](std::size_t i) {
    const ops::AxisValues& axes = reached.past_limits[i];
    return axes.at("rows") * axes.at("columns");
  };
  EXPECT_GT(elements(0), std::int64_t{1} << 31);
  EXPECT_LT(elements(0), std::int64_t{9} << 28);
  EXPECT_GT(elements(1), std::int64_t{9} << 28);
  // Along one axis alone nothing does.
  Builder alone;
  const auto parameter = alone.Add(Op::kParameter, 1, {}, Type::kS32);
  EXPECT_TRUE(Given("ceil_div(rows, 4)", {Widened(alone, parameter)}).Reach().past_limits.empty());
}

TEST(ReachTest, NumbersOutgrowTheirFormatsInTheLastTurnOfALoop) {
  // for (row = blockIdx.x; row < rows; row += gridDim.x) ... row * columns
  const auto counter = [](Builder& builder) {
    const auto block = builder.Add(Op::kSpecial, 8, {}, Type::kU32);
    const auto blocks = builder.Add(Op::kSpecial, 12, {}, Type::kU32);
    return builder.Add(Op::kCounter, 0, {block, blocks}, Type::kS32);
  };
  Builder loop;
  const auto rows = loop.Add(Op::kParameter, 1, {}, Type::kS32);
  const auto left = loop.Add(Op::kSubtract, 0, {counter(loop), rows}, Type::kS32);
  Builder index;
  const auto columns = index.Add(Op::kParameter, 2, {}, Type::kS32);
  const auto product = index.Add(Op::kMultiply, 0, {counter(index), columns}, Type::kS32);
  const ReachedCases reached =
      Given("132", {loop.Compare(left, 0), Widened(index, product)}).Reach();
  // Some block's last row by no more than it takes (and perhaps the last block's), and that by an eighth.
  ASSERT_GE(reached.past_limits.size(), 2u);
  for (const ops::AxisValues& axes : reached.past_limits)
    EXPECT_GT((axes.at("rows") - 1) * axes.at("columns"), std::int64_t{1} << 31);
  const ops::AxisValues& axes = reached.past_limits.front();
  EXPECT_LE((axes.at("rows") - 1) * axes.at("columns"),
            (std::int64_t{1} << 31) + std::max(axes.at("rows"), axes.at("columns")));
}

TEST(ReachTest, NumbersOutgrowTheirFormatsWhereTwoAxesAreNotEnough) {
  Given given("ceil_div(rows, 4)", {});
  for (ops::Axis& axis : given.instance.op.axes) axis.max = 4096;
  Builder builder;
  std::uint32_t product = builder.Add(Op::kParameter, 1, {}, Type::kS32);
  for (const std::int64_t axis : {2, 3}) {
    product = builder.Add(Op::kMultiply, 0,
                          {product, builder.Add(Op::kParameter, axis, {}, Type::kS32)}, Type::kS32);
  }
  facts::Facts program;
  program.decisions = {Widened(builder, product)};
  given.compiled.facts = std::make_shared<const facts::Facts>(std::move(program));
  const ReachedCases reached = given.Reach();
  ASSERT_FALSE(reached.past_limits.empty());
  const ops::AxisValues& axes = reached.past_limits.front();
  const std::int64_t elements = axes.at("rows") * axes.at("columns") * axes.at("table");
  EXPECT_GT(elements, std::int64_t{1} << 31);
  EXPECT_LT(elements, (std::int64_t{1} << 31) + (std::int64_t{1} << 24));
}

TEST(ReachTest, ALoopEndsByABranchAndNotByTheDigitsThatItLooksAt) {
  // row = blockIdx.x; do { (row & 3) == 0; row * columns } while ((row += gridDim.x) < rows)
  const auto past = [](std::uint32_t branch_of_digits) {
    const auto counter = [](Builder& builder) {
      const auto block = builder.Add(Op::kSpecial, 8, {}, Type::kU32);
      const auto blocks = builder.Add(Op::kSpecial, 12, {}, Type::kU32);
      return builder.Add(Op::kCounter, 17, {block, blocks}, Type::kU32);
    };
    Builder digits;
    const auto three = digits.Add(Op::kConstant, 3, {}, Type::kU32);
    facts::Decision first =
        digits.Compare(digits.Add(Op::kAnd, 0, {counter(digits), three}, Type::kU32), 0);
    first.branch_line = branch_of_digits;
    Builder loop;
    const auto row = counter(loop);
    const auto next = loop.Add(Op::kAdd, 0, {row, row - 1}, Type::kU32);
    const auto rows = loop.Add(Op::kParameter, 1, {}, Type::kU32);
    facts::Decision end = loop.Compare(loop.Add(Op::kSubtract, 0, {next, rows}), 0);
    end.branch_line = 40;
    Builder index;
    const auto columns = index.Add(Op::kParameter, 2, {}, Type::kU32);
    const auto product = index.Add(Op::kMultiply, 0, {counter(index), columns}, Type::kU32);
    return Given("132", {first, end, Widened(index, product)}).Reach().past_limits;
  };
  for (const std::uint32_t branch : {0u, 30u}) {
    const auto shapes = past(branch);
    ASSERT_FALSE(shapes.empty()) << branch;
    const std::int64_t last = (shapes.front().at("rows") - 1) * shapes.front().at("columns");
    EXPECT_GT(last, std::int64_t{1} << 31);
    EXPECT_LE(last, (std::int64_t{1} << 31) +
                        std::max(shapes.front().at("rows"), shapes.front().at("columns")));
  }
}

TEST(ReachTest, ALoopThatEndsByOneNumberEndsForWhatItCountsBesides) {
  // for (row = blockIdx.x, base = row * columns; row < rows; row += gridDim.x, base += gridDim.x * columns)
  constexpr std::int64_t kLoop = 17;
  const auto reached = [](std::int64_t loop_of_base, std::uint32_t branch) {
    Builder loop;
    const auto block = loop.Add(Op::kSpecial, 8, {}, Type::kU32);
    const auto blocks = loop.Add(Op::kSpecial, 12, {}, Type::kU32);
    const auto row = loop.Add(Op::kCounter, kLoop, {block, blocks}, Type::kS32);
    const auto rows = loop.Add(Op::kParameter, 1, {}, Type::kS32);
    facts::Decision end = loop.Compare(loop.Add(Op::kSubtract, 0, {row, rows}, Type::kS32), 0);
    end.branch_line = branch;
    Builder index;
    const auto columns = index.Add(Op::kParameter, 2, {}, Type::kS32);
    const auto first = index.Add(Op::kMultiply, 0,
                                 {index.Add(Op::kSpecial, 8, {}, Type::kU32), columns}, Type::kS32);
    const auto step = index.Add(Op::kMultiply, 0,
                                {index.Add(Op::kSpecial, 12, {}, Type::kU32), columns}, Type::kS32);
    const auto base = index.Add(Op::kCounter, loop_of_base, {first, step}, Type::kS32);
    return Given("132", {end, Widened(index, base)}).Reach().past_limits;
  };
  const auto past = reached(kLoop, 40);
  ASSERT_FALSE(past.empty());
  EXPECT_GT(past.front().at("rows") * past.front().at("columns"), std::int64_t{1} << 31);
  // Of another loop nothing follows, nor of a comparison that ends none.
  EXPECT_TRUE(reached(kLoop + 1, 40).empty());
  EXPECT_TRUE(reached(kLoop, 0).empty());
}

TEST(ReachTest, WhatCasesHadIsNotTriedAgain) {
  const Given given("ceil_div(rows, 4)", {AxisPast(2, 100)});
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
  const Given given("ceil_div(rows, 4)", {builder.Compare(difference, 0)});
  const ReachedCases reached = given.Reach();
  ASSERT_FALSE(reached.cases.empty());
  for (const cases::Case& value : reached.cases) {
    const auto& ids = value.profiles.at("ids");
    ASSERT_EQ(ids.kind, "literal");
    EXPECT_EQ(ids.literal.front(), static_cast<double>(value.axes.at("table") / 2));
  }
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

TEST(CostsTest, GrowByAxesAndByNoMoreThanTheSquare) {
  Costs costs;
  EXPECT_FALSE(costs.Estimate({{"m", 4}, {"n", 4}}, 32));
  costs.Learn({{"m", 4}, {"n", 4}}, 16, 1'000);
  EXPECT_NEAR(*costs.Estimate({{"m", 4}, {"n", 4}}, 16), 1'000, 1);
  EXPECT_NEAR(*costs.Estimate({{"m", 4}, {"n", 8}}, 32), 2'000, 2);
  // Elements that do not grow as fast as the product of the axes, as in m + n.
  EXPECT_NEAR(*costs.Estimate({{"m", 8}, {"n", 8}}, 32), 4'000, 4);
  EXPECT_NEAR(*costs.Estimate({{"m", 64}, {"n", 64}}, 32), 4'000, 4);
  // The nearest counts, and of one shape the dearest.
  costs.Learn({{"m", 4}, {"n", 1024}}, 4'096, 50'000);
  costs.Learn({{"m", 4}, {"n", 1024}}, 4'096, 90'000);
  EXPECT_NEAR(*costs.Estimate({{"m", 4}, {"n", 2048}}, 8'192), 180'000, 200);
}

}  // namespace
}  // namespace assay::campaign
