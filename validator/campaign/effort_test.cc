#include "validator/campaign/effort.h"

#include <gtest/gtest.h>

#include "validator/cases/test_instance.h"

namespace assay::campaign {
namespace {

/// The gather of test_instance.h with a table whose extents are constant.
ops::Instance OfConstant(std::int64_t columns, std::int64_t table) {
  ops::Instance instance = cases::GatherInstance();
  for (ops::Axis& axis : instance.op.axes) {
    if (axis.name == "rows") continue;
    axis.kind = ops::Axis::Kind::kConstant;
    axis.value = axis.name == "columns" ? columns : table;
  }
  return instance;
}

TEST(EffortTest, OpsThatMayBeSmallKeepTheirRow) {
  const EffortRow& row = RowOf(Effort::kStandard);
  for (const ops::Instance& instance : {cases::GatherInstance(), OfConstant(16, 64)}) {
    const EffortRow fitted = FitTo(row, instance);
    EXPECT_EQ(fitted.max_elements, row.max_elements);
    EXPECT_EQ(fitted.shapes, row.shapes);
    EXPECT_EQ(fitted.campaign_steps, row.campaign_steps);
    EXPECT_TRUE(HasSmallShapes(instance));
  }
}

TEST(EffortTest, BudgetsFollowWhatTheSmallestShapeTakes) {
  const EffortRow& row = RowOf(Effort::kStandard);
  const ops::Instance large = OfConstant(4096, 4096);
  const std::int64_t smallest = SmallestElements(large);
  EXPECT_EQ(smallest, 4096 * 4096 + 1 + 1 + 4096);  // table, ids, scale and a row
  EXPECT_FALSE(HasSmallShapes(large));
  const EffortRow fitted = FitTo(row, large);
  EXPECT_GT(fitted.max_elements, smallest);
  EXPECT_GT(fitted.long_elements, fitted.max_elements);
  EXPECT_GT(fitted.campaign_steps, row.campaign_steps);
  EXPECT_LT(fitted.shapes, row.shapes);
  EXPECT_LT(fitted.shrink_trials, row.shrink_trials);
  EXPECT_GT(fitted.shapes, 0u);
  EXPECT_GT(smallest, fitted.whole_elements) << "all of its cases run in slices";
  // Never more than the row has.
  const EffortRow quick = FitTo(RowOf(Effort::kQuick), large);
  EXPECT_LE(quick.shapes, RowOf(Effort::kQuick).shapes);
  EXPECT_LE(quick.holdout_cases, RowOf(Effort::kQuick).holdout_cases);
}

}  // namespace
}  // namespace assay::campaign
