// What engines have in common: an execution and its buffers go to a worker, a report comes back and is
// checked against what was asked.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "sandbox/workers.h"
#include "validator/engine/engine.h"

namespace assay::engine {

/// A report of an engine that failed: nothing is said of the kernel.
Report EngineFailure(std::string reason);

struct WorkerRun {
  sandbox::WorkerKind kind{};
  std::string_view name;         ///< "emulator", in messages: "the emulator's worker ended".
  std::string_view payload;      ///< The program.
  Json header = Json::object();  ///< Beside action and execution.
  std::chrono::milliseconds deadline{0};
  std::string hung;  ///< What it means that the deadline passed.
};

/// Inputs go as views that cannot be written, outputs and workspace as they are.
Result<Report> RunInWorker(sandbox::Workers& workers, const WorkerRun& run,
                           const Execution& execution, std::span<SharedMemory* const> buffers,
                           Trust trust);

}  // namespace assay::engine
