// Where truths come from: one interface, and an implementation for each kind of reference that
// op.json may name (`"reference": {"kind": ...}`; OpSpec::truth).
//
//   kind   what runs                                         standing
//   cuda   the op's CUDA reference in a number type of the   derived: every element carries the bound
//          prelude, on an engine (reference_run.h)           of its honest error
//   python a function over torch, in f64, in the jail        estimated: errors are guessed from
//          (importers/python_truth.h)                        disturbed runs
//
// A source is asked for cells: truth and error of each output element, as the prelude's BoundedCell
// lays them out (cells.h). One that has values alone estimates the errors, and is weaker: its
// standing is kEstimated, and its kind stands in verdict and certificate, where whoever reads an
// acceptance sees what it rests on. The op's generator, which makes inputs, is always CUDA.
//
// A further kind: a class, a name in ops::TruthKinds(), and one Oracle::Serve where the oracle is made.
//
// Implementations are thread-safe. What they run is hostile (op files are): in a jail, never here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor.h"
#include "ops/op.h"

namespace assay::oracle {

/// Which number type `Real` is.
struct NumberType {
  enum class Kind : std::uint8_t { kBounded, kRounded } kind = Kind::kBounded;
  bool independent = true;     ///< kBounded: roundings may be taken for independent.
  bool in_order = false;       ///< kBounded: sums and products cost nothing (oracle.h, in_order).
  bool fused = false;          ///< kRounded: products are not rounded before they are added.
  DType format = DType::kF32;  ///< kRounded: bf16, f16 or f32.
  enum class Rounding : std::uint8_t {
    kNearest,
    kTowardZero,
    kStochastic
  } rounding = Rounding::kNearest;
  std::uint64_t seed = 0;  ///< kStochastic.

  /// Doubles that a Real, or a stored output element, takes.
  std::int64_t RealWords() const { return kind == Kind::kBounded ? 10 : 2; }
  std::int64_t CellWords() const { return kind == Kind::kBounded ? 6 : 1; }
};

/// Output -> f64 tensor of the output's shape with one more axis, of CellWords() elements.
struct Cells : TensorMap {
  Cells() = default;
  // Outputs of a run are cells without more ado.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Cells(TensorMap outputs) : TensorMap(std::move(outputs)) {}
  /// What computing them took, in instructions of whole warps; 0: not known.
  double warp_steps = 0;
};

/// Output -> numbers of the elements that are asked for.
using Wanted = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

struct PartEffort;  // oracle.h

/// What the errors of a truth are.
enum class Standing : std::uint8_t {
  kDerived,    ///< Bounds that hold for every honest kernel.
  kEstimated,  ///< Guesses from values: an acceptance is worth less.
};

/// What a run leaves for the next one of the same case, whose choices alone are other ones. The source's own.
struct KeptRun {
  std::shared_ptr<void> state;
  double warp_steps = 0;  ///< Of all runs so far.
};

class TruthSource {
 public:
  virtual ~TruthSource() = default;
  virtual std::string_view kind() const = 0;
  virtual Standing standing() const = 0;

  /// Is the reference one that can be run at all?
  virtual Status Check(const ops::Instance& instance) = 0;
  /// Makes ready what the first truths need. What only later ones do may go on being made; its errors come with these.
  virtual Status Prepare(const ops::Instance& instance) { return Check(instance); }

  /// All outputs of ops::ReferenceOf(instance.op), for all of its inputs. Errors are faults of the op
  /// (its reference does not compile, has findings, is not covered) or of the machine. A source may
  /// refuse kRounded numbers with kUnsupported: the op must then allow reassociation.
  virtual Result<Cells> Run(const ops::Instance& instance, const NumberType& type,
                            const ops::AxisValues& axes, const TensorMap& inputs) = 0;

  /// The same of an op that chooses, again and again while its choices are made, in place: what hangs on none of them need
  /// not be computed anew. The inputs are the same ones each time, and outlive `kept`, which is empty at first.
  virtual Result<Cells> RunOfChoices(const ops::Instance& instance, const NumberType& type,
                                     const ops::AxisValues& axes, const TensorMap& inputs,
                                     KeptRun& /*kept*/) {
    return Run(instance, type, axes, inputs);
  }

  /// The same for some elements of shapes that are too large to be computed whole; cells of others
  /// are zero. kUnsupported where that cannot be done.
  virtual Result<Cells> RunAt(const ops::Instance& instance, const NumberType& type,
                              const ops::AxisValues& axes, const TensorMap& inputs,
                              const Wanted& wanted) = 0;

  /// The same for as many of `wanted`, in an order that `seed` says, as `effort` allows. Takes out of
  /// `wanted` what was not computed.
  virtual Result<Cells> RunSlice(const ops::Instance& instance, const NumberType& type,
                                 const ops::AxisValues& axes, const TensorMap& inputs,
                                 std::uint64_t seed, const PartEffort& effort, Wanted& wanted) = 0;
};

}  // namespace assay::oracle
