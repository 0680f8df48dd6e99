// Of ops whose constant extents leave no small shapes: large ones at once.
#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/guidance.h"
#include "validator/campaign/parts.h"
#include "validator/cases/shapes.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

// Where nothing is small, large shapes cost no more than others, and most mistakes of size show there: slices of each
// axis one past a multiple of every tile, one shorter than the longest, and past the largest constants of program and
// plan, since tiles, masks and splits that end with a round length go wrong beside it. In that order, for not all of them
// may fit. Where a mask may end at another place for each of an axis, with each value of the flags, on values of which
// that shows; of other axes with these in turn. And where all cases run in slices, the first lengths of which blocks take a
// second turn.
std::vector<Task> Campaign::Large() {
  if (has_small_shapes_ || MayWait() || trial_.effort.sliced_cases == 0) return {};
  const std::uint64_t seed = DeriveSeed(trial_.seed, "large at once");
  // Blocks that depend on each other may all have to run.
  const std::size_t most = SomeKernelMay(facts::BlocksDepend) ? 4 : 12;
  constexpr std::int64_t kLeastConstant = 64;
  const ops::OpSpec& op = trial_.instance.op;
  std::set<std::int64_t, std::greater<>> constants;
  for (const std::int64_t constant : ConstantsOfProgram(trial_.compiled.facts.get()).integers)
    constants.insert(constant);
  for (const std::int64_t constant : cases::ConstantsOf(trial_.plan)) constants.insert(constant);
  ops::AxisValues few;
  for (const ops::Axis& other : op.axes) few[other.name] = kBackground;
  std::vector<Task> planned;
  std::set<ops::AxisValues> known;
  std::size_t turn = 0;
  const auto add = [&](const ops::Axis& axis, const Result<ops::AxisValues>& axes) {
    if (!axes || !known.insert(*axes).second) return;
    if (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, *axes) > kMostMade) return;
    std::vector<Task> tasks = WithEachFlag(SliceOf(*axes, "large", seed + planned.size()));
    const auto over = ReducedInStepWith(axis);
    if (std::ranges::all_of(over, [&](const ops::Axis* each) { return each == &axis; }))
      tasks = {std::move(tasks[turn++ % tasks.size()])};
    std::ranges::move(tasks, std::back_inserter(planned));
  };
  // Just past a length. Where masks end with it, in the midst of a tile, so that they go through two.
  const double most_for_sure = static_cast<double>(trial_.effort.campaign_steps) / 4;
  const auto add_past = [&](const ops::Axis& axis, std::int64_t end, bool sure) {
    constexpr std::int64_t kWithin = 33;
    const auto axes = cases::SolveNear(op, axis.name, end + kWithin, few);
    std::vector<Task> tasks;
    for (const ops::Axis* const over : ReducedInStepWith(axis)) {
      if (!axes) continue;
      std::ranges::move(RisingAlong(*over, {{axis.name, axes->at(axis.name)}}, "large",
                                    seed + planned.size() + tasks.size()),
                        std::back_inserter(tasks));
    }
    if (tasks.empty()) return add(axis, cases::SolveNear(op, axis.name, end + 1, few));
    for (Task& task : tasks) {
      task.probe.ends_only = true;
      task.sure = sure || SliceStepsFor(task) <= most_for_sure;
      planned.push_back(std::move(task));
    }
  };
  struct Along {
    const ops::Axis* axis;
    ops::AxisValues longest;
    std::int64_t length;
  };
  std::vector<Along> along;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    const auto longest = AsLongAsCanBe(trial_.instance, axis, few);
    if (longest && longest->at(axis.name) > axis.min)
      along.push_back({&axis, *longest, longest->at(axis.name)});
  }
  for (const auto& [axis, longest, length] : along) {
    if (length <= kLeastConstant) continue;
    const auto half = std::bit_floor(static_cast<std::uint64_t>(length - 2));
    add_past(*axis, static_cast<std::int64_t>(half), /*sure=*/false);
  }
  for (const auto& [axis, longest, length] : along)
    add(*axis, cases::SolveNear(op, axis->name, length - 1, longest));
  for (const auto& [axis, longest, length] : along) {
    const auto fits = [&, most_of = length](std::int64_t constant) {
      return constant >= kLeastConstant && constant + 2 < most_of;
    };
    const auto largest = std::ranges::find_if(constants, fits);
    if (largest == constants.end()) continue;
    add_past(*axis, *largest, /*sure=*/false);
    // A mask past the smallest one costs the least.
    const auto smallest = std::ranges::find_if(constants.rbegin(), constants.rend(), fits);
    if (*smallest != *largest && !ReducedInStepWith(*axis).empty())
      add_past(*axis, *smallest, /*sure=*/true);
  }
  std::ranges::stable_partition(planned, &Task::sure);
  if (planned.size() > most) planned.resize(most);
  if (!TurnsComeEarly()) return planned;
  // What is left of the turn before shows where rows far from each other are unlike, and of whole numbers, of which less is
  // rounded away.
  for (const char* const recipe : {"sorted", "exact"}) {
    for (Task& task : PastGrids("turns", recipe, /*once=*/true, /*twice=*/false)) {
      // The first block takes as many turns as any, the last one may take one less.
      task.wants.sure_blocks = 2;
      planned.push_back(std::move(task));
    }
  }
  return planned;
}

bool Campaign::TurnsComeEarly() const {
  return only_slices_ && !MayWait() && trial_.effort.sliced_cases > 0;
}

// Axes that are summed over, of which a constraint or a mask may show as much as the axis says.
std::vector<const ops::Axis*> Campaign::ReducedInStepWith(const ops::Axis& axis) const {
  std::vector<const ops::Axis*> reduced;
  for (const ops::Axis& over : trial_.instance.op.axes) {
    const auto in_step = ops::AxesInStepWith(trial_.instance.op, over.name);
    if (ops::MayBeReducedOver(trial_.instance.op, over.name) &&
        std::ranges::find(in_step, axis.name) != in_step.end())
      reduced.push_back(&over);
  }
  return reduced;
}

}  // namespace assay::campaign
