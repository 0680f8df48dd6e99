#include "validator/engine/gpu_engine.h"

#include <fmt/format.h>

#include "validator/engine/worker_run.h"

namespace assay::engine {

Result<Report> GpuEngine::Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                              Trust trust) {
  const std::lock_guard lock(one_at_a_time_);
  const std::string program = execution.ptx + execution.cubin;
  const WorkerRun run{
      .kind = sandbox::WorkerKind::kGpu,
      .name = name(),
      .payload = program,
      .header = {{"ptx_bytes", execution.ptx.size()}},
      .deadline = options_.deadline,
      .hung =
          fmt::format("the kernel did not end on the GPU within {} s",
                      std::chrono::duration_cast<std::chrono::seconds>(options_.deadline).count())};
  return RunInWorker(workers_, run, execution, buffers, trust);
}

Result<std::string> GpuEngine::Describe() {
  const std::lock_guard lock(one_at_a_time_);
  sandbox::Request request;
  request.role = RoleOf(Trust::kCandidate);
  request.header = {{"action", "describe"}};
  ASSAY_TRY(const sandbox::Reply reply,
            workers_.Call(sandbox::WorkerKind::kGpu, request, options_.deadline));
  if (reply.outcome != sandbox::CallOutcome::kReplied) {
    return Fail(ErrorKind::kEnvironment, "the GPU's worker ended: " + reply.detail, "gpu",
                "nvidia-smi says how the GPU and its driver are");
  }
  ASSAY_TRY(ObjectReader header, ObjectReader::Of(reply.message.header, "gpu reply"));
  ASSAY_TRY(std::string device, header.Required<std::string>("device"));
  return device;
}

}  // namespace assay::engine
