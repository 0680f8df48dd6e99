// The numeric gate: wrong results anywhere in the domain, by more than any rounding explains.
#include "validator/gates/campaign.h"

namespace assay::gates {

std::vector<Finding> ExamineNumeric(const CaseRun& run) {
  return run.comparison ? run.comparison->numeric : std::vector<Finding>{};
}

void RunNumericGate(GateContext& context, GateResult& result) {
  context.Cases().Fill("numeric", result);
}

}  // namespace assay::gates
