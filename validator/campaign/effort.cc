#include "validator/campaign/effort.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace assay::campaign {
namespace {

constexpr std::array kRows = {
    EffortRow{.effort = Effort::kQuick,
              .shapes = 14,
              .max_elements = 1 << 13,
              .long_elements = 1 << 14,
              .recipe_shapes = 1,
              .mixed_cases = 4,
              .schedules = 2,
              .guided_cases = 16,
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
              .recipe_shapes = 3,
              .mixed_cases = 32,
              .schedules = 6,
              .guided_cases = 128,
              .huge_shapes = 10,
              .property_cases = 8,
              .holdout_cases = 32,
              .device_cases = 100,
              .shrink_trials = 160,
              .campaign_steps = 1'500'000'000},
    EffortRow{.effort = Effort::kThorough,
              .shapes = 160,
              .max_elements = 1 << 18,
              .long_elements = 1 << 21,
              .recipe_shapes = 6,
              .mixed_cases = 64,
              .schedules = 12,
              .guided_cases = 256,
              .huge_shapes = 18,
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

std::uint64_t StepLimit(std::int64_t elements, double steps_per_element, std::uint64_t threads) {
  constexpr std::uint64_t kStepsOfAThread = 2'000;
  // Fifty times what the tiny cases suggest: an honest kernel may be quadratic in an axis, an
  // endless one is not saved by it.
  const double expected = static_cast<double>(elements) * std::max(steps_per_element, 10.0);
  const std::uint64_t idle = std::min<std::uint64_t>(threads, 1'000'000) * kStepsOfAThread;
  return kTinySteps + idle + static_cast<std::uint64_t>(std::min(50.0 * expected, 1e9));
}

}  // namespace assay::campaign
