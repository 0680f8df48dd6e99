// The precision gate: error beyond what honest arithmetic under the op's contract can have, element
// by element, in the worst row, and in the sign that errors share.
#include <fmt/format.h>

#include "validator/campaign/campaign.h"
#include "validator/gates/gate.h"

namespace assay::gates {

std::vector<Finding> ExaminePrecision(const campaign::CaseRun& run) {
  return run.comparison ? run.comparison->precision : std::vector<Finding>{};
}

void RunPrecisionGate(GateContext& context, verdict::GateResult& result) {
  campaign::Campaign& campaign = context.Cases();
  campaign.Fill("precision", result);
  result.statistics = campaign.harvest().statistics;
  for (const auto& [output, profile] : campaign.harvest().profiles) {
    result.errors.push_back(profile);
    const auto growth = campaign.harvest().growth.find(output);
    if (growth != campaign.harvest().growth.end())
      result.errors.back().growth = growth->second.Points();
  }
  // Reductions of one length say nothing about growth; those of all cases together do.
  for (const auto& [output, growth] : campaign.harvest().growth) {
    const auto fit = growth.Fit();
    if (!fit) continue;
    result.statistics.push_back(
        {"error_growth_exponent_over_cases", fit->exponent, 0,
         fmt::format("{}: over {} octaves up to {:.0f} terms; standard error {:.2g}", output,
                     fit->octaves, fit->longest, fit->standard_error)});
  }
}

}  // namespace assay::gates
