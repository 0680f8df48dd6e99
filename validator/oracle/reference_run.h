// Runs an op's reference in a number type of the prelude (ops/prelude): compile, bind wide outputs,
// run on an engine, collect the cells.
//
// Thread-safe; compiled references are kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ops/launch_plan.h"
#include "ops/op.h"
#include "validator/engine/bind.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/oracle/reference_part.h"

namespace assay::oracle {

/// May products be added by tensor cores, which truncate? Not those of f32 inputs: TF32 drops bits.
bool TensorCoresApply(const ops::Instance& instance);

/// Which number type `Real` is.
struct NumberType {
  enum class Kind : std::uint8_t { kBounded, kRounded } kind = Kind::kBounded;
  bool independent = true;     ///< kBounded: roundings may be taken for independent.
  bool in_order = false;       ///< kBounded: sums and products cost nothing (oracle.h, in_order).
  bool fused = false;          ///< kRounded: products are not rounded before they are added.
  bool trending = false;       ///< kBounded: values drift along the index.
  DType format = DType::kF32;  ///< kRounded: bf16, f16 or f32.
  enum class Rounding : std::uint8_t {
    kNearest,
    kTowardZero,
    kStochastic
  } rounding = Rounding::kNearest;
  std::uint64_t seed = 0;  ///< kStochastic.

  /// Doubles that a Real, or a stored output element, takes.
  std::int64_t RealWords() const { return kind == Kind::kBounded ? 9 : 2; }
  std::int64_t CellWords() const { return kind == Kind::kBounded ? 6 : 1; }
};

/// Output -> f64 tensor of the output's shape with one more axis, of CellWords() elements.
using Cells = TensorMap;

class ReferenceRunner {
 public:
  ReferenceRunner(engine::Compiler& compiler, engine::Engine& engine)
      : compiler_(compiler), engine_(engine) {}

  /// Does the reference compile?
  Status Check(const ops::Instance& instance);

  /// Errors are faults of the op (its reference does not compile, has findings, is not covered by
  /// the engine) or of the machine.
  Result<Cells> Run(const ops::Instance& instance, const NumberType& type,
                    const ops::AxisValues& axes, const TensorMap& inputs);

  /// The same, but only those threads run, in blocks as small as the grid has room for, which, by the
  /// reference's convention (one thread an output element, or one a row), write the `wanted` elements
  /// of each output; at most kBlocksOfAnOutput blocks for each output. Cells of other elements are zero. kUnsupported where the plan cannot be cut
  /// so.
  Result<Cells> RunAt(const ops::Instance& instance, const NumberType& type,
                      const ops::AxisValues& axes, const TensorMap& inputs, const Wanted& wanted);
  static constexpr std::size_t kBlocksOfAnOutput = 6;

  /// The same with whole warps, which take hardly longer than single threads: of those that write
  /// what is `wanted`, as many as a few seconds allow, in an order that `seed` says. Launches that
  /// hand on what they wrote run whole. Takes out of `wanted` what was not computed. kLimit where
  /// even one warp takes too long.
  Result<Cells> RunSlice(const ops::Instance& instance, const NumberType& type,
                         const ops::AxisValues& axes, const TensorMap& inputs, std::uint64_t seed,
                         Wanted& wanted);

 private:
  struct Bound;
  Result<std::unique_ptr<Bound>> Bind(const ops::Instance& instance, const NumberType& type,
                                      const ops::AxisValues& axes, const TensorMap& inputs,
                                      std::uint8_t poison);
  Result<Report> RunPart(const ops::Instance& instance, engine::Binding& binding,
                         std::uint64_t max_steps);
  Result<engine::CompiledKernel> Compile(const ops::Instance& instance, const NumberType& type,
                                         const ops::LaunchPlan& plan);

  engine::Compiler& compiler_;
  engine::Engine& engine_;
  std::mutex mutex_;
  std::map<std::string, engine::CompiledKernel> compiled_;
};

}  // namespace assay::oracle
