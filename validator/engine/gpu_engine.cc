#include "validator/engine/gpu_engine.h"

#include <fmt/format.h>

#include "validator/engine/worker_run.h"

namespace assay::engine {

WorkerRun GpuEngine::RunOf(std::string_view action, std::string_view program,
                           const Execution& execution, std::chrono::milliseconds deadline) const {
  return {.kind = sandbox::WorkerKind::kGpu,
          .name = name(),
          .payload = program,
          .action = action,
          .header = {{"ptx_bytes", execution.ptx.size()}},
          .deadline = deadline,
          .hung = fmt::format("the kernel did not end on the GPU within {} s",
                              std::chrono::duration_cast<std::chrono::seconds>(deadline).count())};
}

Result<Report> GpuEngine::Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                              Trust trust) {
  const std::lock_guard lock(one_at_a_time_);
  const std::string program = execution.ptx + execution.cubin;
  // References count every rounding, in FP64.
  const auto deadline = trust == Trust::kReference ? options_.long_deadline : options_.deadline;
  return RunInWorker(workers_, RunOf("run", program, execution, deadline), execution, buffers,
                     trust);
}

Result<Stopwatch::Timed> GpuEngine::Time(const Execution& execution, const TimingPlan& plan,
                                         std::span<SharedMemory* const> buffers) {
  const std::lock_guard lock(one_at_a_time_);
  const std::string program = execution.ptx + execution.cubin;
  WorkerRun run = RunOf("time", program, execution, options_.long_deadline);
  run.header["plan"] = WriteJson(plan);
  ASSAY_TRY(WorkerAnswer answer, AskWorker(workers_, run, execution, buffers, Trust::kCandidate));
  Timed timed{.report = std::move(answer.report), .timing = {}};
  if (timed.report.stop == Stop::kCompleted) {
    ASSAY_TRY(timed.timing, ReadJson<Timing>(answer.header.value("answer", Json()), "gpu reply"));
  }
  return timed;
}

Result<Stopwatch::Stressed> GpuEngine::Repeat(const Execution& execution, const StressPlan& plan,
                                              std::span<SharedMemory* const> buffers) {
  const std::lock_guard lock(one_at_a_time_);
  const std::string program = execution.ptx + execution.cubin;
  WorkerRun run = RunOf("repeat", program, execution, options_.long_deadline);
  run.header["plan"] = WriteJson(plan);
  ASSAY_TRY(WorkerAnswer answer, AskWorker(workers_, run, execution, buffers, Trust::kCandidate));
  Stressed stressed{.report = std::move(answer.report), .stress = {}};
  if (stressed.report.stop == Stop::kCompleted) {
    ASSAY_TRY(stressed.stress,
              ReadJson<Stress>(answer.header.value("answer", Json()), "gpu reply"));
  }
  return stressed;
}

Result<Json> GpuEngine::Ask(Json header, std::chrono::milliseconds deadline) {
  const std::lock_guard lock(one_at_a_time_);
  sandbox::Request request;
  request.role = RoleOf(Trust::kReference);
  request.header = std::move(header);
  ASSAY_TRY(const sandbox::Reply reply,
            workers_.Call(sandbox::WorkerKind::kGpu, request, deadline));
  if (reply.outcome != sandbox::CallOutcome::kReplied) {
    return Fail(ErrorKind::kEnvironment, "the GPU's worker ended: " + reply.detail, "gpu",
                "nvidia-smi says how the GPU and its driver are");
  }
  if (!reply.message.header.is_object())
    return Fail(ErrorKind::kEnvironment, "the GPU's worker answered with no object", "gpu");
  return reply.message.header;
}

Result<Rates> GpuEngine::Measure() {
  ASSAY_TRY(const Json reply, Ask({{"action", "rates"}}, options_.long_deadline));
  return ReadJson<Rates>(reply.value("answer", Json()), "gpu reply");
}

Result<double> GpuEngine::Time(const MatrixProduct& product) {
  ASSAY_TRY(const Json reply,
            Ask({{"action", "product"}, {"product", WriteJson(product)}}, options_.long_deadline));
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply, "gpu reply"));
  return header.Required<double>("seconds");
}

Result<std::string> GpuEngine::Describe() {
  ASSAY_TRY(const Json reply, Ask({{"action", "describe"}}, options_.deadline));
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply, "gpu reply"));
  return header.Required<std::string>("device");
}

}  // namespace assay::engine
