// Judging what some blocks add, where blocks meet in floats that they add to memory: the last ones of a
// grid that takes too long as a whole, at a shape where a number outgrows its format.
//
// What they add is not all that belongs there, so results cannot be held to their truths. But where an
// output is linear in an input, and all that the op adds up for one of its elements is 0, every part of that
// sum is 0 as well, whichever blocks ran and in whichever order. So the input is zero but for its front (profile
// `front`), where a number that has come round leads back to; the last blocks have nothing but zeros to add; and an
// element that is something else, and whose truth is 0 with an allowance of next to nothing, was given what
// belongs elsewhere. Values are positive, so that no truth is 0 because terms cancel.
//
// Accesses are watched as ever: those of the launches up to the one that is cut are what they are in the whole
// grid. What later launches make of parts of sums refutes nothing but by such an element.
//
// That nothing is wrong proves little: the case is left out all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/properties.h"
#include "validator/campaign/blocks.h"
#include "validator/campaign/effort.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"
#include "validator/oracle/points.h"

namespace assay::campaign {
namespace {

// Each takes the reference a way through all terms.
constexpr std::size_t kMostCompared = 8;
// Flushes of subnormal addends, and no more: a sum of numbers whose magnitudes are not all 0 is allowed more.
constexpr double kNextToNothing = 0x1p-100;

bool IsLinearIn(const ops::OpSpec& op, const std::string& input, const std::string& output) {
  return std::ranges::any_of(op.properties, [&](const ops::Property& property) {
    return property.name == "linear" && property.arguments.size() == 2 &&
           property.arguments[0] == input && property.arguments[1] == output;
  });
}

/// The input that is zero behind its front.
std::optional<std::string> FrontOf(const cases::Case& value) {
  const auto found = std::ranges::find_if(
      value.profiles, [](const auto& profile) { return profile.second.kind == "front"; });
  return found == value.profiles.end() ? std::nullopt : std::optional(found->first);
}

bool Fails(const Report& report) {
  return report.stop != Stop::kCompleted || !report.findings.empty();
}

/// Elements that are neither 0 nor untouched nor without a value.
std::vector<std::int64_t> Added(const engine::BoundCall& call, const std::string& output,
                                std::uint8_t poison) {
  const Tensor& tensor = call.outputs.find(output)->second;
  std::vector<std::int64_t> some = WrittenElements(call, output, poison, Report());
  std::erase_if(some, [&](std::int64_t i) {
    const double value = tensor.At(i);
    return value == 0 || !std::isfinite(value);
  });
  return Spread(std::move(some), kMostCompared);
}

/// Those that are 0, and are allowed next to nothing but the rounding to the output's format.
oracle::SparseTruth SumsOfNothing(const ops::Instance& instance, const oracle::SparseTruth& truth) {
  oracle::SparseTruth zeros;
  for (const auto& [name, points] : truth) {
    const double rounding = UlpAt(instance.TypeOf(*instance.op.FindOutput(name)), 0) / 2;
    for (const oracle::TruthPoint& point : points) {
      if (point.value == 0 && point.allowance <= rounding + kNextToNothing)
        zeros[name].push_back(point);
    }
  }
  return zeros;
}

}  // namespace

bool IsOfSums(const cases::Probe& probe) { return probe.ends_only && FrontOf(probe.case_); }

Status Runner::RunSums(const cases::Probe& probe, const Wants& wants, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const auto leave_out = [&](std::string_view reason) {
    run.left_out = ReasonOfALimit(run.report, reason);
    run.report.findings.clear();
    run.report.stop = Stop::kCompleted;
    return Status{};
  };
  const auto filled = oracle_.Materialise(instance, probe.case_);
  if (!filled) {
    if (filled.error().kind != ErrorKind::kLimit && filled.error().kind != ErrorKind::kUnsupported)
      return std::unexpected(filled.error());
    run.left_out = ToString(filled.error());
    return {};
  }
  const auto plan = PlanOfPart(*filled);
  if (!plan) {
    run.left_out = ToString(plan.error());
    return {};
  }
  const std::array calls = {
      engine::Call{.plan = &*plan, .axes = &filled->axes, .inputs = &filled->inputs}};
  const std::int64_t elements = cases::TotalElements(instance, probe.case_.axes);
  // All launches, or those up to the one that is cut, on memory of their own. Nothing where that was left
  // out.
  std::size_t adds = 0;
  const auto run_over = [&](bool all) -> Result<std::optional<engine::Binding>> {
    auto bound = engine::Bind(instance, *subject_.compiled, calls, {.poison = probe.poison});
    if (!bound) {
      run.left_out = ToString(bound.error());
      return std::nullopt;
    }
    Execution& execution = bound->execution;
    std::uint64_t most = 1;
    for (const Launch& launch : execution.launches) most = std::max(most, Blocks(launch));
    const bool one_block = engine::LastBlockOnly(elements, most);
    const auto cut = engine::CutToSums(execution, subject_.compiled->facts.get(), one_block);
    if (!cut) {
      run.left_out = "blocks of this plan may depend on each other";
      return std::nullopt;
    }
    adds = *cut;
    Launch& launch = execution.launches[adds];
    const auto writers = LastOfTurns(*subject_.plan, filled->axes);
    if (!writers.empty() && *writers.begin() < Blocks(launch)) {
      launch.only = one_block ? std::vector<BlockRange>{{*writers.begin(), 1}}
                              : WithBlocks(launch.only, writers, Blocks(launch));
    }
    if (!all) execution.launches.resize(adds + 1);
    execution.limits.max_steps = wants.part_steps > 0 ? wants.part_steps : kMostHugeSteps;
    ASSAY_TRY(run.report, engine_.Run(execution, bound->buffers, engine::Trust::kCandidate));
    NameTheKernelFile(run.report);
    run.steps += run.report.counters.steps;
    return std::optional(std::move(*bound));
  };
  ASSAY_TRY(std::optional<engine::Binding> bound, run_over(/*all=*/false));
  if (!bound) return {};
  if (IsTooLong(run.report)) return leave_out("takes too long even at its ends");
  if (Fails(run.report)) return {};
  if (adds + 1 < plan->kernels.size()) {
    ASSAY_TRY(bound, run_over(/*all=*/true));
    if (!bound) return {};
    if (Fails(run.report))
      return leave_out("a launch decides by what blocks add that were not run");
  }
  const std::string front = FrontOf(probe.case_).value_or("");
  oracle::SparseElements wanted;
  for (const auto& [name, _] : bound->calls.front().outputs) {
    if (!IsLinearIn(instance.op, front, name)) continue;
    auto added = Added(bound->calls.front(), name, probe.poison);
    if (!added.empty()) wanted[name] = std::move(added);
  }
  constexpr std::string_view kPartsAlone =
      "all blocks take too long; what the last ones add is nothing that belongs elsewhere";
  if (wanted.empty()) return leave_out(kPartsAlone);
  const auto truth = oracle_.EvaluateAt(instance, probe.case_, *filled, wanted);
  if (!truth) {
    run.left_out = ToString(truth.error());
    return {};
  }
  const oracle::SparseTruth zeros = SumsOfNothing(instance, *truth);
  oracle::ComparePoints(instance, zeros, bound->calls.front().outputs, run.comparison.emplace());
  if (!run.comparison->numeric.empty()) return {};
  run.comparison.reset();
  return leave_out(kPartsAlone);
}

}  // namespace assay::campaign
