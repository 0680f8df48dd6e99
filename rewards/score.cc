#include "rewards/score.h"

#include <array>

namespace assay::rewards {
namespace {

using verdict::GateStatus;
using verdict::Outcome;

struct Weight {
  std::string_view gate;
  int hundredths;
};

// What is hard to get right is worth more than what is easy; holdout completes the sum.
constexpr auto kWeights = std::to_array<Weight>({{"format", 4},
                                                 {"policy", 4},
                                                 {"compile", 12},
                                                 {"memory", 16},
                                                 {"race", 16},
                                                 {"numeric", 20},
                                                 {"precision", 10},
                                                 {"property", 6},
                                                 {"holdout", 12}});

constexpr int Total() {
  int total = 0;
  for (const Weight& weight : kWeights) total += weight.hundredths;
  return total;
}
static_assert(Total() == 100);

int HundredthsOf(std::string_view gate) {
  for (const Weight& weight : kWeights) {
    if (weight.gate == gate) return weight.hundredths;
  }
  return 0;
}

}  // namespace

double WeightOf(std::string_view gate) { return HundredthsOf(gate) / 100.0; }

Score ScoreOf(const verdict::Verdict& verdict) {
  Score score;
  double earned = 0;
  bool open = true;
  const bool refuted = verdict.outcome == Outcome::kRefuted;
  for (const verdict::GateResult& result : verdict.gates) {
    GateReward& gate = score.gates.emplace_back();
    gate.gate = result.gate;
    gate.status = Name(result.status);
    if (result.status == GateStatus::kPassed) gate.reward = 1;
    if (result.status == GateStatus::kRefuted) gate.reward = 0;
    const bool undecided = result.status == GateStatus::kInconclusive;
    if (result.status == GateStatus::kRefuted || (undecided && !refuted)) open = false;
    if (open && result.status == GateStatus::kPassed) earned += HundredthsOf(result.gate);
    if (open && undecided) earned += HundredthsOf(result.gate) / 2.0;
  }
  score.conclusive = verdict.outcome == Outcome::kAccepted || verdict.outcome == Outcome::kRefuted;
  if (verdict.outcome == Outcome::kInternalError) return score;
  // An op without properties has its property gate skipped: that must not cost an accepted kernel.
  score.reward = verdict.outcome == Outcome::kAccepted ? 1.0 : earned / 100.0;
  return score;
}

Json ToJson(const GateReward& reward) {
  return {{"gate", reward.gate},
          {"status", reward.status},
          {"reward", reward.reward ? Json(*reward.reward) : Json(nullptr)}};
}

}  // namespace assay::rewards
