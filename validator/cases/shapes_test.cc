#include "validator/cases/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "validator/cases/case.h"
#include "validator/cases/test_instance.h"

namespace assay::cases {
namespace {

std::set<std::int64_t> ValuesOf(const std::vector<ShapeChoice>& shapes, const std::string& axis) {
  std::set<std::int64_t> values;
  for (const ShapeChoice& shape : shapes) values.insert(shape.axes.at(axis));
  return values;
}

TEST(ShapesTest, CoversEdgesWarpsAndConstants) {
  const ops::Instance instance = GatherInstance();
  const auto shapes = GenerateShapes(
      instance, {.max_elements = 1 << 16, .count = 60, .seed = 3, .constants = {48}});
  ASSERT_TRUE(shapes) << ToString(shapes.error());
  const auto rows = ValuesOf(*shapes, "rows");
  for (const std::int64_t expected : {1, 2, 31, 32, 33, 47, 48, 49}) {
    EXPECT_TRUE(rows.contains(expected)) << expected;
  }
  for (const std::int64_t columns : ValuesOf(*shapes, "columns")) EXPECT_EQ(columns % 2, 0);
}

TEST(ShapesTest, IsDistinctWithinBudgetAndRepeatable) {
  const ops::Instance instance = GatherInstance();
  const ShapeRequest request{.max_elements = 3000, .count = 50, .seed = 9, .constants = {}};
  const auto shapes = GenerateShapes(instance, request);
  ASSERT_TRUE(shapes);
  std::set<ops::AxisValues> seen;
  for (const ShapeChoice& shape : *shapes) {
    EXPECT_TRUE(seen.insert(shape.axes).second);
    EXPECT_LE(TotalElements(instance, shape.axes), 3000);
  }
  EXPECT_GE(shapes->size(), 30u);
  EXPECT_EQ(*GenerateShapes(instance, request), *shapes);
}

TEST(ShapesTest, SolvesEqualitiesBetweenAxes) {
  ops::Instance instance = GatherInstance();
  instance.op.axes.push_back(VariableAxis("heads", 1, 64));
  instance.op.axes.push_back(VariableAxis("dim", 2, 256));
  instance.op.constraints.push_back(Parse("columns == heads * dim"));
  instance.op.constraints.push_back(Parse("dim % 8 == 0"));
  const auto shapes =
      GenerateShapes(instance, {.max_elements = 1 << 15, .count = 40, .seed = 1, .constants = {}});
  ASSERT_TRUE(shapes) << ToString(shapes.error());
  EXPECT_GT(ValuesOf(*shapes, "heads").size(), 3u);
  for (const ShapeChoice& shape : *shapes) {
    EXPECT_EQ(shape.axes.at("columns"), shape.axes.at("heads") * shape.axes.at("dim"));
  }
}

TEST(ShapesTest, SaysWhenNothingIsAdmitted) {
  ops::Instance instance = GatherInstance();
  instance.op.constraints.push_back(Parse("columns % 2 == 1"));
  const auto solved = SolveAxes(instance.op, {});
  ASSERT_FALSE(solved);
  EXPECT_THAT(solved.error().message, testing::HasSubstr("no shape"));
  EXPECT_THAT(solved.error().place, testing::HasSubstr("columns % 2"));
}

TEST(ShapesTest, MovesARefusedValueToTheNearestAdmissibleOne) {
  ops::Instance instance = GatherInstance();
  const auto solved = SolveNear(instance.op, "columns", 33);
  ASSERT_TRUE(solved);
  EXPECT_EQ(std::abs(solved->at("columns") - 33), 1);
}

TEST(ShapesTest, WorkloadsAreScaledToTheBudget) {
  ops::Instance instance = GatherInstance();
  instance.op.workloads.push_back(
      {.axes = {{"rows", 8192}, {"columns", 4096}, {"table", 32000}}, .note = ""});
  const auto scaled = ScaledWorkloads(instance, 10'000);
  ASSERT_EQ(scaled.size(), 1u);
  EXPECT_LE(TotalElements(instance, scaled[0].axes), 10'000);
  EXPECT_GT(TotalElements(instance, scaled[0].axes), 500);
}

TEST(ShapesTest, NeighboursDifferFromWhatTheySurround) {
  const ops::Instance instance = GatherInstance();
  const ops::AxisValues around{{"rows", 4}, {"columns", 6}, {"table", 3}};
  const auto near = Neighbours(instance, around, 1000);
  EXPECT_GE(near.size(), 5u);
  for (const ShapeChoice& shape : near) EXPECT_NE(shape.axes, around);
}

TEST(ShapesTest, HugeShapesPassTheLimitsOf32Bits) {
  const ops::Instance instance = GatherInstance();
  const auto huge = HugeShapes(instance);
  ASSERT_GE(huge.size(), 2u);
  const auto past = [&](std::int64_t limit, std::int64_t part = 64) {
    return std::ranges::any_of(huge, [&](const ShapeChoice& shape) {
      const std::int64_t y = shape.axes.at("rows") * shape.axes.at("columns");
      return y > limit && y < limit + limit / part;
    });
  };
  // Short rows cannot come as close: columns must be even.
  EXPECT_TRUE(past(std::int64_t{1} << 24, 4));
  EXPECT_TRUE(past((std::int64_t{1} << 31) /
                   static_cast<std::int64_t>(SizeOf(instance.TypeOf(instance.op.outputs[0])))));
  EXPECT_TRUE(past(std::int64_t{1} << 31));
  EXPECT_TRUE(past(std::int64_t{1} << 32));
  for (const ShapeChoice& shape : huge) EXPECT_TRUE(ops::ResolveAxes(instance.op, shape.axes));
}

TEST(ShapesTest, HugeShapesAlongOtherAxesWhereTheLongestIsDear) {
  ops::Instance instance = GatherInstance();
  instance.op.axes[1].max = std::int64_t{1} << 22;
  constexpr std::int64_t kDear = 8192;
  const auto is_dear = [](const ops::AxisValues& axes) { return axes.at("columns") > kDear; };
  const auto of = [&](const std::vector<ShapeChoice>& shapes) {
    return std::ranges::count_if(shapes, is_dear, &ShapeChoice::axes);
  };
  const auto cheaper = HugeShapes(instance, is_dear);
  EXPECT_LT(of(cheaper), of(HugeShapes(instance)));
  // As far as before, if along other axes.
  EXPECT_TRUE(std::ranges::any_of(cheaper, [](const ShapeChoice& shape) {
    return shape.axes.at("rows") * shape.axes.at("columns") > std::int64_t{1} << 32;
  }));
}

TEST(ShapesTest, NoHugeShapesWhereTheAxesAreShort) {
  ops::Instance instance = GatherInstance();
  for (ops::Axis& axis : instance.op.axes) axis.max = 1000;
  EXPECT_TRUE(HugeShapes(instance).empty());
}

}  // namespace
}  // namespace assay::cases
