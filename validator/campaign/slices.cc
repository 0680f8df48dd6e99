// Judging a slice of a case of any size: some blocks of each launch, from its beginning, its end and
// between, on inputs whose every value is there but costs nothing (base/repeating_memory.h), compared
// at what these blocks wrote.
//
// Only launches are cut whose blocks are known not to depend on each other, and that hand nothing on
// to a later one (engine::MayCut); the others run whole. One block runs first and tells what blocks
// take; then as many run as the budget has room for, all of them where it has. Where an estimate says
// already which blocks that will be, they run at once (slice_blocks.cc). Memory and race monitors watch those that run.
// What they wrote is seen from the pages of the outputs; the oracle computes as much of it as it can
// afford, in whole warps (slices_compare.cc).
//
// Blocks of other launches may meet, by what their program says, and do not at every shape (slices_apart.cc).
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
// compared, and the case counts as left out: whether anybody writes the end is not known. Of several launches
// of which only what is needed runs, the last one is asked by itself (FindTheEnd).
//
// An engine without monitors, a GPU, runs whole grids; what is compared is a part all the same.
//
// What cannot be run so is left out, with the reason (CaseRun::left_out).
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/orders.h"
#include "validator/campaign/slice.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// By how much an estimate may be too high, before nothing is run, and before something else is tried first.
constexpr std::uint64_t kByFar = 4, kFar = 2;
// What the ends of launches before the last may take, where that takes too long.
constexpr std::uint64_t kStepsBeforeLast = 160'000'000;
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

/// Behind the places that follow each other from the one of that number on.
std::size_t EndOfRun(const std::vector<std::int64_t>& places, std::size_t begin) {
  std::size_t end = begin;
  while (end < places.size() && (end == begin || places[end] == places[end - 1] + 1)) ++end;
  return end;
}

/// Of each output places that are next to each other: of the first of these runs, or the second.
oracle::SparseElements RunOf(const oracle::SparseElements& places, std::size_t number) {
  constexpr std::size_t kLongest = std::size_t{1} << 14;
  oracle::SparseElements run;
  for (const auto& [name, elements] : places) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < number; ++i) begin = EndOfRun(elements, begin);
    const std::size_t end = std::min(EndOfRun(elements, begin), begin + kLongest);
    for (std::size_t i = begin; i < end; ++i) run[name].push_back(elements[i]);
  }
  return run;
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

std::uint64_t MostStepsOfSlice(const Wants& wants) {
  if (wants.part_steps > 0) return wants.part_steps;
  return wants.seems_long ? kLongSliceSteps : kMostSliceSteps;
}

Result<bool> Runner::Slice::Prepare() {
  if (!probe_.prelude.empty()) {
    run_.left_out = "calls before a slice are not made";
    return false;
  }
  auto filled = runner_.oracle_.Materialise(instance_, probe_.case_);
  if (!filled) {
    if (filled.error().kind != ErrorKind::kLimit) return std::unexpected(filled.error());
    run_.left_out = ToString(filled.error());
    return false;
  }
  filled_ = *std::move(filled);
  auto plan = runner_.PlanOfPart(filled_);
  if (!plan) {
    if (plan.error().kind == ErrorKind::kLimit ||
        PastAnyGrid(*runner_.subject_.plan, filled_.axes)) {
      run_.left_out = ToString(plan.error());
    } else {
      run_.plan_findings.push_back(PlanFinding(plan.error()));
    }
    return false;
  }
  plan_ = *std::move(plan);
  copied_ = BytesCopied(instance_, filled_.inputs);
  if (copied_ > kMostCopied) {
    run_.left_out = "tensors that are overwritten are too large to be copied";
    return false;
  }
  auto bound = BindOver(probe_.poison);
  if (!bound) {
    run_.left_out = ToString(bound.error());
    return false;
  }
  bound_ = *std::move(bound);
  const Execution& execution = bound_.execution;
  // A GPU, which has no monitors, runs whole grids.
  for (std::size_t i = 0; wants_.watch && i < execution.launches.size(); ++i) {
    const std::uint64_t blocks = Blocks(execution.launches[i]);
    if (blocks < 2 || engine::MayCut(execution, runner_.subject_.compiled->facts.get(), i) !=
                          engine::Cut::kIndependent)
      continue;
    cut_.push_back(i);
    all_ = std::max(all_, blocks);
  }
  // The last block comes to the end, or those that do where a grid is capped.
  if (!cut_.empty()) writers_ = LastOfTurns(*runner_.subject_.plan, filled_.axes);
  return true;
}

Result<engine::Binding> Runner::Slice::BindOver(std::uint8_t poison, bool updates_nothing) const {
  const std::array calls = {
      engine::Call{.plan = &plan_, .axes = &filled_.axes, .inputs = &filled_.inputs}};
  ASSAY_TRY(engine::Binding made, engine::Bind(instance_, *runner_.subject_.compiled, calls,
                                               {.poison = poison,
                                                .misalign = probe_.misalign,
                                                .updates_nothing = updates_nothing}));
  made.execution.schedule = probe_.schedule;
  made.execution.perturbation_seed = probe_.perturbation_seed;
  made.execution.checks.coverage = wants_.coverage;
  if (!wants_.watch) {
    made.execution.checks = {
        .bounds = false, .initialisation = false, .race = false, .barrier = false};
    return made;
  }
  made.execution.note_disguised = true;
  if (apart_) WatchForMeetings(made.execution);
  made.execution.checks.order = wants_.orders && probe_.schedule == Schedule{};
  return made;
}
Status Runner::Slice::Run() {
  ASSAY_TRY(const bool ready, Prepare());
  if (!ready) return {};
  if (wants_.too_long) {
    LeaveOut(cut_.empty() ? kAllTakeTooLong : kBlockTooLong);
    return {};
  }
  if (MayRunApart()) {
    ASSAY_TRY(const bool ran, RunApart());
    if (ran) return {};
  }
  if (wants_.apart_or_nothing) {
    LeaveOut(kAllTakeTooLong);
    return {};
  }
  ASSAY_TRY_VOID(RunPrepared());
  // Where it is asked for places, those of the launches before the last are some.
  const bool too_long = run_.left_out == kBlockTooLong || run_.left_out == kAllTakeTooLong;
  const bool asked_for_ends = wants_.truth_or_nothing;  // ends.cc looks at them by itself.
  if (!too_long || asked_for_ends || !wants_.watch || wants_.slice_steps < Wants{}.slice_steps)
    return {};
  return runner_.RunEndsOfSome(probe_, filled_, Binding(), kStepsBeforeLast, run_);
}

Status Runner::Slice::RunPrepared() {
  // Where there will be no truth, one block is as good as several for the monitors. Asked for nothing, the
  // oracle says whether the reference fits.
  if ((IsDear() || wants_.truth_or_nothing) && !instance_.op.Chooses()) {
    const auto nothing = runner_.oracle_.EvaluateSlice(instance_, probe_.case_, filled_, {}, 0);
    without_truth_ = !nothing && nothing.error().kind == ErrorKind::kLimit;
    // For the monitors alone no block is worth what a whole wave takes.
    const bool too_dear = wants_.block_steps > Wants::kLittleMore * wants_.slice_steps;
    if (without_truth_ && (wants_.truth_or_nothing || too_dear)) {
      LeaveOut(ToString(nothing.error()));
      return {};
    }
  }
  const bool several = wants_.watch && !apart_ && cut_.size() < bound_.execution.launches.size();
  if (several && (probe_.needed_only || (wants_.needed_only && probe_.slice_blocks == 0)))
    ASSAY_TRY_VOID(RunNeeded(probe_.slice_blocks > 0
                                 ? probe_.slice_blocks
                                 : std::max(wants_.least_blocks, wants_.sure_blocks)));
  // What hands on runs whole: not where that is known to take far too long.
  const auto is_hopeless = [&] {
    return several && !only_needed_ &&
           runner_.WholeStepsBeside(filled_, cut_) / kByFar > most_steps_;
  };
  // Blocks that meet run together before all of them do.
  const bool may_meet = several && bound_.execution.launches.size() == 1;
  const bool is_much = is_hopeless() || (several && IsEstimatedAbove(kFar * most_steps_)) ||
                       (may_meet && IsEstimatedAbove(Wants::kLittleMore * wants_.slice_steps));
  if (is_much && !only_needed_ && !wants_.needed_only)
    ASSAY_TRY_VOID(RunNeeded(probe_.slice_blocks > 0 ? probe_.slice_blocks : kEnds));
  std::uint64_t ran_at_once = 0;
  if (!only_needed_) {
    // What looked for the blocks that are needed has had what there is for one.
    const bool hopeless = is_hopeless() || (several && run_.steps >= most_steps_);
    if (hopeless || (may_meet && IsEstimatedAbove(kByFar * most_steps_))) {
      LeaveOut(hopeless ? kBlockTooLong : kAllTakeTooLong);
      return {};
    }
    ASSAY_TRY(ran_at_once, RunAtOnce());
    // The last block alone, where grids can be cut; else everything.
    if (ran_at_once == 0) {
      ASSAY_TRY_VOID(RunBlocks(1, most_steps_));
      ran_at_once = 1;
    }
    if (several && !is_much && !wants_.needed_only && IsTooLong()) ASSAY_TRY_VOID(RunNeeded(kEnds));
  }
  if (IsTooLong()) {
    LeaveOut(cut_.empty() ? kAllTakeTooLong : kBlockTooLong);
    return {};
  }
  if (only_needed_) {
    ASSAY_TRY(const bool written, FindTheEnd());
    if (!written) return {};
  } else if (cut_.empty()) {
    whole_ = true;
  } else if (IsClean()) {
    ASSAY_TRY(const bool ended, RunTheRest(ran_at_once));
    if (!ended) return {};
  }
  NoteParts();
  return IsClean() ? Judge() : Status{};
}

Status Runner::Slice::Judge() {
  if (whole_) {
    NoteOutputs(bound_.calls.front(), run_);
    if (std::ranges::any_of(run_.outputs,
                            [](const OutputState& output) { return output.unwritten_bytes != 0; }))
      return {};
  }
  oracle::SparseElements wanted;
  for (const auto& [name, tensor] : Outputs()) {
    auto written = whole_ && (Before(name) != nullptr || !wants_.watch)
                       ? Everywhere(tensor.elements, probe_.case_.seed)
                       : Written(name, tensor);
    if (!written.empty()) wanted[name] = std::move(written);
  }
  if (!whole_) {
    ASSAY_TRY(const bool known, KeepWhatStays(wanted));
    if (!known) {
      LeaveOut(kMayBeOverwritten);
      return {};
    }
  }
  if (wanted.empty()) {
    LeaveOut("the blocks that ran wrote nothing");
    return {};
  }
  const auto agrees = [this] {
    return run_.comparison && run_.comparison->numeric.empty() &&
           run_.comparison->precision.empty();
  };
  // What counts past the end and wraps comes to the front, before or behind what a block writes there first; truths of all that
  // was written may come to neither.
  for (const std::size_t number : {0u, 1u}) {
    if (!end_is_unknown_) break;
    ASSAY_TRY_VOID(runner_.CompareSlice(filled_, Outputs(), RunOf(wanted, number), wants_, run_));
    if (run_.comparison && !agrees()) return {};
    run_.comparison.reset();
    run_.left_out.clear();
  }
  ASSAY_TRY_VOID(runner_.CompareSlice(filled_, Outputs(), wanted, wants_, run_));
  ASSAY_TRY_VOID(CompareOrders(wanted));
  if (end_is_unknown_ && agrees()) {
    LeaveOut(UnknownEnd());
    return {};
  }
  if (wants_.keep_outputs) run_.kept = std::move(bound_.calls.front().outputs);
  return {};
}

// Where what threads do to each other may hang on their order.
Status Runner::Slice::CompareOrders(const oracle::SparseElements& places) {
  if (!wants_.determinism || !run_.report.counters.used_atomics) return {};
  const RunAgain again = [this](const Schedule& schedule) { return Again(schedule); };
  TensorMap plain;
  ASSAY_TRY_VOID(probe_.schedule == Schedule{}
                     ? runner_.TurnPairs(wants_, Outputs(), &places, again, run_)
                     : CompareWithPlain(Outputs(), &places, again, run_, plain));
  if (run_.error && run_.error->kind == ErrorKind::kLimit) {
    run_.left_out = ToString(*run_.error);
    run_.error.reset();
  }
  return {};
}

Result<Runner::Rerun> Runner::Slice::Again(const Schedule& schedule) const {
  ASSAY_TRY(engine::Binding other, BindOver(probe_.poison));
  other.execution.schedule = schedule;
  other.execution.checks.order = schedule == Schedule{};
  other.execution.limits = bound_.execution.limits;
  other.execution.tickets = bound_.execution.tickets;
  for (std::size_t i = 0; i < other.execution.launches.size(); ++i)
    other.execution.launches[i].only = bound_.execution.launches[i].only;
  ASSAY_TRY(Report report,
            runner_.engine_.Run(other.execution, other.buffers, engine::Trust::kCandidate));
  NameTheKernelFile(report);
  const std::uint64_t steps = report.counters.steps;
  return Rerun{std::move(report), std::move(other.calls.front().outputs), steps};
}

const Tensor* Runner::Slice::Before(const std::string& output) const {
  const std::string& updates = instance_.op.FindOutput(output)->updates;
  return updates.empty() ? nullptr : &filled_.inputs.find(updates)->second;
}

std::string_view Runner::Slice::UnknownEnd() const {
  // Of a launch whose blocks wait for each other nobody can say who writes it: it is not cut otherwise.
  const facts::Facts* const program = runner_.subject_.compiled->facts.get();
  const std::vector<Launch>& launches = bound_.execution.launches;
  const bool wait = launches.size() == 1 && MayBe(facts::Polls(program, launches.front().entry)) &&
                    MayBe(facts::BlocksDepend(program, launches.front().entry));
  return wait ? kAllTakeTooLong : kUnknownEnd;
}

std::vector<std::int64_t> Runner::Slice::Written(const std::string& output,
                                                 const Tensor& tensor) const {
  const Tensor* before = Before(output);
  return before == nullptr
             ? WrittenElements(bound_.calls.front(), output, probe_.poison, run_.report)
             : ChangedElements(tensor, *before);
}

bool Runner::Slice::EndIsUnwritten(const std::string& output, const Tensor& tensor) const {
  const Tensor* before = Before(output);
  return before == nullptr ? campaign::EndIsUnwritten(tensor, probe_.poison)
                           : EndIsTheSame(tensor, *before);
}

bool Runner::Slice::SomeEndIsUnwritten() const {
  return std::ranges::any_of(Outputs(), [this](const auto& output) {
    return EndIsUnwritten(output.first, output.second);
  });
}

void Runner::Slice::NoteReport() {
  NameTheKernelFile(run_.report);
  RefuseUnwatched(bound_.execution.checks, runner_.engine_.name(), run_.report);
}

void Runner::Slice::NoteParts() {
  run_.parts.clear();
  if (const auto& dealt = bound_.execution.tickets; dealt && tickets_ > 0) {
    // Beside the last number dealt, which says that nothing is left.
    run_.parts.push_back({.entry = plan_.kernels.front().entry,
                          .run = dealt->held.size() - 1,
                          .all = tickets_,
                          .tickets = true});
    return;
  }
  for (std::size_t i = 0; i < bound_.execution.launches.size(); ++i) {
    const Launch& launch = bound_.execution.launches[i];
    // Blocks of which some threads run count by these.
    const std::uint64_t run = BlocksThatRun(launch) * ThreadsThatRun(launch) / Threads(launch);
    run_.parts.push_back({.entry = plan_.kernels[i].entry, .run = run, .all = Blocks(launch)});
  }
}

void Runner::Slice::LeaveOut(std::string_view reason) {
  run_.left_out = ReasonOfALimit(run_.report, reason);
  run_.report.findings.clear();
  run_.report.stop = Stop::kCompleted;
}

Status Runner::RunSlice(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  return Slice(*this, probe, wants, run).Run();
}

}  // namespace assay::campaign
