#include "validator/campaign/minimise.h"

#include <algorithm>

#include "ops/properties.h"
#include "validator/campaign/origins.h"
#include "validator/cases/shrink.h"
#include "validator/findings/render.h"

namespace assay::campaign {
namespace {

bool Shows(const Trial& trial, const CaseRun& run, const Finding& guilty) {
  for (const Examiner& examiner : trial.examiners) {
    for (const Finding& finding : examiner.examine(run)) {
      if (SameDefect(finding, guilty)) return true;
    }
  }
  return false;
}

// Hits in the order in which they deserve a counterexample: the first of each kind, by gate, then
// the others.
std::vector<const Hit*> InOrder(const Trial& trial, std::span<const Hit> hits) {
  std::vector<const Hit*> first;
  std::vector<const Hit*> rest;
  for (const Hit& hit : hits) {
    const bool seen = std::ranges::any_of(
        first, [&](const Hit* other) { return other->finding.kind == hit.finding.kind; });
    (seen ? rest : first).push_back(&hit);
  }
  const auto by_gate = [&](const Hit* hit) {
    return std::ranges::find(trial.examiners, hit->gate, &Examiner::gate) - trial.examiners.begin();
  };
  std::ranges::stable_sort(first, {}, by_gate);
  std::ranges::stable_sort(rest, {}, by_gate);
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

}  // namespace

Wants WantsFor(FindingKind kind, Wants wants) {
  const std::string_view family = FamilyOf(kind);
  // An old value is one where a result went wrong, or differs.
  const bool old = kind == FindingKind::kStaleRead;
  wants.compare = family == "numeric" || family == "precision" || old;
  wants.determinism = kind == FindingKind::kNondeterministic || (old && wants.determinism);
  wants.orders = false;
  wants.coverage = false;
  wants.keep_outputs = false;
  return wants;
}

std::vector<Finding> FindingsOf(const Trial& trial, const CaseRun& run, const Finding* guilty) {
  std::vector<Finding> all;
  for (const Examiner& examiner : trial.examiners) {
    std::vector<Finding> some = examiner.examine(run);
    SortAndMerge(some);
    std::ranges::move(some, std::back_inserter(all));
  }
  if (guilty != nullptr) {
    std::ranges::stable_partition(all, [&](const Finding& f) { return SameDefect(f, *guilty); });
  }
  SourceText source;
  source.Add("kernel.cu", trial.candidate.kernel);
  FillExcerpts(all, source);
  return all;
}

verdict::Counterexample CounterexampleFor(const Trial& trial, std::string_view gate,
                                          const CaseRun& run, const Finding& guilty) {
  verdict::Counterexample counterexample =
      verdict::MakeCounterexample(trial.instance, trial.candidate, trial.engine, gate, {});
  counterexample.probe = run.probe;
  counterexample.description = cases::Describe(run.probe.case_, trial.instance);
  counterexample.findings = FindingsOf(trial, run, &guilty);
  AddOrigins(trial.runner, run, trial.candidate, counterexample.findings);
  return counterexample;
}

Minimised Minimise(const Trial& trial, std::span<const Hit> hits, std::size_t limit) {
  Minimised minimised;
  std::vector<verdict::Counterexample>& counterexamples = minimised.counterexamples;
  for (const Hit* hit : InOrder(trial, hits)) {
    if (counterexamples.size() >= limit) break;
    const bool covered =
        std::ranges::any_of(counterexamples, [&](const verdict::Counterexample& known) {
          return known.gate == hit->gate &&
                 std::ranges::any_of(known.findings, [&](const Finding& finding) {
                   return SameDefect(finding, hit->finding);
                 });
        });
    if (covered) continue;
    trial.Report(hit->gate, "shrinking the failing case");
    const Wants wants = WantsFor(hit->finding.kind, hit->wants);
    const cases::StillFails still_fails = [&](std::span<const cases::Probe> probes) {
      std::vector<Task> tasks;
      for (const cases::Probe& probe : probes) tasks.push_back({probe, wants, "shrinking"});
      std::vector<bool> fails;
      for (const CaseRun& run : trial.runner.RunAll(tasks))
        fails.push_back(Shows(trial, run, hit->finding));
      return fails;
    };
    // Huge shapes are as small as huge ones can be (HugeShapes), and each trial takes a second.
    const int trials = hit->probe.ends_only ? 0 : trial.effort.shrink_trials;
    const cases::Shrunk shrunk =
        cases::Shrink(trial.instance, hit->probe, still_fails, {.max_trials = trials});
    // The last run is exactly what Replay does.
    const auto replayed = [&](const cases::Probe& probe) {
      return trial.runner.Run(probe, ReplayWants(trial.instance, trial.plan, probe));
    };
    CaseRun run = replayed(shrunk.probe);
    if (!Shows(trial, run, hit->finding)) run = replayed(hit->probe);
    if (!Shows(trial, run, hit->finding)) {
      minimised.unconfirmed.push_back(*hit);
      continue;
    }
    counterexamples.push_back(CounterexampleFor(trial, hit->gate, run, hit->finding));
  }
  return minimised;
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
  wants.determinism = ops::IsDeterministic(instance.op);
  return wants;
}

}  // namespace assay::campaign
