#include "validator/campaign/effort.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "validator/cases/case.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// Elements of a case that costs next to nothing.
constexpr std::int64_t kAffordable = 1 << 13;

constexpr std::array kRows = {
    EffortRow{.effort = Effort::kQuick,
              .shapes = 14,
              .max_elements = 1 << 13,
              .long_elements = 1 << 14,
              .whole_elements = 1 << 18,
              .recipe_shapes = 1,
              .mixed_cases = 4,
              .schedules = 2,
              .guided_cases = 16,
              .sliced_cases = 2,
              .huge_shapes = 0,
              .property_cases = 4,
              .holdout_cases = 6,
              .device_cases = 24,
              .shrink_trials = 80,
              .campaign_steps = 150'000'000},
    EffortRow{.effort = Effort::kStandard,
              .shapes = 72,
              .max_elements = 1 << 16,
              .long_elements = 1 << 18,
              .whole_elements = 1 << 21,
              .recipe_shapes = 3,
              .mixed_cases = 32,
              .schedules = 6,
              .guided_cases = 128,
              .sliced_cases = 16,
              .huge_shapes = 12,
              .property_cases = 8,
              .holdout_cases = 32,
              .device_cases = 100,
              .shrink_trials = 160,
              .campaign_steps = 1'200'000'000},
    EffortRow{.effort = Effort::kThorough,
              .shapes = 160,
              .max_elements = 1 << 18,
              .long_elements = 1 << 21,
              .whole_elements = 1 << 24,
              .recipe_shapes = 6,
              .mixed_cases = 64,
              .schedules = 12,
              .guided_cases = 256,
              .sliced_cases = 48,
              .huge_shapes = 20,
              .property_cases = 24,
              .holdout_cases = 48,
              .device_cases = 500,
              .shrink_trials = 300,
              .campaign_steps = 20'000'000'000},
};

}  // namespace

const EffortRow& RowOf(Effort effort) {
  const auto found = std::ranges::find(kRows, effort, &EffortRow::effort);
  ASSAY_CHECK(found != kRows.end());
  return *found;
}

std::int64_t SmallestElements(const ops::Instance& instance) {
  ops::AxisValues least;
  for (const ops::Axis& axis : instance.op.axes) least[axis.name] = axis.min;
  const auto solved = cases::SolveAxes(instance.op, {}, least);
  if (!solved) return 0;
  const std::int64_t elements = cases::TotalElements(instance, *solved);
  return elements == INT64_MAX ? 0 : elements;
}

bool HasSmallShapes(const ops::Instance& instance) {
  return SmallestElements(instance) <= kAffordable;
}

EffortRow FitTo(const EffortRow& row, const ops::Instance& instance) {
  // Where several of the smallest shape fit, small cases are as good as any.
  constexpr std::int64_t kSeveral = 8;
  constexpr std::int64_t kRoom = 1 << 22;
  constexpr std::int64_t kTimes = 128;
  constexpr std::int64_t kMostSliced = std::int64_t{1} << 29;
  const std::int64_t smallest = SmallestElements(instance);
  if (smallest <= row.max_elements / kSeveral) return row;
  EffortRow fitted = row;
  // More than a warp of rows where a row is all, and long axes beside a large constant tensor. What runs in
  // slices alone costs by what its blocks read, however long the axes beside are.
  const bool only_sliced = smallest > row.whole_elements;
  const std::int64_t room =
      only_sliced ? std::max(smallest + kRoom, std::min(kTimes * smallest, kMostSliced))
                  : smallest + std::min(40 * smallest, kRoom);
  fitted.max_elements = std::max(row.max_elements, room);
  fitted.long_elements = std::max(row.long_elements, smallest + 2 * (room - smallest));
  const double part =
      std::clamp(static_cast<double>(kAffordable) / static_cast<double>(smallest), 0.05, 1.0);
  const auto fewer = [&](auto count, int least) {
    using Count = decltype(count);
    return std::min(count, std::max(static_cast<Count>(least),
                                    static_cast<Count>(static_cast<double>(count) * part)));
  };
  // Enough to come to lengths around a warp.
  fitted.shapes = fewer(row.shapes, only_sliced ? 15 : 8);
  fitted.recipe_shapes = fewer(row.recipe_shapes, 0);
  fitted.mixed_cases = fewer(row.mixed_cases, 4);
  fitted.schedules = fewer(row.schedules, 1);
  fitted.guided_cases = fewer(row.guided_cases, 8);
  fitted.property_cases = fewer(row.property_cases, 2);
  fitted.holdout_cases = fewer(row.holdout_cases, 6);
  fitted.shrink_trials = fewer(row.shrink_trials, 12);
  fitted.campaign_steps = static_cast<std::uint64_t>(static_cast<double>(row.campaign_steps) /
                                                     std::max(part, only_sliced ? 0.4 : 0.25));
  return fitted;
}

std::uint64_t StepLimit(std::int64_t elements, double steps_per_element, std::uint64_t threads) {
  constexpr std::uint64_t kStepsOfAThread = 2'000;
  // Fifty times what the tiny cases suggest: an honest kernel may be quadratic in an axis, an
  // endless one is not saved by it.
  const double expected = static_cast<double>(elements) * std::max(steps_per_element, 10.0);
  const std::uint64_t idle = std::min<std::uint64_t>(threads, 1'000'000) * kStepsOfAThread;
  return kTinySteps + idle + static_cast<std::uint64_t>(std::min(50.0 * expected, 1e9));
}

}  // namespace assay::campaign
