// Which services `assay-worker` offers: one row a kind. A new kind is a row in service_table.cc, a
// policy in sandbox/policies.cc and a service; nothing else knows.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "sandbox/policies.h"
#include "sandbox/serve.h"
#include "workers/compile_service.h"
#include "workers/gpu_service.h"

namespace assay::workers {

/// What the command line told the worker.
struct WorkerContext {
  CompilerPaths compiler;
  int gpu = 0;
  GpuLibraries libraries;
};

struct ServiceRow {
  sandbox::WorkerKind kind;
  /// Opens what the service needs; runs before the process is sealed.
  Result<sandbox::Service> (*make)(const WorkerContext& context);
};

std::span<const ServiceRow> Services();

}  // namespace assay::workers
