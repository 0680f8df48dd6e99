// Judging where a program writes, at a shape at which what it writes takes too long: its skeleton runs (facts/skeleton.h),
// all blocks where that can be afforded, else those at the ends and a few between.
//
// What is found is a store outside of a buffer, a place that two blocks write which nothing orders, and elements of
// outputs that nobody writes. What threads of one block do to each other is not asked, for their barriers may be gone; nor
// what blocks do that may order each other. No value is looked at, and nothing is said of the case
// where an address or a branch hangs on what the skeleton leaves out.
//
// What an op overwrites holds nothing here before. What nobody writes of it keeps its old value, and that is held
// to the truth.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "validator/campaign/alone.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/clears.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/producers.h"
#include "validator/campaign/queue.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/oracle/points.h"

namespace assay::campaign {
namespace {

// What some blocks may take, all by what those took, and these at most.
constexpr std::uint64_t kMostOfSome = 60'000'000, kMostOfAll = 640'000'000;
constexpr double kMostEstimated = 320e6;
constexpr double kOfEstimates = 0.8;
// All blocks write so much, of which each byte has a history for races.
constexpr std::uint64_t kMostBytes = kMostWritten / 2;
// What buffers hold before: neither what registers nor what memory of a block holds that nobody wrote.
constexpr std::uint8_t kUnwritten = 0x3c;
// Places that blocks are taken from, where not all run.
constexpr std::uint64_t kPlaces = 9;

constexpr std::string_view kNoSkeleton = "where it writes cannot be told without what it writes";
constexpr std::string_view kTooLong = "even where it writes takes too long to find out";
constexpr std::string_view kNoTruth =
    "whether what nobody writes is to change could not be computed";
constexpr std::string_view kNobodySeen = "it was not seen who writes the end of an output";

bool IsRace(const Finding& finding) {
  return finding.kind == FindingKind::kDataRace || finding.kind == FindingKind::kSameValueRace;
}

/// A race of threads of one block, whose barriers may be gone.
bool IsWithinABlock(const Finding& finding) {
  return IsRace(finding) && std::ranges::all_of(finding.accesses, [&](const Access& access) {
           return access.thread.block == finding.accesses.front().thread.block;
         });
}

/// Was something else found than where it writes: that this hangs on what is not there?
bool HangsOnMore(const Report& report) {
  if (!report.watched.initialisation || !report.watched.bounds) return true;
  if (report.findings.size() >= Limits{}.max_findings) return true;  // There may be more.
  return !std::ranges::all_of(report.findings, [](const Finding& finding) {
    return finding.kind == FindingKind::kOutOfBounds || finding.kind == FindingKind::kMisaligned ||
           finding.kind == FindingKind::kWriteToInput || IsRace(finding);
  });
}

/// All blocks, if each of a launch takes as much as those that ran.
double StepsOfAll(const Execution& execution, const Report& report) {
  double all = 0;
  for (std::size_t i = 0; i < std::min(report.launch_steps.size(), execution.launches.size());
       ++i) {
    const Launch& launch = execution.launches[i];
    all += static_cast<double>(report.launch_steps[i]) * static_cast<double>(Blocks(launch)) /
           static_cast<double>(BlocksThatRun(launch));
  }
  return all;
}

/// Takes off what somebody wrote.
void KeepUnwritten(const engine::BoundCall& call, const std::string& name,
                   const std::vector<WrittenRange>& writers, Unwritten& unwritten) {
  const std::size_t buffer = call.buffer_of.find(name)->second;
  const std::uint64_t size = SizeOf(call.outputs.find(name)->second.dtype);
  const std::size_t before = unwritten.some.size();
  std::erase_if(unwritten.some, [&](std::int64_t element) {
    const std::uint64_t at = static_cast<std::uint64_t>(element) * size;
    return std::ranges::any_of(writers, [&](const WrittenRange& written) {
      return written.range.buffer == buffer && written.range.first < at + size &&
             at < written.range.first + written.range.bytes;
    });
  });
  if (unwritten.some.size() == before) return;
  // Of those that were not asked about as many were written.
  unwritten.count = unwritten.count * static_cast<std::int64_t>(unwritten.some.size()) /
                    static_cast<std::int64_t>(before);
  unwritten.first = unwritten.some.empty() ? -1 : unwritten.some.front();
}

}  // namespace

Status Runner::RunPlaces(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const auto leave_out = [&](std::string_view reason) {
    run.left_out = reason;
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return Status{};
  };
  const auto filled = oracle_.Materialise(instance, probe.case_);
  if (!filled) return leave_out(ToString(filled.error()));
  const auto plan = PlanOfPart(*filled);
  if (!plan) return leave_out(ToString(plan.error()));
  const std::array calls = {
      engine::Call{.plan = &*plan, .axes = &filled->axes, .inputs = &filled->inputs}};
  engine::Binding bound;
  std::uint64_t most_of_all = kMostOfAll;
  std::vector<BufferRange> whose;
  const auto run_some = [&](bool all) -> Result<bool> {
    auto made =
        engine::Bind(instance, *subject_.compiled, calls,
                     {.poison = kUnwritten, .misalign = probe.misalign, .updates_nothing = true});
    if (!made) {
      ASSAY_TRY_VOID(leave_out(ToString(made.error())));
      return false;
    }
    bound = *std::move(made);
    Execution& execution = bound.execution;
    const facts::Skeleton* skeleton = SkeletonFor(execution);
    if (skeleton == nullptr) {
      ASSAY_TRY_VOID(leave_out(kNoSkeleton));
      return false;
    }
    UseSkeleton(*skeleton, execution);
    execution.checks = {.race = std::ranges::none_of(execution.launches, [&](const Launch& launch) {
                          return MayBe(
                              facts::BlocksDepend(subject_.compiled->facts.get(), launch.entry));
                        })};
    execution.note_disguised = true;
    execution.whose = whose;
    execution.limits.max_steps = all ? most_of_all : kMostOfSome;
    const std::set<std::uint64_t> writers = LastOfTurns(*subject_.plan, filled->axes);
    for (Launch& launch : execution.launches) {
      if (!all)
        launch.only = WithBlocks(ChooseBlocks(Blocks(launch), kPlaces, probe.case_.seed), writers,
                                 Blocks(launch));
    }
    ASSAY_TRY(run.report, engine_.Run(execution, bound.buffers, engine::Trust::kCandidate));
    NameTheKernelFile(run.report);
    run.steps += run.report.counters.steps;
    return true;
  };
  const Binder bind([&](std::uint8_t poison, bool) {
    return engine::Bind(instance, *subject_.compiled, calls,
                        {.poison = poison, .misalign = probe.misalign, .updates_nothing = true});
  });
  // Some of the blocks would draw all that there is from a counter.
  ASSAY_TRY(const std::shared_ptr<const Queue> queue, LearnQueue(bind, *filled));
  if (queue != nullptr) {
    most_of_all = std::max(kMostOfAll, wants.part_steps);
    if (queue->tickets > most_of_all / queue->ticket_steps) return leave_out(kTooLong);
  }
  ASSAY_TRY(bool ran, run_some(/*all=*/queue != nullptr));
  if (!ran) return {};
  const auto is_all = [&] {
    return std::ranges::all_of(bound.execution.launches,
                               [](const Launch& launch) { return launch.only.empty(); });
  };
  const bool is_little = BytesWritten(bound.execution) <= kMostBytes;
  // What some blocks of an earlier launch did not hand on may say where.
  const bool misses = HangsOnMore(run.report) && bound.execution.launches.size() > 1;
  const bool ended = run.report.stop == Stop::kCompleted && run.report.findings.empty();
  // Where the last blocks do not come to the end, no other case of that size says more.
  const bool unseen =
      ended && std::ranges::any_of(bound.calls.front().outputs, [](const auto& output) {
        return EndIsUnwritten(output.second, kUnwritten);
      });
  if (unseen) most_of_all = std::max(kMostOfAll, wants.part_steps);
  const double most =
      std::max(kMostEstimated, unseen ? kOfEstimates * static_cast<double>(wants.part_steps) : 0);
  if (!is_all() && is_little &&
      (misses || (ended && StepsOfAll(bound.execution, run.report) <= most))) {
    ASSAY_TRY(ran, run_some(/*all=*/true));
    if (!ran) return {};
  }
  if (HangsOnMore(run.report)) {
    run.report.findings =
        is_all() ? LeftUncleared(run.report, bound.execution, *plan, subject_.compiled->facts.get())
                 : std::vector<Finding>();
    if (run.report.findings.empty()) return leave_out(kNoSkeleton);
    for (Finding& finding : run.report.findings) MakeOfProgram(finding);
    return {};
  }
  std::erase_if(run.report.findings, IsWithinABlock);
  if (!run.report.findings.empty()) {
    for (Finding& finding : run.report.findings) MakeOfProgram(finding);
    return {};
  }
  const auto ask_in_pieces = [&](std::string_view otherwise) -> Status {
    ASSAY_TRY(End end, WhoWritesTheEndInPieces(bind, std::max(kStepsToAskAtLast, wants.part_steps),
                                               run.steps));
    if (!end.known) return leave_out(otherwise);
    run.report.stop = Stop::kCompleted;
    run.outputs = std::move(end.unwritten);
    return {};
  };
  if (run.report.stop == Stop::kStepLimit && wants.part_steps > 0 && !is_little &&
      !Overwrites(instance.op))
    return ask_in_pieces(kTooLong);
  if (run.report.stop == Stop::kStepLimit || run.report.stop == Stop::kResourceLimit)
    return leave_out(kTooLong);
  if (run.report.stop != Stop::kCompleted) return leave_out(kNoSkeleton);
  oracle::SparseElements stays;
  // What looks as if nobody had written it, where all blocks ran.
  std::map<std::string, Unwritten> left;
  for (const auto& [name, tensor] : bound.calls.front().outputs) {
    const bool updates = !instance.op.FindOutput(name)->updates.empty();
    if (!is_all()) {
      // What was there before may stay, where an op overwrites.
      if (updates || !EndIsUnwritten(tensor, kUnwritten)) continue;
      if (is_little || wants.part_steps == 0) return leave_out(kNobodySeen);
      return ask_in_pieces(kNobodySeen);
    }
    left[name] = CountUnwritten(bound.calls.front(), name, kUnwritten, run.report);
  }
  // A skeleton that keeps values may store the very bits that were there, undefined as that is: so who wrote it is asked as well.
  for (const auto& [name, unwritten] : left)
    AddRanges(static_cast<std::uint32_t>(bound.calls.front().buffer_of.find(name)->second),
              unwritten.some, SizeOf(bound.calls.front().outputs.find(name)->second.dtype), whose);
  std::ranges::stable_sort(whose, {}, &BufferRange::buffer);
  if (!whose.empty()) {
    ASSAY_TRY(ran, run_some(/*all=*/true));
    if (!ran) return {};
    if (run.report.stop != Stop::kCompleted || !run.report.writers) return leave_out(kTooLong);
    std::erase_if(run.report.findings, IsWithinABlock);
    for (auto& [name, unwritten] : left)
      KeepUnwritten(bound.calls.front(), name, *run.report.writers, unwritten);
  }
  for (auto& [name, unwritten] : left) {
    const Tensor& tensor = bound.calls.front().outputs.find(name)->second;
    if (!instance.op.FindOutput(name)->updates.empty()) {
      if (unwritten.count > 0) stays[name] = std::move(unwritten.some);
      continue;
    }
    run.outputs.push_back(
        {.name = name,
         .shape = tensor.shape,
         .unwritten_bytes = static_cast<std::uint64_t>(unwritten.count) * SizeOf(tensor.dtype),
         .first_unwritten = unwritten.first});
  }
  return stays.empty() ? Status{} : CompareWhatStays(*filled, std::move(stays), run);
}

Status Runner::CompareWhatStays(const cases::Materialised& filled, oracle::SparseElements stays,
                                CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const cases::Case& value = run.probe.case_;
  const auto truth = oracle_.EvaluateSlice(instance, value, filled, std::move(stays), value.seed);
  // Of what cannot be computed nobody knows whether it changes.
  if (!truth || std::ranges::all_of(*truth, [](const auto& each) { return each.second.empty(); })) {
    run.left_out = truth ? std::string(kNoTruth) : ToString(truth.error());
    return {};
  }
  for (const auto& [name, points] : *truth) {
    const ops::TensorSpec& output = *instance.op.FindOutput(name);
    const Tensor& before = filled.inputs.find(output.updates)->second;
    const auto wrong = std::ranges::find_if(points, [&](const oracle::TruthPoint& point) {
      return !oracle::Agrees(instance, output, before.At(point.index), point);
    });
    if (wrong == points.end()) continue;
    Finding finding = oracle::WrongValue(name, before.shape, before.At(wrong->index), *wrong);
    finding.message += ": nobody writes it, so that it keeps what was there before";
    finding.cause = "blocks, or turns of a loop, that do not come to all of the output";
    if (!run.comparison) run.comparison.emplace();
    run.comparison->numeric.push_back(std::move(finding));
  }
  return {};
}

}  // namespace assay::campaign
