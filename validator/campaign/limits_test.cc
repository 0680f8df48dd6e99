// Where numbers outgrow their formats (decisions_limits.cc), and the shapes that show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "validator/campaign/testing/decisions.h"

namespace assay::campaign {
namespace {

using facts::Node;
using testing::AxisModulo, testing::AxisPast, testing::Builder, testing::Given;
using Op = Node::Op;
using Type = Node::Type;

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
  // By nothing, for no thread is too many that it may be of; by no more than it takes; and by an eighth.
  ASSERT_EQ(reached.past_limits.size(), 3u);
  const auto elements = [&](std::size_t i) {
    const ops::AxisValues& axes = reached.past_limits[i];
    return axes.at("rows") * axes.at("columns");
  };
  EXPECT_EQ(elements(0), std::int64_t{1} << 31);
  EXPECT_GT(elements(1), std::int64_t{1} << 31);
  EXPECT_LT(elements(1), std::int64_t{9} << 28);
  EXPECT_GT(elements(2), std::int64_t{9} << 28);
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
  EXPECT_GE(elements, std::int64_t{1} << 31);
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

}  // namespace
}  // namespace assay::campaign
