// What models use, at its full size, and each axis as long as the op allows, in slices.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <ranges>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/guidance.h"
#include "validator/campaign/parts.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

namespace {

// Just past where most formats end that are too short.
constexpr std::int64_t kPast16Bits = (std::int64_t{1} << 16) + 1;

/// Have all outputs rows along an axis that nothing is made over, each of which needs few inputs?
bool HasRows(const ops::OpSpec& op) {
  return std::ranges::any_of(op.axes, [&](const ops::Axis& axis) {
    return axis.kind == ops::Axis::Kind::kVariable && !ops::MayBeReducedOver(op, axis.name) &&
           std::ranges::all_of(op.outputs, [&](const ops::TensorSpec& output) {
             return ops::DimensionOf(output, axis.name).has_value();
           });
  });
}

}  // namespace

std::optional<ops::AxisValues> AsLongAsCanBe(const ops::Instance& instance, const ops::Axis& axis,
                                             const ops::AxisValues& background) {
  for (std::int64_t length = axis.max; length >= axis.min && length > 0; length /= 2) {
    const auto axes = cases::SolveNear(instance.op, axis.name, length, background);
    if (axes && cases::TotalElements(instance, *axes) <= kMostElementsOfASlice) return *axes;
  }
  return std::nullopt;
}

// What models use, at its full size, and each axis as long as the op allows, in slices: rows, tiles
// and tables that nothing small comes near.
//
// Then each axis as long as the op allows, the others at their shortest, with values of which the last
// outweighs all before (LateAlong).
std::vector<Task> Campaign::Workloads() {
  constexpr std::int64_t kMostOfOneSign = std::int64_t{1} << 22;
  // Of so many elements patterns come round at powers of two, to which offsets that wrap come as well.
  constexpr std::int64_t kAlike = std::int64_t{1} << 30;
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<ops::AxisValues> shapes;
  struct Longest {
    std::string axis;
    ops::AxisValues axes;
    bool one_sign;  ///< Results may be made over it, and of so many no sum absorbs the terms.
  };
  std::vector<Longest> longest_of_axes;
  const auto add = [&](const ops::AxisValues& axes) {
    const bool known =
        std::ranges::any_of(tried_, [&](const cases::Case& value) { return value.axes == axes; });
    if (!known && std::ranges::find(shapes, axes) == shapes.end()) shapes.push_back(axes);
  };
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    ops::AxisValues few, fewest;
    for (const ops::Axis& other : op.axes) {
      few[other.name] = kBackground;
      fewest[other.name] = other.min;
    }
    auto longest = AsLongAsCanBe(trial_.instance, axis, few);
    if (!longest) continue;
    add(*longest);
    if (SomeRunWhole(*longest) && Affordable(*longest) != *longest)
      longest = AsLongAsCanBe(trial_.instance, axis, fewest);
    if (!longest) continue;
    longest_of_axes.push_back(
        {axis.name, *longest,
         ops::MayBeReducedOver(op, axis.name) && longest->at(axis.name) <= kMostOfOneSign});
  }
  for (const ops::Axis& axis : op.axes) {
    if (const auto several = SeveralOfTheLongest(axis)) add(*several);
  }
  for (const ops::Axis& axis : op.axes) {
    if (const auto rounded = RoundedUpByFloats(axis)) add(*rounded);
  }
  for (const ops::Workload& workload : op.workloads) {
    if (cases::TotalElements(trial_.instance, workload.axes) <= kMostElementsOfASlice)
      add(workload.axes);
  }
  std::vector<Task> planned, apart;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "workloads");
  constexpr std::array<std::string_view, 3> kIndices = {"landmarks", "uniform", "zipf"};
  for (const ops::AxisValues& axes : shapes) {
    const std::size_t number = planned.size();
    const ops::AxisValues affordable = SomeRunWhole(axes) ? Affordable(axes) : axes;
    if (affordable != axes) {
      // At that shape blocks may do nothing by which they meet, or a few need few of those before them; else a smaller case
      // runs in its place.
      Task& whole = apart.emplace_back(SliceOf(axes, "workloads", seed + 300 + number));
      const bool few_need_few = HasRows(op) && !SomeKernelMay(facts::BlocksDepend);
      whole.wants.apart_or_nothing = !few_need_few;
      whole.wants.needed_only = whole.wants.truth_or_nothing = few_need_few;
      if (few_need_few) whole.wants.least_blocks = 1;
      whole.wants.part_steps = kLongSliceSteps;
    }
    const bool too_many =
        NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, affordable) > kMostMade;
    Task task = too_many ? EndsOf(affordable, "workloads", seed + number)
                         : SliceOf(affordable, "workloads", seed + number);
    for (const ops::TensorSpec& spec : op.inputs) {
      if (!cases::IsOf(cases::InputClass::kIndex, trial_.instance, spec)) continue;
      task.probe.case_.profiles[spec.name].kind = kIndices[number % kIndices.size()];
    }
    if (cases::TotalElements(trial_.instance, affordable) >= kAlike) {
      if (auto unlike = OfUnlikePages(task)) task = *std::move(unlike);
    }
    if (number >= trial_.effort.sliced_cases) {
      harvest_.ledger.Planned("workloads");
      LeaveOut(task, "more than this effort tries", harvest_);
      continue;
    }
    planned.push_back(std::move(task));
  }
  for (const Longest& longest : longest_of_axes) {
    if (planned.size() >= trial_.effort.sliced_cases) break;
    if (auto task =
            Aliases(longest.axis, longest.axes.at(longest.axis), seed + 200 + planned.size()))
      planned.push_back(*std::move(task));
  }
  // Where blocks wait for a number that comes round again, one overtakes another in some orders only.
  for (std::size_t i = 0; MayWait() && i < longest_of_axes.size(); ++i) {
    if (planned.size() >= trial_.effort.sliced_cases) break;
    if (!RunsWhole(longest_of_axes[i].axes)) continue;
    const ops::AxisValues axes = Affordable(longest_of_axes[i].axes);
    if (cases::TotalElements(trial_.instance, axes) > kMostMade) continue;
    Task turned = TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), axes,
                                          seed + 50 + i, "workloads"),
                          "turned");
    turned.probe.schedule = {.policy = OrderForThatMany(axes), .seed = seed + i};
    planned.push_back(std::move(turned));
  }
  for (const ops::Axis& axis : op.axes) {
    for (Task& late : LateSlices(axis, seed + 100 + planned.size())) {
      if (late.sure || planned.size() < trial_.effort.sliced_cases)
        planned.push_back(std::move(late));
    }
  }
  constexpr double kMostOfAValue = 2.0 * Wants{}.slice_steps;
  constexpr std::int64_t kLeastLength = 1 << 14;
  // Of numbers of both signs a sum hardly grows, and what is missing in it stays within what honest ones lose; of
  // one sign, terms that went elsewhere do not show.
  for (const Longest& longest : longest_of_axes) {
    if (!longest.one_sign || planned.size() >= trial_.effort.sliced_cases) continue;
    const bool whole = SomeRunWhole(longest.axes);
    ops::AxisValues axes = whole ? Affordable(longest.axes) : longest.axes;
    // Where a block of it is dear, huge shapes show its end on such values as well (EndsOf).
    while (!whole && BlockStepsFor(axes) > kMostOfAValue && axes.at(longest.axis) > kLeastLength) {
      const auto halved = cases::SolveNear(op, longest.axis, axes.at(longest.axis) / 2 + 1, axes);
      if (!halved || halved->at(longest.axis) >= axes.at(longest.axis)) break;
      axes = *halved;
    }
    if (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, axes) > kMostMade) continue;
    Task task = SliceOf(axes, "workloads", seed + 150 + planned.size(), "biased");
    // The same shape has shown its places.
    task.wants.slice_steps = kValueSliceSteps;
    task.wants.least_blocks = 1;
    planned.push_back(std::move(task));
  }
  // What a narrow accumulator rounds of long rows, or what is missing of them, is less than what honest sums of so many
  // ordinary values may err by.
  for (const ops::AxisValues& axes : ForExactSums(shapes)) {
    if (planned.size() >= trial_.effort.sliced_cases) break;
    planned.push_back(OfExactSums(axes, "workloads", seed + 250 + planned.size()));
    // The same shape has shown its places.
    planned.back().wants.slice_steps = kValueSliceSteps;
    planned.back().wants.least_blocks = 1;
  }
  // Where little has room, one on each way through the plan runs all the same.
  std::set<std::vector<bool>> paths;
  for (Task& task : planned) {
    if (only_slices_ && paths.insert(PathAt(op, trial_.plan, task.probe.case_.axes)).second)
      task.sure = true;
  }
  std::ranges::move(apart, std::back_inserter(planned));
  return planned;
}

// On each way through the plan that of these shapes along whose reduced axes most is added up.
std::vector<ops::AxisValues> Campaign::ForExactSums(
    const std::vector<ops::AxisValues>& shapes) const {
  constexpr double kLeast = 1 << 12;
  std::map<std::vector<bool>, std::pair<double, ops::AxisValues>> longest;
  for (const ops::AxisValues& shape : shapes) {
    const double terms = TermsOf(shape);
    const ops::AxisValues axes = SomeRunWhole(shape) ? Affordable(shape) : shape;
    if (terms < kLeast || axes != shape ||
        (NeedsZerosBetween(trial_.instance.op) &&
         cases::TotalElements(trial_.instance, axes) > kMostMade))
      continue;
    auto& known = longest[PathAt(trial_.instance.op, trial_.plan, axes)];
    if (terms > known.first) known = {terms, axes};
  }
  std::vector<ops::AxisValues> chosen;
  for (auto& [path, shape] : longest) chosen.push_back(std::move(shape.second));
  return chosen;
}

double Campaign::TermsOf(const ops::AxisValues& axes) const {
  double terms = 1;
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    const auto given = axes.find(axis.name);
    if (ops::MayBeReducedOver(trial_.instance.op, axis.name) && IsAddedUp(axis) &&
        given != axes.end())
      terms = std::max(terms, static_cast<double>(given->second));
  }
  return terms;
}

Task Campaign::OfExactSums(const ops::AxisValues& axes, std::string purpose,
                           std::uint64_t seed) const {
  // Of as many as there are at most, the sum of magnitudes is exact in f32.
  constexpr double kExact = 1 << 24, kMost = 100, kLeast = 4;
  cases::Case value =
      cases::MakeCase(trial_.instance, cases::ExactSumsRecipe(), axes, seed, purpose);
  for (auto& [name, profile] : value.profiles) {
    if (profile.kind == "opposed")
      profile.parameters = {
          {"limit", std::floor(std::clamp(kExact / TermsOf(axes), kLeast, kMost))}};
  }
  Task task = TaskFor(std::move(value), std::move(purpose));
  task.probe.ends_only = true;
  return task;
}

// Into the longest table numbers that a field of too few bits takes for one another. Nothing where no index is of that
// axis.
std::optional<Task> Campaign::Aliases(const std::string& axis, std::int64_t length,
                                      std::uint64_t seed) const {
  constexpr std::int64_t kIndices = 512, kFew = 4;
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<std::string> of_axis;
  ops::AxisValues beside;
  for (const ops::Axis& other : op.axes) beside[other.name] = kFew;
  for (const ops::TensorSpec& spec : op.inputs) {
    if (spec.domain.of != axis || !cases::IsOf(cases::InputClass::kIndex, trial_.instance, spec))
      continue;
    of_axis.push_back(spec.name);
    for (const auto& extent : spec.shape) beside[extent.text()] = kIndices;
  }
  const auto axes = cases::SolveNear(op, axis, length, beside);
  if (of_axis.empty() || !axes ||
      (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, *axes) > kMostMade))
    return std::nullopt;
  Task task = SliceOf(*axes, "workloads", seed, "biased");
  for (const std::string& name : of_axis)
    task.probe.case_.profiles[name] = {.kind = "aliases", .parameters = {}, .literal = {}};
  if (RunsWhole(task.probe.case_.axes)) task.wants.part_steps = kLongSliceSteps;
  return task;
}

// A length that an f32 has for the next multiple of every tile: a partial tile is whole then, and who takes it is the first
// block, where the grid is capped.
std::optional<ops::AxisValues> Campaign::RoundedUpByFloats(const ops::Axis& axis) const {
  constexpr std::int64_t kExact = 1 << 24, kMostCap = 1 << 20;
  constexpr double kMostSteps = 2.0 * Wants{}.slice_steps;
  if (axis.kind != ops::Axis::Kind::kVariable || axis.max < 2 * kExact) return std::nullopt;
  ops::AxisValues fewest;
  for (const ops::Axis& other : trial_.instance.op.axes) fewest[other.name] = other.min;
  fewest[axis.name] = 2 * kExact;
  std::int64_t cap = 1;
  for (const ops::KernelPlan& kernel : trial_.plan.kernels) {
    for (const ops::Expression& extent : kernel.grid) {
      for (const auto& kink : extent.Kinks(fewest)) {
        const std::int64_t least = kink ? std::min(kink->first, kink->second) : 0;
        if (cap == 1 && least > 1 && least < kMostCap) cap = least;
      }
    }
  }
  std::int64_t round = cap;
  while (round <= kExact) round *= 2;
  const auto axes = cases::SolveNear(trial_.instance.op, axis.name, round - 1, fewest);
  if (!axes || axes->at(axis.name) != round - 1 || BlockStepsFor(*axes) > kMostSteps)
    return std::nullopt;
  return *axes;
}

// Quotients by a reciprocal that is rounded up are wrong at the end of a row, at rows of few lengths, and only from some
// number of elements on: the longer the row, the sooner.
std::optional<ops::AxisValues> Campaign::SeveralOfTheLongest(const ops::Axis& axis) const {
  constexpr std::int64_t kElements = std::int64_t{1} << 21;
  const ops::OpSpec& op = trial_.instance.op;
  if (axis.kind != ops::Axis::Kind::kVariable || !IsOfRows(axis.name)) return std::nullopt;
  for (std::int64_t rows = 512; rows >= 8; rows /= 2) {
    ops::AxisValues several;
    for (const ops::Axis& other : op.axes) several[other.name] = rows;
    const auto axes = cases::SolveNear(op, axis.name, axis.max - 1, several);
    if (axes && cases::TotalElements(trial_.instance, *axes) <= kElements &&
        (!SomeRunWhole(*axes) || LeastStepsFor(*axes) <= kAffordableSteps))
      return *axes;
  }
  return std::nullopt;
}

std::vector<Task> Campaign::LateSlices(const ops::Axis& axis, std::uint64_t seed) const {
  // A plan may name hundreds of numbers.
  constexpr std::size_t kMostOthers = 2, kMostConstants = 32;
  const ops::OpSpec& op = trial_.instance.op;
  ops::AxisValues shortest;
  for (const ops::Axis& other : op.axes) shortest[other.name] = other.min;
  std::vector<Task> planned;
  if (auto late = LateSlice(axis, shortest, /*bounded=*/false, seed))
    planned.push_back(*std::move(late));
  const std::int64_t length = std::min(axis.max, kPast16Bits);
  if (trial_.plan.kernels.size() < 2 || axis.kind != ops::Axis::Kind::kVariable || !IsAddedUp(axis))
    return planned;
  const auto path_of = [&](const ops::AxisValues& beside) -> std::optional<std::vector<bool>> {
    const auto axes = cases::SolveNear(op, axis.name, length, beside);
    if (!axes || axes->at(axis.name) != length) return std::nullopt;
    return PathAt(op, trial_.plan, *axes);
  };
  const auto usual = path_of(shortest);
  if (!usual) return planned;
  struct Other {
    ops::AxisValues beside;
    double steps = 0;
  };
  std::map<std::vector<bool>, Other> others;  // Of each path the cheapest.
  const std::vector<std::int64_t> constants = cases::ConstantsOf(trial_.plan);
  for (const ops::Axis& other : op.axes) {
    if (other.name == axis.name || other.kind != ops::Axis::Kind::kVariable) continue;
    for (const std::int64_t constant : constants | std::views::take(kMostConstants)) {
      for (const std::int64_t extent : {constant, constant + 1}) {
        if (extent <= other.min || extent > other.max) continue;
        ops::AxisValues beside = shortest;
        beside[other.name] = extent;
        const auto path = path_of(beside);
        if (!path || path == usual) continue;
        const double steps = LeastStepsFor(*cases::SolveNear(op, axis.name, length, beside));
        const auto known = others.find(*path);
        if (known == others.end() || steps < known->second.steps)
          others[*path] = {std::move(beside), steps};
      }
    }
  }
  std::vector<Other> cheapest;
  for (auto& [path, other] : others) cheapest.push_back(std::move(other));
  std::ranges::stable_sort(cheapest, {}, &Other::steps);
  if (cheapest.size() > kMostOthers) cheapest.resize(kMostOthers);
  for (const Other& other : cheapest) {
    if (auto late = LateSlice(axis, other.beside, /*bounded=*/true, seed + 20 + planned.size()))
      planned.push_back(*std::move(late));
  }
  return planned;
}

std::optional<Task> Campaign::LateSlice(const ops::Axis& axis, const ops::AxisValues& beside,
                                        bool bounded, std::uint64_t seed) const {
  // What is cut into as many parts as there can be nothing shorter shows; so the longest of all sums may take that much.
  constexpr double kForTheLongest = 6 * kAffordableSteps;
  constexpr std::int64_t kLong = std::int64_t{1} << 14;
  constexpr double kForPast16Bits = 20 * kAffordableSteps, kTooLow = 1.5;
  const ops::OpSpec& op = trial_.instance.op;
  if (axis.kind != ops::Axis::Kind::kVariable) return std::nullopt;
  auto axes = AsLongAsCanBe(trial_.instance, axis, beside);
  bool longest = axes && (bounded || SomeRunWhole(*axes)) && IsAddedUp(axis);
  if (bounded && !longest) return std::nullopt;
  if (longest) {
    auto shorter = *axes;
    const auto takes_too_long = [&] {
      return LeastStepsFor(shorter) >
             (shorter.at(axis.name) == kPast16Bits ? kForPast16Bits : kForTheLongest);
    };
    // One past the half of it each time: many a limit is a power of two.
    while (takes_too_long() && shorter.at(axis.name) > kLong) {
      std::int64_t half = shorter.at(axis.name) / 2 + 1;
      if (half < kPast16Bits && shorter.at(axis.name) > kPast16Bits) half = kPast16Bits;
      const auto halved = cases::SolveNear(op, axis.name, half, beside);
      if (!halved || halved->at(axis.name) >= shorter.at(axis.name)) break;
      shorter = *halved;
    }
    longest = !takes_too_long() && shorter.at(axis.name) > kLong;
    if (longest) axes = shorter;
  }
  if (bounded && !longest) return std::nullopt;
  if (!longest && axes && SomeRunWhole(*axes)) axes = Affordable(*axes);
  if (!axes || (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, *axes) > kMostMade))
    return std::nullopt;
  auto value = LateAlong(axis, *std::move(axes), "workloads", seed);
  if (!value) return std::nullopt;
  Task task = TaskFor(*std::move(value), "workloads");
  task.probe.ends_only = true;
  task.wants.truth_or_nothing = true;
  task.sure = longest;
  // Estimates are too low now and then.
  if (longest) task.wants.part_steps = static_cast<std::uint64_t>(kTooLow * kForPast16Bits);
  return task;
}

}  // namespace assay::campaign
