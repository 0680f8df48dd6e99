// The policy gate: source or PTX that uses what a kernel has no business using. The rules are
// tables in validator/policy.
//
// A source that does not compile is judged by its text alone; the compile gate then says what is
// wrong with it.
#include "validator/gates/gate.h"
#include "validator/policy/policy.h"

namespace assay::gates {

void RunPolicyGate(GateContext& context, verdict::GateResult& result) {
  std::vector<Finding> findings = policy::CheckSourcePolicy(context.candidate.kernel);
  if (!findings.empty()) return RefuteText(context, std::move(findings), result);
  const Result<engine::CompileOutcome>& compilation = context.Compile();
  const bool compiled = compilation && compilation->kind == engine::CompileOutcome::Kind::kCompiled;
  if (compiled) {
    findings = policy::CheckPtxPolicy(compilation->kernel.ptx);
    if (!findings.empty()) return RefuteText(context, std::move(findings), result);
  }
  result.status = verdict::GateStatus::kPassed;
  result.reason =
      compiled ? "nothing forbidden in source and PTX" : "nothing forbidden in the source";
}

}  // namespace assay::gates
