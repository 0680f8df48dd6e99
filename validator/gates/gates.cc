// The table of gates, and what they share.
#include <array>
#include <thread>

#include "ops/host_headers.h"
#include "ops/prelude.h"
#include "validator/findings/render.h"
#include "validator/gates/campaign.h"
#include "validator/gates/gate.h"

namespace assay::gates {
namespace {

void NotHere(GateResult& result, std::string reason) {
  result.status = GateStatus::kSkipped;
  result.reason = std::move(reason);
}
void RunTrainingGate(GateContext&, GateResult& result) {
  NotHere(result, "the op ships no training run");
}
void RunDeviceGate(GateContext&, GateResult& result) { NotHere(result, "no GPU engine"); }
void RunSpeedGate(GateContext&, GateResult& result) { NotHere(result, "no GPU engine"); }

constexpr std::array kGates = {
    Gate{"format", Stage::kFormat, RunFormatGate, nullptr, "no kernel, or a malformed plan"},
    Gate{"policy", Stage::kSource, RunPolicyGate, nullptr,
         "constructs that a kernel has no business using"},
    Gate{"compile", Stage::kCompile, RunCompileGate, nullptr,
         "errors, warnings, resources beyond the target"},
    Gate{"memory", Stage::kCases, RunMemoryGate, ExamineMemory,
         "bad accesses, undefined values, unwritten outputs"},
    Gate{"race", Stage::kCases, RunRaceGate, ExamineRace,
         "races, divergent barriers, dependence on the schedule"},
    Gate{"numeric", Stage::kCases, RunNumericGate, ExamineNumeric, "wrong results"},
    Gate{"precision", Stage::kCases, RunPrecisionGate, ExaminePrecision,
         "error beyond the contract"},
    Gate{"property", Stage::kCases, RunPropertyGate, nullptr, "broken metamorphic properties"},
    Gate{"training", Stage::kDevice, RunTrainingGate, nullptr, "a training run that drifts"},
    Gate{"device", Stage::kDevice, RunDeviceGate, nullptr,
         "disagreement with the emulator on a GPU"},
    Gate{"speed", Stage::kDevice, RunSpeedGate, nullptr, "slower than the op's bar"},
    Gate{"holdout", Stage::kHoldout, RunHoldoutGate, nullptr, "any of the above on fresh cases"},
};

}  // namespace

std::span<const Gate> AllGates() { return kGates; }

GateContext::GateContext(const ops::Instance& an_instance, const Candidate& a_candidate,
                         Tools& some_tools, const Options& some_options)
    : instance(an_instance),
      candidate(a_candidate),
      tools(some_tools),
      options(some_options),
      effort(RowOf(some_options.effort)) {}

GateContext::~GateContext() = default;

const Result<engine::CompileOutcome>& GateContext::Compile() {
  if (!compilation) {
    Report("compile", "compiling for " + instance.arch);
    engine::CompileRequest request;
    request.source = candidate.kernel;
    request.arch = instance.arch;
    request.headers = ops::HostHeaders();
    request.pre_include = ops::kHostNames;
    request.defines = ops::CandidateDefines(instance);
    for (const ops::KernelPlan& kernel : plan->kernels) {
      if (std::ranges::find(request.entries, kernel.entry) == request.entries.end()) {
        request.entries.push_back(kernel.entry);
      }
    }
    compilation = tools.compiler.Compile(request);
  }
  return *compilation;
}

Runner& GateContext::CaseRunner() {
  if (runner == nullptr) {
    const unsigned jobs =
        options.jobs > 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
    runner = std::make_unique<Runner>(Runner::Subject{&instance, &*plan, &Compile()->kernel},
                                      tools.engine, tools.oracle, jobs);
  }
  return *runner;
}

Campaign& GateContext::Cases() {
  if (campaign == nullptr) {
    campaign = std::make_unique<Campaign>(*this);
    campaign->Run();
  }
  return *campaign;
}

void GateContext::Report(std::string_view gate, std::string detail, double fraction) const {
  if (tools.progress) tools.progress({std::string(gate), std::move(detail), fraction});
}

Counterexample TextCounterexample(const GateContext& context, std::string_view gate,
                                  std::vector<Finding> findings) {
  Counterexample counterexample;
  counterexample.gate = std::string(gate);
  counterexample.op = context.instance.op.name;
  counterexample.op_digest = context.instance.op.digest;
  for (const auto& [variable, dtype] : context.instance.binding) {
    counterexample.binding[variable] = std::string(Name(dtype));
  }
  counterexample.arch = context.instance.arch;
  counterexample.engine = std::string(context.tools.engine.name());
  counterexample.kernel = context.candidate.kernel;
  counterexample.launch = context.candidate.launch;
  SourceText source;
  source.Add("kernel.cu", context.candidate.kernel);
  FillExcerpts(findings, source);
  counterexample.findings = std::move(findings);
  return counterexample;
}

void RefuteText(const GateContext& context, std::vector<Finding> findings, GateResult& result) {
  constexpr std::size_t kMost = 3;
  result.status = GateStatus::kRefuted;
  result.reason =
      std::to_string(findings.size()) + (findings.size() == 1 ? " finding" : " findings");
  for (std::size_t i = 0; i < std::min(kMost, findings.size()); ++i) {
    result.counterexamples.push_back(TextCounterexample(context, result.gate, {findings[i]}));
  }
}

void SetInconclusive(GateResult& result, std::string reason) {
  result.status = GateStatus::kInconclusive;
  result.reason = std::move(reason);
}

bool HasProperty(const ops::OpSpec& op, std::string_view name) {
  return std::ranges::any_of(
      op.properties, [name](const ops::Property& property) { return property.name == name; });
}

}  // namespace assay::gates
