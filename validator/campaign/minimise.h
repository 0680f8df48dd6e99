// From a hit to a counterexample: the simplest probe that shows the same defect, with everything
// that replay needs.
#pragma once

#include <span>
#include <vector>

#include "validator/campaign/campaign.h"

namespace assay::campaign {

struct Minimised {
  std::vector<verdict::Counterexample> counterexamples;  ///< Each replays: it has its finding.
  /// Hits that came again neither shrunk nor as they were, under the limits of a replay. They
  /// refute nothing.
  std::vector<Hit> unconfirmed;
};

/// Minimises the most telling hits, at most `limit`, distinct: a hit whose defect already stands in
/// an earlier counterexample is left out. Hits of earlier gates go first, and among them different
/// kinds before different lines.
Minimised Minimise(const Trial& trial, std::span<const Hit> hits, std::size_t limit);

/// The counterexample for a run, with `guilty` first among its findings.
verdict::Counterexample CounterexampleFor(const Trial& trial, std::string_view gate,
                                          const CaseRun& run, const Finding& guilty);

/// Findings of all examiners in one run, `guilty` first where it is among them, the others in the
/// order of gates. What a counterexample holds.
std::vector<Finding> FindingsOf(const Trial& trial, const CaseRun& run, const Finding* guilty);

/// What replaying a probe asks for: everything, with a step limit that follows from its size alone.
Wants ReplayWants(const ops::Instance& instance, const ops::LaunchPlan& plan,
                  const cases::Probe& probe);

/// `worst`, or what this case shows of the same defect where that is worse.
verdict::WorstSeen WorstOf(verdict::WorstSeen worst, const Finding& finding,
                           const cases::Case& value, const ops::Instance& instance);

/// What a run must be asked for so that a finding of this kind can show.
Wants WantsFor(FindingKind kind, Wants wants);

}  // namespace assay::campaign
