// The race gate: data races in shared and global memory, divergent barriers, deadlock, results that
// depend on the schedule.
//
// The engine's monitors find races in any one run; other schedules are explored where atomics make
// the order matter, and for ops that promise determinism their results must agree bit for bit.
#include "validator/campaign/campaign.h"
#include "validator/gates/gate.h"

namespace assay::gates {

std::vector<Finding> ExamineRace(const campaign::CaseRun& run) {
  std::vector<Finding> findings;
  for (const Finding& finding : run.report.findings) {
    if (FamilyOf(finding.kind) == "race") findings.push_back(finding);
  }
  findings.insert(findings.end(), run.nondeterminism.begin(), run.nondeterminism.end());
  return findings;
}

void RunRaceGate(GateContext& context, verdict::GateResult& result) {
  context.Cases().Fill("race", result);
}

}  // namespace assay::gates
