#include "runs/standing.h"

#include <optional>

namespace assay::runs {
namespace {

/// The gate that measured or modelled: its first statistic is the time over the limit, less is better.
const verdict::GateResult* SpeedOf(const verdict::Verdict& verdict) {
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.gate == "speed" && !gate.statistics.empty()) return &gate;
  }
  return nullptr;
}

std::optional<double> TimesTheLimit(const verdict::Verdict& verdict) {
  const verdict::GateResult* const speed = SpeedOf(verdict);
  if (speed == nullptr) return std::nullopt;
  return speed->statistics.front().value;
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

std::string MissedBar(const verdict::Verdict& verdict) {
  const verdict::GateResult* const speed = SpeedOf(verdict);
  if (speed == nullptr) return {};
  const Statistic& times = speed->statistics.front();
  return times.limit > 0 && times.value > times.limit ? speed->reason : std::string();
}

bool RunsFaster(const verdict::Verdict& verdict, const verdict::Verdict& other) {
  const auto mine = TimesTheLimit(verdict), theirs = TimesTheLimit(other);
  // One that was timed and one that was not have no unit in common but the steps.
  if (mine && theirs) return *mine < *theirs;
  return StepsACase(verdict) < StepsACase(other);
}

}  // namespace assay::runs
