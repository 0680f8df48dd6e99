// An op: what a kernel must compute (format assay.op/1, docs/ops.md). A folder under ops/ holds
// op.json, the reference and a naive, known-good candidate.
//
// OpSpec is a value, loaded once and checked as a whole: unknown keys, unknown axes, unsatisfiable
// constraints are errors that name the place in the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/tensor.h"
#include "ops/expression.h"
#include "ops/relation.h"

namespace assay::ops {

struct Axis {
  enum class Kind : std::uint8_t { kVariable, kConstant, kExpression } kind = Kind::kVariable;
  std::string name;
  std::int64_t min = 1;  ///< kVariable.
  std::int64_t max = INT64_MAX;
  std::int64_t value = 0;                ///< kConstant.
  std::optional<Expression> expression;  ///< kExpression: derived from other axes.
  std::string description;
};

/// What values an input may take. Anything inside must not break a kernel.
struct Domain {
  enum class Kind : std::uint8_t {
    kAny,        ///< Every finite value of the dtype, plus what `special` allows.
    kRange,      ///< [low, high]
    kIndex,      ///< An integer in [0, axis `of`)
    kChoice,     ///< One of `values`
    kGenerated,  ///< Correlated with other inputs: made by OpSpec::generator.
  } kind = Kind::kAny;
  double low = 0;
  double high = 0;
  std::string of;
  std::vector<double> values;
  bool allow_nan =
      false;  ///< NaN policy: may inputs hold NaN, and must they then reach the output?
  bool allow_infinity = false;
  double typical_scale = 1.0;  ///< Standard deviation of the `normal` profile.
  double typical_mean = 0.0;
};

struct TensorSpec {
  std::string name;
  bool is_scalar = false;         ///< `"shape": null`
  std::vector<Expression> shape;  ///< One an axis, outermost first.
  std::string dtype_name;         ///< "bf16", or a binding variable such as "T".
  Domain domain;
  std::string description;
  Relation relation;    ///< Of an output.
  std::string updates;  ///< Of an output: the input whose memory it overwrites; else empty.

  /// Filled by the op's generator, not by a value profile.
  bool IsGenerated() const { return domain.kind == Domain::Kind::kGenerated; }
};

/// CUDA source with its launch plan, beside op.json.
struct SourceRef {
  Path source;
  Path launch;
};

/// The numeric contract (design section 8).
struct Contract {
  DType accumulate = DType::kF32;  ///< Type in which an honest kernel may accumulate.
  bool approximate_functions =
      true;  ///< May exp, rsqrt, division and the like be the hardware's approximations?
  bool reassociation = true;
  /// May 16-bit inputs be multiplied by tensor cores, which truncate as they add?
  bool tensor_cores = false;
  /// May tanh be tanh.approx, which is good to 11 bits?
  bool coarse_tanh = false;
  std::map<std::string, bool, std::less<>>
      exact_outputs;  ///< Outputs that must agree bit for bit (indices, integers).
  std::string nan_policy = "propagate";  ///< "propagate": NaN in, NaN out, as the reference does.
  std::string why;                       ///< Reason for any exception from the derived allowance.
};

struct Property {
  std::string name;  ///< "deterministic", "independent_rows", ...
  std::vector<std::string> arguments;
};

/// A shape that real models use.
struct Workload {
  AxisValues axes;
  std::string note;
};

struct OpSpec {
  std::string name;
  std::string summary;
  Path folder;
  std::string digest;      ///< SHA-256 over op.json, reference source and plan.
  std::vector<Axis> axes;  ///< In the order written.
  std::map<std::string, std::vector<DType>, std::less<>>
      dtypes;  ///< Binding variable -> choices; the first is the default.
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;  ///< What a candidate writes.
  /// What the reference writes for the judge alone: scores of choices, masks. In f64.
  std::vector<TensorSpec> hidden;
  std::vector<Expression> constraints;
  SourceRef reference;
  std::string truth = "cuda";  ///< Kind of the reference: one of TruthKinds().
  std::optional<SourceRef>
      parts;  ///< The same, where elements are to be computed by themselves (kPartsFile).
  std::optional<SourceRef> generator;  ///< Makes the generated inputs from the others.
  Contract contract;
  std::vector<Property> properties;
  std::vector<Workload> workloads;
  std::optional<Path> transcript;  ///< Recorded model replies shipped with the op, for `replay/`.
  std::optional<Path> naive;       ///< Folder of the known-good candidate.

  const TensorSpec* FindInput(std::string_view input) const;
  const TensorSpec* FindOutput(std::string_view output) const;
  const Axis* FindAxis(std::string_view axis) const;
  /// Is an output chosen by computed scores?
  bool Chooses() const;
};

/// The op as its reference sees it: choices are inputs, which the judge makes or takes from a
/// candidate; hidden outputs are outputs; and nothing is overwritten.
OpSpec ReferenceOf(const OpSpec& op);

/// Kinds of references that op.json may name; the first is the default.
std::span<const std::string_view> TruthKinds();

/// The generator of an op that has one, as an op: plain inputs in, generated ones out.
OpSpec GeneratorOf(const OpSpec& op);

/// Reads and checks the op in `folder`.
Result<OpSpec> LoadOp(const Path& folder);

/// op × dtype binding × target: the unit of work.
struct Instance {
  OpSpec op;
  std::map<std::string, DType, std::less<>> binding;
  std::string arch = "sm_90";

  DType TypeOf(const TensorSpec& tensor) const;
  /// "embedding_rmsnorm_backward-T=bf16-sm_90"
  std::string Id() const;
};

/// `choices` as given on the command line: {"T": "bf16"}; missing ones take the op's first choice.
Result<Instance> MakeInstance(OpSpec op, const std::map<std::string, std::string>& choices,
                              std::string arch);

/// Completes `variables` with constant and derived axes and checks ranges and constraints.
Result<AxisValues> ResolveAxes(const OpSpec& op, const AxisValues& variables);
Result<Shape> ResolveShape(const TensorSpec& tensor, const AxisValues& axes);

/// Finds ops by name: in ops/ beside the binary (or its parents), then in $ASSAY_OPS, or by path.
class Library {
 public:
  explicit Library(std::vector<Path> roots) : roots_(std::move(roots)) {}
  /// Roots for this program: beside the binary, the source tree it was built from, $ASSAY_OPS.
  static Library Default();
  Result<OpSpec> Find(std::string_view name_or_path) const;
  /// Names and folders of all ops, sorted by name; folders whose op.json is broken are included
  /// with their error.
  struct Entry {
    std::string name;
    Path folder;
    std::optional<Error> error;
  };
  std::vector<Entry> List() const;
  const std::vector<Path>& roots() const { return roots_; }

 private:
  std::vector<Path> roots_;
};

}  // namespace assay::ops
