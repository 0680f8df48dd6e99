// What cases and parts of them will take, learned from those that ran; and which of a plan's grids can be cut.
#include <algorithm>
#include <cmath>

#include "validator/campaign/blocks.h"
#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/profiles.h"
#include "validator/cases/shapes.h"
#include "validator/engine/window.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

std::uint64_t ThreadsOf(const ops::Instance& instance, const ops::LaunchPlan& plan,
                        const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(instance.op, axes);
  if (!complete) return 0;
  const auto resolved = ops::Resolve(plan, instance, *complete);
  if (!resolved) return 0;
  std::uint64_t threads = 0;
  for (const ops::ResolvedKernel& kernel : resolved->kernels) {
    // Grid and block are within the limits that Resolve checks: no more than 2^41 threads.
    std::uint64_t of_launch = 1;
    for (const std::uint32_t extent : kernel.grid) of_launch *= extent;
    for (const std::uint32_t extent : kernel.block) of_launch *= extent;
    threads += of_launch;
  }
  return threads;
}

namespace {

std::uint64_t BlocksOf(const ops::ResolvedKernel& kernel) {
  return std::uint64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2];
}

/// What runs at a shape; nothing where the plan does not hold for it.
std::vector<ops::ResolvedKernel> LaunchesAt(const ops::Instance& instance,
                                            const ops::LaunchPlan& plan,
                                            const ops::AxisValues& axes) {
  const auto complete = ops::ResolveAxes(instance.op, axes);
  if (!complete) return {};
  auto resolved = ops::Resolve(plan, instance, *complete);
  return resolved ? std::move(resolved->kernels) : std::vector<ops::ResolvedKernel>();
}

/// Blocks of each launch at a shape; none where the plan does not hold for it.
std::vector<std::uint64_t> BlocksOfEach(const ops::Instance& instance, const ops::LaunchPlan& plan,
                                        const ops::AxisValues& axes) {
  std::vector<std::uint64_t> blocks;
  for (const ops::ResolvedKernel& kernel : LaunchesAt(instance, plan, axes))
    blocks.push_back(BlocksOf(kernel));
  return blocks;
}

}  // namespace

std::uint64_t BlocksOf(const ops::Instance& instance, const ops::LaunchPlan& plan,
                       const ops::AxisValues& axes) {
  const std::vector<std::uint64_t> blocks = BlocksOfEach(instance, plan, axes);
  return blocks.empty() ? 0 : std::ranges::max(blocks);
}

double DearFactor(const CaseRun& run) {
  // Of an ordinary kernel: what an instruction of a warp takes, loads and stores among them.
  constexpr double kOrdinary = 4.5;
  constexpr double kLanes = 32;
  const Counters& counters = run.report.counters;
  const auto steps = static_cast<double>(counters.steps);
  if (steps == 0) return 1;
  const double idle = kLanes * static_cast<double>(counters.warp_steps) / steps;
  const double dear = kLanes * static_cast<double>(counters.work) / (kOrdinary * steps);
  return std::max({1.0, (1 + idle) / 2, dear});
}

bool Campaign::FitsWhole(const ops::AxisValues& axes) const {
  const std::int64_t elements = cases::TotalElements(trial_.instance, axes);
  return elements <= trial_.effort.whole_elements &&
         truth_costs_.Estimate(axes, elements).value_or(0) <= MostTruthSteps();
}

bool Campaign::SurelyFitsWhole(const ops::AxisValues& axes) const {
  return FitsWhole(axes) && truth_costs_.EstimateAtMost(axes).value_or(0) <= MostTruthSteps();
}

double Campaign::MostTruthSteps() const {
  // Of ops that have small shapes few cases have truths as dear as a slice of them is.
  constexpr double kMost = 10e6, kMostWhereSmallerOnesAre = 40e6;
  return has_small_shapes_ ? kMostWhereSmallerOnesAre : kMost;
}

double Campaign::StepsFor(const ops::AxisValues& axes) const {
  return FitsWhole(axes) ? WholeStepsFor(axes) : kNominalSliceSteps;
}

double Campaign::WholeStepsFor(const ops::AxisValues& axes) const {
  const std::int64_t elements = cases::TotalElements(trial_.instance, axes);
  if ((only_slices_ || costs_.empty()) && !of_all_paths_.blocks.empty()) {
    const std::uint64_t blocks =
        std::max<std::uint64_t>(BlocksOf(trial_.instance, trial_.plan, axes), 1);
    if (const auto each =
            PathCostsFor(axes).blocks.EstimateEach(axes, static_cast<std::int64_t>(blocks)))
      return static_cast<double>(blocks) * *each;
  }
  if (const auto estimate = costs_.Estimate(axes, elements)) return *estimate;
  const std::uint64_t threads = ThreadsOf(trial_.instance, trial_.plan, axes);
  return static_cast<double>(elements) * std::max(marginal_steps_, 1.0) +
         static_cast<double>(threads) * steps_per_thread_;
}

double Campaign::BesideStepsFor(const ops::AxisValues& axes) const {
  if (cut_.empty()) return 0;
  const std::int64_t elements = cases::TotalElements(trial_.instance, axes);
  double steps = 0;
  for (const ops::ResolvedKernel& kernel : LaunchesAt(trial_.instance, trial_.plan, axes)) {
    const auto costs = launch_costs_.find(kernel.entry);
    if (cut_.contains(kernel.entry) || costs == launch_costs_.end()) continue;
    steps += costs->second.Estimate(axes, elements).value_or(0);
  }
  return steps;
}

double Campaign::LeastStepsFor(const ops::AxisValues& axes) const {
  if (RunsWhole(axes)) return WholeStepsFor(axes);
  return BesideStepsFor(axes) + CutStepsFor(axes).value_or(BlockStepsFor(axes));
}

std::optional<double> Campaign::CutStepsFor(const ops::AxisValues& axes) const {
  const std::int64_t elements = cases::TotalElements(trial_.instance, axes);
  double steps = 0;
  for (const ops::ResolvedKernel& kernel : LaunchesAt(trial_.instance, trial_.plan, axes)) {
    if (!cut_.contains(kernel.entry)) continue;
    const auto costs = launch_costs_.find(kernel.entry);
    if (costs == launch_costs_.end()) return std::nullopt;
    const double blocks = static_cast<double>(BlocksOf(kernel));
    steps += costs->second.Estimate(axes, elements).value_or(0) / std::max(blocks, 1.0);
  }
  return steps > 0 ? std::optional(steps) : std::nullopt;
}

const Campaign::OfPath& Campaign::PathCostsFor(const ops::AxisValues& axes) const {
  const auto path = of_paths_.find(PathAt(trial_.instance.op, trial_.plan, axes));
  return path != of_paths_.end() ? path->second : of_all_paths_;
}

double Campaign::BlockStepsFor(const ops::AxisValues& axes) const {
  const std::uint64_t blocks = BlocksOf(trial_.instance, trial_.plan, axes);
  return WholeStepsFor(axes) / static_cast<double>(std::max<std::uint64_t>(blocks, 1));
}

void Campaign::EstimateBlocks(Task& task) const {
  constexpr double kMost = 1e18;  // Of what the estimate of something huge may come to.
  // A guess by elements alone says nothing of blocks: one runs first, and tells.
  if (costs_.empty() && of_all_paths_.blocks.empty()) return;
  const ops::AxisValues& axes = task.probe.case_.axes;
  task.wants.block_steps = static_cast<std::uint64_t>(std::min(BlockStepsFor(axes), kMost));
  task.wants.beside_steps =
      RunsWhole(axes) ? 0 : static_cast<std::uint64_t>(std::min(BesideStepsFor(axes), kMost));
  task.wants.of_blocks = (only_slices_ || costs_.empty()) && !of_all_paths_.blocks.empty();
  // Estimates are guesses, of blocks that take further turns more than of whole grids: what seems too long ends soon, and what as long as that did not end does not begin.
  constexpr double kOfBlocks = 0.5, kOfGrids = 1.25;
  const double least = std::max(LeastStepsFor(axes), NeededStepsFor(axes).value_or(0));
  task.wants.seems_long = task.wants.of_blocks && least > (RunsWhole(axes) ? kOfGrids : kOfBlocks) *
                                                              static_cast<double>(kMostSliceSteps);
  const std::uint64_t most = MostStepsOfSlice(task.wants);
  task.wants.too_long = std::ranges::any_of(too_long_, [&](const TooLong& shorter) {
    return shorter.steps >= most && std::ranges::all_of(shorter.axes, [&](const auto& axis) {
             const auto here = axes.find(axis.first);
             return here != axes.end() && here->second >= axis.second;
           });
  });
}

void Campaign::PlanBlocks(std::vector<Task>& planned, bool several) const {
  // Of so many cases one has several blocks: one head of many that goes wrong is not the last.
  constexpr std::size_t kOneOf = 3;
  // What its blocks take together, and the others': they try values, which one block shows like any other.
  constexpr std::uint64_t kStepsForPlaces = 12'000'000;
  // Where a block with all that it needs takes so many times what a slice is to take, the ends have to do.
  constexpr double kDear = 2;
  constexpr std::uint64_t kEnds = 2;
  // Where so many were given up for taking too long, and none was not, the others get a part of it until one ends.
  constexpr std::uint64_t kInVain = 2, kPart = 8;
  constexpr double kFarMore = 3;
  const bool in_vain = harvest_.examined == 0 && harvest_.too_long >= kInVain;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (!IsSlice(planned[i].probe)) continue;
    if (in_vain && planned[i].wants.part_steps == 0)
      planned[i].wants.part_steps = kMostSliceSteps / kPart;
    planned[i].wants.needed_only = only_slices_;
    EstimateBlocks(planned[i]);
    const auto needed = NeededStepsFor(planned[i].probe.case_.axes);
    if (needed && *needed > kDear * static_cast<double>(Wants{}.slice_steps))
      planned[i].wants.least_blocks = kEnds;
    // Of places that are dear every third case has one between the ends as well.
    if (several && planned[i].wants.of_blocks &&
        planned[i].wants.block_steps > Wants{}.slice_steps && i % kOneOf != 0)
      planned[i].wants.least_blocks = kEnds;
    if (has_small_shapes_ || several) continue;
    // What tries values is not worth a wait for blocks that take far longer than those before.
    const double least = std::max(LeastStepsFor(planned[i].probe.case_.axes), needed.value_or(0));
    if (planned[i].wants.part_steps == 0 && !planned[i].wants.seems_long && harvest_.examined > 0)
      planned[i].wants.part_steps = static_cast<std::uint64_t>(
          std::clamp(kFarMore * least, static_cast<double>(kLongSliceSteps),
                     static_cast<double>(kMostSliceSteps)));
    // Where steps are dear fewer blocks run, but no fewer than one that had room.
    const auto room = static_cast<double>(i % kOneOf == 0 ? kStepsForPlaces : kValueSliceSteps);
    const double one = std::min(static_cast<double>(planned[i].wants.block_steps), room);
    planned[i].wants.slice_steps = static_cast<std::uint64_t>(std::max(room / dear_factor_, one));
    if (i % kOneOf != 0) planned[i].wants.least_blocks = 1;
  }
}

std::optional<double> Campaign::NeededStepsFor(const ops::AxisValues& axes) const {
  const std::vector<std::uint64_t> blocks = BlocksOfEach(trial_.instance, trial_.plan, axes);
  if (blocks.empty()) return std::nullopt;
  // Tickets there are the more, the more there is to do; blocks draw them, however many these are.
  const OfPath& path = PathCostsFor(axes);
  const double parts = path.tickets.Estimate(axes, cases::TotalElements(trial_.instance, axes))
                           .value_or(static_cast<double>(blocks.back()));
  return path.needed.EstimateEach(axes, static_cast<std::int64_t>(parts));
}

double Campaign::SliceStepsFor(const Task& task) const {
  if ((costs_.empty() && of_all_paths_.blocks.empty()) || !IsSlice(task.probe))
    return kNominalSliceSteps;
  const ops::AxisValues& axes = task.probe.case_.axes;
  const auto least = static_cast<double>(std::max(task.wants.least_blocks, task.wants.sure_blocks));
  const auto wanted = static_cast<double>(task.wants.slice_steps);
  // Where it has less room than what values take, it is less.
  const double nominal = std::min(
      kNominalSliceSteps, kNominalSliceSteps / static_cast<double>(kValueSliceSteps) * wanted);
  if (const auto needed = NeededStepsFor(axes))
    // Where that takes more than there is room for, fewer run (needed.cc).
    return std::max(nominal,
                    std::min(least * *needed, std::max(*needed, Wants::kLittleMore * wanted)));
  const double whole = WholeStepsFor(axes);
  // Where blocks may depend on each other, or take little more, all of them run.
  const bool all =
      whole <= Wants::kLittleMore * wanted || (!parts_ran_ && SomeKernelMay(facts::BlocksDepend));
  return std::max(
      nominal, all ? whole : BesideStepsFor(axes) + std::max(least * BlockStepsFor(axes), wanted));
}

bool Campaign::EndsTakeMore(const ops::AxisValues& axes, double most) const {
  const std::uint64_t blocks = BlocksOf(trial_.instance, trial_.plan, axes);
  return blocks <= engine::kWholeGrid &&
         !engine::LastBlockOnly(cases::TotalElements(trial_.instance, axes), blocks) &&
         WholeStepsFor(axes) > most;
}

double Campaign::CostOf(const Task& task) const {
  const ops::AxisValues& axes = task.probe.case_.axes;
  const double whole = WholeStepsFor(axes);
  if (!task.probe.ends_only) return whole * static_cast<double>(1 + task.probe.prelude.size());
  const std::uint64_t blocks = BlocksOf(trial_.instance, trial_.plan, axes);
  const double block = BlockStepsFor(axes);
  double cost = std::max(block, static_cast<double>(task.wants.slice_steps));
  if (IsSlice(task.probe)) {
    cost = RunsWhole(axes) ? whole : cost + BesideStepsFor(axes);
  } else {
    cost = blocks <= engine::kWholeGrid ? whole : 3 * block;
  }
  // Whatever takes longer ends there.
  return std::min(cost, static_cast<double>(kMostHugeSteps));
}

void Campaign::Learn(const CaseRun& run) {
  if (run.error || run.report.stop != Stop::kCompleted || run.steps == 0) return;
  schedule_matters_ = schedule_matters_ || run.report.counters.used_atomics;
  flags_are_read_ = flags_are_read_ || run.report.counters.strong_loads;
  const std::int64_t elements = cases::TotalElements(trial_.instance, run.probe.case_.axes);
  const double calls = static_cast<double>(1 + run.probe.prelude.size());
  const double steps = static_cast<double>(run.report.counters.steps) / calls;
  if (elements != INT64_MAX) {
    costs_.Learn(run.probe.case_.axes, elements, steps);
    truth_costs_.Learn(run.probe.case_.axes, elements, run.truth_steps);
    if (run.probe.prelude.empty()) LearnOfLaunches(run, {});
  }
  const auto threads =
      static_cast<double>(ThreadsOf(trial_.instance, trial_.plan, run.probe.case_.axes));
  // Tiny cases are all overhead: whole blocks run for a handful of elements.
  if (elements < 64 && threads > 0)
    steps_per_thread_ = std::max(steps_per_thread_, std::min(steps / threads, 5'000.0));
  if (elements < 64 || elements == INT64_MAX) return;
  const double beyond = (steps - threads * steps_per_thread_) / static_cast<double>(elements);
  // A moving average: what is estimated are sums over many cases.
  marginal_steps_ += (std::clamp(beyond, 0.0, 5'000.0) - marginal_steps_) / 16;
  const double ratio = steps / static_cast<double>(elements);
  steps_per_element_ = std::max(steps_per_element_, std::min(ratio, 5'000.0));
}

// What all blocks of each take, by those that ran.
void Campaign::LearnOfLaunches(const CaseRun& run, std::span<const LaunchPart> parts) {
  const ops::AxisValues& axes = run.probe.case_.axes;
  const std::int64_t elements = cases::TotalElements(trial_.instance, axes);
  const auto launches = LaunchesAt(trial_.instance, trial_.plan, axes);
  if (launches.size() != run.report.launch_steps.size() || trial_.plan.kernels.size() < 2) return;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const double of_one =
        i < parts.size() && parts[i].run > 0
            ? static_cast<double>(parts[i].all) / static_cast<double>(parts[i].run)
            : 1;
    launch_costs_[launches[i].entry].Learn(
        axes, elements, of_one * static_cast<double>(run.report.launch_steps[i]));
  }
}

void Campaign::LearnOfSlice(const CaseRun& run) {
  if (run.error || run.report.stop != Stop::kCompleted || run.parts.empty()) return;
  if (run.left_out.empty()) sliced_.push_back(run.probe.case_);
  schedule_matters_ = schedule_matters_ || run.report.counters.used_atomics;
  double blocks_for_one = 1;
  for (const LaunchPart& part : run.parts) {
    parts_ran_ = parts_ran_ || part.run < part.all;
    if (part.run > 0)
      blocks_for_one =
          std::max(blocks_for_one, static_cast<double>(part.all) / static_cast<double>(part.run));
  }
  const ops::AxisValues& axes = run.probe.case_.axes;
  const auto blocks = static_cast<std::int64_t>(BlocksOf(trial_.instance, trial_.plan, axes));
  if (blocks == 0) return;
  LearnOfLaunches(run, run.parts);
  double steps = static_cast<double>(run.report.counters.steps);
  for (std::size_t i = 0; i < std::min(run.parts.size(), run.report.launch_steps.size()); ++i) {
    if (run.parts[i].tickets || run.parts[i].run < run.parts[i].all) {
      cut_.insert(run.parts[i].entry);
    } else if (!cut_.contains(run.parts[i].entry)) {
      // What a launch takes that runs whole hangs on no number of blocks.
      steps -= static_cast<double>(run.report.launch_steps[i]);
    }
  }
  const bool costs_were_known = !of_all_paths_.blocks.empty();
  OfPath& mine = of_paths_[PathAt(trial_.instance.op, trial_.plan, axes)];
  for (OfPath* const path : {&mine, &of_all_paths_}) {
    path->blocks.Learn(axes, blocks,
                       std::max(steps, 1.0) * blocks_for_one / static_cast<double>(blocks));
    if (!run.probe.needed_only) continue;
    const LaunchPart& last = run.parts.back();
    const std::uint64_t chosen = std::clamp<std::uint64_t>(last.run, 1, run.steps);
    if (last.tickets) {
      path->tickets.Learn(axes, cases::TotalElements(trial_.instance, axes),
                          static_cast<double>(last.all));
    }
    path->needed.Learn(axes, static_cast<std::int64_t>(last.all),
                       static_cast<double>(run.steps) / static_cast<double>(chosen));
  }
  // They differ with the shape: a moving average.
  dear_factor_ += (DearFactor(run) - dear_factor_) / (costs_were_known ? 8 : 1);
}

void Campaign::MakeAffordable(cases::Case& value) const {
  for (const std::string& name : InputsMadeInFull(trial_.instance, value)) {
    const ops::TensorSpec& spec = *trial_.instance.op.FindInput(name);
    const bool is_float =
        cases::ClassOf(spec, trial_.instance.TypeOf(spec)) == cases::InputClass::kFloat;
    value.profiles[name] = {
        .kind = is_float ? "biased" : "uniform", .parameters = {}, .literal = {}};
  }
}

bool Campaign::KernelMay(const ops::KernelPlan& kernel, AskFacts* answer) const {
  const auto lowered = trial_.compiled.lowered.find(kernel.entry);
  return lowered == trial_.compiled.lowered.end() ||
         MayBe(answer(trial_.compiled.facts.get(), lowered->second));
}

bool Campaign::SomeKernelMay(AskFacts* answer) const {
  return std::ranges::any_of(trial_.plan.kernels, [&](const ops::KernelPlan& kernel) {
    return KernelMay(kernel, answer);
  });
}

bool Campaign::MayWait(const ops::KernelPlan& kernel) const {
  // What only races could tell a loop that looks at memory, nobody waits for.
  return KernelMay(kernel, facts::Polls) && KernelMay(kernel, facts::BlocksDepend);
}

bool Campaign::MayWait() const {
  return std::ranges::any_of(trial_.plan.kernels,
                             [&](const ops::KernelPlan& kernel) { return MayWait(kernel); });
}

bool Campaign::MayKeepState() const {
  const facts::Facts* facts = trial_.compiled.facts.get();
  return facts == nullptr || !facts->fault.empty() ||
         std::ranges::any_of(facts->variables, [](const facts::Variable& variable) {
           return MayBe(variable.written) || variable.is_extern;
         });
}

bool Campaign::RunsWhole(const ops::AxisValues& axes) const {
  return !parts_ran_ && (SomeKernelMay(facts::BlocksDepend) ||
                         BlocksOfEach(trial_.instance, trial_.plan, axes).size() > 1);
}

ops::AxisValues Campaign::Affordable(ops::AxisValues axes) const {
  while (LeastStepsFor(axes) > kAffordableSteps) {
    const auto longest =
        std::ranges::max_element(axes, {}, [](const auto& axis) { return axis.second; });
    if (longest == axes.end() || longest->second < 2) break;
    const auto halved =
        cases::SolveNear(trial_.instance.op, longest->first, longest->second / 2, axes);
    if (!halved || halved->at(longest->first) >= longest->second) break;
    axes = *halved;
  }
  return axes;
}

}  // namespace assay::campaign
