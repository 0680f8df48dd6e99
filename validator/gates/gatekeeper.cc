#include "validator/gates/gatekeeper.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "validator/findings/render.h"
#include "validator/gates/campaign.h"
#include "validator/gates/gate.h"
#include "validator/gates/minimise.h"
#include "validator/gates/origins.h"
#include "validator/gates/properties.h"

namespace assay::gates {
namespace {

bool Has(const Verdict& verdict, GateStatus status) {
  return std::ranges::any_of(verdict.gates,
                             [&](const GateResult& gate) { return gate.status == status; });
}

const GateResult* First(const Verdict& verdict, GateStatus status) {
  const auto found = std::ranges::find(verdict.gates, status, &GateResult::status);
  return found == verdict.gates.end() ? nullptr : &*found;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Gates whose absence does not bar acceptance; that they were skipped stands in the verdict and in
// the certificate.
constexpr std::string_view kMayBeSkipped[] = {"property", "training", "device", "speed"};

// Invariant 1: accepted only if every gate that must pass has passed.
void Conclude(Verdict& verdict) {
  if (const GateResult* refuted = First(verdict, GateStatus::kRefuted)) {
    verdict.outcome = Outcome::kRefuted;
    verdict.reason = refuted->gate + ": " + refuted->reason;
    if (!refuted->counterexamples.empty() && !refuted->counterexamples.front().findings.empty()) {
      verdict.reason = refuted->gate + ": " +
                       FirstLine(refuted->counterexamples.front().findings.front().message);
    }
    return;
  }
  if (const GateResult* unknown = First(verdict, GateStatus::kInconclusive)) {
    verdict.outcome = Outcome::kInconclusive;
    verdict.reason = unknown->gate + ": " + FirstLine(unknown->reason);
    return;
  }
  for (const Gate& gate : AllGates()) {
    const auto found = std::ranges::find(verdict.gates, gate.name, &GateResult::gate);
    const bool passed = found != verdict.gates.end() && found->status == GateStatus::kPassed;
    if (passed || std::ranges::find(kMayBeSkipped, gate.name) != std::end(kMayBeSkipped)) continue;
    verdict.outcome = Outcome::kInconclusive;
    verdict.reason = std::string(gate.name) + ": did not run";
    return;
  }
  verdict.outcome = Outcome::kAccepted;
  verdict.reason = "every gate passed";
}

void RunGates(GateContext& context, Clock& clock, Verdict& verdict) {
  std::string ended_by;
  bool refuted = false;
  Stage ended_at{};
  for (const Gate& gate : AllGates()) {
    GateResult& result = verdict.gates.emplace_back();
    result.gate = std::string(gate.name);
    if (!ended_by.empty() && gate.stage != ended_at) {
      result.reason = "not reached: " + ended_by;
      continue;
    }
    context.Report(gate.name, "running");
    const auto start = clock.Now();
    gate.run(context, result);
    result.seconds = std::chrono::duration<double>(clock.Now() - start).count();
    const bool ends =
        result.status == GateStatus::kRefuted || result.status == GateStatus::kInconclusive;
    // Within the stage that ends it, a refutation says more than a gate that saw too little.
    if (ends && (ended_by.empty() || (result.status == GateStatus::kRefuted && !refuted))) {
      ended_by = result.gate + " is " + std::string(Name(result.status));
      ended_at = gate.stage;
      refuted = result.status == GateStatus::kRefuted;
    }
  }
}

}  // namespace

struct Gatekeeper::Impl {
  Tools tools;
  Options options;
};

Gatekeeper::Gatekeeper(Tools tools, Options options)
    : impl_(std::make_unique<Impl>(Impl{std::move(tools), std::move(options)})) {}
Gatekeeper::~Gatekeeper() = default;

Judgement Gatekeeper::Judge(const ops::Instance& instance, const Candidate& candidate) {
  Judgement judgement;
  Verdict& verdict = judgement.verdict;
  verdict.instance = instance.Id();
  verdict.engine = std::string(impl_->tools.engine.name());
  verdict.unsafe_no_jail = impl_->options.unsafe_no_jail;
  GateContext context(instance, candidate, impl_->tools, impl_->options);
  try {
    RunGates(context, impl_->tools.clock, verdict);
    Conclude(verdict);
  } catch (const std::exception& thrown) {
    verdict.outcome = Outcome::kInternalError;
    verdict.reason = std::string("the judge failed: ") + thrown.what();
  } catch (...) {
    verdict.outcome = Outcome::kInternalError;
    verdict.reason = "the judge failed";
  }
  const bool sound = verdict.outcome == Outcome::kAccepted && !Has(verdict, GateStatus::kRefuted) &&
                     !Has(verdict, GateStatus::kInconclusive);
  if (sound && !verdict.unsafe_no_jail) {
    judgement.vetted = VettedKernel(candidate, instance, context.Compile()->kernel, verdict);
  }
  return judgement;
}

Result<Counterexample> Gatekeeper::Replay(const ops::Instance& instance,
                                          const Counterexample& counterexample) {
  if (counterexample.op != instance.op.name) {
    return Fail(ErrorKind::kUsage,
                "the counterexample is about op '" + counterexample.op + "', not '" +
                    instance.op.name + "'",
                "counterexample: /op");
  }
  const Candidate candidate{counterexample.kernel, counterexample.launch};
  GateContext context(instance, candidate, impl_->tools, impl_->options);
  Counterexample again = counterexample;
  again.findings.clear();
  const Finding* guilty =
      counterexample.findings.empty() ? nullptr : &counterexample.findings.front();
  // The gates before the one that refuted are run as they were then; what they refute today is what
  // replay reports.
  for (const Gate& gate : AllGates()) {
    if (gate.stage >= Stage::kCases) break;
    GateResult result;
    result.gate = std::string(gate.name);
    gate.run(context, result);
    if (result.status == GateStatus::kInconclusive) {
      return Fail(ErrorKind::kLimit, result.reason, std::string(gate.name) + " gate");
    }
    if (result.status != GateStatus::kRefuted) continue;
    for (const Counterexample& found : result.counterexamples) {
      const bool same = guilty != nullptr && !found.findings.empty() &&
                        SameDefect(found.findings.front(), *guilty);
      if (!same && again.findings.empty()) again.findings = found.findings;
      if (same) {
        again.findings = found.findings;
        break;
      }
    }
    return again;
  }
  if (!counterexample.probe) return again;
  const cases::Probe& probe = *counterexample.probe;
  if (!counterexample.property.empty()) {
    ASSAY_TRY(PropertyCheck check,
              CheckProperty(instance, ops::PropertyFromText(counterexample.property), probe,
                            context.CaseRunner(), impl_->tools.oracle));
    again.findings = std::move(check.findings);
    return again;
  }
  const CaseRun run = context.CaseRunner().Run(probe, ReplayWants(instance, *context.plan, probe));
  if (run.error) return std::unexpected(*run.error);
  again.findings = FindingsOf(run, candidate, guilty);
  AddOrigins(context.CaseRunner(), run, candidate, again.findings);
  const std::string inconclusive = run.Inconclusive();
  if (again.findings.empty() && !inconclusive.empty()) {
    return Fail(ErrorKind::kLimit, inconclusive, "replay");
  }
  return again;
}

}  // namespace assay::gates
