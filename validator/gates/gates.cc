// The table of gates, and what they share.
#include <algorithm>
#include <chrono>
#include <thread>

#include "ops/host_headers.h"
#include "ops/prelude.h"
#include "validator/campaign/campaign.h"
#include "validator/gates/gate.h"

namespace assay::gates {
namespace {

void NotHere(verdict::GateResult& result, std::string reason) {
  result.status = verdict::GateStatus::kSkipped;
  result.reason = std::move(reason);
}

constexpr Gate kGates[] = {
#define GATE(Name, name, stage, refutes) {name, Stage::stage, Run##Name##Gate, nullptr, refutes},
#define EXAMINING_GATE(Name, name, refutes) \
  {name, Stage::kCases, Run##Name##Gate, Examine##Name, refutes},
#include "validator/gates/gates.def"
};

}  // namespace

void RunTrainingGate(GateContext&, verdict::GateResult& result) {
  NotHere(result, "the op ships no training run");
}

std::span<const Gate> AllGates() { return kGates; }

std::span<const campaign::Examiner> Examiners() {
  static const std::vector<campaign::Examiner> kExaminers = [] {
    std::vector<campaign::Examiner> examiners;
    for (const Gate& gate : kGates) {
      if (gate.examine != nullptr) examiners.push_back({gate.name, gate.examine});
    }
    return examiners;
  }();
  return kExaminers;
}

GateContext::GateContext(const ops::Instance& an_instance, const verdict::Candidate& a_candidate,
                         Tools& some_tools, const Options& some_options)
    : instance(an_instance),
      candidate(a_candidate),
      tools(some_tools),
      options(some_options),
      effort(campaign::FitTo(campaign::RowOf(some_options.effort), an_instance)) {}

GateContext::~GateContext() = default;

engine::CompileRequest RequestFor(const ops::Instance& instance,
                                  const verdict::Candidate& candidate,
                                  const ops::LaunchPlan& plan) {
  engine::CompileRequest request;
  request.source = candidate.kernel;
  request.arch = instance.arch;
  request.headers = ops::HostHeaders();
  request.pre_include = ops::kHostNames;
  request.defines = ops::CandidateDefines(instance);
  for (const ops::KernelPlan& kernel : plan.kernels) {
    if (std::ranges::find(request.entries, kernel.entry) == request.entries.end()) {
      request.entries.push_back(kernel.entry);
    }
  }
  return request;
}

const ops::LaunchPlan& GateContext::Plan() const {
  ASSAY_CHECK(plan.has_value(), "the format gate has read the plan");
  return *plan;
}

const Result<engine::CompileOutcome>& GateContext::Compile() {
  if (!compilation) {
    Report("compile", "compiling for " + instance.arch);
    engine::CompileRequest request = RequestFor(instance, candidate, Plan());
    engine::CompileRequest whole = request;
    request.want_cubin = false;
    whole.want_facts = false;
    assembly =
        std::async(options.jobs == 1 ? std::launch::deferred : std::launch::async,
                   [this, whole = std::move(whole)] { return tools.compiler.Compile(whole); })
            .share();
    compilation = tools.compiler.Compile(request);
  }
  return *compilation;
}

const verdict::GateResult* GateContext::Assembled(bool wait) {
  using namespace std::chrono_literals;
  if (!assembled && assembly.valid() &&
      (wait || assembly.wait_for(0s) == std::future_status::ready))
    assembled = JudgeAssembled(*this, assembly.get());
  return assembled ? &*assembled : nullptr;
}

campaign::Runner& GateContext::CaseRunner() {
  if (runner == nullptr) {
    const unsigned jobs =
        options.jobs > 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
    runner = std::make_unique<campaign::Runner>(
        campaign::Runner::Subject{&instance, &Plan(), &Compile()->kernel}, tools.engine,
        tools.oracle, jobs);
  }
  return *runner;
}

const campaign::Trial& GateContext::Trial() {
  if (!trial) {
    trial.emplace(campaign::Trial{
        .instance = instance,
        .candidate = candidate,
        .plan = Plan(),
        .compiled = Compile()->kernel,
        .runner = CaseRunner(),
        .engine = tools.engine.name(),
        .effort = effort,
        .seed = options.seed,
        .regressions = options.regressions,
        .examiners = Examiners(),
        .is_pointless =
            [this] {
              const verdict::GateResult* const all = Assembled(/*wait=*/false);
              return all != nullptr && all->status != verdict::GateStatus::kPassed;
            },
        .progress = [this](std::string_view gate, std::string detail,
                           double fraction) { Report(gate, std::move(detail), fraction); }});
  }
  return *trial;
}

campaign::Campaign& GateContext::Cases() {
  if (campaign == nullptr) {
    campaign = std::make_unique<campaign::Campaign>(Trial());
    if (const Status known = tools.known_answers(tools.engine, options.seed); known) {
      campaign->Run();
    } else {
      campaign->Abandon(ToString(known.error()));
    }
  }
  return *campaign;
}

void GateContext::Report(std::string_view gate, std::string detail, double fraction) const {
  if (tools.progress) tools.progress({std::string(gate), std::move(detail), fraction});
}

verdict::Counterexample TextCounterexample(const GateContext& context, std::string_view gate,
                                           std::vector<Finding> findings) {
  return verdict::MakeCounterexample(context.instance, context.candidate,
                                     context.tools.engine.name(), gate, std::move(findings));
}

void RefuteText(const GateContext& context, std::vector<Finding> findings,
                verdict::GateResult& result) {
  constexpr std::size_t kMost = 3;
  result.status = verdict::GateStatus::kRefuted;
  result.reason =
      std::to_string(findings.size()) + (findings.size() == 1 ? " finding" : " findings");
  for (std::size_t i = 0; i < std::min(kMost, findings.size()); ++i) {
    result.counterexamples.push_back(TextCounterexample(context, result.gate, {findings[i]}));
  }
}

}  // namespace assay::gates
