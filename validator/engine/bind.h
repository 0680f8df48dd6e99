// Binding: a resolved launch plan, a compiled kernel and the calls to make become one Execution
// with its buffers.
//
// The plan's names turn into buffers (inputs as handed over, outputs and workspace poisoned, or
// zeroed as the plan says, or filled with the input that they overwrite) and scalars (axes as i64, scalar inputs by value in their dtype; the
// engine narrows them to the kernel's parameters, checked). Several calls may be made in one
// context, each with buffers of its own: module-scope state of the kernel survives from one to the
// next. With reuse_addresses their buffers lie where those of the call before lay, which are freed.
//
//   ASSAY_TRY(Binding binding, Bind(instance, compiled, calls, options));
//   ASSAY_TRY(Report report, engine.Run(binding.execution, binding.buffers, Trust::kCandidate));
//   const TensorMap& y = binding.calls.back().outputs;
//
// Cost: creating the outputs; inputs are not copied, unless overwritten. A Binding owns its outputs and workspace and
// borrows the inputs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/engine/compiler.h"
#include "validator/execution/execution.h"

namespace assay::engine {

/// One call of all the plan's kernels, or the same call several times over on the same memory:
/// outputs and workspace are filled anew in between, and the last one's outputs stay. Inputs are
/// mapped copy-on-write by whoever runs them, so they stay as they are; of one that an output
/// overwrites the kernels get a copy, under both names, which each call finds as it was.
struct Call {
  const ops::ResolvedPlan* plan = nullptr;
  const ops::AxisValues* axes = nullptr;
  const TensorMap* inputs = nullptr;
  std::size_t times = 1;
};

/// A plan's tensor map over a buffer of `dtype`; packed where the plan gives no strides.
TensorMapSpec MapOver(const ops::ResolvedTensorMap& map, DType dtype);

struct BindOptions {
  std::uint8_t poison = 0xff;
  std::uint32_t misalign = 0;  ///< Rounded down to a multiple of each buffer's element size.
  /// A later call's buffers take over the addresses of the call before it, name by name.
  bool reuse_addresses = false;
  /// What an op overwrites holds nothing before, as a fresh output does: for who asks where is written, not what.
  bool updates_nothing = false;
};

/// What a call leaves behind.
struct BoundCall {
  TensorMap outputs;
  std::map<std::string, std::size_t, std::less<>>
      buffer_of;  ///< Output -> index into Execution::buffers.
  std::vector<SharedMemory> workspace;
};

struct Binding {
  Execution execution;  ///< Checks, schedule and limits are left for the caller to set.
  std::vector<SharedMemory*> buffers;  ///< In the order of execution.buffers.
  std::vector<BoundCall> calls;        ///< As given.
};

/// kMalformedInput when the plan names what is not there: an entry that was not compiled, an
/// argument that is no tensor, axis or scalar.
Result<Binding> Bind(const ops::Instance& instance, const CompiledKernel& compiled,
                     std::span<const Call> calls, const BindOptions& options = {});

}  // namespace assay::engine
