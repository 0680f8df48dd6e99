#include "validator/campaign/minimise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/properties.h"
#include "validator/campaign/decisions.h"
#include "validator/campaign/origins.h"
#include "validator/campaign/parts.h"
#include "validator/cases/case.h"
#include "validator/cases/shrink.h"
#include "validator/findings/render.h"
#include "validator/oracle/causes.h"

namespace assay::campaign {
namespace {

bool Shows(const Trial& trial, const CaseRun& run, const Finding& guilty) {
  for (const Examiner& examiner : trial.examiners) {
    for (const Finding& finding : examiner.examine(run)) {
      // A race of one warp would ask for less than one of the block needs.
      if (SameDefect(finding, guilty) && RaceReachOf(finding) >= RaceReachOf(guilty)) return true;
    }
  }
  return false;
}

/// How many times what is allowed; 0 where that is no number.
double RatioOf(const Finding& finding) {
  double ratio = 0;
  if (finding.kind == FindingKind::kWrongValue || finding.kind == FindingKind::kPrecisionElement) {
    if (!finding.element || !(finding.element->allowance > 0)) return 0;
    ratio =
        std::fabs(finding.element->got - finding.element->expected) / finding.element->allowance;
  } else {
    const std::string_view part = finding.kind == FindingKind::kPrecisionRow    ? "_row_"
                                  : finding.kind == FindingKind::kPrecisionBias ? "bias_"
                                                                                : "";
    for (const Statistic& statistic : finding.statistics) {
      if (part.empty() || statistic.name.find(part) == std::string::npos || !(statistic.limit > 0))
        continue;
      ratio = std::max(ratio, std::fabs(statistic.value) / statistic.limit);
    }
  }
  return std::isfinite(ratio) ? ratio : 0;
}

/// What other cases showed, as far as it adds to what the shrunk one shows and does not contradict
/// what shadow values say of it.
std::optional<verdict::WorstSeen> Beside(verdict::WorstSeen worst, const Finding& guilty) {
  constexpr double kWorse = 1.5;
  if (!(worst.ratio > kWorse * RatioOf(guilty))) worst.ratio = 0;
  const oracle::Blame blame = oracle::BlameOf(worst.cause);
  const bool finite = !guilty.element || std::isfinite(guilty.element->got);
  const bool rounding = finite && !guilty.origins.empty();
  if (!guilty.cause.empty() || (blame == oracle::Blame::kRounding && !rounding) ||
      (blame == oracle::Blame::kFormula && rounding))
    worst.cause.clear();
  if (worst.ratio == 0 && worst.cause.empty()) return std::nullopt;
  return worst;
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

/// Blocks at both ends of something huge that meet at one place, and places that nobody comes to, have
/// a cause that no order cures: a number that has come round.
void BlameOutgrown(const Trial& trial, const CaseRun& run, std::vector<Finding>& findings) {
  if (!run.probe.ends_only) return;
  const auto concerned = [](const Finding& finding) {
    return finding.cause.empty() &&
           (FamilyOf(finding.kind) == "race" || finding.kind == FindingKind::kUnwrittenOutput ||
            finding.kind == FindingKind::kOutOfBounds);
  };
  if (std::ranges::none_of(findings, concerned)) return;
  const Decisions decisions(trial.instance, trial.plan, trial.compiled);
  const auto outgrown = decisions.OutgrownAt(run.probe.case_.axes);
  if (!outgrown) return;
  const std::string number = outgrown->line == 0
                                 ? std::string("a number of the kernel")
                                 : fmt::format("the number at line {}", outgrown->line);
  for (Finding& finding : findings) {
    if (!concerned(finding)) continue;
    finding.cause = fmt::format(
        "{} comes to 2^{} and beyond at this shape, and its digits from there on are lost: the "
        "index "
        "wraps, and threads far apart meet at one place",
        number, outgrown->digits);
    finding.missing = fmt::format("room for {}: more than {} bits of it", number, outgrown->digits);
  }
}

}  // namespace

verdict::WorstSeen WorstOf(verdict::WorstSeen worst, const Finding& finding,
                           const cases::Case& value, const ops::Instance& instance) {
  const double ratio = RatioOf(finding);
  const bool worse = ratio > worst.ratio;
  if (!finding.cause.empty() && (worse || worst.cause.empty())) worst.cause = finding.cause;
  if (!worse) return worst;
  worst.ratio = ratio;
  worst.description = cases::Describe(value, instance);
  return worst;
}

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
  BlameOutgrown(trial, run, all);
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

namespace {

/// What runs while a hit is shrunk: trials, up to a limit of instructions; then nothing fails any more, and
/// what was found stands.
class Trials {
 public:
  Trials(const Trial& trial, const Hit& hit)
      : trial_(trial),
        hit_(hit),
        wants_(WantsFor(hit.finding.kind, hit.wants)),
        left_(hit.probe.ends_only ? kMostPartSteps : trial.effort.campaign_steps / kPartOfAll) {
    // What takes longer than the case that was found is no simpler. Blocks that a smaller shape hands on to may
    // be all there are.
    if (hit.probe.ends_only) {
      wants_.part_steps = std::min(std::max(hit.steps, kTinySteps), MostStepsOfSlice(wants_));
      wants_.slice_steps = std::min(wants_.slice_steps, kValueSliceSteps);
    }
  }

  /// Huge shapes are as small as huge ones can be (HugeShapes), and each trial takes a second. Slices become
  /// smaller as far as that is cheap; one that has become small enough to run whole goes on as that.
  cases::Probe Simplest(std::span<const verdict::Counterexample> known) {
    if (!hit_.probe.ends_only) return Shrunk(Start(known), trial_.effort.shrink_trials);
    if (!IsSlice(hit_.probe) || hit_.steps > kMostPartSteps) return hit_.probe;
    cases::Probe probe = Shrunk(hit_.probe, std::min(trial_.effort.shrink_trials, kMostOfSlices));
    if (cases::TotalElements(trial_.instance, probe.case_.axes) > trial_.effort.whole_elements)
      return probe;
    cases::Probe whole = probe;
    whole.ends_only = whole.places_only = false;
    whole.slice_blocks = 0;
    if (!StillFail({&whole, 1}).front()) return probe;
    return Shrunk(std::move(whole), trial_.effort.shrink_trials);
  }

 private:
  // So many counterexamples at most take as much as all cases together.
  static constexpr std::uint64_t kPartOfAll = 3;
  static constexpr std::uint64_t kMostPartSteps = 200'000'000;
  static constexpr int kMostOfSlices = 24;

  /// Where another finding has been made simple, this one shows as well, as a rule.
  cases::Probe Start(std::span<const verdict::Counterexample> known) {
    for (const verdict::Counterexample& other : known) {
      if (!other.probe || other.probe->ends_only || !other.probe->prelude.empty()) continue;
      const cases::Probe& probe = *other.probe;
      if (!cases::ShortlexLess(trial_.instance, probe.case_, hit_.probe.case_)) continue;
      if (StillFail({&probe, 1}).front()) return probe;
    }
    return hit_.probe;
  }

  cases::Probe Shrunk(cases::Probe start, int trials) {
    const cases::StillFails still_fails = [this](auto probes) { return StillFail(probes); };
    return cases::Shrink(trial_.instance, std::move(start), still_fails, {.max_trials = trials})
        .probe;
  }

  // What its truth took, in instructions of a candidate that take as long: whole warps of a reference, which nobody watches.
  static std::uint64_t OfTruth(const CaseRun& run) {
    constexpr double kOfAWarp = 8;
    return static_cast<std::uint64_t>(kOfAWarp * run.truth_steps);
  }

  std::vector<bool> StillFail(std::span<const cases::Probe> probes) {
    std::vector<bool> fails(probes.size(), false);
    if (left_ == 0) return fails;
    std::vector<Task> tasks;
    std::vector<std::size_t> index;
    for (std::size_t i = 0; i < probes.size(); ++i) {
      // Simpler values are not worth seconds of making them.
      if (InputsMadeInFull(trial_.instance, probes[i].case_).size() > made_in_full_) continue;
      Task& task = tasks.emplace_back(probes[i], wants_, "shrinking");
      if (!probes[i].ends_only)
        task.wants.max_steps = std::min(task.wants.max_steps, std::max(left_ / 2, kTinySteps));
      index.push_back(i);
    }
    const std::vector<CaseRun> runs = trial_.runner.RunAll(tasks);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      fails[index[i]] = Shows(trial_, runs[i], hit_.finding);
      left_ -= std::min(left_, runs[i].steps + OfTruth(runs[i]));
    }
    return fails;
  }

  const Trial& trial_;
  const Hit& hit_;
  Wants wants_;
  std::uint64_t left_;
  std::size_t made_in_full_ = InputsMadeInFull(trial_.instance, hit_.probe.case_).size();
};

}  // namespace

Minimised Minimise(const Trial& trial, std::span<const Hit> hits, std::size_t limit) {
  Minimised minimised;
  std::vector<verdict::Counterexample>& counterexamples = minimised.counterexamples;
  cases::Probe asked;
  bool any = false;
  CaseRun run;
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
    const cases::Probe simplest = Trials(trial, *hit).Simplest(counterexamples);
    // The last run is exactly what Replay does; several findings of one probe are confirmed by one.
    const auto replay = [&](const cases::Probe& probe) {
      if (std::exchange(any, true) && asked == probe) return;
      asked = probe;
      run = trial.runner.Run(probe, ReplayWants(trial.instance, trial.plan, probe));
    };
    replay(simplest);
    if (!Shows(trial, run, hit->finding)) replay(hit->probe);
    if (!Shows(trial, run, hit->finding)) {
      minimised.unconfirmed.push_back(*hit);
      continue;
    }
    counterexamples.push_back(CounterexampleFor(trial, hit->gate, run, hit->finding));
    verdict::Counterexample& made = counterexamples.back();
    const std::string_view family = FamilyOf(hit->finding.kind);
    if (!made.findings.empty() && (family == "numeric" || family == "precision"))
      made.worst = Beside(hit->worst, made.findings.front());
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
  wants.part_steps = probe.places_only ? kMostPlacesSteps : kMostLimitSteps;
  // A slice that ran says how many blocks of it did, unless all of them had to.
  if (IsSlice(probe) && probe.slice_blocks == 0) wants.slice_steps = kMostLimitSteps;
  return wants;
}

}  // namespace assay::campaign
