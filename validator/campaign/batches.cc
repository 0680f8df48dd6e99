// How the cases of a wave run: in batches, the longest of each first; what is dear after all others, two at a time, so
// that those that come later know of it; and again, where a case turned out to be too long.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "validator/campaign/campaign.h"
#include "validator/campaign/parts.h"
#include "validator/cases/shapes.h"

namespace assay::campaign {
namespace {

// What a case is granted once the limit learned from tiny ones was too small, and how often it is
// halved when that is too little as well.
constexpr std::uint64_t kGenerousSteps = 400'000'000;
constexpr int kMostHalved = 8;
constexpr std::int64_t kSmallElements = 1024;

}  // namespace

CaseRun Campaign::Again(Task& task, CaseRun run, Harvest& harvest) const {
  const auto unending = [](const CaseRun& each) {
    return !each.error && each.left_out.empty() && each.plan_findings.empty() &&
           each.report.stop == Stop::kStepLimit && each.report.findings.empty();
  };
  if (IsSlice(task.probe) && run.left_out == kBlockTooLong) {
    // What is long is the axis that it was made for: the others need not be.
    cases::Case& value = task.probe.case_;
    const auto longest =
        std::ranges::max_element(value.axes, {}, [](const auto& axis) { return axis.second; });
    if (longest == value.axes.end()) return run;
    ops::AxisValues shortest;
    for (const ops::Axis& axis : trial_.instance.op.axes) shortest[axis.name] = axis.min;
    const auto narrow =
        cases::SolveNear(trial_.instance.op, longest->first, longest->second, shortest);
    if (!narrow || *narrow == value.axes) return run;
    Task narrower = task;
    narrower.probe.case_.axes = *narrow;
    EstimateBlocks(narrower);
    // As much as this took is not spent again on what seems to take as long.
    if (narrower.wants.seems_long && run.steps >= kLongSliceSteps) return run;
    LeaveOut(task, fmt::format("{}; one with shorter other axes ran in its place", run.left_out),
             harvest);
    harvest.ledger.Planned(task.purpose);
    task = std::move(narrower);
    return trial_.runner.Run(task.probe, task.wants);
  }
  if (IsSlice(task.probe) && run.left_out == kUnknownEnd) {
    // What is left over by tiles and turns is the same of a shorter one, of which all blocks can be asked. That it has an
    // end does not make this one known.
    constexpr std::int64_t kTurns = 4096, kShort = 4 * kTurns;
    const auto longest = std::ranges::max_element(task.probe.case_.axes, {},
                                                  [](const auto& axis) { return axis.second; });
    if (longest == task.probe.case_.axes.end() || longest->second < 2 * kShort) return run;
    const std::int64_t length = kShort + longest->second % kTurns;
    const auto shorter =
        cases::SolveNear(trial_.instance.op, longest->first, length, task.probe.case_.axes);
    if (!shorter || shorter->at(longest->first) != length) return run;
    NoteEnd(run, harvest);
    LeaveOut(task, fmt::format("{}; a shorter one ran as well", run.left_out), harvest);
    harvest.ledger.Planned(task.purpose);
    task.probe.case_.axes = *shorter;
    EstimateBlocks(task);
    return trial_.runner.Run(task.probe, task.wants);
  }
  if (task.probe.ends_only || !task.probe.prelude.empty() || !unending(run)) return run;
  if (task.wants.max_steps < kGenerousSteps) {
    task.wants.max_steps = kGenerousSteps;
    run = trial_.runner.Run(task.probe, task.wants);
  }
  // Where blocks do not hang on each other some of them tell as well, if these end.
  const ops::AxisValues& axes = task.probe.case_.axes;
  if (unending(run) && trial_.effort.sliced_cases > 0 && !RunsWhole(axes) &&
      BlocksOf(trial_.instance, trial_.plan, axes) > 1 &&
      cases::TotalElements(trial_.instance, axes) >= kSmallElements) {
    Task part = task;
    part.probe.ends_only = true;
    CaseRun of_part = trial_.runner.Run(part.probe, part.wants);
    if (of_part.left_out.empty()) {
      task = std::move(part);
      return of_part;
    }
  }
  for (int halved = 0; halved < kMostHalved && unending(run); ++halved) {
    cases::Case& value = task.probe.case_;
    const bool spelled_out = std::ranges::any_of(value.profiles, [&](const auto& profile) {
      const ops::TensorSpec* const input = trial_.instance.op.FindInput(profile.first);
      return profile.second.kind == "literal" && input != nullptr && !input->is_scalar;
    });
    const auto longest =
        std::ranges::max_element(value.axes, {}, [](const auto& axis) { return axis.second; });
    // A small case that has no end by then is not merely costly.
    if (spelled_out || longest == value.axes.end() || longest->second < 2 ||
        cases::TotalElements(trial_.instance, value.axes) < kSmallElements)
      break;
    const auto smaller =
        cases::SolveNear(trial_.instance.op, longest->first, longest->second / 2, value.axes);
    if (!smaller || smaller->at(longest->first) >= longest->second) break;
    LeaveOut(task,
             fmt::format("no end within {} instructions; a smaller case ran in its place",
                         task.wants.max_steps),
             harvest);
    harvest.ledger.Planned(task.purpose);
    value.axes = *smaller;
    run = trial_.runner.Run(task.probe, task.wants);
  }
  return run;
}

std::vector<std::size_t> Campaign::LongestFirst(const std::vector<Task>& planned) const {
  std::vector<double> cost;
  for (const Task& task : planned) cost.push_back(CostOf(task));
  std::vector<std::size_t> order(planned.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t first = 0; first < order.size(); first += kBatch) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end =
        order.begin() + static_cast<std::ptrdiff_t>(std::min(first + kBatch, order.size()));
    std::stable_sort(begin, end, [&](std::size_t a, std::size_t b) { return cost[a] > cost[b]; });
  }
  return order;
}

bool Campaign::Execute(const std::vector<Task>& planned, std::string_view gate, Harvest& harvest,
                       std::size_t batches_after_refutation) {
  for (const Task& task : planned) harvest.ledger.Planned(task.purpose);
  // Those that do not run because the judgement is decided, or can come to nothing, are accounted
  // for as well.
  const auto end_before = [&](std::size_t next, std::string_view why) {
    for (std::size_t i = next; i < planned.size(); ++i) LeaveOut(planned[i], why, harvest);
    return false;
  };
  bool ended = false;
  const auto take = [&](std::size_t i, CaseRun first) {
    const std::size_t done = i + 1;
    Task task = planned[i];
    Gather(task, Again(task, std::move(first), harvest), harvest);
    trial_.Report(gate, fmt::format("{}: case {} of {}", task.purpose, done, planned.size()),
                  static_cast<double>(done) / static_cast<double>(planned.size()));
    if (done % kBatch != 0 && done != planned.size()) return true;
    if (harvest.hits.empty()) {
      // More of what cannot be run proves nothing either.
      if (harvest.inconclusive.empty()) return true;
      ended = true;
      return end_before(done, "another case proved inconclusive");
    }
    if (harvest.hits.size() < kEnoughDefects &&
        harvest.batches_since_hit++ < batches_after_refutation)
      return true;
    ended = true;
    return end_before(done, "the candidate was refuted already");
  };
  trial_.runner.RunInOrder(planned, take, LongestFirst(planned));
  return !ended;
}

// By what those before it took: a whole case may be too dear by now.
void Campaign::Reconsider(Task& task) const {
  if (!task.probe.ends_only && !FitsWhole(task.probe.case_.axes)) {
    task.probe.ends_only = true;
    task.wants.needed_only = only_slices_;
    MakeAffordable(task.probe.case_);
  }
  if (IsSlice(task.probe)) EstimateBlocks(task);
}

bool Campaign::ExecuteDearLast(std::vector<Task> planned, std::size_t batches_after_refutation) {
  // So many at a time: the next ones know whether these took too long.
  constexpr std::size_t kAtOnce = 2;
  // Who writes an end that nobody seems to write: of a judgement that is refuted it is not asked.
  const auto is_last_question = [](const Task& task) {
    return task.probe.places_only && task.wants.part_steps >= kMostPlacesSteps;
  };
  const auto cheap = [&](const Task& task) {
    const ops::AxisValues& axes = task.probe.case_.axes;
    if (is_last_question(task)) return false;
    if (!task.probe.ends_only) return !task.probe.prelude.empty() || SurelyFitsWhole(axes);
    return !IsSlice(task.probe) || !task.wants.of_blocks ||
           LeastStepsFor(axes) <= static_cast<double>(kLongSliceSteps) / 2;
  };
  const auto dear = std::stable_partition(planned.begin(), planned.end(), cheap);
  std::vector<Task> some(std::make_move_iterator(planned.begin()), std::make_move_iterator(dear));
  std::vector<Task> others(std::make_move_iterator(dear), std::make_move_iterator(planned.end()));
  bool goes_on = Execute(some, "memory", harvest_, batches_after_refutation);
  for (std::size_t i = 0; i < others.size(); i += kAtOnce) {
    some.clear();
    for (std::size_t j = i; j < std::min(i + kAtOnce, others.size()); ++j) {
      Reconsider(others[j]);
      some.push_back(std::move(others[j]));
    }
    const bool is_last = std::ranges::any_of(some, is_last_question);
    if (goes_on && (!is_last || harvest_.hits.empty())) {
      goes_on = Execute(some, "memory", harvest_, is_last ? 0 : batches_after_refutation);
      continue;
    }
    goes_on = false;
    for (const Task& task : some) {
      harvest_.ledger.Planned(task.purpose);
      LeaveOut(task, "the judgement was decided already", harvest_);
    }
  }
  return goes_on;
}

bool Campaign::RunTheTelling(std::vector<Task>& planned, const Wave& wave,
                             std::span<const Wave* const> later) {
  // One, for a first guess; then some of those that the guess lets pass.
  constexpr std::array<std::size_t, 2> kTelling = {1, kBatch / 2};
  std::size_t until = 0;
  for (const std::size_t count : kTelling) {
    until += count;
    if (harvest_.cases >= until || planned.empty()) continue;
    PlanBlocks(planned, wave.several);
    if (count > 1) Trim(planned, {}, wave, later, static_cast<double>(harvest_.part_steps));
    const auto end = planned.begin() + static_cast<std::ptrdiff_t>(std::min(count, planned.size()));
    std::vector<Task> first(std::make_move_iterator(planned.begin()), std::make_move_iterator(end));
    planned.erase(planned.begin(), end);
    if (!Execute(first, "memory", harvest_, 0)) return false;
  }
  return true;
}

}  // namespace assay::campaign
