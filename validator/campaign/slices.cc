// Judging a slice of a case of any size: some blocks of each launch, from its beginning, its end and
// between, on inputs whose every value is there but costs nothing (base/repeating_memory.h), compared
// at what these blocks wrote.
//
// Only launches are cut whose blocks are known not to depend on each other, and that hand nothing on
// to a later one (engine::MayCut); the others run whole. One block runs first and tells what blocks
// take; then as many run as the budget has room for, all of them where it has. Where an estimate says
// already which blocks that will be, they run at once. Memory and race monitors watch those that run.
// What they wrote is seen from the pages of the outputs; the oracle computes as much of it as it can
// afford, in whole warps (Oracle::EvaluateSlice).
//
// Of several launches that hand on to each other, the blocks that are needed run where all would be too long
// (needed.cc), and of one whose blocks meet at tickets those that meet (together.cc).
//
// What an op overwrites is copied for each run, and seen by what changed. What its blocks left as it
// was they may never have been meant to write; so that is compared where all of them ran.
//
// Where all blocks ran, outputs left unwritten are a finding as in any other case. Where the end of an
// output was not written though the last block ran, and the block that would write it if the grid goes
// over the output in turns, the whole grid runs. Where that takes too long, what was written is
// compared, and the case counts as left out: whether anybody writes the end is not known.
//
// Truths that follow from choices are those of whole rows, as a case of their own (rows.h).
//
// What cannot be run so is left out, with the reason (CaseRun::left_out).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "validator/campaign/blocks.h"
#include "validator/campaign/orders.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"
#include "validator/oracle/points.h"
#include "validator/oracle/rows.h"

namespace assay::campaign {
namespace {

// What the blocks of a slice may take,
constexpr std::uint64_t kMostSliceSteps = 800'000'000;
// as many as run where each is dearer than the budget by far;
constexpr std::uint64_t kEnds = 2;
// as much as a slice may take of what was estimated,
constexpr std::uint64_t kFarTooLow = 4;
// and what a whole grid may that seems to leave the end of an output unwritten.
constexpr std::uint64_t kStepsToConfirm = 6'000'000'000;
// Rows that are compared as a case of their own: so many of them as the elements that their results are made of
// come to, one of all other inputs' for each row,
constexpr std::size_t kMostRows = 48;
constexpr std::int64_t kMostOfRows = 1 << 24;
constexpr std::int64_t kMostOfRowsForValues = 1 << 22;
// but for a few.
constexpr std::size_t kFewestRows = 8;
// Of what the op overwrites: each run has a copy.
constexpr std::size_t kMostCopied = std::size_t{512} << 20;

/// Of tensors that the op overwrites.
std::size_t BytesCopied(const ops::Instance& instance, const TensorMap& inputs) {
  std::size_t bytes = 0;
  for (const ops::TensorSpec& output : instance.op.outputs) {
    if (!output.updates.empty()) bytes += inputs.find(output.updates)->second.memory.size();
  }
  return bytes;
}

/// How many blocks run, where each takes that much. Of a slice that comes without an estimate, for it is a
/// replay, no fewer than of one that had one.
std::uint64_t BlocksFor(std::uint64_t a_block, const Wants& wants) {
  // What the dearest slices spend on a block between the ends would do for a whole wave.
  constexpr std::uint64_t kByFar = 3;
  const bool estimated = wants.block_steps > 0;
  const std::uint64_t least = wants.least_blocks;
  if (least * a_block > kMostSliceSteps)
    return !estimated && kEnds * a_block <= kMostSliceSteps ? std::min(kEnds, least) : 1;
  const bool dear = estimated && a_block > kByFar * wants.slice_steps;
  return std::max(wants.slice_steps / std::max<std::uint64_t>(a_block, 1),
                  dear ? std::min(kEnds, least) : least);
}

/// Has a launch more blocks along x than any GPU takes? It fails with an error, in the open, at shapes of
/// thousands of millions of rows; slices look for what goes wrong in silence.
bool PastAnyGrid(const ops::LaunchPlan& plan, const ops::AxisValues& axes) {
  return std::ranges::any_of(plan.kernels, [&](const ops::KernelPlan& kernel) {
    const auto blocks = kernel.grid[0].Evaluate(axes);
    return blocks && *blocks > ops::kMostBlocksAlongX;
  });
}

}  // namespace

Status Runner::RunSlice(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const std::uint64_t most_steps = wants.part_steps > 0 ? wants.part_steps : kMostSliceSteps;
  if (!probe.prelude.empty()) {
    run.left_out = "calls before a slice are not made";
    return {};
  }
  const auto filled = oracle_.Materialise(instance, probe.case_);
  if (!filled) {
    if (filled.error().kind != ErrorKind::kLimit) return std::unexpected(filled.error());
    run.left_out = ToString(filled.error());
    return {};
  }
  const auto plan = ops::Resolve(*subject_.plan, instance, filled->axes);
  if (!plan) {
    if (plan.error().kind == ErrorKind::kLimit || PastAnyGrid(*subject_.plan, filled->axes)) {
      run.left_out = ToString(plan.error());
    } else {
      run.plan_findings.push_back(PlanFinding(plan.error()));
    }
    return {};
  }
  const std::array calls = {
      engine::Call{.plan = &*plan, .axes = &filled->axes, .inputs = &filled->inputs}};
  const std::size_t copied = BytesCopied(instance, filled->inputs);
  if (copied > kMostCopied) {
    run.left_out = "tensors that are overwritten are too large to be copied";
    return {};
  }
  const auto bind_over = [&](std::uint8_t poison) -> Result<engine::Binding> {
    ASSAY_TRY(engine::Binding made, engine::Bind(instance, *subject_.compiled, calls,
                                                 {.poison = poison, .misalign = probe.misalign}));
    made.execution.schedule = probe.schedule;
    made.execution.perturbation_seed = probe.perturbation_seed;
    made.execution.checks.coverage = wants.coverage;
    made.execution.checks.order = wants.orders && probe.schedule == Schedule{};
    return made;
  };
  const auto bind = [&] { return bind_over(probe.poison); };
  auto bound = bind();
  if (!bound) {
    run.left_out = ToString(bound.error());
    return {};
  }
  Execution& execution = bound->execution;
  std::vector<std::size_t> cut;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    if (Blocks(execution.launches[i]) > 1 &&
        engine::MayCut(execution, subject_.compiled->facts.get(), i) == engine::Cut::kIndependent)
      cut.push_back(i);
  }
  std::set<std::uint64_t> writers;  // Blocks that write the ends of outputs, if the guess is right.
  bool ran = false;
  const auto run_with = [&](std::uint64_t count, std::uint64_t limit) -> Status {
    // What the run before has overwritten is there anew.
    if (std::exchange(ran, true) && copied > 0) {
      ASSAY_TRY(*bound, bind());
    }
    for (const std::size_t i : cut) {
      Launch& launch = execution.launches[i];
      launch.only = WithBlocks(ChooseBlocks(Blocks(launch), count, probe.case_.seed + i), writers,
                               Blocks(launch));
    }
    execution.limits.max_steps = limit;
    run.probe.slice_blocks = cut.empty() ? 0 : count;
    ASSAY_TRY(run.report, engine_.Run(execution, bound->buffers, engine::Trust::kCandidate));
    NameTheKernelFile(run.report);
    RefuseUnwatched(execution.checks, engine_.name(), run.report);
    run.steps += run.report.counters.steps;
    return {};
  };
  const auto finish = [&] {
    run.parts.clear();
    for (std::size_t i = 0; i < execution.launches.size(); ++i) {
      run.parts.push_back({plan->kernels[i].entry, BlocksThatRun(execution.launches[i]),
                           Blocks(execution.launches[i])});
    }
    return Status{};
  };
  const auto written_of = [&](const std::string& name, const Tensor& tensor) {
    const std::string& updates = instance.op.FindOutput(name)->updates;
    return updates.empty() ? WrittenElements(tensor, probe.poison)
                           : ChangedElements(tensor, filled->inputs.find(updates)->second);
  };
  const auto end_is_unwritten = [&](const auto& output) {
    const std::string& updates = instance.op.FindOutput(output.first)->updates;
    return updates.empty() ? EndIsUnwritten(output.second, probe.poison)
                           : EndIsTheSame(output.second, filled->inputs.find(updates)->second);
  };
  const auto leave_out = [&](std::string_view reason) {
    run.left_out = ReasonOfALimit(run.report, reason);
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return Status{};
  };

  // Blocks that are left out have nothing to give to those that run, but of an earlier launch what it hands on.
  const auto too_long = [&] { return IsTooLong(run.report, /*others_may_help=*/false); };
  const auto some_end_is_unwritten = [&] {
    return std::ranges::any_of(bound->calls.front().outputs, end_is_unwritten);
  };
  const auto again = [&](const Schedule& schedule) -> Result<Rerun> {
    ASSAY_TRY(engine::Binding other, bind());
    other.execution.schedule = schedule;
    other.execution.checks.order = schedule == Schedule{};
    other.execution.limits = execution.limits;
    for (std::size_t i = 0; i < execution.launches.size(); ++i)
      other.execution.launches[i].only = execution.launches[i].only;
    ASSAY_TRY(Report report,
              engine_.Run(other.execution, other.buffers, engine::Trust::kCandidate));
    NameTheKernelFile(report);
    const std::uint64_t steps = report.counters.steps;
    return Rerun{std::move(report), std::move(other.calls.front().outputs), steps};
  };
  // Where what threads do to each other may hang on their order.
  const auto compare_orders = [&](const oracle::SparseElements& places) -> Status {
    if (!wants.determinism || !run.report.counters.used_atomics) return {};
    const TensorMap& outputs = bound->calls.front().outputs;
    TensorMap plain;
    ASSAY_TRY_VOID(probe.schedule == Schedule{}
                       ? TurnPairs(wants, outputs, &places, again, run)
                       : CompareWithPlain(outputs, &places, again, run, plain));
    if (run.error && run.error->kind == ErrorKind::kLimit)
      run.left_out = ToString(*std::exchange(run.error, std::nullopt));
    return {};
  };
  // Of several launches the blocks that are needed, if those can be told.
  bool only_needed = false;
  const auto run_needed = [&](std::uint64_t count) -> Status {
    ASSAY_TRY(auto needed, RunNeeded(bind_over, probe, *filled, count, most_steps, run.steps));
    if (!needed) return {};
    *bound = std::move(needed->binding);
    run.report = std::move(needed->report);
    NameTheKernelFile(run.report);
    RefuseUnwatched(execution.checks, engine_.name(), run.report);
    run.probe.slice_blocks = count;
    run.probe.needed_only = only_needed = true;
    return {};
  };
  const bool several = cut.size() < execution.launches.size();
  if (several && (probe.needed_only || (wants.needed_only && probe.slice_blocks == 0)))
    ASSAY_TRY_VOID(run_needed(probe.slice_blocks > 0 ? probe.slice_blocks : wants.least_blocks));
  std::uint64_t all = 0;
  for (const std::size_t i : cut) all = std::max(all, Blocks(execution.launches[i]));
  const bool dear = wants.block_steps > wants.slice_steps;
  // Where there will be no truth, one block is as good as several for the monitors. Asked for nothing, the
  // oracle says whether the reference fits.
  const auto nothing = (dear || wants.truth_or_nothing) && !instance.op.Chooses()
                           ? oracle_.EvaluateSlice(instance, probe.case_, *filled, {}, 0)
                           : Result<oracle::SparseTruth>();
  const bool without_truth = !nothing && nothing.error().kind == ErrorKind::kLimit;
  if (without_truth && wants.truth_or_nothing) return leave_out(ToString(nothing.error()));
  const bool known = probe.slice_blocks > 0;
  const auto count_for = [&](std::uint64_t a_block) {
    if (known) return std::min(probe.slice_blocks, all);
    const std::uint64_t count = without_truth ? 1 : BlocksFor(a_block, wants);
    // Nothing is left to guess where all can run for little more.
    return all <= 4 * count && all * a_block <= 4 * wants.slice_steps ? all : count;
  };
  // At once, where the estimate says which blocks it will be: both ends of what is dear, or as many as are
  // ever chosen. If that was wrong, or the end was not written, there is more to find out.
  std::uint64_t ran_at_once = 1;
  if (!only_needed && !cut.empty() && (known || wants.block_steps > 0)) {
    const std::uint64_t count = count_for(wants.block_steps);
    if (count > 1 && (known || dear || count >= std::min(kMostChosen, all))) {
      // An estimate that was far too low ends soon.
      const std::uint64_t limit =
          known ? most_steps : std::min(most_steps, kFarTooLow * count * wants.block_steps);
      ASSAY_TRY_VOID(run_with(count, limit));
      const bool clean = run.report.stop == Stop::kCompleted && run.report.findings.empty();
      if (!too_long() && !(clean && some_end_is_unwritten())) ran_at_once = count;
    }
  }
  // The last block alone, where grids can be cut; else everything.
  if (!only_needed && ran_at_once == 1) ASSAY_TRY_VOID(run_with(1, most_steps));
  if (!only_needed && several && !wants.needed_only && too_long())
    ASSAY_TRY_VOID(run_needed(kEnds));
  if (too_long()) {
    return leave_out(
        cut.empty() ? std::string_view("blocks may depend on each other, and all take too long")
                    : kBlockTooLong);
  }
  if (run.report.stop != Stop::kCompleted || !run.report.findings.empty()) return finish();
  bool whole = cut.empty() && !only_needed;
  bool end_is_unknown = only_needed && some_end_is_unwritten();
  if (!whole && !only_needed) {
    std::uint64_t blocks_run = 0;
    for (const std::size_t i : cut) blocks_run += BlocksThatRun(execution.launches[i]);
    const std::uint64_t a_block =
        std::max<std::uint64_t>(run.report.counters.steps / blocks_run, 1);
    for (const auto& output : bound->calls.front().outputs) {
      if (!end_is_unwritten(output)) continue;
      const auto& [name, tensor] = output;
      const std::vector<std::int64_t> written = written_of(name, tensor);
      for (const std::size_t i : cut) {
        const std::uint64_t last = Blocks(execution.launches[i]) - 1;
        if (const auto block = WriterOfTheEnd(written, tensor.elements, last))
          writers.insert(*block);
      }
      writers.merge(LastOfTurns(*subject_.plan, filled->axes));
    }
    std::uint64_t count = std::max(count_for(a_block), ran_at_once);
    const bool the_same = std::min(count, kMostChosen) == std::min(ran_at_once, kMostChosen) &&
                          (count >= all) == (ran_at_once >= all);
    if (!the_same || !writers.empty()) {
      ASSAY_TRY_VOID(run_with(count, 2 * most_steps));
      if (too_long()) return leave_out("some blocks take far longer than the last one");
    }
    whole = count >= all;
    if (!whole && run.report.stop == Stop::kCompleted && run.report.findings.empty() &&
        some_end_is_unwritten()) {
      end_is_unknown = all * a_block > kStepsToConfirm;
      if (!end_is_unknown) {
        ASSAY_TRY_VOID(run_with(all, 2 * kStepsToConfirm));
        if (too_long()) return leave_out(kUnknownEnd);
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
    const bool updates = !instance.op.FindOutput(name)->updates.empty();
    auto written =
        whole && updates ? Everywhere(tensor.elements, probe.case_.seed) : written_of(name, tensor);
    if (!written.empty()) wanted[name] = std::move(written);
  }
  if (wanted.empty()) return leave_out("the blocks that ran wrote nothing");
  ASSAY_TRY_VOID(CompareSlice(*filled, bound->calls.front().outputs, wanted, wants, run));
  ASSAY_TRY_VOID(compare_orders(wanted));
  const bool agrees =
      run.comparison && run.comparison->numeric.empty() && run.comparison->precision.empty();
  if (end_is_unknown && agrees) return leave_out(kUnknownEnd);
  if (wants.keep_outputs) run.kept = std::move(bound->calls.front().outputs);
  return {};
}

Status Runner::CompareSlice(const cases::Materialised& filled, const TensorMap& outputs,
                            oracle::SparseElements wanted, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  if (instance.op.Chooses()) return CompareRows(filled, outputs, wanted, wants, run);
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
  oracle::ComparePoints(instance, *truth, outputs, run.comparison.emplace());
  return {};
}

Status Runner::CompareRows(const cases::Materialised& filled, const TensorMap& outputs,
                           const oracle::SparseElements& wanted, const Wants& wants,
                           CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const auto axis = oracle::AxisOfRows(instance.op);
  if (!axis) {
    run.left_out = "what follows from a choice hangs on all of its scores";
    return {};
  }
  ops::AxisValues of_one_row = filled.axes;
  of_one_row[*axis] = 1;
  const std::int64_t row = std::max<std::int64_t>(cases::TotalElements(instance, of_one_row), 1);
  const bool for_values = wants.slice_steps < Wants{}.slice_steps;
  const std::size_t most =
      std::clamp(static_cast<std::size_t>((for_values ? kMostOfRowsForValues : kMostOfRows) / row),
                 kFewestRows, kMostRows);
  const std::vector<std::int64_t> rows = Spread(oracle::RowsWritten(outputs, wanted), most);
  if (rows.empty()) {
    run.left_out = "the blocks that ran wrote no whole row";
    return {};
  }
  cases::Materialised some{.axes = filled.axes, .inputs = {}};
  some.axes[*axis] = static_cast<std::int64_t>(rows.size());
  ASSAY_TRY(some.inputs, oracle::TakeRows(instance.op.inputs, filled.inputs, *axis, rows));
  ASSAY_TRY(const TensorMap got, oracle::TakeRows(instance.op.outputs, outputs, *axis, rows));
  cases::Case value = run.probe.case_;
  value.origin = fmt::format("rows {} of {}", fmt::join(rows, " "), filled.axes.at(*axis));
  const auto truth = oracle_.EvaluateFor(instance, value, some, got);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  run.comparison = oracle::Compare(instance, **truth, value, some, got);
  oracle::NameRows(rows, *run.comparison);
  return {};
}

}  // namespace assay::campaign
