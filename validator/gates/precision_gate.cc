// The precision gate: error beyond what honest arithmetic under the op's contract can have, element
// by element, in the worst row, and in the sign that errors share.
#include "validator/gates/campaign.h"

namespace assay::gates {

std::vector<Finding> ExaminePrecision(const CaseRun& run) {
  return run.comparison ? run.comparison->precision : std::vector<Finding>{};
}

void RunPrecisionGate(GateContext& context, GateResult& result) {
  Campaign& campaign = context.Cases();
  campaign.Fill("precision", result);
  result.statistics = campaign.harvest().statistics;
}

}  // namespace assay::gates
