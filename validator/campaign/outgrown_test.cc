#include "validator/campaign/outgrown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "validator/campaign/testing/decisions.h"

namespace assay::campaign {
namespace {

using ::testing::ElementsAre;
using testing::Given;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ops::AxisValues Shape(std::int64_t rows, std::int64_t columns) {
  return {{"rows", rows}, {"columns", columns}, {"table", 2}};
}

/// As many shapes as a judgement has, of which the program's one number comes to that.
void Observe(Outgrowing& outgrowing, std::uint8_t digits,
             const std::function<std::int64_t(std::int64_t, std::int64_t)>& most) {
  for (const std::int64_t rows : {1, 3, 9, 30, 70, 100, 300, 1000}) {
    for (const std::int64_t columns : {1, 5, 8, 33, 65, 200, 600}) {
      outgrowing.Add(Shape(rows, columns),
                     {{.ptx_line = 40,
                       .which = 0,
                       .digits = digits,
                       .line = 14,
                       .most = static_cast<std::uint64_t>(most(rows, columns))}});
    }
  }
}

TEST(OutgrowingTest, AnIndexOfAllElementsOutgrowsItsFormatWhereTheseDo) {
  const Given given("rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, 31,
          [](std::int64_t rows, std::int64_t columns) { return rows * columns - 1; });
  const auto found = outgrowing.Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].line, 14u);
  EXPECT_THAT(found[0].along, ::testing::UnorderedElementsAre("rows", "columns"));
  EXPECT_GT(found[0].axes.at("rows") * found[0].axes.at("columns"), std::int64_t{1} << 31);
  EXPECT_FALSE(outgrowing.IsSeen(found[0]));
  EXPECT_THAT(outgrowing.Unseen(), HasSubstr("line 14"));
  // A run beyond that in which it was computed has shown what becomes of it.
  outgrowing.Add(found[0].axes,
                 {{.ptx_line = 40, .which = 0, .digits = 31, .line = 14, .most = 5}});
  EXPECT_THAT(outgrowing.Unseen(), IsEmpty());
}

TEST(OutgrowingTest, NotOneThatIsWholeAsFarAsTheOpGoes) {
  const Given given("rows", {});
  for (const auto& most : std::vector<std::function<std::int64_t(std::int64_t, std::int64_t)>>{
           [](std::int64_t, std::int64_t columns) { return columns - 1; },  // Within a row.
           [](std::int64_t rows, std::int64_t) { return rows - 1; },
           [](std::int64_t, std::int64_t) { return 1023; },  // A thread's.
           // A hash, or a number that comes round: as large at one shape as at another.
           [](std::int64_t rows, std::int64_t columns) {
             return (rows * 2654435761 + columns * 40503) % 4294967296;
           }}) {
    Outgrowing outgrowing(given.instance, given.plan);
    Observe(outgrowing, 32, most);
    EXPECT_THAT(outgrowing.Find(), IsEmpty());
  }
}

// Blocks of a capped grid, of which long shapes say no more: rows of two lengths alone, beside columns that make up for it.
TEST(OutgrowingTest, TwoLengthsOfAnAxisShowNoGrowth) {
  const Given given("rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  const auto observe = [&](std::int64_t rows, std::int64_t columns, std::uint64_t most) {
    outgrowing.Add(Shape(rows, columns),
                   {{.ptx_line = 40, .which = 0, .digits = 16, .line = 14, .most = most}});
  };
  for (const std::int64_t columns : {1040, 1056, 1088, 2160}) observe(64, columns, 99);
  observe(270, 540, 180);
  EXPECT_THAT(outgrowing.Find(), IsEmpty());
  // Of three lengths no more than one product goes through all.
  observe(130, 720, 103);
  EXPECT_THAT(outgrowing.Find(), SizeIs(1));
}

TEST(OutgrowingTest, RowsKeptInSixteenBits) {
  const Given given("rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, 16, [](std::int64_t rows, std::int64_t) { return rows - 1; });
  const auto found = outgrowing.Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].along, ElementsAre("rows"));
  EXPECT_EQ(found[0].axes.at("rows"), 73'728);
}

// Bytes of rows in 16 bits, where the longest row the op allows has exactly as many as they have room for.
TEST(OutgrowingTest, WhatComesNearItsFormatIsTriedAndDecidesNothing) {
  const Given given("rows", {});
  const std::int64_t longest = given.instance.op.FindAxis("columns")->max;
  ASSERT_EQ(longest & (longest - 1), 0) << longest;
  const auto digits =
      static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(longest)));
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, digits, [](std::int64_t, std::int64_t columns) { return 2 * columns; });
  const auto found = outgrowing.Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_FALSE(found[0].surely);
  EXPECT_EQ(found[0].axes.at("columns"), longest);
  EXPECT_THAT(outgrowing.Unseen(), IsEmpty());
  // Half of it is not near.
  Outgrowing half(given.instance, given.plan);
  Observe(half, digits, [](std::int64_t, std::int64_t columns) { return columns; });
  EXPECT_THAT(half.Find(), IsEmpty());
}

// A thread has one row of four of a tile of 64: below 64 rows it has no more than 16.
TEST(OutgrowingTest, ShapesThatShowHowANumberGrowsAreAskedFor) {
  const Given given("rows", {});
  const auto most = [](const ops::AxisValues& shape) {
    const std::int64_t rows = shape.at("rows"), left = (rows - 1) % 64;
    return ((rows - 1) / 64 * 64 + std::min<std::int64_t>(left, 15)) * shape.at("columns");
  };
  Outgrowing outgrowing(given.instance, given.plan);
  const auto observe = [&](const ops::AxisValues& shape) {
    outgrowing.Add(shape, {{.ptx_line = 40,
                            .which = 0,
                            .digits = 31,
                            .line = 14,
                            .most = static_cast<std::uint64_t>(most(shape))}});
  };
  for (const std::int64_t length : {2, 3, 9, 30}) observe(Shape(length, length));
  EXPECT_THAT(outgrowing.Find(), IsEmpty());
  const std::vector<ops::AxisValues> wanting = outgrowing.Wanting();
  ASSERT_FALSE(wanting.empty());
  for (const ops::AxisValues& shape : wanting) observe(shape);
  const auto found = outgrowing.Find();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].along, ::testing::UnorderedElementsAre("rows", "columns"));
  EXPECT_THAT(outgrowing.Wanting(), IsEmpty());
}

TEST(OutgrowingTest, NotWhereThePlanTakesAnotherKernel) {
  Given given("(rows * columns < 1000000000) * rows", {});
  Outgrowing outgrowing(given.instance, given.plan);
  Observe(outgrowing, 31,
          [](std::int64_t rows, std::int64_t columns) { return rows * columns - 1; });
  EXPECT_THAT(outgrowing.Find(), IsEmpty());
}

}  // namespace
}  // namespace assay::campaign
