#include "validator/campaign/least.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "validator/campaign/turns.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

using Holds = std::function<bool(const ops::AxisValues&)>;

// Constraints often ask for multiples.
constexpr std::int64_t kFar = 128;
constexpr std::size_t kMostOrders = 24;

/// Of an axis between `low`, where it does not hold, and where it does.
void Shorten(const ops::Instance& instance, const ops::Axis& axis, const Holds& holds,
             ops::AxisValues& axes) {
  if (ops::AxisValues least = Moved(axes, axis, axis.min); holds(least)) {
    axes = std::move(least);
    return;
  }
  std::int64_t low = axis.min;
  std::int64_t high = axes.at(axis.name);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    std::int64_t admitted = middle;
    while (admitted < std::min(high, middle + kFar) &&
           !ops::ResolveAxes(instance.op, Moved(axes, axis, admitted)))
      ++admitted;
    const bool there = admitted < std::min(high, middle + kFar);
    if (there && holds(Moved(axes, axis, admitted))) {
      high = admitted;
    } else {
      low = middle;
    }
  }
  axes[axis.name] = high;
}

std::optional<ops::AxisValues> Largest(const ops::Instance& instance,
                                       const std::vector<const ops::Axis*>& variables,
                                       const Holds& holds) {
  constexpr int kHalvings = 8;
  for (int halved = 0; halved <= kHalvings; ++halved) {
    ops::AxisValues wanted;
    for (const ops::Axis* axis : variables)
      wanted[axis->name] = std::max(axis->min, axis->max >> halved);
    const auto solved = cases::SolveAxes(instance.op, {}, wanted);
    if (solved && holds(*solved)) return *solved;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ops::AxisValues> LeastShape(
    const ops::Instance& instance, const Holds& holds,
    const std::function<double(const ops::AxisValues&)>& cost) {
  std::vector<const ops::Axis*> order;
  for (const ops::Axis& axis : instance.op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable) order.push_back(&axis);
  }
  const auto largest = Largest(instance, order, holds);
  if (!largest) return std::nullopt;
  const auto by_name = [](const ops::Axis* a, const ops::Axis* b) { return a->name < b->name; };
  std::ranges::sort(order, by_name);
  std::optional<ops::AxisValues> cheapest;
  double least = HUGE_VAL;
  std::size_t tried = 0;
  do {
    ops::AxisValues axes = *largest;
    for (const ops::Axis* axis : order) Shorten(instance, *axis, holds, axes);
    const double now = cost(axes);
    if (now >= least) continue;
    least = now;
    cheapest = std::move(axes);
  } while (++tried < kMostOrders && std::ranges::next_permutation(order, by_name).found);
  return cheapest;
}

}  // namespace assay::campaign
