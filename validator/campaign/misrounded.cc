#include "validator/campaign/misrounded.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "base/rng.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

constexpr int kLengths = 160;           // Of each axis.
constexpr std::size_t kThreads = 512;   // That are looked at of each shape.
constexpr std::int64_t kSeveral = 160;  // Of the axes beside, at most.
constexpr std::int64_t kLeastPower = 1 << 16;
// Of the plan's numbers the largest, and beside these one of so many lengths.
constexpr std::size_t kMostConstants = 4;
constexpr int kBesideConstants = 4;
constexpr std::size_t kThreadsBesideConstants = 2048;

/// One of so many equal parts of all magnitudes.
std::int64_t LengthOf(const ops::Axis& axis, int number, Rng& rng) {
  const double ratio =
      static_cast<double>(axis.max) / static_cast<double>(std::max<std::int64_t>(axis.min, 1));
  const double length = static_cast<double>(std::max<std::int64_t>(axis.min, 1)) *
                        std::pow(ratio, (number + rng.Unit()) / kLengths);
  return std::clamp(static_cast<std::int64_t>(length), axis.min, axis.max);
}

}  // namespace

std::vector<MisroundedShape> ShapesMisrounded(const ops::Instance& instance,
                                              const ops::LaunchPlan& plan,
                                              const Decisions& decisions, std::uint64_t seed) {
  std::vector<MisroundedShape> found;
  if (!decisions.Rounds()) return found;
  const ops::OpSpec& op = instance.op;
  Rng rng(seed);
  std::set<ops::AxisValues> known;
  // Other threads of each shape, so that what one lot of them misses the next one may see.
  const auto look_at = [&](const std::optional<ops::AxisValues>& axes,
                           std::size_t threads = kThreads) {
    if (!axes || !known.insert(*axes).second ||
        cases::TotalElements(instance, *axes) > kMostElementsOfASlice)
      return;
    const auto point = decisions.At(*axes);
    if (!point) return;
    const double share =
        decisions.MisroundedAt(*point, threads, DeriveSeed(seed, "threads") + known.size()).share();
    if (share > 0) found.push_back({*axes, share});
  };
  const auto is_variable = [](const ops::Axis& axis) {
    return axis.kind == ops::Axis::Kind::kVariable;
  };
  std::vector<std::int64_t> constants = cases::ConstantsOf(plan);
  std::ranges::sort(constants, std::greater());
  if (constants.size() > kMostConstants) constants.resize(kMostConstants);
  for (const ops::Axis& axis : op.axes) {
    if (!is_variable(axis)) continue;
    // A float loses what a power of two has beside it, and what is dealt out by whole tiles loses the last one.
    ops::AxisValues fewest;
    for (const ops::Axis& other : op.axes) fewest[other.name] = other.min;
    for (std::int64_t power = kLeastPower; power < axis.max; power *= 2) {
      for (const std::int64_t beside : {-1, 1, 3}) {
        const auto axes = cases::SolveNear(op, axis.name, power + beside, fewest);
        look_at(axes ? std::optional(*axes) : std::nullopt);
      }
    }
    for (int i = 0; i < kLengths; ++i) {
      const std::int64_t length = LengthOf(axis, i, rng);
      ops::AxisValues few, several;
      for (const ops::Axis& other : op.axes) {
        if (!is_variable(other)) continue;
        few[other.name] = kBackground;
        several[other.name] = 1 + static_cast<std::int64_t>(rng.Below(kSeveral));
      }
      for (const ops::AxisValues& beside : {few, several}) {
        const auto axes = cases::SolveNear(op, axis.name, length, beside);
        look_at(axes ? std::optional(*axes) : std::nullopt);
      }
      few[axis.name] = length;
      for (const ops::Axis& other : op.axes) {
        if (&other == &axis || !is_variable(other)) continue;
        look_at(AsLongAsCanBe(instance, other, few));
        // The shorter a row, the more of them end among so many elements.
        for (const std::int64_t constant : constants) {
          if (i % kBesideConstants != 0 || constant + kVector > other.max) continue;
          ops::AxisValues past = few;
          for (const std::int64_t beyond : {constant + 1, constant / kVector * kVector + kVector}) {
            past[other.name] = beyond;
            const auto axes = cases::SolveNear(op, axis.name, length, past);
            look_at(axes ? std::optional(*axes) : std::nullopt, kThreadsBesideConstants);
          }
        }
      }
    }
  }
  std::ranges::stable_sort(found, {}, [&](const MisroundedShape& shape) {
    return cases::TotalElements(instance, shape.axes);
  });
  return found;
}

}  // namespace assay::campaign
