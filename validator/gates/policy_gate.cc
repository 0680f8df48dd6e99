// The policy gate: source or PTX that uses what a kernel has no business using. The rules are
// tables in validator/policy.
//
// A source that does not compile is judged by its text alone; the compile gate then says what is
// wrong with it. A program that cannot be read is not known to be harmless: inconclusive.
#include <fmt/format.h>

#include "validator/gates/gate.h"
#include "validator/policy/policy.h"

namespace assay::gates {

void RunPolicyGate(GateContext& context, verdict::GateResult& result) {
  std::vector<Finding> findings =
      policy::CheckSourcePolicy(context.candidate.kernel, context.instance.arch);
  if (!findings.empty()) return RefuteText(context, std::move(findings), result);
  const Result<engine::CompileOutcome>& compilation = context.Compile();
  const bool compiled = compilation && compilation->kind == engine::CompileOutcome::Kind::kCompiled;
  if (compiled) {
    const engine::CompiledKernel& kernel = compilation->kernel;
    if (kernel.facts == nullptr)
      return SetInconclusive(result, fmt::format("the PTX cannot be read: {}", kernel.facts_fault));
    findings = policy::CheckPtxPolicy(*kernel.facts);
    if (!findings.empty()) return RefuteText(context, std::move(findings), result);
    if (!kernel.facts->fault.empty())
      return SetInconclusive(result,
                             fmt::format("the PTX cannot be read: {}", kernel.facts->fault));
  }
  result.status = verdict::GateStatus::kPassed;
  result.reason =
      compiled ? "nothing forbidden in source and PTX" : "nothing forbidden in the source";
}

}  // namespace assay::gates
