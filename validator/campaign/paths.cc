// Which kernels of a launch plan have blocks where: shapes at which none has, one past 2^32 elements for each choice, both sides of
// where it goes another way (wave Ways), and long axes beside where each begins (wave Paths).
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <vector>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {

namespace {

// A plan may name hundreds of numbers: as many are tried beside lengths of other axes.
constexpr std::size_t kMostConstants = 32;
// Blocks that a grid may have along y and z.
constexpr std::int64_t kMostBlocksDown = 65'535;

/// Has a kernel more blocks along y or z than any device takes?
bool PastAnyDevice(const ops::OpSpec& op, const ops::LaunchPlan& plan,
                   const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(op, axes);
  return complete && std::ranges::any_of(plan.kernels, [&](const ops::KernelPlan& kernel) {
           return HasBlocks(op, kernel, axes) &&
                  std::ranges::any_of(kernel.grid | std::views::drop(1), [&](const auto& extent) {
                    return extent.Evaluate(*complete).value_or(0) > kMostBlocksDown;
                  });
         });
}

/// Shapes of which the results pass 2^31 elements beside an axis that they do not have at one of those numbers, one for each way
/// through the plan: their number may decide what a kernel does. `beside`: all others.
std::vector<ops::AxisValues> ResultsPast31Bits(const ops::OpSpec& op, const ops::LaunchPlan& plan,
                                               const std::vector<std::int64_t>& numbers,
                                               const ops::AxisValues& beside) {
  constexpr std::int64_t kPast = (std::int64_t{1} << 31) + (std::int64_t{1} << 25);
  constexpr std::int64_t kWide = 32'768;
  constexpr std::size_t kMost = 2;
  std::vector<ops::AxisValues> shapes;
  std::set<std::vector<bool>> known;
  const auto add = [&](const ops::TensorSpec& output, const ops::Axis& summed,
                       std::int64_t number) {
    const std::size_t dimensions = output.shape.size();
    if (dimensions < 2) return;
    const ops::Axis* const across = op.FindAxis(output.shape[dimensions - 1].text());
    const ops::Axis* const down = op.FindAxis(output.shape[dimensions - 2].text());
    if (across == nullptr || down == nullptr) return;
    const std::int64_t width = std::min(across->max, std::max(kWide, kPast / down->max + 1));
    const std::int64_t height = kPast / width + 1;
    if (height > down->max) return;
    ops::AxisValues others = beside;
    others[summed.name] = number;
    const auto axes = cases::SolveAxes(op, {{across->name, width}, {down->name, height}}, others);
    if (axes && axes->at(summed.name) == number && shapes.size() < kMost &&
        known.insert(PathAt(op, plan, *axes)).second)
      shapes.push_back(*axes);
  };
  for (const std::int64_t number : numbers) {
    for (const ops::Axis& axis : op.axes) {
      const bool is_summed =
          axis.kind == ops::Axis::Kind::kVariable && !ops::IsOfOutputs(op, axis.name);
      if (!is_summed || number < axis.min || number > axis.max) continue;
      for (const ops::TensorSpec& output : op.outputs) add(output, axis, number);
    }
  }
  return shapes;
}

}  // namespace

// A plan that sends lengths up to a number to one kernel and those beyond to another forgets the number itself, or has more
// blocks along an axis than a grid may have where both are long.
std::vector<ops::AxisValues> Campaign::WhereNothingRuns() const {
  constexpr std::size_t kMost = 2;
  constexpr std::int64_t kMostElements = std::int64_t{1} << 33;
  const ops::OpSpec& op = trial_.instance.op;
  const auto fails = [&](const ops::AxisValues& axes) {
    const std::vector<bool> path = PathAt(op, trial_.plan, axes);
    return std::ranges::find(path, true) == path.end() || PastAnyDevice(op, trial_.plan, axes);
  };
  ops::AxisValues shortest;
  for (const ops::Axis& axis : op.axes) shortest[axis.name] = axis.min;
  std::vector<ops::AxisValues> shapes;
  const auto add = [&](const ops::Axis& axis, std::int64_t length, const ops::AxisValues& beside) {
    if (axis.kind != ops::Axis::Kind::kVariable || length < axis.min || length > axis.max ||
        shapes.size() >= kMost)
      return;
    const auto axes = cases::SolveNear(op, axis.name, length, beside);
    if (axes && axes->at(axis.name) == length &&
        cases::TotalElements(trial_.instance, *axes) <= kMostElements && fails(*axes) &&
        std::ranges::find(shapes, *axes) == shapes.end())
      shapes.push_back(*axes);
  };
  std::vector<std::int64_t> constants = cases::ConstantsOf(trial_.plan);
  constants.resize(std::min(constants.size(), kMostConstants));
  for (const ops::Axis& axis : op.axes) add(axis, axis.max, shortest);
  for (const std::int64_t constant : constants) {
    for (const ops::Axis& axis : op.axes) {
      for (const std::int64_t length : {constant - 1, constant, constant + 1}) {
        add(axis, length, shortest);
        if (length < axis.min || length > axis.max) continue;
        ops::AxisValues beside = shortest;
        beside[axis.name] = length;
        for (const ops::Axis& other : op.axes) {
          // As long as it can be beside that.
          for (std::int64_t longest = other.max; &other != &axis && longest > kMostBlocksDown;
               longest /= 2)
            add(other, longest, beside);
        }
      }
    }
  }
  return shapes;
}

// A plan of several kernels chooses among them by lengths, and each counts in its own way.
std::vector<ops::AxisValues> Campaign::HugeOnEachPath() const {
  constexpr std::int64_t kPast = (std::int64_t{1} << 32) + (std::int64_t{1} << 25);
  constexpr std::size_t kMost = 6;
  const ops::OpSpec& op = trial_.instance.op;
  const ops::LaunchPlan& plan = trial_.plan;
  std::vector<ops::AxisValues> shapes;
  if (plan.kernels.size() < 2) return shapes;
  ops::AxisValues small;
  for (const ops::Axis& axis : op.axes) small[axis.name] = std::max<std::int64_t>(axis.min, 2);
  std::set<std::vector<bool>> known;
  std::vector<std::int64_t> constants = cases::ConstantsOf(plan);
  std::ranges::reverse(constants);
  const auto add = [&](const ops::Axis& axis, std::int64_t length, const ops::Axis& other,
                       const ops::AxisValues& beside) {
    const std::int64_t times = kPast / length + 1;
    if (times > other.max || shapes.size() >= kMost) return;
    const auto axes = cases::SolveAxes(op, {{axis.name, length}, {other.name, times}}, beside);
    if (axes && known.insert(PathAt(op, plan, *axes)).second) shapes.push_back(*axes);
  };
  const auto of_each = [&](std::span<const std::int64_t> lengths, const ops::AxisValues& beside) {
    for (const std::int64_t number : lengths) {
      for (const ops::TensorSpec& spec : op.inputs) {
        for (const ops::Expression& pinned : spec.shape) {
          for (const ops::Expression& stretched : spec.shape) {
            const ops::Axis* const axis = op.FindAxis(pinned.text());
            const ops::Axis* const other = op.FindAxis(stretched.text());
            if (axis == nullptr || other == nullptr || axis == other ||
                axis->kind != ops::Axis::Kind::kVariable ||
                other->kind != ops::Axis::Kind::kVariable)
              continue;
            // As long as it can be, and one less, which is no multiple of a vector.
            for (const std::int64_t less : {0, 1}) {
              const std::int64_t length = (number == 0 ? axis->max : number) - less;
              if (length >= std::max<std::int64_t>(axis->min, 1) && length <= axis->max)
                add(*axis, length, *other, beside);
            }
          }
        }
      }
    }
  };
  // The longest pinned first: what a block does for each of the other axes beside is least then.
  of_each(constants, small);
  // And beside an axis at a number of the plan, or past it.
  constexpr std::array<std::int64_t, 1> kAsLongAsCanBe = {0};
  of_each(kAsLongAsCanBe, small);
  for (const std::int64_t constant : constants | std::views::take(kMostConstants)) {
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      for (const std::int64_t length : {constant, constant + 1}) {
        if (length < axis.min || length > axis.max) continue;
        ops::AxisValues beside = small;
        beside[axis.name] = length;
        of_each(kAsLongAsCanBe, beside);
      }
    }
  }
  std::ranges::move(ResultsPast31Bits(op, plan, constants, small), std::back_inserter(shapes));
  return shapes;
}

// A plan of several kernels goes another way from a number on. Just before it most is added up on the one way, and just there
// least on the other: shapes that cost more than all others together where blocks depend on each other, so that no wave
// had them.
std::vector<ops::AxisValues> Campaign::WhereWaysPart() const {
  constexpr std::size_t kMost = 3;
  constexpr std::int64_t kFew = 3;
  // Of a way along an axis nearly all.
  const auto nearly = [](std::int64_t length) { return length - length / 8; };
  const ops::OpSpec& op = trial_.instance.op;
  std::vector<std::int64_t> constants = cases::ConstantsOf(trial_.plan);
  constants.resize(std::min(constants.size(), kMostConstants));
  std::vector<ops::AxisValues> shapes;
  const auto add = [&](const ops::Axis& axis, const ops::AxisValues& axes, bool ends) {
    const auto known = harvest_.ends.find(PathAt(op, trial_.plan, axes));
    if (known != harvest_.ends.end() && known->second.judged_along.contains(axis.name) &&
        (!ends || known->second.judged_along.at(axis.name) >= nearly(axes.at(axis.name))))
      return;
    if (shapes.size() < kMost && std::ranges::find(shapes, axes) == shapes.end())
      shapes.push_back(axes);
  };
  // Rows that may be read in vectors, and such that may not, beside it: of several elements, for a share of one is all of it.
  for (const std::int64_t size : {kFew, kVector}) {
    ops::AxisValues few;
    for (const ops::Axis& axis : op.axes) few[axis.name] = std::max(axis.min, size);
    for (const std::int64_t constant : constants) {
      for (const ops::Axis& axis : op.axes) {
        if (axis.kind != ops::Axis::Kind::kVariable) continue;
        std::optional<ops::AxisValues> before;
        for (const std::int64_t length : {constant - 1, constant, constant + 1}) {
          if (length < axis.min || length > axis.max) continue;
          const auto axes = cases::SolveNear(op, axis.name, length, few);
          if (!axes || axes->at(axis.name) != length) continue;
          if (before && PathAt(op, trial_.plan, *before) != PathAt(op, trial_.plan, *axes)) {
            if (size == kFew) add(axis, *before, /*ends=*/true);
            add(axis, *axes, /*ends=*/false);
          }
          before = *axes;
        }
      }
    }
  }
  return shapes;
}

// A plan that chooses among kernels by their shapes has some that nothing small comes to, and that go wrong beside other
// lengths than the least: what models use, as far as that goes the same way, and each axis as long as can be.
std::vector<Task> Campaign::Paths() {
  constexpr std::size_t kMostPaths = 4, kMostWorkloads = 2;
  constexpr std::int64_t kOrdinary = 1024, kStep = 64, kSomeRows = 5;
  std::vector<Task> planned;
  const ops::OpSpec& op = trial_.instance.op;
  if (trial_.plan.kernels.size() < 2 || trial_.effort.huge_shapes == 0 || only_slices_)
    return planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "paths");
  std::set<std::vector<bool>> paths;
  std::set<ops::AxisValues> known;
  for (const ops::AxisValues& begin : WhereKernelsBegin()) {
    const std::vector<bool> path = PathAt(op, trial_.plan, begin);
    if (paths.size() >= kMostPaths || !paths.insert(path).second) continue;
    const auto goes_there = [&](const ops::AxisValues& axes) {
      return PathAt(op, trial_.plan, axes) == path &&
             cases::TotalElements(trial_.instance, axes) <= kMostElementsOfASlice;
    };
    const auto add = [&](const ops::AxisValues& axes, std::string_view recipe) {
      const auto judged = harvest_.ends.find(path);
      const bool is_known =
          judged != harvest_.ends.end() && std::ranges::all_of(axes, [&](const auto& axis) {
            const auto along = judged->second.judged_along.find(axis.first);
            return along != judged->second.judged_along.end() && along->second >= axis.second;
          });
      if (is_known || !known.insert(axes).second) return;
      Task& task = planned.emplace_back(SliceOf(axes, "paths", seed + planned.size(), recipe));
      task.wants.part_steps = kLongSliceSteps;
    };
    // The widest of what models use first.
    std::vector<ops::AxisValues> wide;
    for (const ops::Workload& workload : op.workloads) {
      ops::AxisValues axes = begin;
      for (const ops::Axis& axis : op.axes) {
        const auto its = workload.axes.find(axis.name);
        if (axis.kind != ops::Axis::Kind::kVariable || its == workload.axes.end() ||
            its->second <= axes.at(axis.name))
          continue;
        const auto moved = cases::SolveNear(op, axis.name, its->second, axes);
        if (moved && goes_there(*moved)) axes = *moved;
      }
      wide.push_back(std::move(axes));
    }
    std::ranges::stable_sort(wide, std::greater<>(), [&](const ops::AxisValues& axes) {
      return cases::TotalElements(trial_.instance, axes);
    });
    wide.erase(std::ranges::unique(wide).begin(), wide.end());
    for (const ops::AxisValues& axes : wide | std::views::take(kMostWorkloads)) add(axes, "plain");
    // Just short of whole vectors and steps of it, of several rows, which begin within vectors.
    ops::AxisValues some = begin;
    for (auto& [name, extent] : some) {
      const ops::Axis* const axis = op.FindAxis(name);
      if (axis != nullptr && axis->kind == ops::Axis::Kind::kVariable)
        extent = std::max(extent, std::min(axis->max, kSomeRows));
    }
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable || begin.at(axis.name) <= kOrdinary) continue;
      for (const std::int64_t less : {1, 3}) {
        const std::int64_t length = (begin.at(axis.name) / kStep + 1) * kStep - less;
        const auto axes = cases::SolveNear(op, axis.name, length, some);
        if (!axes || axes->at(axis.name) != length || !goes_there(*axes) ||
            !known.insert(*axes).second)
          continue;
        Task& task = planned.emplace_back(SliceOf(*axes, "paths", seed + planned.size()));
        task.wants.part_steps = kLongSliceSteps;
      }
    }
    for (const ops::Axis& axis : op.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      for (std::int64_t length = axis.max; length > begin.at(axis.name); length /= 2) {
        const auto axes = cases::SolveNear(op, axis.name, length, begin);
        if (!axes || !goes_there(*axes)) continue;
        add(*axes, "biased");
        break;
      }
    }
  }
  return planned;
}

// On values of one sign, of which a sum shows whatever part of it is missing or comes twice, and the last of them on such whose
// sum is exact, which shows a single term. What threads do to each other smaller shapes have shown. Of an op without small
// shapes one workload on each way has run.
std::vector<Task> Campaign::Ways() {
  if (trial_.effort.huge_shapes == 0 || only_slices_) return {};
  const std::uint64_t seed = DeriveSeed(trial_.seed, "ways");
  constexpr std::int64_t kMostElements = 1 << 26;
  std::vector<Task> planned;
  const std::vector<ops::AxisValues> shapes =
      trial_.plan.kernels.size() < 2 ? std::vector<ops::AxisValues>() : WhereWaysPart();
  for (const ops::AxisValues& axes : shapes) {
    const bool is_last = &axes == &shapes.back();
    Task task = is_last ? OfExactSums(axes, "ways", seed + planned.size())
                        : SliceOf(axes, "ways", seed + planned.size(), "biased");
    task.wants.part_steps = task.wants.slice_steps = kMostLimitSteps;
    task.wants.watch = task.wants.determinism = false;
    // What small shapes tell of instructions may be eight times too much here.
    if (cases::TotalElements(trial_.instance, axes) > kMostElements) {
      harvest_.ledger.Planned("ways");
      LeaveOut(task, kBeyondBudget, harvest_);
      continue;
    }
    planned.push_back(std::move(task));
  }
  std::ranges::move(HotAmongMany(), std::back_inserter(planned));
  std::ranges::move(HotPastGrids(), std::back_inserter(planned));
  std::ranges::move(CrowdedFar(), std::back_inserter(planned));
  std::ranges::move(HotOnPaths(), std::back_inserter(planned));
  for (Task& task : planned) task.sure = true;
  return planned;
}

}  // namespace assay::campaign
