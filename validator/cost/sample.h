// Counting at a shape of any size: some blocks of each launch run on the emulator, on inputs whose
// every value is there but costs nothing, and their counts are extended to the grid.
//
// Blocks are taken in runs of neighbours from all over the grid, its ends where there are many, so that
// what neighbours share is seen, and what distant ones do not. One block runs first and tells what
// blocks take. Results are of no interest here, so a grid is cut whether or not its blocks depend on
// each other; one that then waits for ever for a block that does not run is run whole where that can
// be afforded. Poison is zero, so that what a launch would have left for the next one is an index
// that exists.
//
// Inputs that a generator makes are drawn like others: a cost hangs on shapes, and on indices, not on
// values.
//
// Cost: a second or so a shape. Thread-safe as far as its workers are.
//
//   const Sampler sampler(toolbox.workers(), {});
//   ASSAY_TRY(SpeedEstimate estimate, sampler.At(subject, workload, chip));
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/launch_plan.h"
#include "ops/op.h"
#include "sandbox/workers.h"
#include "validator/cost/estimate.h"
#include "validator/engine/bind.h"
#include "validator/engine/compiler.h"

namespace assay::cost {

struct Subject {
  const ops::Instance& instance;
  const ops::LaunchPlan& plan;
  const engine::CompiledKernel& compiled;  ///< With resources.
};

/// A subject's call at a shape: its inputs, and the execution bound to them.
struct BoundShape {
  ops::Instance instance;  ///< Without a generator.
  TensorMap inputs;
  ops::AxisValues axes;  ///< All of them.
  ops::ResolvedPlan plan;
  engine::Binding binding;
};
/// kLimit where the shape is too large for this machine's memory.
Result<std::unique_ptr<BoundShape>> BindShape(const Subject& subject, const ops::AxisValues& axes,
                                              std::uint64_t seed);

class Sampler {
 public:
  struct Options {
    std::uint64_t steps = 60'000'000;        ///< Of a sample, about; thread-level instructions.
    std::uint64_t most_steps = 600'000'000;  ///< Beyond this nothing is known of the shape.
    std::uint64_t seed = 1;
  };

  Sampler(sandbox::Workers& workers, Options options) : workers_(workers), options_(options) {}

  /// What cannot be estimated is a value with `left_out`; an Error is about this machine.
  Result<SpeedEstimate> At(const Subject& subject, const ops::Workload& workload,
                           const Chip& chip) const;
  /// All workloads of the op, in their order.
  Result<std::vector<SpeedEstimate>> Workloads(const Subject& subject, const Chip& chip) const;

 private:
  struct Run;
  Result<Run> Count(const Execution& execution, std::span<SharedMemory* const> buffers,
                    const CountOptions& options) const;

  sandbox::Workers& workers_;
  Options options_;
};

}  // namespace assay::cost
