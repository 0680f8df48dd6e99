// What both languages are told of a kernel: which axes follow from which shapes, and under which
// names things go.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "loaders/loader.h"

namespace assay::loaders {

/// How the value of an axis is had.
struct AxisSource {
  enum class Kind : std::uint8_t {
    kExtent,   ///< A dimension of a tensor, `step` undone.
    kDerived,  ///< The axis's own expression, or its constant.
    kGiven,    ///< Nothing tells: the caller does.
  } kind = Kind::kGiven;
  const ops::Axis* axis = nullptr;
  const ops::TensorSpec* tensor = nullptr;  ///< kExtent.
  std::size_t dimension = 0;
  /// kExtent: what makes the axis of the extent. Of two operands, the extent (an empty one) and
  /// `other`; nothing: the extent is the axis.
  enum class Undo : std::uint8_t { kNothing, kDivide, kSubtract, kAdd } undo = Undo::kNothing;
  std::optional<ops::Expression> other;
};

/// The axes of the instance's op in an order in which each can be had from those before it; given
/// ones first. `tensors` have shapes that are known. A guess where several would do: loaders compare
/// all shapes with the axes afterwards.
std::vector<AxisSource> SolveAxes(const ops::OpSpec& op,
                                  const std::vector<const ops::TensorSpec*>& tensors);

/// Names of a program, by what they are called in the op: a word of the language, or a name that is
/// taken, gets an underscore.
class Names {
 public:
  Names(std::set<std::string, std::less<>> reserved, std::vector<std::string> names);
  const std::string& Of(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

/// An expression in a language. Calls named add, subtract, multiply, divide, modulo, negate, minimum,
/// maximum, ceil_div and round_up are checked by the runtime of either language.
struct Dialect {
  std::string_view conjunction;  ///< "and", "&&"
  std::string_view disjunction;
  std::string_view truth;                                  ///< What makes 0 or 1 of a comparison.
  std::function<std::string(std::string_view name)> name;  ///< An axis.
};
std::string Print(const ops::Expression& expression, const Dialect& dialect);

/// `text` between double quotes, as both languages read it; what is not plain ASCII is a full stop.
std::string Quote(std::string_view text);

/// "a, b, c"
std::string Joined(const std::vector<std::string>& items);

/// Bytes that the address of a tensor must be a multiple of.
std::size_t AlignmentOf(const LoaderInput& input, const std::string& tensor, DType dtype);

/// The dtype of a workspace of the plan.
DType WorkspaceType(const LoaderInput& input, std::string_view name);

/// What the op asks of its axes: its constraints, and that no derived axis is below 0.
std::vector<ops::Expression> ConstraintsOf(const ops::OpSpec& op);

/// The scalars' domains, in numbers.
struct ScalarDomain {
  std::string low, high;  ///< Empty: none.
  std::vector<std::string> choices;
  std::string below;  ///< An axis.
};
ScalarDomain DomainOf(const ops::TensorSpec& scalar);

/// The two languages.
std::string WritePython(const LoaderInput& input);
std::string WriteCpp(const LoaderInput& input);

}  // namespace assay::loaders
