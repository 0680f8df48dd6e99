// The second witness, where there is a GPU: the machine code of a candidate on real hardware, in a
// jailed worker that alone may open the device.
//
// A GPU sees little of a kernel's conduct (validator/gpu/device.h), so it never judges by itself: the
// device gate runs cases on it that the emulator has run.
//
// Request to the `gpu` worker: header {"action": "run", "execution": <Execution without program>,
// "ptx_bytes": n}, payload n bytes of PTX, then the machine code; descriptors as for the emulator.
//
// Thread-safe; one call at a time, since there is one device. A kernel that hangs is ended with its
// worker at the deadline, and the next call begins anew.
#pragma once

#include <chrono>
#include <mutex>

#include "sandbox/workers.h"
#include "validator/engine/engine.h"
#include "validator/engine/stopwatch.h"
#include "validator/engine/worker_run.h"

namespace assay::engine {

class GpuEngine final : public Engine, public Stopwatch {
 public:
  struct Options {
    std::chrono::milliseconds deadline = std::chrono::seconds(30);  ///< Of one execution.
    /// Of a workload's calls, or truth, at full size.
    std::chrono::milliseconds long_deadline = std::chrono::minutes(3);
  };

  explicit GpuEngine(sandbox::Workers& workers) : GpuEngine(workers, Options{}) {}
  GpuEngine(sandbox::Workers& workers, Options options) : workers_(workers), options_(options) {}

  std::string_view name() const override { return "gpu"; }
  Result<Report> Run(const Execution& execution, std::span<SharedMemory* const> buffers,
                     Trust trust) override;
  Result<Timed> Time(const Execution& execution, const TimingPlan& plan,
                     std::span<SharedMemory* const> buffers) override;
  Result<Stressed> Repeat(const Execution& execution, const StressPlan& plan,
                          std::span<SharedMemory* const> buffers) override;
  Result<Rates> Measure() override;
  Result<double> Time(const MatrixProduct& product) override;

  /// Which GPU it is, and with which driver; or why there is none.
  Result<std::string> Describe();

 private:
  WorkerRun RunOf(std::string_view action, std::string_view program, const Execution& execution,
                  std::chrono::milliseconds deadline) const;
  /// A question that takes no execution: what the worker's reply says.
  Result<Json> Ask(Json header, std::chrono::milliseconds deadline);

  sandbox::Workers& workers_;
  Options options_;
  std::mutex one_at_a_time_;
};

}  // namespace assay::engine
