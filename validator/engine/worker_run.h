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
  unsigned lane = 0;
  std::string_view name;     ///< "emulator", in messages: "the emulator's worker ended".
  std::string_view payload;  ///< The program.
  /// Of the program, where workers keep programs: then it goes only to those that do not have it.
  std::string digest;
  std::string_view action = "run";
  Json header = Json::object();  ///< Beside action and execution.
  std::chrono::milliseconds deadline{0};
  std::string hung;  ///< What it means that the deadline passed.
};

/// A report, and the whole of what came with it, for who asked for more; empty where nothing came.
struct WorkerAnswer {
  Report report;
  Json header = Json::object();
  std::string words;  ///< Of a tool round the worker (sandbox::Reply::detail).
};

/// Inputs go as views that cannot be written, outputs and workspace as they are.
Result<WorkerAnswer> AskWorker(sandbox::Workers& workers, const WorkerRun& run,
                               const Execution& execution, std::span<SharedMemory* const> buffers,
                               Trust trust);
/// The same for who wants the report alone.
Result<Report> RunInWorker(sandbox::Workers& workers, const WorkerRun& run,
                           const Execution& execution, std::span<SharedMemory* const> buffers,
                           Trust trust);

}  // namespace assay::engine
