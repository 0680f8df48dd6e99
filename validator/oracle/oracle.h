// The oracle: the op's truth for a case in FP64, and how much error an honest implementation may
// have, per element.
//
// It compiles the op's reference once per number type (double; a type that carries a running error
// bound; see docs/precision.md) and runs it on an engine, in a process that never runs candidates.
// Truths are kept by op and case, and those of parts by what was asked for, up to a number of bytes:
// whoever judges several candidates of an op with one oracle, as a repair loop and a batch do, pays
// for the truths of the cases that they share once.
//
//   ASSAY_TRY(auto truth, oracle.Evaluate(instance, case_, inputs));
//   std::vector<Finding> findings = Compare(instance, truth, outputs, options);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ops/op.h"
#include "validator/cases/case.h"
#include "validator/engine/compiler.h"
#include "validator/engine/engine.h"
#include "validator/oracle/growth.h"

namespace assay::oracle {

class TruthSource;

/// What the truths of a slice may take, beyond a first warp of elements: so many instructions of whole warps, and
/// however dear a warp is, a few of them.
struct PartEffort {
  std::uint64_t warp_steps = 4'000'000;
  std::size_t few_warps = 6;
  std::uint64_t few_warp_steps = 10'000'000;
};

/// One output: truth and allowance for each element, row-major.
struct OutputTruth {
  Shape shape;
  DType dtype = DType::kF32;
  /// Bits must agree (integer outputs, exact mode).
  bool exact = false;
  /// -0 is no 0 where no honest error could have changed its sign.
  bool keeps_zero_sign = false;
  /// Terms in no particular order, rounded to nearest: errors grow like the square root of the
  /// length.
  bool ordinary = true;
  /// FP64 truth.
  std::vector<double> value;
  /// Largest |got - value| of an honest kernel; at least half an ulp of `dtype`. Infinite where the
  /// accumulator's range is exceeded on the way.
  std::vector<double> allowance;
  /// Standard deviation, rather above than below, of an honest kernel's error before the rounding
  /// to `dtype`; what rows, columns and biases are held to.
  std::vector<double> typical;
  /// The part of `typical` that is independent from element to element.
  std::vector<double> independent;
  /// Where the contract forbids reassociation: what the reference's own order gives in the
  /// contract's type, with products rounded before they are added and without, and how far functions
  /// and quotients may move that. Empty else.
  std::vector<double> in_order, in_order_fused, in_order_slack;
  /// Terms of the accumulation behind each element; for hot rows and growth.
  std::vector<double> contributions;
};

struct Truth {
  /// Hidden ones and choices too.
  std::map<std::string, OutputTruth, std::less<>> outputs;
  /// What computing it once took (Cells::warp_steps).
  double warp_steps = 0;
};

/// Truth at single elements of huge outputs.
struct TruthPoint {
  std::int64_t index = 0;
  double value = 0;
  double allowance = 0;
};
using SparseTruth = std::map<std::string, std::vector<TruthPoint>, std::less<>>;
/// Output -> numbers of its elements.
using SparseElements = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

class Oracle {
 public:
  Oracle(engine::Compiler& compiler, engine::Engine& engine);
  virtual ~Oracle();

  /// Truths of ops whose reference is of another kind than CUDA come from `source`. Before the first
  /// truth is asked for.
  void Serve(std::unique_ptr<TruthSource> source);

  /// Can the op judge anything? Compiles its reference, which later truths need anyway. An error is
  /// a fault of the op, and the same for every candidate.
  Status Check(const ops::Instance& instance);
  /// The same, as far as the first cases need it: what else the reference has may compile beside them. Virtual for
  /// tests.
  virtual Status Prepare(const ops::Instance& instance);

  /// Inputs of a case, those that the op's generator makes among them: the way to inputs for
  /// whatever runs a kernel. Generated inputs are the FP64 result of the generator, rounded to
  /// their dtype; kept by case. Errors are faults of the case, the op or the machine.
  Result<cases::Materialised> Materialise(const ops::Instance& instance, const cases::Case& value);

  /// Truth for materialised inputs. Virtual for tests. Errors are faults of the op (its reference
  /// does not compile, or is not covered) or of the machine.
  virtual Result<std::shared_ptr<const Truth>> Evaluate(const ops::Instance& instance,
                                                        const cases::Case& value,
                                                        const cases::Materialised& inputs);

  /// The truth that `outputs` are to be held to: that of Evaluate, but for what follows from choices
  /// (ops/relation.h). Where a candidate chose otherwise than the truth, and rightly so, everything
  /// else is computed for its choice.
  Result<std::shared_ptr<const Truth>> EvaluateFor(const ops::Instance& instance,
                                                   const cases::Case& value,
                                                   const cases::Materialised& inputs,
                                                   const TensorMap& outputs);

  /// Truth of some elements only, for shapes with more than can be computed: for each output, the
  /// elements of `wanted` for which there is a truth (not all, none that is exactly 0, and none of
  /// outputs whose elements have no truths of their own).
  /// kUnsupported where the reference cannot be run in part, or follows from choices, which hang on
  /// all scores; kLimit where that takes too long.
  virtual Result<SparseTruth> EvaluateAt(const ops::Instance& instance, const cases::Case& value,
                                         const cases::Materialised& inputs,
                                         const SparseElements& wanted);
  /// The same for a slice of a case of any size: of `wanted` as much as `effort` allows, from near and
  /// far, in an order that `seed` says.
  virtual Result<SparseTruth> EvaluateSlice(const ops::Instance& instance, const cases::Case& value,
                                            const cases::Materialised& inputs,
                                            SparseElements wanted, std::uint64_t seed,
                                            const PartEffort& effort = {});

  /// The same where a reference cannot be run in part: all of it runs, and little is kept. Of every
  /// element of `wanted` that has none the truth is exactly 0.
  virtual Result<SparseTruth> EvaluateSome(const ops::Instance& instance, const cases::Case& value,
                                           const cases::Materialised& inputs,
                                           const SparseElements& wanted);

  /// Truths that were computed, and those that were there already.
  struct Counts {
    std::uint64_t computed = 0;
    std::uint64_t known = 0;
  };
  Counts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What a comparison looks at. `numeric` findings are errors no rounding explains; `precision` ones
/// exceed the honest allowance.
struct Comparison {
  std::vector<Finding> numeric;    ///< kWrongValue
  std::vector<Finding> precision;  ///< kPrecisionElement, kPrecisionRow, kPrecisionBias
  std::vector<Statistic>
      statistics;  ///< Always filled: worst element in allowances, worst row, bias, hot row ...
  std::map<std::string, Growth, std::less<>> growth;  ///< By output; to be merged over cases.
  std::map<std::string, ErrorProfile, std::less<>> profiles;  ///< The same; without their growth.
};

/// Compares `outputs` with the truth. `plan` text and the case are for messages only.
Comparison Compare(const ops::Instance& instance, const Truth& truth, const cases::Case& value,
                   const cases::Materialised& inputs, const TensorMap& outputs);

}  // namespace assay::oracle
