// The ends of a case of which some results take too long: what the others are, at their ends. Of a last launch with all that
// it needs, the outputs of those before it; of blocks that add floats up, what they write besides.
//
// What is found so refutes. Else the case counts as left out all the same, for of the rest nothing is known.
#include <algorithm>
#include <set>
#include <utility>

#include "validator/campaign/blocks.h"
#include "validator/campaign/effort.h"
#include "validator/campaign/parts.h"
#include "validator/campaign/runner.h"
#include "validator/engine/bind.h"
#include "validator/engine/window.h"
#include "validator/oracle/points.h"

namespace assay::campaign {

Status Runner::RunEndsOfSome(const cases::Probe& probe, const cases::Materialised& filled,
                             const Binder& bind, std::uint64_t most_steps, CaseRun& run) const {
  const ops::Instance& instance = *subject_.instance;
  const facts::Facts* const program = subject_.compiled->facts.get();
  auto made = bind(probe.poison);
  if (!made) return {};
  Execution& execution = made->execution;
  std::uint64_t most_blocks = 1;
  for (const Launch& launch : execution.launches)
    most_blocks = std::max(most_blocks, Blocks(launch));
  const bool last_only =
      engine::LastBlockOnly(cases::TotalElements(instance, probe.case_.axes), most_blocks);
  auto unknown = engine::CutBesideSums(execution, program, last_only);
  if (!unknown) {
    unknown = engine::MayWriteTo(execution, program, execution.launches.back());
    execution.launches.pop_back();
    if (execution.launches.empty() ||
        engine::CutToEnds(execution, program, last_only) != engine::Cut::kIndependent)
      return {};
  }
  if (!engine::OutputsOfSeveral(execution, program).empty()) return {};
  const std::set<std::uint64_t> writers = LastOfTurns(*subject_.plan, filled.axes);
  for (Launch& launch : execution.launches) {
    if (!launch.only.empty()) launch.only = WithBlocks(launch.only, writers, Blocks(launch));
  }
  execution.schedule = probe.schedule;
  execution.limits.max_steps = most_steps;
  ASSAY_TRY(Report report, engine_.Run(execution, made->buffers, engine::Trust::kCandidate));
  NameTheKernelFile(report);
  run.steps += report.counters.steps;
  if (IsTooLong(report)) return {};
  // The first one has nothing from others.
  if (execution.launches.size() > 1 && UsesUndefined(report)) return {};
  if (report.stop != Stop::kCompleted || !report.findings.empty()) {
    run.report = std::move(report);
    run.left_out.clear();
    return {};
  }
  const engine::BoundCall& call = made->calls.front();
  oracle::SparseElements wanted = LookAtEnds(call, probe.poison, filled, report).wanted;
  std::erase_if(wanted, [&](const auto& output) {
    return unknown->contains(static_cast<std::uint32_t>(call.buffer_of.find(output.first)->second));
  });
  if (wanted.empty()) return {};
  const auto truth = oracle_.EvaluateAt(instance, probe.case_, filled, wanted);
  if (!truth) return {};
  oracle::ComparePoints(instance, *truth, call.outputs, run.comparison.emplace());
  if (run.comparison->numeric.empty() && run.comparison->precision.empty()) {
    run.comparison.reset();
    return {};
  }
  run.report = std::move(report);
  run.left_out.clear();
  return {};
}

}  // namespace assay::campaign
