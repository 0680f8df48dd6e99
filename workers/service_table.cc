#include "workers/service_table.h"

#include <array>

#include "workers/emulate_service.h"

namespace assay::workers {
namespace {

Result<sandbox::Service> MakeCompile(const WorkerContext& context) {
  return MakeCompileService(context.compiler);
}

Result<sandbox::Service> MakeEmulate(const WorkerContext&) { return MakeEmulateService(); }

Result<sandbox::Service> MakeGpu(const WorkerContext& context) {
  return MakeGpuService(context.gpu, context.libraries);
}

// What a tool watches is laid out so that it sees what it looks for.
Result<sandbox::Service> MakeGpuTool(const WorkerContext& context) {
  return MakeGpuService(context.gpu, context.libraries, /*apart=*/true);
}

constexpr std::array kServices{
    ServiceRow{sandbox::WorkerKind::kCompile, &MakeCompile},
    ServiceRow{sandbox::WorkerKind::kEmulate, &MakeEmulate},
    ServiceRow{sandbox::WorkerKind::kGpu, &MakeGpu},
    ServiceRow{sandbox::WorkerKind::kGpuTool, &MakeGpuTool},
};

}  // namespace

std::span<const ServiceRow> Services() { return kServices; }

}  // namespace assay::workers
