#include "sandbox/health.h"

namespace assay::sandbox {

Result<CompilerHealth> ProbeCompiler(Workers& workers, std::chrono::milliseconds deadline) {
  Request request;
  request.role = "doctor";
  request.header = {{"action", "probe"}};
  ASSAY_TRY(const Reply reply, workers.Call(WorkerKind::kCompile, request, deadline));
  if (reply.outcome != CallOutcome::kReplied) {
    return Fail(
        ErrorKind::kEnvironment, "the compile worker did not answer: " + reply.detail,
        "worker compile",
        "check that the CUDA Toolkit is complete (libnvrtc and libnvrtc-builtins of one version)");
  }
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(reply.message.header, "compile worker"));
  CompilerHealth health;
  ASSAY_TRY(health.nvrtc, reader.Required<std::string>("nvrtc"));
  ASSAY_TRY(health.library, reader.Required<std::string>("library"));
  ASSAY_TRY(health.includes, reader.Required<std::vector<std::string>>("includes"));
  ASSAY_TRY(health.architectures, reader.Required<std::vector<std::int64_t>>("architectures"));
  ASSAY_TRY_VOID(reader.Finish());
  return health;
}

}  // namespace assay::sandbox
