// An engine runs compiled kernels on device buffers. `emulator` is the one that every machine has;
// `gpu` follows the same interface.
//
// Engines run the untrusted program in a worker process; what comes back is data. Buffers are
// SharedMemory: inputs are mapped copy-on-write in the worker, outputs and workspace shared.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "base/shared_memory.h"
#include "validator/engine/trust.h"
#include "validator/execution/execution.h"

namespace assay::engine {

class Stopwatch;
class Inspector;

class Engine {
 public:
  virtual ~Engine() = default;
  /// "emulator" or "gpu".
  virtual std::string_view name() const = 0;
  /// Machines of which each runs one execution at a time. 0: as many run as are asked for.
  virtual unsigned devices() const { return 0; }
  /// What else the machine offers; null: it does not. As long as the engine lives.
  virtual Stopwatch* stopwatch() { return nullptr; }
  virtual Inspector* inspector() { return nullptr; }
  /// Runs `execution` on `buffers` (one an entry of execution.buffers, in order). A worker that
  /// dies, hangs or lies is a Report with Stop::kEngineFailure; Error only when no worker can be
  /// started. May be called from several threads.
  virtual Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                             Trust trust) = 0;
};

}  // namespace assay::engine
