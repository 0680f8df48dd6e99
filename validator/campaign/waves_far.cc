// Waves that go where no ordinary case comes: to outcomes of decisions that nothing had, and past 2^24 to 2^32 elements.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>

#include "base/rng.h"
#include "ops/properties.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/decisions.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/reach.h"
#include "validator/campaign/sums.h"
#include "validator/cases/profiles.h"
#include "validator/cases/recipes.h"
#include "validator/cases/shapes.h"
#include "validator/engine/window.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

// What is far away is looked up: an offset that wraps does so at the last index, and at few before it.
void Campaign::LookFar(cases::Case& value) const {
  constexpr std::int64_t kFew = 64;
  const auto complete = ops::ResolveAxes(trial_.instance.op, value.axes);
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!complete || !cases::IsOf(cases::InputClass::kIndex, trial_.instance, spec)) continue;
    const auto shape = ops::ResolveShape(spec, *complete);
    const bool few = shape && ElementCount(*shape).value_or(0) <= kFew;
    value.profiles[spec.name] = {.kind = few ? "last" : "edges", .parameters = {}, .literal = {}};
  }
}

// Where inputs can repeat a pattern, TaskFor puts ordinary values in place of the ends.
Task Campaign::EndsOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed) const {
  cases::Case value{.axes = std::move(axes), .seed = seed, .profiles = {}, .origin = purpose};
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (cases::IsOf(cases::InputClass::kFloat, trial_.instance, spec))
      value.profiles[spec.name] = {.kind = "ends", .parameters = {}, .literal = {}};
  }
  LookFar(value);
  const auto ends = value.profiles;
  Task task = TaskFor(std::move(value), std::move(purpose));
  if (NeedsZerosBetween(trial_.instance.op)) task.probe.case_.profiles = ends;
  task.probe.ends_only = true;
  task.wants.max_steps = kHugeSteps;
  return task;
}

Task Campaign::SliceOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed,
                       std::string_view recipe) const {
  Task task = TaskFor(
      cases::MakeCase(trial_.instance, *cases::FindRecipe(recipe), std::move(axes), seed, purpose),
      purpose);
  task.probe.ends_only = true;
  return task;
}

Task Campaign::PartOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed) const {
  // Beyond, blocks that loop over everything are too many for a slice; and there is too much to copy.
  constexpr std::int64_t kMostSliced = std::int64_t{1} << 31;
  const bool zeros_between = NeedsZerosBetween(trial_.instance.op);
  if (cases::TotalElements(trial_.instance, axes) >= (zeros_between ? kMostMade : kMostSliced))
    return EndsOf(std::move(axes), std::move(purpose), seed);
  Task task = SliceOf(std::move(axes), std::move(purpose), seed);
  LookFar(task.probe.case_);
  return task;
}

// Where a shape is dear, the second case of it: what comes last along its longest axis that is summed over outweighs all
// before, where the op has such values, for what a kernel leaves out there is hardly anything of ordinary ones.
std::vector<cases::Case> Campaign::LateOfDearShapes(std::vector<cases::Case> values) const {
  constexpr double kDear = 5e7;
  std::set<ops::AxisValues> dear;
  std::vector<cases::Case> kept;
  for (cases::Case& value : values) {
    const bool spelled_out = std::ranges::any_of(
        value.profiles, [](const auto& profile) { return profile.second.kind == "literal"; });
    if (spelled_out || WholeStepsFor(value.axes) < kDear || dear.insert(value.axes).second) {
      kept.push_back(std::move(value));
      continue;
    }
    const ops::Axis* longest = nullptr;
    for (const ops::Axis& axis : trial_.instance.op.axes) {
      if (axis.kind == ops::Axis::Kind::kVariable &&
          ops::MayBeReducedOver(trial_.instance.op, axis.name) &&
          (longest == nullptr || value.axes.at(axis.name) > value.axes.at(longest->name)))
        longest = &axis;
    }
    auto late = longest == nullptr ? std::nullopt
                                   : LateAlong(*longest, value.axes, value.origin, value.seed);
    kept.push_back(late ? *std::move(late) : std::move(value));
  }
  return kept;
}

// Outcomes of the program's and the plan's decisions that no case had, alone and in pairs.
std::vector<Task> Campaign::Reached() {
  if (turns_ == nullptr)
    turns_ = std::make_unique<TurnsAhead>(trial_.instance, trial_.plan, trial_.compiled);
  ReachRequest request;
  request.turns = turns_->Take();
  for (const cases::Case& value : tried_) request.tried.push_back(value.axes);
  request.half_reached = coverage_.HalfReached();
  request.cost = [this](const ops::AxisValues& axes) { return StepsFor(axes); };
  request.part_cost = [this](const ops::AxisValues& axes) {
    const auto blocks =
        static_cast<double>(RunsWhole(axes) ? 1 : BlocksOf(trial_.instance, trial_.plan, axes));
    return WholeStepsFor(axes) / std::max(blocks, 1.0);
  };
  request.max_elements = 2 * trial_.effort.long_elements + (1 << 16);
  request.steps = static_cast<double>(trial_.effort.campaign_steps) / 12;
  // Pairs are many, and most kernels right in all of them.
  request.pair_steps = std::min(request.steps, 4e6 + 0.25 * static_cast<double>(harvest_.steps));
  request.shapes = trial_.effort.guided_cases / 2;
  request.values = trial_.effort.guided_cases / 8;
  request.seed = DeriveSeed(trial_.seed, "reached");
  ReachedCases reached = CasesThatReach(trial_.instance, turns_->decisions(), request);
  turns_.reset();
  past_limits_ = std::move(reached.past_limits);
  std::vector<Task> planned;
  for (cases::Case& value : LateOfDearShapes(std::move(reached.cases)))
    planned.push_back(TaskFor(std::move(value), "reached"));
  if (trial_.effort.huge_shapes == 0) return planned;
  for (ops::AxisValues& axes : reached.too_large) {
    const std::uint64_t seed = request.seed + planned.size();
    // A slice of what cannot be cut would only end at its limit.
    const bool too_long =
        RunsWhole(axes) && WholeStepsFor(axes) > static_cast<double>(kMostHugeSteps);
    const bool in_vain = EndsTakeMore(axes, static_cast<double>(kMostHugeSteps));
    Task task = too_long ? EndsOf(std::move(axes), "reached", seed)
                         : PartOf(std::move(axes), "reached", seed);
    if (too_long && in_vain) {
      harvest_.ledger.Planned("reached");
      LeaveOut(task, kTooLongAtItsEnds, harvest_);
      continue;
    }
    planned.push_back(std::move(task));
  }
  for (ops::AxisValues& axes : reached.together)
    planned.push_back(SliceOf(std::move(axes), "reached", request.seed + planned.size()));
  // Of the longest axis a little less: past a multiple of everything there may be no rest of tiles or turns.
  Rng rng(DeriveSeed(request.seed, "together"));
  for (const ops::AxisValues& axes : reached.written_together) {
    const auto longest =
        std::ranges::max_element(axes, {}, [](const auto& axis) { return axis.second; });
    const auto less =
        static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(longest->second / 16 + 1)));
    const auto shorter =
        cases::SolveNear(trial_.instance.op, longest->first, longest->second - less, axes);
    planned.push_back(PlacesOf(shorter ? *shorter : axes, request.seed + planned.size()));
  }
  std::ranges::move(OfMisrounded(DeriveSeed(request.seed, "misrounded")),
                    std::back_inserter(planned));
  return planned;
}

namespace {

/// Launches of the plan where one of them has so few blocks that all of them run; else 0.
std::uint64_t LaunchesWithAFewBlocks(const Trial& trial, const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(trial.instance.op, axes);
  if (!complete) return 0;
  const auto resolved = ops::Resolve(trial.plan, trial.instance, *complete);
  if (!resolved) return 0;
  const bool any = std::ranges::any_of(resolved->kernels, [](const ops::ResolvedKernel& kernel) {
    const std::uint64_t blocks = std::uint64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
    return blocks <= engine::kWholeGrid;
  });
  return any ? resolved->kernels.size() : 0;
}

/// Two of the first and one of the second in turns, then what is left of either.
std::vector<Task> InTurns(std::vector<Task> first, std::vector<Task> second) {
  constexpr std::size_t kOfFirst = 2;
  std::vector<Task> tasks;
  for (std::size_t i = 0, j = 0; i < first.size() || j < second.size();) {
    for (std::size_t k = 0; k < kOfFirst && i < first.size(); ++k)
      tasks.push_back(std::move(first[i++]));
    if (j < second.size()) tasks.push_back(std::move(second[j++]));
  }
  return tasks;
}

/// The same with ends that do not cancel: what hangs on the sum of a long row is more than narrow results round
/// away. Nothing where none of its inputs is filled at its ends.
std::optional<Task> OfOneSign(Task task) {
  bool any = false;
  for (auto& [name, profile] : task.probe.case_.profiles) {
    if (profile.kind != "ends") continue;
    profile.parameters = {{"signs", 0}};
    any = true;
  }
  return any ? std::optional(std::move(task)) : std::nullopt;
}

}  // namespace

std::optional<Task> Campaign::OfUnlikePages(Task task) const {
  constexpr std::array kAlike = {"normal", "uniform", "biased"};
  bool any = false;
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    const auto profile = task.probe.case_.profiles.find(spec.name);
    if (spec.is_scalar || profile == task.probe.case_.profiles.end() ||
        cases::ClassOf(spec, trial_.instance.TypeOf(spec)) != cases::InputClass::kFloat ||
        std::ranges::find(kAlike, profile->second.kind) == kAlike.end())
      continue;
    profile->second = {.kind = "patchy", .parameters = {}, .literal = {}};
    any = true;
  }
  return any ? std::optional(std::move(task)) : std::nullopt;
}

// Shapes past limits of 32-bit numbers, of which only the ends are run: where an index wraps. First
// those at which this program's own numbers outgrow their formats, at whatever cost: of right kernels
// there are none.
std::vector<Task> Campaign::Huge() {
  // A block that loops over millions of elements costs as much as all else.
  constexpr std::size_t kMostLoops = 4;
  std::vector<Task> planned, past_grids;
  if (trial_.effort.huge_shapes > 0)
    past_grids = PastGrids("huge", "plain", /*once=*/!TurnsComeEarly(), /*twice=*/true);
  const std::uint64_t seed = DeriveSeed(trial_.seed, "huge");
  constexpr std::size_t kMostTried = 4, kMostTriedWhole = 6;
  std::size_t loops = 0, tried = 0, number = 0;
  std::vector<Task> too_dear;          // By what small shapes tell.
  std::set<std::size_t> costly_sizes;  // As powers of two.
  std::vector<Task> last;
  std::set<std::size_t> dear_sizes;
  // Of blocks that loop over all of an axis, which other waves stretch, a grid is as huge along the others.
  const auto is_dear = [this](const ops::AxisValues& axes) {
    return BlockStepsFor(axes) > 2.0 * kHugeSteps;
  };
  for (const ops::AxisValues& axes : past_limits_) {
    if (trial_.effort.huge_shapes == 0) break;
    const bool too_long =
        RunsWhole(axes) && WholeStepsFor(axes) > static_cast<double>(kMostLimitSteps);
    auto sums = too_long ? SumsOf(axes, "huge", seed + planned.size()) : std::nullopt;
    if (sums) {
      const ops::AxisValues few = WithFewTermsEach(trial_.instance.op, axes);
      auto of_few = few == axes ? std::nullopt : SumsOf(few, "huge", seed + 200 + planned.size());
      if (of_few) {
        of_few->wants.part_steps = kMostLimitSteps;
        planned.push_back(*std::move(of_few));
      }
    }
    const bool in_vain =
        too_long && !sums && EndsTakeMore(axes, static_cast<double>(kMostLimitSteps));
    // A slice of it would be all of it.
    const bool of_sums = sums.has_value();
    Task task = of_sums    ? *std::move(sums)
                : too_long ? EndsOf(axes, "huge", seed + planned.size())
                           : PartOf(axes, "huge", seed + planned.size());
    task.wants.part_steps = kMostLimitSteps;
    if (in_vain) {
      harvest_.ledger.Planned("huge");
      LeaveOut(task, kTooLongAtItsEnds, harvest_);
      continue;
    }
    auto unlike = OfUnlikePages(task);
    if (!of_sums && is_dear(axes)) {
      // Of those of about one size one: where what wraps does not find the same values.
      const auto size =
          std::bit_width(static_cast<std::uint64_t>(cases::TotalElements(trial_.instance, axes)));
      if (!dear_sizes.insert(size).second) {
        harvest_.ledger.Planned("huge");
        LeaveOut(task, kBeyondBudget, harvest_);
        continue;
      }
      planned.push_back(unlike ? *std::move(unlike) : std::move(task));
      continue;
    }
    if (auto of_one_sign = OfOneSign(task)) last.push_back(*std::move(of_one_sign));
    if (unlike) last.push_back(*std::move(unlike));
    std::ranges::move(WithEachFlag(std::move(task)), std::back_inserter(planned));
  }
  const std::size_t most = planned.size() + trial_.effort.huge_shapes;
  for (const cases::ShapeChoice& shape : cases::HugeShapes(trial_.instance, is_dear)) {
    if (planned.size() >= most) break;
    const std::int64_t elements = cases::TotalElements(trial_.instance, shape.axes);
    const std::uint64_t blocks = BlocksOf(trial_.instance, trial_.plan, shape.axes);
    const bool whole = RunsWhole(shape.axes);
    Task task = EndsOf(shape.axes, "huge", seed + planned.size());
    // What comes to another place by a power of two finds the same values there where all pages are alike.
    if (number++ % 2 == 1) {
      if (auto unlike = OfUnlikePages(task)) task = *std::move(unlike);
    }
    // By far too much for three blocks, as far as can be told from small cases.
    constexpr auto kMost = static_cast<double>(kMostHugeSteps);
    constexpr double kByFar = 4;
    // A slice of what cannot be cut is all of it.
    const double blocks_run =
        IsSlice(task.probe) && whole ? static_cast<double>(std::max<std::uint64_t>(blocks, 1)) : 3;
    // Where blocks depend on each other all run, of some shapes for little: where a bound outgrew its format they have
    // little to do.
    if (!IsSlice(task.probe) && SomeKernelMay(facts::BlocksDepend) && tried < kMostTriedWhole) {
      ++tried;
      task.wants.part_steps = kHugeSteps;
      planned.push_back(std::move(task));
      continue;
    }
    const bool in_vain = EndsTakeMore(shape.axes, kByFar * kMost);
    if (in_vain ||
        (blocks > 2 &&
         blocks_run * WholeStepsFor(shape.axes) / static_cast<double>(blocks) > kByFar * kMost)) {
      auto sums = whole && blocks > engine::kWholeGrid
                      ? SumsOf(shape.axes, "huge", seed + planned.size())
                      : std::nullopt;
      if (sums) {
        planned.push_back(*std::move(sums));
        continue;
      }
      // What is scaled from small shapes may be too much by far, whose blocks have tiles to fill: those that seem the cheapest
      // may try. Where blocks depend on each other, all run, of more shapes for less: where a bound outgrew its format they
      // have little to do.
      if (!whole && !in_vain) {
        task.wants.part_steps = static_cast<std::uint64_t>(kMost / kByFar);
        too_dear.push_back(std::move(task));
        continue;
      }
      if (!whole || tried >= kMostTriedWhole) {
        harvest_.ledger.Planned("huge");
        LeaveOut(task, kTooLongAtItsEnds, harvest_);
        continue;
      }
      ++tried;
      task.wants.part_steps = kHugeSteps;
      planned.push_back(std::move(task));
      continue;
    }
    // Grids of few blocks run whole, beside others of which the ends run: mostly each of their blocks loops over all that
    // those wrote, which takes next to nothing or far more than anything may. A quarter tells which. Where that is known
    // to be far more, one shape of each size has to tell.
    const std::uint64_t launches = LaunchesWithAFewBlocks(trial_, shape.axes);
    if (launches > 1 && blocks > engine::kWholeGrid) {
      if (WholeStepsFor(shape.axes) / static_cast<double>(launches) > kByFar * kMost &&
          !costly_sizes.insert(std::bit_width(static_cast<std::uint64_t>(elements))).second) {
        harvest_.ledger.Planned("huge");
        LeaveOut(task,
                 "all blocks of a small grid take long; another shape of its size ran instead",
                 harvest_);
        continue;
      }
      task.wants.part_steps = static_cast<std::uint64_t>(kMost / kByFar);
    }
    if (blocks > 0 && engine::LastBlockOnly(elements, blocks)) {
      const double steps = static_cast<double>(elements) / static_cast<double>(blocks) *
                           std::max(marginal_steps_, 4.0);
      if (loops >= kMostLoops || steps > kMost) {
        harvest_.ledger.Planned("huge");
        LeaveOut(task, kTooLongAtItsEnds, harvest_);
        continue;
      }
      ++loops;
    }
    planned.push_back(std::move(task));
  }
  if (trial_.effort.huge_shapes > 0) {
    for (ops::AxisValues& axes : HugeOnEachPath()) {
      const auto is_same = [&](const Task& task) { return task.probe.case_.axes == axes; };
      if (std::ranges::any_of(planned, is_same)) continue;
      Task task = EndsOf(std::move(axes), "huge", seed + 400 + planned.size());
      task.sure = true;
      auto unlike = OfUnlikePages(task);
      planned.push_back(unlike ? *std::move(unlike) : std::move(task));
    }
  }
  std::ranges::stable_sort(
      too_dear, {}, [this](const Task& task) { return BlockStepsFor(task.probe.case_.axes); });
  for (std::size_t i = 0; i < too_dear.size(); ++i) {
    if (i < kMostTried) {
      planned.push_back(std::move(too_dear[i]));
      continue;
    }
    harvest_.ledger.Planned("huge");
    LeaveOut(too_dear[i], kTooLongAtItsEnds, harvest_);
  }
  // What there is no budget for goes from the end: a plan of many kernels has dozens of caps.
  planned = InTurns(std::move(planned), std::move(past_grids));
  std::ranges::move(last, std::back_inserter(planned));
  return planned;
}

}  // namespace assay::campaign
