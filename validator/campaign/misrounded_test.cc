#include "validator/campaign/misrounded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "validator/campaign/testing/decisions.h"

namespace assay::campaign {
namespace {

using testing::Builder;
using testing::Given;
using testing::Op;
using testing::Type;
using Becomes = facts::Decision::Becomes;

constexpr std::int64_t kBlock = 8;  // %ctaid.x

/// (int)((block + `added`) * (1.0f / columns)), as the row that a block has where each has so many.
facts::Decision RowByReciprocal(double added) {
  Builder builder;
  const auto block = builder.Add(Op::kConvert, 0, {builder.Add(Op::kSpecial, kBlock)}, Type::kReal);
  const auto columns = builder.Add(Op::kConvert, 0, {builder.Add(Op::kParameter, 2)}, Type::kReal);
  const auto one = builder.Add(Op::kConstant, std::bit_cast<std::int64_t>(1.0), {}, Type::kReal);
  const auto each = builder.Add(Op::kDivide, 0, {one, columns}, Type::kReal);
  const auto more = builder.Add(Op::kConstant, std::bit_cast<std::int64_t>(added), {}, Type::kReal);
  const auto at = builder.Add(Op::kAdd, 0, {block, more}, Type::kReal);
  facts::Decision decision =
      builder.Compare(builder.Add(Op::kMultiply, 0, {at, each}, Type::kReal), 0);
  decision.becomes = Becomes::kLower;
  return decision;
}

double ShareAt(const Given& given, std::int64_t rows, std::int64_t columns) {
  const Decisions decisions(given.instance, given.plan, given.compiled);
  EXPECT_TRUE(decisions.Rounds());
  const auto point = decisions.At({{"rows", rows}, {"columns", columns}, {"table", 2}});
  return point ? decisions.MisroundedAt(*point, 512, 1).share() : -1;
}

TEST(MisroundedTest, AReciprocalIsWrongAtSomeCountsOfParts) {
  const Given given("rows * columns", {RowByReciprocal(0)});
  EXPECT_EQ(ShareAt(given, 3, 8), 0);
  EXPECT_EQ(ShareAt(given, 3, 40), 0);
  // 41 * (1.0f / 41) is less than 1.
  EXPECT_GT(ShareAt(given, 3, 41), 0);
  const Decisions decisions(given.instance, given.plan, given.compiled);
  const auto shapes = ShapesMisrounded(given.instance, given.plan, decisions, 7);
  ASSERT_FALSE(shapes.empty());
  // The smallest first, and each of them is one.
  for (const MisroundedShape& shape : shapes) EXPECT_GT(shape.share, 0);
  EXPECT_TRUE(std::ranges::is_sorted(shapes, {}, [&](const MisroundedShape& shape) {
    return cases::TotalElements(given.instance, shape.axes);
  }));
  EXPECT_LT(cases::TotalElements(given.instance, shapes.front().axes), 100'000);
}

TEST(MisroundedTest, WithAHalfOnTopOnlyWhereThereAreMany) {
  const Given given("rows * columns", {RowByReciprocal(0.5)});
  EXPECT_EQ(ShareAt(given, 3, 41), 0);
  EXPECT_EQ(ShareAt(given, 1000, 41), 0);
  EXPECT_GT(ShareAt(given, 1 << 20, 15), 0);
}

TEST(MisroundedTest, WhatIsExactIsNowhereWrong) {
  Builder builder;
  const auto block = builder.Add(Op::kConvert, 0, {builder.Add(Op::kSpecial, kBlock)}, Type::kReal);
  const auto half = builder.Add(Op::kConstant, std::bit_cast<std::int64_t>(0.5), {}, Type::kReal);
  facts::Decision decision =
      builder.Compare(builder.Add(Op::kMultiply, 0, {block, half}, Type::kReal), 0);
  decision.becomes = Becomes::kLower;
  const Given given("min(rows, 4224)", {decision});
  const Decisions decisions(given.instance, given.plan, given.compiled);
  EXPECT_TRUE(ShapesMisrounded(given.instance, given.plan, decisions, 7).empty());
}

TEST(MisroundedTest, BesideRowsJustLongEnoughForAKernelThereAreMore) {
  // Of long rows few blocks are at an end, where a half on top is lost; the shortest of this kernel have the most.
  const Given given("rows * columns * (columns > 1024)", {RowByReciprocal(0.5)});
  const Decisions decisions(given.instance, given.plan, given.compiled);
  const auto shapes = ShapesMisrounded(given.instance, given.plan, decisions, 7);
  const auto beside = [](const MisroundedShape& shape) {
    return shape.axes.at("columns") > 1024 && shape.axes.at("columns") <= 1032;
  };
  EXPECT_TRUE(std::ranges::any_of(shapes, beside));
  for (const MisroundedShape& shape : shapes) EXPECT_GT(shape.axes.at("columns"), 1024);
}

}  // namespace
}  // namespace assay::campaign
