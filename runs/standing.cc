#include "runs/standing.h"

#include <optional>

namespace assay::runs {
namespace {

std::optional<double> TimesTheLimit(const verdict::Verdict& verdict) {
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.gate == "speed" && !gate.statistics.empty()) return gate.statistics.front().value;
  }
  return std::nullopt;
}

double StepsACase(const verdict::Verdict& verdict) {
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.cases > 0 && gate.gate == "numeric")
      return static_cast<double>(gate.steps) / static_cast<double>(gate.cases);
  }
  return 0;
}

}  // namespace

int HowFar(const verdict::Verdict& verdict) {
  int passed = 0;
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.status == verdict::GateStatus::kPassed) ++passed;
    if (gate.status == verdict::GateStatus::kRefuted) break;
  }
  return passed;
}

double CostOfRunning(const verdict::Verdict& verdict) {
  return TimesTheLimit(verdict).value_or(StepsACase(verdict));
}

bool RunsFaster(const verdict::Verdict& verdict, const verdict::Verdict& other) {
  const auto mine = TimesTheLimit(verdict), theirs = TimesTheLimit(other);
  // One that was timed and one that was not have no unit in common but the steps.
  if (mine && theirs) return *mine < *theirs;
  return StepsACase(verdict) < StepsACase(other);
}

}  // namespace assay::runs
