// Waves that go where no ordinary case comes: to outcomes of decisions that nothing had, to what models use at its full
// size, and past 2^24 to 2^32 elements.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

namespace {

// Of any slice: cells of the reference are 48 bytes, addresses 47 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 35;
// Of the axes beside a long one.
constexpr std::int64_t kBackground = 5;

/// The axis as long as the op and any slice allow, the others near `background`.
std::optional<ops::AxisValues> AsLongAsCanBe(const ops::Instance& instance, const ops::Axis& axis,
                                             const ops::AxisValues& background) {
  for (std::int64_t length = axis.max; length >= axis.min && length > 0; length /= 2) {
    const auto axes = cases::SolveNear(instance.op, axis.name, length, background);
    if (axes && cases::TotalElements(instance, *axes) <= kMostElements) return *axes;
  }
  return std::nullopt;
}

}  // namespace

// What is far away is looked up: an offset that wraps does so at the last index, and at few before it.
void Campaign::LookFar(cases::Case& value) const {
  constexpr std::int64_t kFew = 64;
  const auto complete = ops::ResolveAxes(trial_.instance.op, value.axes);
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!complete || spec.is_scalar || spec.IsGenerated() ||
        cases::ClassOf(spec, trial_.instance.TypeOf(spec)) != cases::InputClass::kIndex)
      continue;
    const auto shape = ops::ResolveShape(spec, *complete);
    const bool few = shape && ElementCount(*shape).value_or(0) <= kFew;
    value.profiles[spec.name] = {.kind = few ? "last" : "edges", .parameters = {}, .literal = {}};
  }
}

// Where inputs can repeat a pattern, TaskFor puts ordinary values in place of the ends.
Task Campaign::EndsOf(ops::AxisValues axes, std::string purpose, std::uint64_t seed) const {
  cases::Case value{.axes = std::move(axes), .seed = seed, .profiles = {}, .origin = purpose};
  for (const ops::TensorSpec& spec : trial_.instance.op.inputs) {
    if (!spec.is_scalar && !spec.IsGenerated() &&
        cases::ClassOf(spec, trial_.instance.TypeOf(spec)) == cases::InputClass::kFloat)
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

// Outcomes of the program's and the plan's decisions that no case had, alone and in pairs.
std::vector<Task> Campaign::Reached() {
  const Decisions decisions(trial_.instance, trial_.plan, trial_.compiled);
  ReachRequest request;
  for (const cases::Case& value : tried_) request.tried.push_back(value.axes);
  request.half_reached = coverage_.HalfReached();
  request.cost = [this](const ops::AxisValues& axes) { return StepsFor(axes); };
  const bool whole = RunsWhole();
  request.part_cost = [this, whole](const ops::AxisValues& axes) {
    const auto blocks =
        static_cast<double>(whole ? 1 : BlocksOf(trial_.instance, trial_.plan, axes));
    return WholeStepsFor(axes) / std::max(blocks, 1.0);
  };
  request.max_elements = 2 * trial_.effort.long_elements + (1 << 16);
  request.steps = static_cast<double>(trial_.effort.campaign_steps) / 12;
  // Pairs are many, and most kernels right in all of them.
  request.pair_steps = std::min(request.steps, 4e6 + 0.25 * static_cast<double>(harvest_.steps));
  request.shapes = trial_.effort.guided_cases / 2;
  request.values = trial_.effort.guided_cases / 8;
  request.seed = DeriveSeed(trial_.seed, "reached");
  ReachedCases reached = CasesThatReach(trial_.instance, decisions, request);
  past_limits_ = std::move(reached.past_limits);
  std::vector<Task> planned;
  for (cases::Case& value : reached.cases) planned.push_back(TaskFor(std::move(value), "reached"));
  if (trial_.effort.huge_shapes == 0) return planned;
  for (ops::AxisValues& axes : reached.too_large) {
    const std::uint64_t seed = request.seed + planned.size();
    // A slice of what cannot be cut would only end at its limit.
    const bool too_long = whole && WholeStepsFor(axes) > static_cast<double>(kMostHugeSteps);
    planned.push_back(too_long ? EndsOf(std::move(axes), "reached", seed)
                               : PartOf(std::move(axes), "reached", seed));
  }
  return planned;
}

// What models use, at its full size, and each axis as long as the op allows, in slices: rows, tiles
// and tables that nothing small comes near.
//
// Then each axis as long as the op allows, the others at their shortest, with values of which the last
// outweighs all before (LateAlong).
std::vector<Task> Campaign::Workloads() {
  constexpr std::int64_t kMostOfOneSign = std::int64_t{1} << 22;
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
  const bool whole = RunsWhole();
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
    if (whole && Affordable(*longest) != *longest)
      longest = AsLongAsCanBe(trial_.instance, axis, fewest);
    if (!longest) continue;
    longest_of_axes.push_back(
        {axis.name, *longest,
         ops::MayBeReducedOver(op, axis.name) && longest->at(axis.name) <= kMostOfOneSign});
  }
  for (const ops::Axis& axis : op.axes) {
    if (const auto several = SeveralOfTheLongest(axis)) add(*several);
  }
  for (const ops::Workload& workload : op.workloads) {
    if (cases::TotalElements(trial_.instance, workload.axes) <= kMostElements) add(workload.axes);
  }
  std::vector<Task> planned;
  const std::uint64_t seed = DeriveSeed(trial_.seed, "workloads");
  constexpr std::array<std::string_view, 3> kIndices = {"landmarks", "uniform", "zipf"};
  for (const ops::AxisValues& axes : shapes) {
    const std::size_t number = planned.size();
    const ops::AxisValues affordable = whole ? Affordable(axes) : axes;
    if (affordable != axes) {
      harvest_.ledger.Planned("workloads");
      LeaveOut(SliceOf(axes, "workloads", seed + number),
               "its blocks may depend on each other, and all take too long; a smaller case ran in "
               "its place",
               harvest_);
    }
    const bool too_many =
        NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, affordable) > kMostMade;
    Task task = too_many ? EndsOf(affordable, "workloads", seed + number)
                         : SliceOf(affordable, "workloads", seed + number);
    for (const ops::TensorSpec& spec : op.inputs) {
      if (!spec.is_scalar && !spec.IsGenerated() &&
          cases::ClassOf(spec, trial_.instance.TypeOf(spec)) == cases::InputClass::kIndex)
        task.probe.case_.profiles[spec.name].kind = kIndices[number % kIndices.size()];
    }
    if (number >= trial_.effort.sliced_cases) {
      harvest_.ledger.Planned("workloads");
      LeaveOut(task, "more than this effort tries", harvest_);
      continue;
    }
    planned.push_back(std::move(task));
  }
  // Where blocks wait for a number that comes round again, one overtakes another in some orders only.
  for (std::size_t i = 0; whole && MayWait() && i < longest_of_axes.size(); ++i) {
    const ops::AxisValues axes = Affordable(longest_of_axes[i].axes);
    if (planned.size() >= trial_.effort.sliced_cases) break;
    if (cases::TotalElements(trial_.instance, axes) > kMostMade) continue;
    Task turned = TaskFor(cases::MakeCase(trial_.instance, *cases::FindRecipe("plain"), axes,
                                          seed + 50 + i, "workloads"),
                          "workloads");
    turned.probe.schedule = {.policy = OrderForThatMany(axes), .seed = seed + i};
    planned.push_back(std::move(turned));
  }
  for (const ops::Axis& axis : op.axes) {
    auto late = LateSlice(axis, seed + 100 + planned.size());
    if (late && planned.size() < trial_.effort.sliced_cases) planned.push_back(*std::move(late));
  }
  // Of numbers of both signs a sum hardly grows, and what is missing in it stays within what honest ones lose; of
  // one sign, terms that went elsewhere do not show.
  for (const Longest& longest : longest_of_axes) {
    if (!longest.one_sign || planned.size() >= trial_.effort.sliced_cases) continue;
    const ops::AxisValues axes = whole ? Affordable(longest.axes) : longest.axes;
    if (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, axes) > kMostMade) continue;
    planned.push_back(SliceOf(axes, "workloads", seed + 150 + planned.size(), "biased"));
  }
  return planned;
}

std::vector<Task> Campaign::LargeAtOnce(const std::string& purpose, std::uint64_t seed) const {
  // Blocks that depend on each other may all have to run.
  const std::size_t most = SomeKernelMay(facts::BlocksDepend) ? 2 : 12;
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
  const auto add = [&](const Result<ops::AxisValues>& axes) {
    if (!axes || !known.insert(*axes).second) return;
    if (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, *axes) > kMostMade) return;
    for (Task& task : WithEachFlag(SliceOf(*axes, purpose, seed + planned.size()))) {
      if (planned.size() < most) planned.push_back(std::move(task));
    }
  };
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kVariable) continue;
    const auto longest = AsLongAsCanBe(trial_.instance, axis, few);
    if (!longest || longest->at(axis.name) <= axis.min) continue;
    const std::int64_t length = longest->at(axis.name);
    add(cases::SolveNear(op, axis.name, length - 1, *longest));
    if (length <= kLeastConstant) continue;
    // One past a multiple of every tile whose extent is a power of two, and past the largest constant.
    add(cases::SolveNear(
        op, axis.name,
        static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(length - 2))) + 1,
        few));
    const auto constant =
        std::ranges::find_if(constants, [&](std::int64_t each) { return each + 2 < length; });
    if (constant != constants.end() && *constant >= kLeastConstant)
      add(cases::SolveNear(op, axis.name, *constant + 1, few));
  }
  return planned;
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
        (!RunsWhole() || WholeStepsFor(*axes) <= kAffordableSteps))
      return *axes;
  }
  return std::nullopt;
}

std::optional<Task> Campaign::LateSlice(const ops::Axis& axis, std::uint64_t seed) const {
  const ops::OpSpec& op = trial_.instance.op;
  if (axis.kind != ops::Axis::Kind::kVariable) return std::nullopt;
  ops::AxisValues shortest;
  for (const ops::Axis& other : op.axes) shortest[other.name] = other.min;
  auto axes = AsLongAsCanBe(trial_.instance, axis, shortest);
  if (axes && RunsWhole()) axes = Affordable(*axes);
  if (!axes || (NeedsZerosBetween(op) && cases::TotalElements(trial_.instance, *axes) > kMostMade))
    return std::nullopt;
  auto value = LateAlong(axis, *std::move(axes), "workloads", seed);
  if (!value) return std::nullopt;
  Task task = TaskFor(*std::move(value), "workloads");
  task.probe.ends_only = true;
  task.wants.truth_or_nothing = true;
  return task;
}

namespace {

/// Launches of the plan where one of them has some blocks, but so few that all of them run; else 0.
std::uint64_t LaunchesWithAFewBlocks(const Trial& trial, const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(trial.instance.op, axes);
  if (!complete) return 0;
  const auto resolved = ops::Resolve(trial.plan, trial.instance, *complete);
  if (!resolved) return 0;
  const bool any = std::ranges::any_of(resolved->kernels, [](const ops::ResolvedKernel& kernel) {
    const std::uint64_t blocks = std::uint64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
    return blocks > 1 && blocks <= engine::kWholeGrid;
  });
  return any ? resolved->kernels.size() : 0;
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

// Shapes past limits of 32-bit numbers, of which only the ends are run: where an index wraps. First
// those at which this program's own numbers outgrow their formats, at whatever cost: of right kernels
// there are none.
std::vector<Task> Campaign::Huge() {
  // A block that loops over millions of elements costs as much as all else.
  constexpr std::size_t kMostLoops = 4;
  std::vector<Task> planned;
  if (trial_.effort.huge_shapes > 0) planned = PastGrids();
  const std::uint64_t seed = DeriveSeed(trial_.seed, "huge");
  std::size_t loops = 0;
  std::set<std::size_t> costly_sizes;  // As powers of two.
  const bool whole = RunsWhole();
  std::vector<Task> one_sign;
  for (const ops::AxisValues& axes : past_limits_) {
    if (trial_.effort.huge_shapes == 0) break;
    const bool too_long = whole && WholeStepsFor(axes) > static_cast<double>(kMostLimitSteps);
    auto sums = too_long ? SumsOf(axes, "huge", seed + planned.size()) : std::nullopt;
    if (sums) {
      const ops::AxisValues few = WithFewTermsEach(trial_.instance.op, axes);
      auto of_few = few == axes ? std::nullopt : SumsOf(few, "huge", seed + 200 + planned.size());
      if (of_few) {
        of_few->wants.part_steps = kMostLimitSteps;
        planned.push_back(*std::move(of_few));
      }
    }
    // A slice of it would be all of it.
    Task task = sums       ? *std::move(sums)
                : too_long ? EndsOf(axes, "huge", seed + planned.size())
                           : PartOf(axes, "huge", seed + planned.size());
    task.wants.part_steps = kMostLimitSteps;
    if (auto of_one_sign = OfOneSign(task)) one_sign.push_back(*std::move(of_one_sign));
    std::ranges::move(WithEachFlag(std::move(task)), std::back_inserter(planned));
  }
  const std::size_t most = planned.size() + trial_.effort.huge_shapes;
  for (const cases::ShapeChoice& shape : cases::HugeShapes(trial_.instance)) {
    if (planned.size() >= most) break;
    const std::int64_t elements = cases::TotalElements(trial_.instance, shape.axes);
    const std::uint64_t blocks = BlocksOf(trial_.instance, trial_.plan, shape.axes);
    Task task = EndsOf(shape.axes, "huge", seed + planned.size());
    // By far too much for three blocks, as far as can be told from small cases.
    constexpr auto kMost = static_cast<double>(kMostHugeSteps);
    constexpr double kByFar = 4;
    // A slice of what cannot be cut is all of it.
    const double blocks_run =
        IsSlice(task.probe) && whole ? static_cast<double>(std::max<std::uint64_t>(blocks, 1)) : 3;
    if (blocks > 2 &&
        blocks_run * WholeStepsFor(shape.axes) / static_cast<double>(blocks) > kByFar * kMost) {
      auto sums = whole && blocks > engine::kWholeGrid
                      ? SumsOf(shape.axes, "huge", seed + planned.size())
                      : std::nullopt;
      if (sums) {
        planned.push_back(*std::move(sums));
        continue;
      }
      harvest_.ledger.Planned("huge");
      LeaveOut(task, "takes too long even at its ends", harvest_);
      continue;
    }
    // Grids of few blocks run whole. If one of these takes its share of all steps, that is too long for
    // most: one shape of each size has to tell, and needs no more for that than if the guess were
    // wrong by far.
    const std::uint64_t launches = LaunchesWithAFewBlocks(trial_, shape.axes);
    if (launches > 1 && blocks > engine::kWholeGrid &&
        WholeStepsFor(shape.axes) / static_cast<double>(launches) > kByFar * kMost) {
      if (!costly_sizes.insert(std::bit_width(static_cast<std::uint64_t>(elements))).second) {
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
        LeaveOut(task, "takes too long even at its ends", harvest_);
        continue;
      }
      ++loops;
    }
    planned.push_back(std::move(task));
  }
  std::ranges::move(one_sign, std::back_inserter(planned));
  return planned;
}

}  // namespace assay::campaign
