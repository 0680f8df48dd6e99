// The second witness, where there is a GPU: the machine code of a candidate on real hardware, in a
// jailed worker that alone may open the device.
//
// A GPU sees little of a kernel's conduct (validator/gpu/device.h), so it never judges by itself: the
// device gate runs cases on it that the emulator has run.
//
// Request to the `gpu` worker: header {"action": "run", "execution": <Execution without program>,
// "ptx_bytes": n}, payload n bytes of PTX, then the machine code; descriptors as for the emulator.
//
// Where there are several GPUs, each has a worker, and an execution goes to one that is free. What is
// timed is timed on the first, so that times can be compared. Other processes of Assay take turns with this one (device_turn.h).
//
// Thread-safe; one call at a time a device. A kernel that hangs is ended with its worker at the
// deadline, and the next call begins anew.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "sandbox/workers.h"
#include "validator/engine/engine.h"
#include "validator/engine/inspector.h"
#include "validator/engine/stopwatch.h"
#include "validator/engine/worker_run.h"

namespace assay::engine {

class GpuEngine final : public Engine, public Stopwatch, public Inspector {
 public:
  struct Options {
    unsigned devices = 1;  ///< Lanes of the `gpu` worker that there are.
    /// What processes take turns with at each device (device_turn.h); none where there are no more.
    std::vector<Path> turns;
    std::chrono::milliseconds deadline = std::chrono::seconds(30);  ///< Of one execution.
    /// Of a workload's calls, or truth, at full size.
    std::chrono::milliseconds long_deadline = std::chrono::minutes(3);
    /// Of one execution under a tool, and of the tool's own beginning and end.
    std::chrono::milliseconds tool_deadline = std::chrono::minutes(1);
  };

  explicit GpuEngine(sandbox::Workers& workers) : GpuEngine(workers, Options{}) {}
  GpuEngine(sandbox::Workers& workers, Options options)
      : workers_(workers), options_(options), busy_(options.devices, false) {}

  std::string_view name() const override { return "gpu"; }
  unsigned devices() const override { return options_.devices; }
  Stopwatch* stopwatch() override { return this; }
  Inspector* inspector() override { return this; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     Trust trust) override;
  Result<Timed> Time(const Execution& execution, const TimingPlan& plan,
                     std::span<SharedMemory* const> buffers) override;
  Result<Stressed> Repeat(const Execution& execution, const StressPlan& plan,
                          std::span<SharedMemory* const> buffers) override;
  Result<Rates> Measure() override;
  Result<double> Time(const MatrixProduct& product) override;
  Result<double> Time(const RowsPrimitive& primitive) override;
  std::span<const std::string_view> Tools() const override;
  Result<Inspected> Inspect(std::size_t tool, const Execution& execution,
                            std::span<SharedMemory* const> buffers) override;

  /// Which GPU each device is, and with which driver; or why there is none.
  Result<std::string> Describe(unsigned device = 0);
  /// How many GPUs the machine has.
  Result<unsigned> Count();

 private:
  WorkerRun RunOf(std::string_view action, std::string_view program, const Execution& execution,
                  std::chrono::milliseconds deadline) const;
  /// A question that takes no execution: what the worker's reply says.
  Result<Json> Ask(Json header, std::chrono::milliseconds deadline, unsigned device = 0);

  /// A device that nobody else uses meanwhile.
  class Held;
  Path TurnsOf(std::size_t device) const {
    return device < options_.turns.size() ? options_.turns[device] : Path();
  }

  sandbox::Workers& workers_;
  Options options_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<bool> busy_;
};

}  // namespace assay::engine
