// A wave of lengths that end within a tile: which fragments, masks and rows of a table the last block comes to hangs on how
// much of its tile is left, and other waves are short, or a power of two and its neighbours.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/guidance.h"
#include "validator/campaign/parts.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// Parts that the lengths of a tile fall into.
constexpr std::size_t kTails = 16;
// Lengths of each axis that lie far out, of axes that are so long; those that masks hang on, no further than that, for
// what a result takes grows with it.
// Where nothing is small there are few others.
constexpr int kFar = 2, kFarOfSlices = 3;
constexpr std::int64_t kLong = 512, kFarthestOfMasks = std::int64_t{1} << 14;
constexpr std::uint64_t kBeside = 4;  // Of the axes beside, at most.

/// How many of an axis a block takes, if a grid says so by a constant.
std::int64_t TileOf(const ops::LaunchPlan& plan) {
  constexpr std::int64_t kLeast = 16, kMost = 256, kOtherwise = 64;
  std::int64_t tile = 0;
  for (const ops::KernelPlan& kernel : plan.kernels) {
    for (const ops::Expression& extent : kernel.grid) {
      for (const std::int64_t constant : extent.Literals()) {
        if (constant >= kLeast && constant <= kMost) tile = std::max(tile, constant);
      }
    }
  }
  return tile > 0 ? tile : kOtherwise;
}

/// A length from the upper end of what is at most `most`, shorter ones as likely as longer ones.
std::int64_t FarAlong(std::int64_t most, Rng& rng) {
  constexpr double kSpread = 32;
  const double part = static_cast<double>(rng.Below(1 << 20)) / (1 << 20);
  const auto length =
      static_cast<std::int64_t>(static_cast<double>(most) / std::pow(kSpread, part));
  return std::clamp(length, std::min(kLong, most), most);
}

}  // namespace

ops::AxisValues Campaign::WithAnotherTail(ops::AxisValues axes, std::size_t number,
                                          Rng& rng) const {
  constexpr std::size_t kApart = 5;  // Neighbours come in turns that are far from each other.
  const std::int64_t tile = TileOf(trial_.plan);
  for (const ops::Axis& axis : trial_.instance.op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable || axis.max - axis.min < 1) continue;
    const std::int64_t whole = std::min(tile, axis.max - axis.min + 1);
    const std::int64_t part = std::max<std::int64_t>(whole / static_cast<std::int64_t>(kTails), 1);
    const std::int64_t tail =
        static_cast<std::int64_t>(number * kApart % kTails) * part % whole +
        static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(part)));
    const std::int64_t length = axes.at(axis.name) - axis.min;
    const auto moved = cases::SolveNear(trial_.instance.op, axis.name,
                                        axis.min + length / whole * whole + tail, axes);
    if (moved) axes = *moved;
  }
  return axes;
}

std::vector<Task> Campaign::FarTailsOf(const ops::Axis& axis, std::uint64_t seed, Rng& rng) const {
  const ops::OpSpec& op = trial_.instance.op;
  // With one value of the flags all lengths, then with the next: not all of them may fit.
  std::vector<std::vector<Task>> by_turn;
  std::size_t planned = 0;
  const std::vector<const ops::Axis*> masked = ReducedInStepWith(axis);
  const std::int64_t most = masked.empty() ? axis.max : std::min(axis.max, kFarthestOfMasks);
  for (int i = 0; i < (only_slices_ ? kFarOfSlices : kFar); ++i) {
    const std::int64_t length = FarAlong(most, rng);
    std::vector<Task> tasks;
    for (const ops::Axis* const over : masked) {
      std::ranges::move(
          RisingAlong(*over, {{axis.name, length}}, "tails", seed + planned + tasks.size()),
          std::back_inserter(tasks));
    }
    for (Task& task : tasks) task.probe.ends_only = true;
    if (tasks.empty()) {
      ops::AxisValues beside;
      for (const ops::Axis& other : op.axes)
        beside[other.name] = other.min + static_cast<std::int64_t>(rng.Below(kBeside));
      const auto axes = cases::SolveNear(op, axis.name, length, beside);
      if (!axes) continue;
      tasks = WithEachFlag(SliceOf(*axes, "tails", seed + planned));
      tasks = {std::move(tasks[static_cast<std::size_t>(i) % tasks.size()])};
    }
    by_turn.resize(std::max(by_turn.size(), tasks.size()));
    for (std::size_t turn = 0; turn < tasks.size(); ++turn) {
      Task& task = tasks[turn];
      const ops::AxisValues& axes = task.probe.case_.axes;
      if (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, axes) > kMostMade)
        continue;
      if (RunsWhole(axes) && WholeStepsFor(axes) > kAffordableSteps) continue;
      // The last block, where blocks are dear; of masks the first one as well where nothing else shows them, for the last may
      // have few rows, which see the same tiles.
      task.wants.slice_steps = kValueSliceSteps;
      task.wants.least_blocks = 1;
      if (only_slices_ && !masked.empty()) task.wants.sure_blocks = 2;
      task.wants.part_steps = kLongSliceSteps;
      by_turn[turn].push_back(std::move(task));
      ++planned;
    }
  }
  std::vector<Task> tasks;
  for (std::vector<Task>& turn : by_turn) std::ranges::move(turn, std::back_inserter(tasks));
  return tasks;
}

// Lengths that a constant has just room for, odd ones, and several rows of them: in vectors that begin at whole addresses such
// a row has one more than its elements fill, and a table for the constant no place for it.
std::vector<Task> Campaign::BelowConstants(std::uint64_t seed) const {
  constexpr std::int64_t kLeast = 64;
  constexpr std::size_t kMost = 4;  // Of each axis.
  const double most_steps = static_cast<double>(trial_.effort.campaign_steps) / 160;
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> lengths;
  const ProgramConstants of_program = ConstantsOfProgram(trial_.compiled.facts.get());
  const std::vector<std::int64_t> of_plan = cases::ConstantsOf(trial_.plan);
  for (const std::vector<std::int64_t>* const constants : {&of_plan, &of_program.integers}) {
    for (const std::int64_t constant : *constants) {
      if (constant >= kLeast) lengths.insert(constant % 2 == 0 ? constant - 1 : constant - 2);
    }
  }
  std::vector<Task> planned;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable || !IsOfRows(axis.name)) continue;
    std::size_t count = 0;
    for (const std::int64_t length : lengths) {
      ops::AxisValues several;
      for (const ops::Axis& other : op.axes) several[other.name] = kBackground;
      const auto axes = cases::SolveNear(op, axis.name, length, several);
      if (count >= kMost || !axes || axes->at(axis.name) != length || !FitsWhole(*axes) ||
          StepsFor(*axes) > most_steps)
        continue;
      ++count;
      planned.push_back(TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), *axes,
                                                seed + planned.size(), "edge"),
                                "tails"));
    }
  }
  return planned;
}

// Far out on each axis, where masks show if there are any; and, where nothing is small so that other shapes are few, from
// all over the first tiles.
std::vector<Task> Campaign::Tails() {
  constexpr std::uint64_t kTiles = 2;  // The first or the second one is the last.
  const ops::OpSpec& op = trial_.instance.op;
  if (trial_.effort.sliced_cases == 0) return {};
  const std::uint64_t seed = DeriveSeed(trial_.seed, "tails");
  const std::int64_t tile = TileOf(trial_.plan);
  Rng rng(seed);
  std::vector<Task> planned;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind == ops::Axis::Kind::kVariable && axis.max > kLong)
      std::ranges::move(FarTailsOf(axis, seed + planned.size(), rng), std::back_inserter(planned));
  }
  std::ranges::move(BelowConstants(DeriveSeed(seed, "below")), std::back_inserter(planned));
  std::set<ops::AxisValues> known;
  // Where all cases are slices those of wave values end in other parts as well.
  const std::size_t near = has_small_shapes_ ? 0 : only_slices_ ? kTails / 2 : kTails;
  for (std::size_t number = 0; number < near; ++number) {
    ops::AxisValues few;
    for (const ops::Axis& axis : op.axes)
      few[axis.name] = axis.min + tile * static_cast<std::int64_t>(rng.Below(kTiles));
    const auto axes = cases::SolveAxes(op, {}, few);
    if (!axes) continue;
    const ops::AxisValues other = WithAnotherTail(*axes, number, rng);
    if (!known.insert(other).second) continue;
    const cases::Recipe& recipe = *cases::FindRecipe(number % 3 == 2 ? "exact" : "plain");
    Task task =
        TaskFor(cases::MakeCase(trial_.instance, recipe, other, seed + number, "edge"), "tails");
    task.wants.part_steps = kLongSliceSteps / 2;
    planned.push_back(std::move(task));
  }
  return planned;
}

}  // namespace assay::campaign
