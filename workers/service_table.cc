#include "workers/service_table.h"

#include <array>

namespace assay::workers {
namespace {

Result<sandbox::Service> MakeCompile(const WorkerContext& context) {
  return MakeCompileService(context.compiler);
}

constexpr std::array kServices{
    ServiceRow{sandbox::WorkerKind::kCompile, &MakeCompile},
};

}  // namespace

std::span<const ServiceRow> Services() { return kServices; }

}  // namespace assay::workers
