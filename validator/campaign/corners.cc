#include "validator/campaign/corners.h"

#include <algorithm>
#include <set>

namespace assay::campaign {
namespace {

/// From how many steps of `unit` on numbers come elsewhere than the first two say; `steps`, where they never do.
Result<std::uint64_t> PeriodOf(std::uint64_t steps, std::uint64_t unit, std::int64_t start,
                               const PlaceOf& place_of) {
  ASSAY_TRY(const auto next, place_of(unit));
  if (!next) return 1;
  const auto is_even = [&](std::uint64_t step) -> Result<bool> {
    ASSAY_TRY(const auto place, place_of(step * unit));
    // In numbers without a sign: what wraps is not even.
    const auto moved = static_cast<std::uint64_t>(*next) - static_cast<std::uint64_t>(start);
    return place &&
           static_cast<std::uint64_t>(*place) == static_cast<std::uint64_t>(start) + step * moved;
  };
  std::uint64_t low = 1, high = steps;
  // The last one may be where the first ones say, a few axes on.
  for (const std::uint64_t far : {steps - 1, steps - 1 - (steps - 1) / 3, (steps - 1) / 2}) {
    if (far <= low || high < steps) continue;
    ASSAY_TRY(const bool even, is_even(far));
    if (!even) high = far;
  }
  if (high == steps) return steps;
  for (bool doubling = true; high - low > 1;) {
    const std::uint64_t middle = doubling ? 2 * low : low + (high - low) / 2;
    if (middle >= high) {
      doubling = false;
      continue;
    }
    ASSAY_TRY(const bool even, is_even(middle));
    (even ? low : high) = middle;
    doubling = doubling && even;
  }
  return high;
}

}  // namespace

Result<std::vector<std::uint64_t>> CornersOf(std::uint64_t count, const PlaceOf& place_of) {
  constexpr int kMostAxes = 3;
  std::set<std::uint64_t> corners = {0};
  ASSAY_TRY(const auto start, place_of(0));
  std::uint64_t unit = 1;
  for (int axis = 0; start && axis < kMostAxes && unit < count; ++axis) {
    const std::uint64_t steps = (count + unit - 1) / unit;
    std::uint64_t period = steps;
    if (steps > 2 && axis + 1 < kMostAxes) {
      ASSAY_TRY(period, PeriodOf(steps, unit, *start, place_of));
    }
    std::set<std::uint64_t> more;
    for (const std::uint64_t corner : corners) more.insert(corner + (period - 1) * unit);
    corners.merge(more);
    if (period <= 1) break;
    unit *= period;
  }
  std::erase_if(corners, [&](std::uint64_t corner) { return corner >= count; });
  return std::vector<std::uint64_t>(corners.begin(), corners.end());
}

}  // namespace assay::campaign
