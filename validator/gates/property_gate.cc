// The property gate: metamorphic properties that the op declares.
#include <fmt/format.h>

#include "validator/gates/campaign.h"

namespace assay::gates {

void RunPropertyGate(GateContext& context, GateResult& result) {
  std::string names;
  for (const ops::Property& property : context.instance.op.properties) {
    // The race gate explores schedules for it.
    if (property.name == "deterministic") continue;
    names += (names.empty() ? "" : ", ") + property.name;
  }
  if (names.empty()) {
    result.status = GateStatus::kSkipped;
    result.reason = "the op declares no metamorphic property";
    return;
  }
  SetInconclusive(result, "no check for the properties " + names);
}

}  // namespace assay::gates
