// How fast things are on a GPU: what speed is judged with. GpuEngine is one; tests have others.
//
// Times come from processes that run what is timed: data, to be checked by whoever asked. Outputs of
// all calls are in the buffers afterwards, and it is the caller who holds them to the truth.
//
// Thread-safe; one call at a time.
#pragma once

#include <span>

#include "base/error.h"
#include "base/shared_memory.h"
#include "validator/execution/execution.h"
#include "validator/execution/timing.h"

namespace assay::engine {

class Stopwatch {
 public:
  struct Timed {
    Report report;
    Timing timing;
  };
  struct Stressed {
    Report report;
    Stress stress;
  };

  virtual ~Stopwatch() = default;
  /// Times the slots of an execution (timing.h). The context of what was timed is gone afterwards.
  virtual Result<Timed> Time(const Execution& execution, const TimingPlan& plan,
                             std::span<SharedMemory* const> buffers) = 0;
  virtual Result<Stressed> Repeat(const Execution& execution, const StressPlan& plan,
                                  std::span<SharedMemory* const> buffers) = 0;
  /// What the card can do at all. Takes about a second.
  virtual Result<Rates> Measure() = 0;
  /// Seconds that the vendor's library takes.
  virtual Result<double> Time(const MatrixProduct& product) = 0;
  virtual Result<double> Time(const RowsPrimitive& primitive) = 0;
};

}  // namespace assay::engine
