// The numeric gate: wrong results anywhere in the domain, by more than any rounding explains.
#include "validator/campaign/campaign.h"
#include "validator/gates/gate.h"

namespace assay::gates {

std::vector<Finding> ExamineNumeric(const campaign::CaseRun& run) {
  return run.comparison ? run.comparison->numeric : std::vector<Finding>{};
}

void RunNumericGate(GateContext& context, verdict::GateResult& result) {
  campaign::Campaign& campaign = context.Cases();
  campaign.Fill("numeric", result);
  const campaign::Coverage& coverage = campaign.coverage();
  result.statistics.push_back({"branch_sides", static_cast<double>(coverage.sides()),
                               static_cast<double>(2 * coverage.branches()), "reached, of all"});
}

}  // namespace assay::gates
