#include "validator/oracle/testing/local_bench.h"

#include <array>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "ops/launch_plan.h"
#include "ops/prelude.h"
#include "validator/engine/bind.h"

namespace assay::oracle {

Result<Report> LocalEngine::Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                                engine::Trust) {
  std::shared_ptr<const emu::Program> program;
  {
    const std::lock_guard lock(mutex_);
    auto& kept = programs_[Sha256Hex(execution.ptx)];
    if (kept == nullptr) {
      ASSAY_TRY(kept, emu::Program::Load(execution.ptx));
    }
    program = kept;
  }
  std::vector<std::span<std::byte>> spans;
  for (SharedMemory* memory : buffers) spans.push_back(memory->bytes());
  return emu::Run(*program, execution, spans);
}

Result<std::unique_ptr<LocalBench>> LocalBench::Create() {
  auto pool = sandbox::WorkerPool::Create({});
  if (!pool) {
    sandbox::PoolOptions options;
    options.unsafe_no_jail = true;
    pool = sandbox::WorkerPool::Create(std::move(options));
  }
  if (!pool) return std::unexpected(std::move(pool).error());
  return std::unique_ptr<LocalBench>(new LocalBench(*std::move(pool)));
}

Result<TensorMap> LocalBench::Outputs(const ops::Instance& instance, const std::string& kernel,
                                      const std::string& launch,
                                      const cases::Materialised& inputs) {
  ASSAY_TRY(const Json document, ParseJson(launch, "launch.json"));
  ASSAY_TRY(const ops::LaunchPlan plan, ops::ParseLaunchPlan(document, "launch.json", instance.op));
  engine::CompileRequest request;
  request.source = kernel;
  request.defines = ops::CandidateDefines(instance);
  request.arch = instance.arch;
  request.want_cubin = false;
  for (const ops::KernelPlan& each : plan.kernels) request.entries.push_back(each.entry);
  ASSAY_TRY(const engine::CompileOutcome outcome, compiler_.Compile(request));
  if (outcome.kind != engine::CompileOutcome::Kind::kCompiled) {
    return Fail(ErrorKind::kMalformedInput,
                outcome.diagnostics.empty() ? outcome.detail : outcome.diagnostics.front().message,
                "kernel.cu");
  }
  ASSAY_TRY(const ops::ResolvedPlan resolved, ops::Resolve(plan, instance, inputs.axes));
  const std::array calls = {
      engine::Call{.plan = &resolved, .axes = &inputs.axes, .inputs = &inputs.inputs}};
  ASSAY_TRY(engine::Binding binding, engine::Bind(instance, outcome.kernel, calls));
  binding.execution.checks = Checks{.initialisation = true, .race = false, .barrier = true};
  ASSAY_TRY(const Report report,
            engine_.Run(binding.execution, binding.buffers, engine::Trust::kCandidate));
  if (!report.findings.empty())
    return Fail(ErrorKind::kMalformedInput, report.findings.front().message, "kernel.cu");
  if (report.stop != Stop::kCompleted)
    return Fail(ErrorKind::kUnsupported, report.reason, "kernel.cu");
  return std::move(binding.calls.front().outputs);
}

Result<Comparison> LocalBench::Judge(const ops::Instance& instance, const std::string& kernel,
                                     const std::string& launch, const cases::Case& value) {
  ASSAY_TRY(const cases::Materialised inputs, oracle_.Materialise(instance, value));
  ASSAY_TRY(const TensorMap outputs, Outputs(instance, kernel, launch, inputs));
  ASSAY_TRY(const auto truth, oracle_.EvaluateFor(instance, value, inputs, outputs));
  return Compare(instance, *truth, value, inputs, outputs);
}

}  // namespace assay::oracle
