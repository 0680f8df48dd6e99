#include "runs/standing.h"

namespace assay::runs {

int HowFar(const verdict::Verdict& verdict) {
  int passed = 0;
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.status == verdict::GateStatus::kPassed) ++passed;
    if (gate.status == verdict::GateStatus::kRefuted) break;
  }
  return passed;
}

double CostOfRunning(const verdict::Verdict& verdict) {
  double steps = 0;
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.gate == "speed" && !gate.statistics.empty()) return gate.statistics.front().value;
    if (gate.cases > 0 && gate.gate == "numeric")
      steps = static_cast<double>(gate.steps) / static_cast<double>(gate.cases);
  }
  return steps;
}

}  // namespace assay::runs
