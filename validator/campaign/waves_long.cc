// Waves that stretch one axis: long sums, many blocks, hot rows, counters that wrap.
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

/// The float inputs that are as large as the largest one.
std::vector<const ops::TensorSpec*> LargestOf(const ops::Instance& instance,
                                              const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(instance.op, axes);
  const auto size = [&](const ops::TensorSpec& spec) -> std::int64_t {
    if (!complete || !cases::IsOf(cases::InputClass::kFloat, instance, spec)) return 0;
    const auto shape = ops::ResolveShape(spec, *complete);
    return shape ? ElementCount(*shape).value_or(0) : 0;
  };
  std::int64_t most = 1;
  for (const ops::TensorSpec& spec : instance.op.inputs) most = std::max(most, size(spec));
  std::vector<const ops::TensorSpec*> largest;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (size(spec) == most) largest.push_back(&spec);
  }
  return largest;
}

// The largest of the inputs far above their spread, the others plain: weights that are as large would
// hide how far a deviation from the mean is off. What is lost between E[x^2] and the mean's square grows
// by the square of that distance, what any sum may lose by itself. In 16 bits this leaves so few values
// that their roundings do not count as independent, and hides it: there, rows just past a constant are
// rippled instead (RippledRows).
cases::Case HighWhereLarge(const ops::Instance& instance, const ops::AxisValues& axes,
                           std::uint64_t seed) {
  cases::Case value = cases::MakeCase(instance, *cases::FindRecipe("plain"), axes, seed, "long");
  for (const ops::TensorSpec* const spec : LargestOf(instance, axes)) {
    const double offset = std::min(4096.0, 0.35 / UnitRoundoff(instance.TypeOf(*spec)));
    value.profiles[spec->name] = {
        .kind = "high", .parameters = {{"offset", offset}}, .literal = {}};
  }
  return value;
}

// In f16 rows of some hundreds, so high that neighbours are as far apart as their spread: more of it than in long
// rows is lost between E[x^2] and the mean's square of a few, as each lane has. Coarser types round that away.
std::vector<cases::Case> HighRows(const ops::Instance& instance,
                                  const std::function<bool(const ops::AxisValues&)>& affordable,
                                  std::uint64_t seed) {
  constexpr std::array<std::int64_t, 3> kRows = {64, 16, 4};
  constexpr double kNeighbours = 1.7;  // Of values at 1 / unit roundoff, apart by 1 and by 2.
  std::vector<cases::Case> rows;
  ops::AxisValues few;
  for (const ops::Axis& axis : instance.op.axes) few[axis.name] = kRows.front();
  const auto complete = cases::SolveAxes(instance.op, {}, few);
  if (!complete) return rows;
  const auto largest = LargestOf(instance, *complete);
  if (largest.empty() || instance.TypeOf(*largest.front()) != DType::kF16) return rows;
  const ops::Axis* const along = instance.op.FindAxis(largest.front()->shape.back().text());
  if (along == nullptr || along->kind != ops::Axis::Kind::kVariable) return rows;
  for (const std::int64_t length : {72, 392, 776}) {
    Result<ops::AxisValues> axes = ops::AxisValues{};
    for (const std::int64_t others : kRows) {
      for (auto& [name, extent] : few) extent = others;
      axes = cases::SolveNear(instance.op, along->name, length, few);
      if (axes && affordable(*axes)) break;
    }
    if (!axes || !affordable(*axes)) continue;
    cases::Case value =
        cases::MakeCase(instance, *cases::FindRecipe("plain"), *axes, seed + rows.size(), "long");
    for (const ops::TensorSpec* const spec : LargestOf(instance, *axes)) {
      value.profiles[spec->name] = {
          .kind = "high",
          .parameters = {{"offset", kNeighbours / UnitRoundoff(DType::kF16)}},
          .literal = {}};
    }
    rows.push_back(std::move(value));
  }
  return rows;
}

// One index after the other for many places: each is the hot one, and its terms are neighbours. Values
// of one sign, so that no term that is left out is made up for by another; nothing without indices.
std::optional<cases::Case> OneIndexAfterTheOther(const ops::Instance& instance,
                                                 const ops::AxisValues& axes, std::uint64_t seed) {
  cases::Case value = cases::MakeCase(instance, *cases::FindRecipe("biased"), axes, seed, "long");
  bool any = false;
  for (const ops::TensorSpec& spec : instance.op.inputs) {
    if (!cases::IsOf(cases::InputClass::kIndex, instance, spec)) continue;
    value.profiles[spec.name] = {.kind = "sorted", .parameters = {}, .literal = {}};
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

}  // namespace

// One axis as long as the budget allows, the others small: long sums, many blocks, hot rows; rows
// whose mean lies far above their spread, which one pass over them loses; and one index after the
// other for hundreds of places, so that each of them is the hot one.
std::vector<Task> Campaign::Long() {
  std::vector<Task> planned;
  std::vector<ops::AxisValues> shapes;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "long");
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues small;
    for (const ops::Axis& other : trial_.instance.op.axes)
      small[other.name] = other.name == axis.name ? axis.min : 4;
    // The largest power of two, less one, that fits.
    std::optional<ops::AxisValues> longest;
    for (std::int64_t value = 64; value <= std::min<std::int64_t>(axis.max, 1 << 24); value *= 2) {
      const auto solved = cases::SolveNear(trial_.instance.op, axis.name, value - 1, small);
      if (!solved || cases::TotalElements(trial_.instance, *solved) > trial_.effort.long_elements)
        break;
      if (StepsFor(*solved) > static_cast<double>(trial_.effort.campaign_steps) / 160) break;
      longest = *solved;
    }
    if (!longest) {
      harvest_.ledger.Planned("long");
      harvest_.ledger.LeaveOut("long", "no long extent fits the budget", axis.name);
      continue;
    }
    for (const std::string_view recipe : {"hot", "biased", "equal", "exact"}) {
      cases::Case value = cases::MakeCase(trial_.instance, *cases::FindRecipe(recipe), *longest,
                                          seed + planned.size(), "long");
      if (recipe == "exact") cases::LookAtTheEnd(trial_.instance, axis.name, value);
      planned.push_back(TaskFor(std::move(value), "long"));
    }
    shapes.push_back(*std::move(longest));
  }
  const auto affordable = [&](const ops::AxisValues& axes) {
    return cases::TotalElements(trial_.instance, axes) <= trial_.effort.long_elements &&
           StepsFor(axes) <= static_cast<double>(trial_.effort.campaign_steps) / 160;
  };
  for (cases::Case& value : HighRows(trial_.instance, affordable, DeriveSeed(seed, "high rows")))
    planned.push_back(TaskFor(std::move(value), "long"));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::uint64_t own = DeriveSeed(seed, "far") + i;
    planned.push_back(TaskFor(HighWhereLarge(trial_.instance, shapes[i], own), "long"));
    if (auto one_by_one = OneIndexAfterTheOther(trial_.instance, shapes[i], own))
      planned.push_back(TaskFor(*std::move(one_by_one), "long"));
  }
  std::ranges::move(Banded(), std::back_inserter(planned));
  return planned;
}

// Rows just past a constant of the program, one value each and a few just above it. What honest sums of so
// few values may lose grows by their number, what one pass over them loses hardly does: so not
// where rows are as long as can be, but where a kernel may begin to go another way.
std::vector<Task> Campaign::RippledRows(std::span<const std::int64_t> constants) {
  constexpr std::int64_t kShortest = 256, kLongest = 1 << 13, kPast = 8;
  constexpr std::size_t kMost = 4;
  // Rows, and what part of the budget they may take: estimates of cases that run soon are several times too much.
  struct Rows {
    std::int64_t count;
    double part;
  };
  constexpr std::array kRows = {Rows{24, 1.0 / 160}, Rows{8, 1.0 / 40}};
  std::vector<Task> planned;
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t> lengths;
  for (const std::int64_t constant : constants) {
    if (constant >= kShortest && constant <= kLongest)
      lengths.insert(constant / kPast * kPast + kPast);
  }
  const auto with_rows = [&](std::int64_t count) {
    ops::AxisValues few;
    for (const ops::Axis& axis : op.axes) few[axis.name] = count;
    return few;
  };
  const auto complete = cases::SolveAxes(op, {}, with_rows(kRows.front().count));
  if (!complete) return planned;
  const auto largest = LargestOf(trial_.instance, *complete);
  if (largest.empty() || SizeOf(trial_.instance.TypeOf(*largest.front())) != 2) return planned;
  const ops::Axis* const along = op.FindAxis(largest.front()->shape.back().text());
  if (along == nullptr || along->kind != ops::Axis::Kind::kVariable) return planned;
  // The longest first: most kernels hold short rows in registers.
  for (auto length = lengths.rbegin(); length != lengths.rend() && planned.size() < kMost;
       ++length) {
    for (const auto& [count, part] : kRows) {
      const auto axes = cases::SolveNear(op, along->name, *length, with_rows(count));
      if (!axes || cases::TotalElements(trial_.instance, *axes) > trial_.effort.long_elements ||
          StepsFor(*axes) > part * static_cast<double>(trial_.effort.campaign_steps))
        continue;
      cases::Case value =
          cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), *axes,
                          DeriveSeed(trial_.seed, "rippled") + planned.size(), "aimed");
      for (const ops::TensorSpec* const spec : LargestOf(trial_.instance, *axes))
        value.profiles[spec->name] = {.kind = "rippled", .parameters = {}, .literal = {}};
      planned.push_back(TaskFor(std::move(value), "aimed"));
      break;
    }
  }
  return planned;
}

// One axis as long as the op allows, or as long as is affordable, the others as short as they can
// be: counters of 16 bits, tables of a fixed number of tiles, indices of classes far up.
std::vector<Task> Campaign::Longest() {
  std::vector<Task> planned;
  const std::int64_t most = 4 * trial_.effort.long_elements + 64;
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues small;
    for (const ops::Axis& other : trial_.instance.op.axes) small[other.name] = other.min;
    const auto fits = [&](const Result<ops::AxisValues>& axes) {
      return axes && cases::TotalElements(trial_.instance, *axes) <= most &&
             StepsFor(*axes) <= static_cast<double>(trial_.effort.campaign_steps) / 160;
    };
    std::int64_t length = std::min<std::int64_t>(axis.max, most);
    auto solved = cases::SolveNear(trial_.instance.op, axis.name, length, small);
    constexpr std::int64_t kShort = 256;
    while (!fits(solved) && length > kShort) {
      length /= 2;
      solved = cases::SolveNear(trial_.instance.op, axis.name, length, small);
    }
    if (!fits(solved)) {
      harvest_.ledger.Planned("long");
      harvest_.ledger.LeaveOut("long", "no long extent fits the budget", axis.name);
      continue;
    }
    // Ordinary values: what is rounded too early shows after many additions only.
    if (StepsFor(*solved) <= static_cast<double>(trial_.effort.campaign_steps) / 320) {
      planned.push_back(TaskFor(
          cases::MakeCase(trial_.instance, *cases::FindRecipe("biased"), *solved,
                          DeriveSeed(trial_.seed, "longest") + 100 + planned.size(), "long"),
          "long"));
    }
    cases::Case value =
        cases::MakeCase(trial_.instance, *cases::FindRecipe("exact"), *solved,
                        DeriveSeed(trial_.seed, "longest") + planned.size(), "long");
    for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
      if (cases::IsOf(cases::InputClass::kIndex, trial_.instance, spec))
        value.profiles[spec.name] = {.kind = "last", .parameters = {}, .literal = {}};
    }
    planned.push_back(TaskFor(std::move(value), "long"));
  }
  return planned;
}

}  // namespace assay::campaign
