#include "validator/gates/gatekeeper.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <utility>

#include "validator/campaign/campaign.h"
#include "validator/campaign/minimise.h"
#include "validator/campaign/origins.h"
#include "validator/campaign/properties.h"
#include "validator/findings/render.h"
#include "validator/gates/gate.h"

namespace assay::gates {
namespace {

bool Has(const verdict::Verdict& verdict, verdict::GateStatus status) {
  return std::ranges::any_of(
      verdict.gates, [&](const verdict::GateResult& gate) { return gate.status == status; });
}

const verdict::GateResult* First(const verdict::Verdict& verdict, verdict::GateStatus status) {
  const auto found = std::ranges::find(verdict.gates, status, &verdict::GateResult::status);
  return found == verdict.gates.end() ? nullptr : &*found;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Gates whose absence does not bar acceptance; that they were skipped stands in the verdict and in
// the certificate.
constexpr std::string_view kMayBeSkipped[] = {"property", "training", "device", "speed"};

// Invariant 1: accepted only if every gate that must pass has passed.
void Conclude(verdict::Verdict& verdict) {
  if (const verdict::GateResult* refuted = First(verdict, verdict::GateStatus::kRefuted)) {
    verdict.outcome = verdict::Outcome::kRefuted;
    verdict.reason = refuted->gate + ": " + refuted->reason;
    if (!refuted->counterexamples.empty() && !refuted->counterexamples.front().findings.empty()) {
      verdict.reason = refuted->gate + ": " +
                       FirstLine(refuted->counterexamples.front().findings.front().message);
    }
    return;
  }
  if (const verdict::GateResult* unknown = First(verdict, verdict::GateStatus::kInconclusive)) {
    verdict.outcome = verdict::Outcome::kInconclusive;
    verdict.reason = unknown->gate + ": " + FirstLine(unknown->reason);
    return;
  }
  if (!verdict.ledger.Balanced()) {
    verdict.outcome = verdict::Outcome::kInconclusive;
    verdict.reason = "the ledger does not balance: a planned case is unaccounted for";
    return;
  }
  for (const Gate& gate : AllGates()) {
    const auto found = std::ranges::find(verdict.gates, gate.name, &verdict::GateResult::gate);
    const bool passed =
        found != verdict.gates.end() && found->status == verdict::GateStatus::kPassed;
    if (passed || std::ranges::find(kMayBeSkipped, gate.name) != std::end(kMayBeSkipped)) continue;
    verdict.outcome = verdict::Outcome::kInconclusive;
    verdict.reason = std::string(gate.name) + ": did not run";
    return;
  }
  verdict.outcome = verdict::Outcome::kAccepted;
  verdict.reason = "every gate passed";
  if (const std::string qualification = verdict.ledger.Qualification(); !qualification.empty())
    verdict.reason += "; " + qualification;
  if (verdict.truth != ops::TruthKinds().front()) {
    verdict.reason += "; truths are values of a reference in " + verdict.truth +
                      ", what error is honest is estimated and not derived";
  }
}

/// `op` is asked before the first gate of stage `ask`: can the op judge anything? If not, no gate has
/// said anything.
Status RunGates(GateContext& context, Clock& clock, Stage ask, const std::function<Status()>& op,
                verdict::Verdict& verdict) {
  // What does not compile can be run by none of the later ones.
  const auto runs_after = [&](Stage ended_at) {
    return context.options.every_gate && ended_at >= Stage::kCases;
  };
  std::string ended_by;
  bool refuted = false;
  Stage ended_at{};
  bool asked = false;
  // What runs beside the assembler counts if that has nothing to say.
  const auto settle = [&] {
    const auto compile = std::ranges::find(verdict.gates, "compile", &verdict::GateResult::gate);
    if (compile == verdict.gates.end() || compile->status != verdict::GateStatus::kPassed) return;
    const double seconds = compile->seconds;
    const auto start = clock.Now();
    *compile = *context.Assembled(/*wait=*/true);
    compile->gate = "compile";
    compile->seconds = seconds + std::chrono::duration<double>(clock.Now() - start).count();
    if (compile->status == verdict::GateStatus::kPassed) {
      engine::CompiledKernel& kernel = (*context.compilation)->kernel;
      kernel.cubin = context.assembly.get()->kernel.cubin;
      kernel.resources = context.assembly.get()->kernel.resources;
      kernel.log = context.assembly.get()->kernel.log;
      return;
    }
    ended_by = "compile is " + std::string(Name(compile->status));
    ended_at = Stage::kCompile;
    refuted = compile->status == verdict::GateStatus::kRefuted;
    for (auto gate = compile + 1; gate != verdict.gates.end(); ++gate) {
      verdict::GateResult anew;
      anew.gate = gate->gate;
      anew.reason = "not reached: " + ended_by;
      *gate = std::move(anew);
    }
    context.campaign.reset();
    context.ledger = {};
  };
  bool settled = false;
  for (const Gate& gate : AllGates()) {
    if (gate.stage > Stage::kCases && !std::exchange(settled, true)) settle();
    if (gate.stage >= ask && !std::exchange(asked, true)) {
      if (Status can = op(); !can) {
        verdict.gates.clear();
        return can;
      }
    }
    verdict::GateResult& result = verdict.gates.emplace_back();
    result.gate = std::string(gate.name);
    if (!ended_by.empty() && gate.stage != ended_at && !runs_after(ended_at)) {
      result.reason = "not reached: " + ended_by;
      continue;
    }
    context.Report(gate.name, "running");
    const auto start = clock.Now();
    gate.run(context, result);
    result.seconds = std::chrono::duration<double>(clock.Now() - start).count();
    const bool ends = result.status == verdict::GateStatus::kRefuted ||
                      result.status == verdict::GateStatus::kInconclusive;
    // Within the stage that ends it, a refutation says more than a gate that saw too little.
    if (ends &&
        (ended_by.empty() || (result.status == verdict::GateStatus::kRefuted && !refuted))) {
      ended_by = result.gate + " is " + std::string(Name(result.status));
      ended_at = gate.stage;
      refuted = result.status == verdict::GateStatus::kRefuted;
    }
  }
  return {};
}

}  // namespace

struct Gatekeeper::Impl {
  Tools tools;
  Options options;
};

Gatekeeper::Gatekeeper(Tools tools, Options options)
    : impl_(std::make_unique<Impl>(Impl{std::move(tools), std::move(options)})) {}
Gatekeeper::~Gatekeeper() = default;

Judgement Gatekeeper::Judge(const ops::Instance& instance, const verdict::Candidate& candidate) {
  Judgement judgement;
  verdict::Verdict& verdict = judgement.verdict;
  verdict.instance = instance.Id();
  verdict.engine = std::string(impl_->tools.engine.name());
  verdict.truth = instance.op.truth;
  if (impl_->tools.gpu != nullptr) verdict.engine += "," + std::string(impl_->tools.gpu->name());
  verdict.unsafe_no_jail = impl_->options.unsafe_no_jail;
  GateContext context(instance, candidate, impl_->tools, impl_->options);
  try {
    // What no candidate could pass is no candidate's fault, and not found after the first cases. Where
    // there are several jobs, the reference compiles beside the candidate.
    const bool beside = impl_->options.jobs != 1;
    std::future<Status> check = std::async(beside ? std::launch::async : std::launch::deferred,
                                           [&] { return impl_->tools.oracle.Prepare(instance); });
    const auto can_judge = [&] { return check.get(); };
    if (const Status op = RunGates(context, impl_->tools.clock,
                                   beside ? Stage::kCases : Stage::kFormat, can_judge, verdict);
        !op) {
      verdict.outcome = verdict::Outcome::kInconclusive;
      verdict.reason =
          "the op itself is at fault, no candidate was judged: " + ToString(op.error());
      return judgement;
    }
    if (context.campaign != nullptr) verdict.ledger = context.campaign->LedgerOfAll();
    verdict.ledger.Add(context.ledger);
    Conclude(verdict);
  } catch (const std::exception& thrown) {
    verdict.outcome = verdict::Outcome::kInternalError;
    verdict.reason = std::string("the judge failed: ") + thrown.what();
  } catch (...) {
    verdict.outcome = verdict::Outcome::kInternalError;
    verdict.reason = "the judge failed";
  }
  const bool sound = verdict.outcome == verdict::Outcome::kAccepted && verdict.ledger.Balanced() &&
                     !Has(verdict, verdict::GateStatus::kRefuted) &&
                     !Has(verdict, verdict::GateStatus::kInconclusive);
  if (sound && !verdict.unsafe_no_jail) {
    judgement.vetted = VettedKernel(candidate, instance, context.Compile()->kernel, verdict);
  }
  return judgement;
}

Result<verdict::Counterexample> Gatekeeper::Replay(const ops::Instance& instance,
                                                   const verdict::Counterexample& counterexample) {
  if (counterexample.op != instance.op.name) {
    return Fail(ErrorKind::kUsage,
                "the counterexample is about op '" + counterexample.op + "', not '" +
                    instance.op.name + "'",
                "counterexample: /op");
  }
  const verdict::Candidate candidate{counterexample.kernel, counterexample.launch};
  GateContext context(instance, candidate, impl_->tools, impl_->options);
  verdict::Counterexample again = counterexample;
  again.findings.clear();
  const Finding* guilty =
      counterexample.findings.empty() ? nullptr : &counterexample.findings.front();
  // The gates before the one that refuted are run as they were then; what they refute today is what
  // replay reports.
  for (const Gate& gate : AllGates()) {
    if (gate.stage >= Stage::kCases) break;
    verdict::GateResult result;
    result.gate = std::string(gate.name);
    gate.run(context, result);
    if (result.status == verdict::GateStatus::kInconclusive) {
      return Fail(ErrorKind::kLimit, result.reason, std::string(gate.name) + " gate");
    }
    if (result.status != verdict::GateStatus::kRefuted) continue;
    for (const verdict::Counterexample& found : result.counterexamples) {
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
  if (counterexample.gate == "device") {
    if (impl_->tools.gpu == nullptr) {
      return Fail(ErrorKind::kUsage, "the counterexample is about a GPU, and none was asked for",
                  "replay", "--engine gpu,emulator");
    }
    ASSAY_TRY(again.findings, FindingsOnDevice(context, probe));
    return again;
  }
  if (counterexample.gate == "speed") {
    if (impl_->tools.meter == nullptr) {
      return Fail(ErrorKind::kUsage, "the counterexample is about timed calls on a GPU", "replay",
                  "--engine gpu,emulator --speed");
    }
    ASSAY_TRY(again.findings, FindingsOnClock(context, probe));
    return again;
  }
  if (!counterexample.property.empty()) {
    ASSAY_TRY(campaign::PropertyCheck check,
              campaign::CheckProperty(instance, ops::PropertyFromText(counterexample.property),
                                      probe, context.CaseRunner(), impl_->tools.oracle));
    again.findings = std::move(check.findings);
    return again;
  }
  if (!context.plan) return Fail(ErrorKind::kInternal, "there is no launch plan to run");
  const campaign::CaseRun run =
      context.CaseRunner().Run(probe, campaign::ReplayWants(instance, context.Plan(), probe));
  if (run.error) return std::unexpected(*run.error);
  again.findings = campaign::FindingsOf(context.Trial(), run, guilty);
  campaign::AddOrigins(context.CaseRunner(), run, candidate, again.findings);
  const std::string inconclusive = run.Inconclusive();
  if (again.findings.empty() && !inconclusive.empty()) {
    return Fail(ErrorKind::kLimit, inconclusive, "replay");
  }
  return again;
}

}  // namespace assay::gates
