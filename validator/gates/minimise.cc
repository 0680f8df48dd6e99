#include "validator/gates/minimise.h"

#include <algorithm>

#include "validator/cases/shrink.h"
#include "validator/findings/render.h"
#include "validator/gates/origins.h"

namespace assay::gates {
namespace {

bool Shows(const CaseRun& run, const Finding& guilty) {
  for (const Gate& gate : AllGates()) {
    if (gate.examine == nullptr) continue;
    for (const Finding& finding : gate.examine(run)) {
      if (SameDefect(finding, guilty)) return true;
    }
  }
  return false;
}

std::size_t GateNumber(std::string_view name) {
  const std::span<const Gate> gates = AllGates();
  return static_cast<std::size_t>(std::ranges::find(gates, name, &Gate::name) - gates.begin());
}

// Hits in the order in which they deserve a counterexample: the first of each kind, by gate, then
// the others.
std::vector<const Hit*> InOrder(std::span<const Hit> hits) {
  std::vector<const Hit*> first;
  std::vector<const Hit*> rest;
  for (const Hit& hit : hits) {
    const bool seen = std::ranges::any_of(
        first, [&](const Hit* other) { return other->finding.kind == hit.finding.kind; });
    (seen ? rest : first).push_back(&hit);
  }
  const auto by_gate = [](const Hit* hit) { return GateNumber(hit->gate); };
  std::ranges::stable_sort(first, {}, by_gate);
  std::ranges::stable_sort(rest, {}, by_gate);
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

}  // namespace

Wants WantsFor(FindingKind kind, Wants wants) {
  const std::string_view family = FamilyOf(kind);
  wants.compare = family == "numeric" || family == "precision";
  wants.determinism = kind == FindingKind::kNondeterministic;
  wants.coverage = false;
  wants.keep_outputs = false;
  return wants;
}

std::vector<Finding> FindingsOf(const CaseRun& run, const Candidate& candidate,
                                const Finding* guilty) {
  std::vector<Finding> all;
  for (const Gate& gate : AllGates()) {
    if (gate.examine == nullptr) continue;
    std::vector<Finding> some = gate.examine(run);
    SortAndMerge(some);
    std::ranges::move(some, std::back_inserter(all));
  }
  if (guilty != nullptr) {
    std::ranges::stable_partition(all, [&](const Finding& f) { return SameDefect(f, *guilty); });
  }
  SourceText source;
  source.Add("kernel.cu", candidate.kernel);
  FillExcerpts(all, source);
  return all;
}

Counterexample CounterexampleFor(GateContext& context, std::string_view gate,
                                 const CaseRun& run, const Finding& guilty) {
  Counterexample counterexample = TextCounterexample(context, gate, {});
  counterexample.probe = run.probe;
  counterexample.description = cases::Describe(run.probe.case_, context.instance);
  counterexample.findings = FindingsOf(run, context.candidate, &guilty);
  AddOrigins(context.CaseRunner(), run, context.candidate, counterexample.findings);
  return counterexample;
}

std::vector<Counterexample> Minimise(GateContext& context, std::span<const Hit> hits,
                                     std::size_t limit) {
  std::vector<Counterexample> counterexamples;
  for (const Hit* hit : InOrder(hits)) {
    if (counterexamples.size() >= limit) break;
    const bool covered = std::ranges::any_of(counterexamples, [&](const Counterexample& known) {
      return known.gate == hit->gate &&
             std::ranges::any_of(known.findings, [&](const Finding& finding) {
               return SameDefect(finding, hit->finding);
             });
    });
    if (covered) continue;
    context.Report(hit->gate, "shrinking the failing case");
    const Wants wants = WantsFor(hit->finding.kind, hit->wants);
    const cases::StillFails still_fails = [&](std::span<const cases::Probe> probes) {
      std::vector<Task> tasks;
      for (const cases::Probe& probe : probes) tasks.push_back({probe, wants, "shrinking"});
      std::vector<bool> fails;
      for (const CaseRun& run : context.CaseRunner().RunAll(tasks))
        fails.push_back(Shows(run, hit->finding));
      return fails;
    };
    // Huge shapes are as small as huge ones can be (HugeShapes), and each trial takes a second.
    const int trials = hit->probe.ends_only ? 0 : context.effort.shrink_trials;
    const cases::Shrunk shrunk =
        cases::Shrink(context.instance, hit->probe, still_fails, {.max_trials = trials});
    // The last run is exactly what Replay does.
    const CaseRun run = context.CaseRunner().Run(
        shrunk.probe, ReplayWants(context.instance, *context.plan, shrunk.probe));
    counterexamples.push_back(CounterexampleFor(context, hit->gate, run, hit->finding));
  }
  return counterexamples;
}

Wants ReplayWants(const ops::Instance& instance, const ops::LaunchPlan& plan,
                  const cases::Probe& probe) {
  Wants wants;
  const auto limit_of = [&](const cases::Case& call) {
    const std::int64_t elements = cases::TotalElements(instance, call.axes);
    return StepLimit(elements == INT64_MAX ? 0 : elements, 500,
                     ThreadsOf(instance, plan, call.axes));
  };
  wants.max_steps = limit_of(probe.case_);
  for (const cases::Case& before : probe.prelude) wants.max_steps += limit_of(before);
  wants.determinism = IsDeterministic(instance.op);
  return wants;
}

}  // namespace assay::gates
