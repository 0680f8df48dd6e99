// Judging a slice of a case of any size: some blocks of each launch, from its beginning, its end and
// between, on inputs whose every value is there but costs nothing (base/repeating_memory.h), compared
// at what these blocks wrote.
//
// Only launches are cut whose blocks are known not to depend on each other, and that hand nothing on
// to a later one (engine::MayCut); the others run whole. One block runs first and tells what blocks
// take; then as many run as the budget has room for, all of them where it has. Where an estimate says
// already which blocks that will be, they run at once. Memory and race monitors watch those that run.
// What they wrote is seen from the pages of the outputs; the oracle computes as much of it as it can
// afford, in whole warps (slices_compare.cc).
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

namespace assay::campaign {
namespace {

// What the blocks of a slice may take,
constexpr std::uint64_t kMostSliceSteps = 800'000'000;
// as many as run where each is dearer than the budget by far;
constexpr std::uint64_t kEnds = 2;
// as much as a slice may take of what was estimated,
constexpr std::uint64_t kFarTooLow = 2;
// what a whole grid may that seems to leave the end of an output unwritten,
constexpr std::uint64_t kStepsToConfirm = 6'000'000'000;
// by how much an estimate may be too high,
constexpr std::uint64_t kByFar = 4;
// and the last launch by itself, where only what is needed of those before it runs.
constexpr std::uint64_t kStepsOfTheLast = 1'500'000'000;
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

/// How many blocks run, where each takes that much, beside so many that write the ends of outputs.
std::uint64_t BlocksFor(std::uint64_t a_block, std::uint64_t writers, const Wants& wants) {
  // What the dearest slices spend on a block between the ends, and then on the first one, would do for a whole wave.
  constexpr std::uint64_t kDear = 3, kDearest = 6;
  if (a_block > kDearest * wants.slice_steps) return 1;
  std::uint64_t least = wants.least_blocks;
  if (a_block > kDear * wants.slice_steps)
    least = std::min(std::max(kEnds, writers + 1) - writers, least);
  if (least * a_block > kMostSliceSteps) return 1;
  return std::max(wants.slice_steps / std::max<std::uint64_t>(a_block, 1), least);
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

/// One slice while it is run.
class Runner::Slice {
 public:
  Slice(const Runner& runner, const cases::Probe& probe, const Wants& wants, CaseRun& run)
      : runner_(runner),
        instance_(*runner.subject_.instance),
        probe_(probe),
        wants_(wants),
        run_(run),
        most_steps_(wants.part_steps > 0 ? wants.part_steps : kMostSliceSteps) {}

  Status Run();

 private:
  /// Inputs, plan and buffers, and which launches may be cut. False where that leaves nothing to run.
  Result<bool> Prepare();
  Result<engine::Binding> BindOver(std::uint8_t poison) const;
  /// Runs so many blocks of each launch that may be cut, and those that write the ends of outputs.
  Status RunBlocks(std::uint64_t count, std::uint64_t limit);
  /// Of several launches runs the blocks that are needed, if those can be told.
  Status RunNeeded(std::uint64_t count);
  /// Runs those blocks at once of which an estimate says that it will be them; else none. How many that were.
  Result<std::uint64_t> RunAtOnce();
  /// After a first run: as many as the budget has room for; and who writes the ends of outputs, if need be all.
  /// False where that takes too long.
  Result<bool> RunTheRest(std::uint64_t ran_at_once);
  /// By the run before: one block of each launch that is cut, and everything with all of their blocks.
  struct BlockCost {
    std::uint64_t a_block;
    std::uint64_t all;
  };
  BlockCost CostOfBlocks() const;
  /// Of several launches, where the needed blocks leave the end of an output as it was: whether anybody writes it.
  /// False where nobody does.
  Result<bool> FindTheEnd();
  Status Judge();
  Status CompareOrders(const oracle::SparseElements& places);
  Result<Rerun> Again(const Schedule& schedule) const;

  /// How many blocks are to run, where each takes that much.
  std::uint64_t CountFor(std::uint64_t a_block) const;
  /// Does each block take more than all were to?
  bool IsDear() const { return wants_.block_steps > wants_.slice_steps; }
  /// Do whole grids take far more than they may, if all blocks take that much?
  bool IsMuchByEstimate() const;
  /// Blocks that are left out have nothing to give to those that run, but of an earlier launch what it hands on.
  bool IsTooLong() const { return campaign::IsTooLong(run_.report, /*others_may_help=*/false); }
  bool IsClean() const {
    return run_.report.stop == Stop::kCompleted && run_.report.findings.empty();
  }
  /// The tensor that an output overwrites, as it was before; or null.
  const Tensor* Before(const std::string& output) const;
  std::vector<std::int64_t> Written(const std::string& output, const Tensor& tensor) const;
  bool EndIsUnwritten(const std::string& output, const Tensor& tensor) const;
  bool SomeEndIsUnwritten() const;
  const TensorMap& Outputs() const { return bound_.calls.front().outputs; }
  void NoteReport();
  void NoteParts();
  void LeaveOut(std::string_view reason);

  const Runner& runner_;
  const ops::Instance& instance_;
  const cases::Probe& probe_;
  const Wants& wants_;
  CaseRun& run_;
  std::uint64_t most_steps_;

  cases::Materialised filled_;
  ops::ResolvedPlan plan_;
  engine::Binding bound_;
  std::size_t copied_ = 0;        // Bytes of what the op overwrites.
  std::vector<std::size_t> cut_;  // Launches that may be cut,
  std::uint64_t all_ = 0;         // and the blocks of the largest of them.
  std::set<std::uint64_t>
      writers_;  // Blocks that write the ends of outputs, if the guess is right.
  bool ran_ = false;
  bool only_needed_ = false;
  bool without_truth_ = false;
  bool whole_ = false;           // All blocks ran.
  bool end_is_unknown_ = false;  // Whether anybody writes it.
};

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
  auto plan = ops::Resolve(*runner_.subject_.plan, instance_, filled_.axes);
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

Result<engine::Binding> Runner::Slice::BindOver(std::uint8_t poison) const {
  const std::array calls = {
      engine::Call{.plan = &plan_, .axes = &filled_.axes, .inputs = &filled_.inputs}};
  ASSAY_TRY(engine::Binding made, engine::Bind(instance_, *runner_.subject_.compiled, calls,
                                               {.poison = poison, .misalign = probe_.misalign}));
  made.execution.schedule = probe_.schedule;
  made.execution.perturbation_seed = probe_.perturbation_seed;
  made.execution.checks.coverage = wants_.coverage;
  if (!wants_.watch) {
    made.execution.checks = {
        .bounds = false, .initialisation = false, .race = false, .barrier = false};
    return made;
  }
  made.execution.note_disguised = true;
  made.execution.checks.order = wants_.orders && probe_.schedule == Schedule{};
  return made;
}

Status Runner::Slice::RunBlocks(std::uint64_t count, std::uint64_t limit) {
  // What the run before has overwritten is there anew.
  if (std::exchange(ran_, true) && copied_ > 0) {
    ASSAY_TRY(bound_, BindOver(probe_.poison));
  }
  Execution& execution = bound_.execution;
  for (const std::size_t i : cut_) {
    Launch& launch = execution.launches[i];
    launch.only = WithBlocks(ChooseBlocks(Blocks(launch), count, probe_.case_.seed + i), writers_,
                             Blocks(launch));
  }
  execution.limits.max_steps = limit;
  run_.probe.slice_blocks = cut_.empty() ? 0 : count;
  ASSAY_TRY(run_.report, runner_.engine_.Run(execution, bound_.buffers, engine::Trust::kCandidate));
  NoteReport();
  run_.steps += run_.report.counters.steps;
  return {};
}

bool Runner::Slice::IsMuchByEstimate() const {
  constexpr std::uint64_t kFar = 2;
  std::uint64_t blocks = 1;
  for (const Launch& launch : bound_.execution.launches) blocks = std::max(blocks, Blocks(launch));
  return wants_.block_steps > kFar * most_steps_ / blocks;
}

Status Runner::Slice::RunNeeded(std::uint64_t count) {
  const Binder bind = [this](std::uint8_t poison) { return BindOver(poison); };
  const std::uint64_t room = Wants::kLittleMore * wants_.slice_steps;
  ASSAY_TRY(auto needed,
            runner_.RunNeeded(bind, probe_, filled_, count, room, most_steps_, run_.steps));
  if (!needed) return {};
  bound_ = std::move(needed->binding);
  run_.report = std::move(needed->report);
  NoteReport();
  run_.probe.slice_blocks = needed->count;
  run_.probe.needed_only = only_needed_ = true;
  return {};
}

std::uint64_t Runner::Slice::CountFor(std::uint64_t a_block) const {
  if (probe_.slice_blocks > 0) return std::min(probe_.slice_blocks, all_);
  const std::uint64_t count = without_truth_ ? 1 : BlocksFor(a_block, writers_.size(), wants_);
  // Nothing is left to guess where all can run for little more.
  return all_ <= Wants::kLittleMore * count &&
                 all_ * a_block <= Wants::kLittleMore * wants_.slice_steps
             ? all_
             : count;
}

Runner::Slice::BlockCost Runner::Slice::CostOfBlocks() const {
  const Execution& execution = bound_.execution;
  // What launches take that run whole hangs on no number of blocks.
  BlockCost cost = {.a_block = 0, .all = run_.report.counters.steps};
  for (const std::size_t i : cut_) {
    const std::uint64_t ran = BlocksThatRun(execution.launches[i]);
    const std::uint64_t steps = i < run_.report.launch_steps.size() ? run_.report.launch_steps[i]
                                                                    : run_.report.counters.steps;
    const std::uint64_t a_block = std::max<std::uint64_t>(steps / ran, 1);
    cost.a_block += a_block;
    cost.all += (Blocks(execution.launches[i]) - ran) * a_block;
  }
  return cost;
}

Result<std::uint64_t> Runner::Slice::RunAtOnce() {
  const bool known = probe_.slice_blocks > 0;
  if (cut_.empty() || (!known && wants_.block_steps == 0)) return 0;
  // Both ends of what is dear, or as many as are ever chosen. If that was wrong, or the end was not written, there
  // is more to find out.
  const std::uint64_t count = CountFor(wants_.block_steps);
  if (count < 2 || !(known || IsDear() || count >= std::min(kMostChosen, all_))) return 0;
  // An estimate that was far too low ends soon.
  ASSAY_TRY_VOID(RunBlocks(
      count,
      known ? most_steps_
            : std::min(most_steps_, kFarTooLow * (count + writers_.size()) * wants_.block_steps)));
  return IsTooLong() || (IsClean() && SomeEndIsUnwritten()) ? 0 : count;
}

Result<bool> Runner::Slice::RunTheRest(std::uint64_t ran_at_once) {
  const Execution& execution = bound_.execution;
  const auto [a_block, all_blocks] = CostOfBlocks();
  const std::size_t known_writers = writers_.size();
  for (const auto& [name, tensor] : Outputs()) {
    if (!EndIsUnwritten(name, tensor)) continue;
    const std::vector<std::int64_t> written = Written(name, tensor);
    for (const std::size_t i : cut_) {
      const std::uint64_t last = Blocks(execution.launches[i]) - 1;
      if (const auto block = WriterOfTheEnd(written, tensor.elements, last))
        writers_.insert(*block);
    }
  }
  const std::uint64_t count = std::max(CountFor(a_block), ran_at_once);
  const bool the_same = std::min(count, kMostChosen) == std::min(ran_at_once, kMostChosen) &&
                        (count >= all_) == (ran_at_once >= all_);
  if (!the_same || writers_.size() > known_writers) {
    ASSAY_TRY_VOID(RunBlocks(count, 2 * most_steps_));
    if (IsTooLong()) {
      LeaveOut("some blocks take far longer than the last one");
      return false;
    }
  }
  whole_ = count >= all_;
  if (whole_ || !IsClean() || !SomeEndIsUnwritten()) return true;
  end_is_unknown_ = all_blocks > kStepsToConfirm;
  if (end_is_unknown_) return true;
  ASSAY_TRY_VOID(RunBlocks(all_, 2 * kStepsToConfirm));
  whole_ = true;
  if (!IsTooLong()) return true;
  LeaveOut(kUnknownEnd);
  return false;
}

Result<bool> Runner::Slice::FindTheEnd() {
  end_is_unknown_ = IsClean() && SomeEndIsUnwritten();
  if (!end_is_unknown_ || bound_.execution.launches.size() == 1) return true;
  const Launch& last = bound_.execution.launches.back();
  const auto ran = static_cast<double>(BlocksThatRun(last) * ThreadsThatRun(last));
  const auto all = static_cast<double>(Blocks(last) * Threads(last));
  if (run_.report.launch_steps.empty() ||
      static_cast<double>(run_.report.launch_steps.back()) * all / ran >
          static_cast<double>(kStepsOfTheLast))
    return true;
  const Binder bind = [this](std::uint8_t poison) { return BindOver(poison); };
  std::set<std::uint64_t> blocks = LastOfTurns(*runner_.subject_.plan, filled_.axes);
  blocks.insert({0, Blocks(last) - 1});
  ASSAY_TRY(End end,
            runner_.WhoWritesTheEnd(bind, WithBlocks({{Blocks(last) - 1, 1}}, blocks, Blocks(last)),
                                    kStepsOfTheLast, run_.steps));
  if (end.left_over_zeros) {
    return Fail(ErrorKind::kLimit,
                "the last launch leaves the end of an output unwritten where all that it reads of "
                "those before is "
                "zero, and they take too long to see what it does with what they write");
  }
  end_is_unknown_ = !end.known;
  if (end.unwritten.empty()) return true;
  run_.outputs = std::move(end.unwritten);
  NoteParts();
  return false;
}

Status Runner::Slice::Run() {
  ASSAY_TRY(const bool ready, Prepare());
  if (!ready) return {};
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
  const bool several = wants_.watch && cut_.size() < bound_.execution.launches.size();
  if (several && (probe_.needed_only || (wants_.needed_only && probe_.slice_blocks == 0)))
    ASSAY_TRY_VOID(RunNeeded(probe_.slice_blocks > 0 ? probe_.slice_blocks : wants_.least_blocks));
  // What hands on runs whole: not where that is known to take far too long.
  const bool hopeless =
      several && !only_needed_ && runner_.WholeStepsOfThoseBefore(filled_) / kByFar > most_steps_;
  const bool is_much = hopeless || (several && IsMuchByEstimate());
  if (is_much && !wants_.needed_only) ASSAY_TRY_VOID(RunNeeded(kEnds));
  std::uint64_t ran_at_once = 0;
  if (!only_needed_) {
    if (hopeless) {
      LeaveOut(kBlockTooLong);
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
    LeaveOut(cut_.empty()
                 ? std::string_view("blocks may depend on each other, and all take too long")
                 : kBlockTooLong);
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
  if (wanted.empty()) {
    LeaveOut("the blocks that ran wrote nothing");
    return {};
  }
  ASSAY_TRY_VOID(runner_.CompareSlice(filled_, Outputs(), wanted, wants_, run_));
  ASSAY_TRY_VOID(CompareOrders(wanted));
  const bool agrees =
      run_.comparison && run_.comparison->numeric.empty() && run_.comparison->precision.empty();
  if (end_is_unknown_ && agrees) {
    LeaveOut(kUnknownEnd);
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
                     ? TurnPairs(wants_, Outputs(), &places, again, run_)
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
  for (std::size_t i = 0; i < bound_.execution.launches.size(); ++i) {
    const Launch& launch = bound_.execution.launches[i];
    // Blocks of which some threads run count by these.
    const std::uint64_t run = BlocksThatRun(launch) * ThreadsThatRun(launch) / Threads(launch);
    run_.parts.push_back({plan_.kernels[i].entry, run, Blocks(launch)});
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
