// From a verdict to a reward: a number between 0 and 1, and one for each gate.
//
// A candidate earns the weight of each gate up to the one that refuted it, in the order in which
// gates run; all weights together are 1, and only an accepted candidate has them all. Nothing is
// earned behind a gate that refuted: a kernel that races has not computed what its numbers say. The
// gates that read cases read the same ones, and a refutation ends them for all: a gate before the
// refuting one that had found nothing until then is inconclusive, and earns half.
//
// Where nothing was refuted, the first gate that could not decide ends the sum, and the whole reward
// is inconclusive; a trainer may leave such a sample out. Of a judge that failed there is no reward at
// all. Gates that do not run on this engine (training, device, speed) have no weight.
//
// Pure functions of the verdict; time is not looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "validator/verdict/verdict.h"

namespace assay::rewards {

struct GateReward {
  std::string gate;
  std::string status;            ///< "passed", "refuted", "inconclusive", "skipped".
  std::optional<double> reward;  ///< 1 passed, 0 refuted; nothing where it did not decide.
};

struct Score {
  std::optional<double> reward;  ///< Nothing after an internal error.
  bool conclusive = false;       ///< Accepted or refuted.
  std::vector<GateReward> gates;
};

/// Share of the reward that a gate is worth; 0 for those without weight.
double WeightOf(std::string_view gate);

Score ScoreOf(const verdict::Verdict& verdict);

Json ToJson(const GateReward& reward);

}  // namespace assay::rewards
