// Judging a slice of a case of any size: some blocks of each launch, from its beginning, its end and
// between, on inputs whose every value is there but costs nothing (base/repeating_memory.h), compared
// at what these blocks wrote.
//
// Only launches are cut whose blocks are known not to depend on each other, and that hand nothing on
// to a later one (engine::MayCut); the others run whole. One block runs first and tells what blocks
// take; then as many run as the budget has room for, all of them where it has. Memory and race
// monitors watch those that run. What they wrote is seen from the pages of the outputs; the oracle
// computes as much of it as it can afford, in whole warps (Oracle::EvaluateSlice).
//
// Ops that overwrite tensors are left out.
//
// Where all blocks ran, outputs left unwritten are a finding as in any other case. Where the end of an
// output was not written though the last block ran, the whole grid runs. Where that takes too long,
// what was written is compared, and the case counts as left out: whether anybody writes the end is not
// known.
//
// Truths that follow from choices are those of whole rows, as a case of their own (rows.h).
//
// What cannot be run so is left out, with the reason (CaseRun::left_out).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/rng.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/rows.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// What the blocks of a slice may take.
constexpr std::uint64_t kMostSliceSteps = 400'000'000;
// Places that blocks are taken from, and how many neighbours at each.
constexpr std::uint64_t kPlaces = 9;
constexpr std::uint64_t kMostNeighbours = 32;
// Rows that are compared as a case of their own.
constexpr std::size_t kMostRows = 48;

std::uint64_t Blocks(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

/// About `count` blocks of `all`: the first and the last ones, and runs of neighbours between them.
std::vector<BlockRange> Choose(std::uint64_t all, std::uint64_t count, std::uint64_t seed) {
  if (count >= all) return {};
  const std::uint64_t places = std::clamp<std::uint64_t>(count, 1, kPlaces);
  const std::uint64_t length = std::clamp<std::uint64_t>(count / places, 1, kMostNeighbours);
  if (places == 1 || all <= places * length) return {{all - 1, 1}};
  Rng rng(DeriveSeed(seed, "slice"));
  std::vector<BlockRange> chosen;
  const std::uint64_t stride = all / places;
  for (std::uint64_t place = 0; place < places; ++place) {
    // Each place lies in a part of its own, so that none overlap.
    const std::uint64_t room = stride - length;
    std::uint64_t first = place * stride + (room > 0 ? rng.Below(room + 1) : 0);
    if (place == 0) first = 0;
    if (place + 1 == places) first = all - length;
    chosen.push_back({first, length});
  }
  return chosen;
}

std::uint64_t CountOf(const Launch& launch) {
  if (launch.only.empty()) return Blocks(launch);
  std::uint64_t count = 0;
  for (const BlockRange& range : launch.only) count += range.count;
  return count;
}

/// It ended for being long: a loop over millions of elements also looks like one without end.
bool IsTooLong(const Report& report) {
  const bool endless = std::ranges::any_of(report.findings, [](const Finding& finding) {
    return finding.kind == FindingKind::kLivelock || finding.kind == FindingKind::kDeadlock;
  });
  return endless || ((report.stop == Stop::kStepLimit || report.stop == Stop::kResourceLimit) &&
                     report.findings.empty());
}

}  // namespace

Status Runner::RunSlice(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const std::uint64_t most_steps = std::max(kMostSliceSteps, wants.part_steps);
  if (instance.op.generator) {
    run.left_out = "inputs that a generator makes cannot be made in part";
    return {};
  }
  if (std::ranges::any_of(instance.op.outputs,
                          [](const ops::TensorSpec& output) { return !output.updates.empty(); })) {
    run.left_out = "tensors that are overwritten are not judged in part";
    return {};
  }
  if (!probe.prelude.empty()) {
    run.left_out = "calls before a slice are not made";
    return {};
  }
  const auto filled = cases::Materialise(instance, probe.case_);
  if (!filled) {
    if (filled.error().kind != ErrorKind::kLimit) return std::unexpected(filled.error());
    run.left_out = ToString(filled.error());
    return {};
  }
  const auto plan = ops::Resolve(*subject_.plan, instance, filled->axes);
  if (!plan && plan.error().kind != ErrorKind::kLimit) {
    run.plan_findings.push_back(PlanFinding(plan.error()));
    return {};
  }
  if (!plan) {
    run.left_out = ToString(plan.error());
    return {};
  }
  const std::array calls = {
      engine::Call{.plan = &*plan, .axes = &filled->axes, .inputs = &filled->inputs}};
  auto bound = engine::Bind(instance, *subject_.compiled, calls,
                            {.poison = probe.poison, .misalign = probe.misalign});
  if (!bound) {
    run.left_out = ToString(bound.error());
    return {};
  }
  Execution& execution = bound->execution;
  execution.schedule = probe.schedule;
  execution.perturbation_seed = probe.perturbation_seed;
  execution.checks.coverage = wants.coverage;
  std::vector<std::size_t> cut;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    if (Blocks(execution.launches[i]) > 1 &&
        engine::MayCut(execution, subject_.compiled->facts.get(), i) == engine::Cut::kIndependent)
      cut.push_back(i);
  }
  const auto run_with = [&](std::uint64_t count, std::uint64_t limit) -> Status {
    for (const std::size_t i : cut) {
      Launch& launch = execution.launches[i];
      launch.only = Choose(Blocks(launch), count, probe.case_.seed + i);
    }
    execution.limits.max_steps = limit;
    ASSAY_TRY(run.report, engine_.Run(execution, bound->buffers, engine::Trust::kCandidate));
    NameTheKernelFile(run.report);
    RefuseUnwatched(execution.checks, engine_.name(), run.report);
    run.steps += run.report.counters.steps;
    return {};
  };
  const auto finish = [&] {
    run.parts.clear();
    for (std::size_t i = 0; i < execution.launches.size(); ++i) {
      run.parts.push_back(
          {plan->kernels[i].entry, CountOf(execution.launches[i]), Blocks(execution.launches[i])});
    }
    return Status{};
  };
  const auto leave_out = [&](const char* reason) {
    run.left_out = reason;
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return Status{};
  };

  // The last block alone, where grids can be cut; else everything.
  ASSAY_TRY_VOID(run_with(1, most_steps));
  if (IsTooLong(run.report)) {
    return leave_out(cut.empty() ? "blocks may depend on each other, and all take too long"
                                 : "one block takes too long");
  }
  if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return finish();
  bool whole = cut.empty();
  bool end_is_unknown = false;
  if (!whole) {
    const std::uint64_t a_block =
        std::max<std::uint64_t>(run.report.counters.steps / cut.size(), 1);
    std::uint64_t all = 0;
    for (const std::size_t i : cut) all = std::max(all, Blocks(execution.launches[i]));
    std::uint64_t count = std::max<std::uint64_t>(wants.slice_steps / a_block, 3);
    if (count * a_block > kMostSliceSteps) count = 1;
    // Nothing is left to guess where all can run for little more.
    if (all <= 4 * count && all * a_block <= 4 * wants.slice_steps) count = all;
    if (count > 1) {
      ASSAY_TRY_VOID(run_with(count, 2 * most_steps));
      if (IsTooLong(run.report)) return leave_out("some blocks take far longer than the last one");
    }
    whole = count >= all;
    const bool unwritten = std::ranges::any_of(
        bound->calls.front().outputs,
        [&](const auto& output) { return EndIsUnwritten(output.second, probe.poison); });
    if (!whole && unwritten && run.report.stop == Stop::kCompleted && run.report.findings.empty()) {
      end_is_unknown = all * a_block > 4 * kMostSliceSteps;
      if (!end_is_unknown) {
        ASSAY_TRY_VOID(run_with(all, 8 * kMostSliceSteps));
        if (IsTooLong(run.report)) return leave_out(kUnknownEnd);
        whole = true;
      }
    }
  }
  ASSAY_TRY_VOID(finish());
  if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return {};
  if (whole) {
    NoteOutputs(bound->calls.front(), run);
    if (std::ranges::any_of(run.outputs,
                            [](const OutputState& output) { return output.unwritten_bytes != 0; }))
      return {};
  }
  oracle::SparseElements wanted;
  for (const auto& [name, tensor] : bound->calls.front().outputs) {
    auto written = WrittenElements(tensor, probe.poison);
    if (!written.empty()) wanted[name] = std::move(written);
  }
  if (wanted.empty()) return leave_out("the blocks that ran wrote nothing");
  ASSAY_TRY_VOID(CompareSlice(*filled, bound->calls.front().outputs, std::move(wanted), run));
  const bool agrees =
      run.comparison && run.comparison->numeric.empty() && run.comparison->precision.empty();
  if (end_is_unknown && agrees) return leave_out(kUnknownEnd);
  if (wants.keep_outputs && !instance.op.Chooses())
    run.kept = std::move(bound->calls.front().outputs);
  return {};
}

Status Runner::CompareSlice(const cases::Materialised& filled, const TensorMap& outputs,
                            oracle::SparseElements wanted, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  if (instance.op.Chooses()) return CompareRows(filled, outputs, wanted, run);
  const cases::Case& value = run.probe.case_;
  const auto truth = oracle_.EvaluateSlice(instance, value, filled, std::move(wanted), value.seed);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  if (std::ranges::all_of(*truth, [](const auto& output) { return output.second.empty(); })) {
    run.left_out = "no value of the slice could be told from nothing";
    return {};
  }
  ComparePoints(instance, *truth, outputs, run.comparison.emplace());
  return {};
}

Status Runner::CompareRows(const cases::Materialised& filled, const TensorMap& outputs,
                           const oracle::SparseElements& wanted, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const auto axis = AxisOfRows(instance.op);
  if (!axis) {
    run.left_out = "what follows from a choice hangs on all of its scores";
    return {};
  }
  const std::vector<std::int64_t> rows = Spread(RowsWritten(outputs, wanted), kMostRows);
  if (rows.empty()) {
    run.left_out = "the blocks that ran wrote no whole row";
    return {};
  }
  cases::Materialised some{.axes = filled.axes, .inputs = {}};
  some.axes[*axis] = static_cast<std::int64_t>(rows.size());
  ASSAY_TRY(some.inputs, TakeRows(instance.op.inputs, filled.inputs, *axis, rows));
  ASSAY_TRY(const TensorMap got, TakeRows(instance.op.outputs, outputs, *axis, rows));
  cases::Case value = run.probe.case_;
  value.origin = fmt::format("rows {} of {}", fmt::join(rows, " "), filled.axes.at(*axis));
  const auto truth = oracle_.EvaluateFor(instance, value, some, got);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  run.comparison = oracle::Compare(instance, **truth, value, some, got);
  NameRows(rows, *run.comparison);
  return {};
}

}  // namespace assay::campaign
