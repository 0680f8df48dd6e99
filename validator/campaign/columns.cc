// Slices of plans whose launches hand on what they write, where all blocks take too long: split sums, and
// the launch that adds them up.
//
// Such launches are cut as well, to the same columns of their grids (blocks alike in x, over all of y and
// z): the block that adds up an element mostly takes what the blocks of its column wrote. Whether it
// does is not known. So all is run twice, over different garbage, and only what comes out alike is
// compared; a defect of its own shows in both runs. Where what comes last hangs on blocks that did not
// run, the case counts as left out, unless something is wrong.
#include <algorithm>
#include <array>

#include "validator/campaign/blocks.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"

namespace assay::campaign {
namespace {

// Another garbage than that of the probe.
constexpr std::uint8_t kOtherPoison = 0x5a;
// Of what is estimated from one column: launches behind it may not be cut at all.
constexpr std::uint64_t kByFar = 8;
constexpr std::uint64_t kMostColumns = 64;
constexpr std::string_view kHangsOnOthers =
    "what the last blocks wrote hangs on blocks that did not run";

bool ShowsADefect(const Report& report) {
  return report.stop != Stop::kCompleted || !report.findings.empty();
}

bool IsUndefined(const Finding& finding) { return finding.kind == FindingKind::kUninitialisedUse; }

}  // namespace

Status Runner::RunColumns(const cases::Probe& probe, const Wants& wants, const Sliced& sliced,
                          bool only_if_by_far, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const std::uint64_t most_steps = wants.part_steps > 0 ? wants.part_steps : kMostSliceSteps;
  const std::array calls = {engine::Call{
      .plan = &sliced.plan, .axes = &sliced.filled.axes, .inputs = &sliced.filled.inputs}};
  std::uint64_t all = 1;
  const auto run_over = [&](std::uint8_t poison, std::uint64_t count) -> Result<engine::Binding> {
    ASSAY_TRY(engine::Binding made, engine::Bind(sliced.own, *subject_.compiled, calls,
                                                 {.poison = poison, .misalign = probe.misalign}));
    for (Launch& launch : made.execution.launches) {
      all = std::max(all, std::uint64_t{launch.grid[0]});
      launch.only = WithBlocks(ChooseColumns(launch, count, probe.case_.seed),
                               LastOfTurns(*subject_.plan, sliced.filled.axes), Blocks(launch));
    }
    made.execution.schedule = probe.schedule;
    made.execution.perturbation_seed = probe.perturbation_seed;
    made.execution.limits.max_steps = most_steps;
    ASSAY_TRY(run.report, engine_.Run(made.execution, made.buffers, engine::Trust::kCandidate));
    NameTheKernelFile(run.report);
    RefuseUnwatched(made.execution.checks, engine_.name(), run.report);
    run.steps += run.report.counters.steps;
    return made;
  };
  const auto leave_out = [&](std::string_view reason) {
    run.left_out = ReasonOfALimit(run.report, reason);
    run.too_long = run.report.stop != Stop::kCompleted;
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return Status{};
  };
  ASSAY_TRY_VOID(run_over(probe.poison, 1));
  const std::uint64_t one = std::max<std::uint64_t>(run.report.counters.steps, 1);
  if (only_if_by_far && !IsTooLong(run.report) && all <= kByFar * most_steps / one) return {};
  run.in_columns = true;
  if (IsTooLong(run.report)) return leave_out(kBlockTooLong);
  const std::uint64_t count = std::clamp<std::uint64_t>(wants.slice_steps / one, 2, kMostColumns);
  ASSAY_TRY(const engine::Binding bound, run_over(probe.poison, count));
  if (IsTooLong(run.report)) return leave_out("some blocks take far longer than the last one");
  const Report first = run.report;
  ASSAY_TRY(const engine::Binding other,
            run_over(probe.poison == kOtherPoison ? 0xff : kOtherPoison, count));
  const bool alike = ShowsADefect(first) == ShowsADefect(run.report);
  run.report = first;
  if (!alike || std::ranges::any_of(first.findings, IsUndefined))
    return leave_out("a launch decides by what blocks write that were not run");
  for (std::size_t i = 0; i < bound.execution.launches.size(); ++i) {
    const Launch& launch = bound.execution.launches[i];
    run.parts.push_back({sliced.plan.kernels[i].entry, BlocksThatRun(launch), Blocks(launch)});
  }
  if (ShowsADefect(first)) return {};
  oracle::SparseElements wanted;
  bool end_is_known = true;
  for (const auto& [name, tensor] : bound.calls.front().outputs) {
    const std::string& updates = instance.op.FindOutput(name)->updates;
    std::vector<std::int64_t> written =
        updates.empty() ? WrittenElements(tensor, probe.poison)
                        : ChangedElements(tensor, sliced.filled.inputs.find(updates)->second);
    KeepEqual(tensor, other.calls.front().outputs.find(name)->second, written);
    end_is_known = end_is_known && !written.empty() && written.back() + 1 == tensor.elements;
    if (!written.empty()) wanted[name] = std::move(written);
  }
  if (wanted.empty()) return leave_out(kHangsOnOthers);
  ASSAY_TRY_VOID(CompareSlice(sliced.filled, bound.calls.front().outputs, std::move(wanted), run));
  const bool agrees =
      run.comparison && run.comparison->numeric.empty() && run.comparison->precision.empty();
  if (!end_is_known && agrees) return leave_out(kHangsOnOthers);
  return {};
}

}  // namespace assay::campaign
