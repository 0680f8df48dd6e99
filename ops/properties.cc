#include "ops/properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "ops/names.h"

namespace assay::ops {
namespace {

using enum PropertyArgument;
using Arguments = std::vector<std::string>;

/// The axes whose extents change with `axis`: itself, and what is derived from it.
std::set<std::string, std::less<>> Followers(const OpSpec& op, std::string_view axis) {
  std::set<std::string, std::less<>> followers{std::string(axis)};
  // Derived axes stand behind what they depend on.
  for (const Axis& each : op.axes) {
    if (each.expression && std::ranges::any_of(each.expression->names(), [&](const auto& name) {
          return followers.contains(name);
        }))
      followers.insert(each.name);
  }
  return followers;
}

bool IsFilled(const TensorSpec& input) { return !input.is_scalar && !input.IsGenerated(); }

bool IsNumbers(const TensorSpec& input) {
  return IsFilled(input) && input.domain.kind != Domain::Kind::kIndex &&
         input.domain.kind != Domain::Kind::kChoice;
}

bool IsOfFloats(const OpSpec& op, const TensorSpec& tensor) {
  const auto bound = op.dtypes.find(tensor.dtype_name);
  if (bound != op.dtypes.end()) return std::ranges::all_of(bound->second, IsFloat);
  const auto type = ParseDType(tensor.dtype_name);
  return type && IsFloat(*type);
}

/// Names in the op that may stand for an argument of this kind.
std::vector<std::string> Candidates(const OpSpec& op, PropertyArgument kind) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<TensorSpec>& tensors, auto&& fits) {
    for (const TensorSpec& tensor : tensors) {
      if (fits(tensor)) names.push_back(tensor.name);
    }
  };
  switch (kind) {
    case kInput:
      add(op.inputs, IsFilled);
      break;
    case kNumbers:
      add(op.inputs, IsNumbers);
      break;
    case kOutput:
      add(op.outputs, [](const TensorSpec&) { return true; });
      break;
    case kAxis:
      for (const Axis& axis : op.axes) {
        if (std::ranges::any_of(op.inputs, [&](const TensorSpec& input) {
              return IsFilled(input) && DimensionOf(input, axis.name);
            }))
          names.push_back(axis.name);
      }
      break;
  }
  return names;
}

// One row is kept, the others change: both must be found again.
std::string MisfitOfRows(const OpSpec& op, const Arguments& arguments) {
  const TensorSpec& input = *op.FindInput(arguments[0]);
  if (!DimensionOf(input, arguments[1]))
    return fmt::format("'{}' does not extend along '{}'", input.name, arguments[1]);
  if (std::ranges::none_of(op.outputs, [&](const TensorSpec& output) {
        return DimensionOf(output, arguments[1]).has_value();
      }))
    return fmt::format("no output extends along '{}'", arguments[1]);
  return {};
}

// Inputs are rearranged along the axis, so that it may be one dimension of each, and nothing else.
std::string MisfitAlong(const OpSpec& op, const Arguments& arguments) {
  const std::string& axis = arguments[0];
  for (const TensorSpec& input : op.inputs) {
    if (IsFilled(input) && AlsoHangsOn(op, input, axis))
      return fmt::format("'{}' follows '{}' other than by one dimension", input.name, axis);
  }
  if (std::ranges::all_of(op.outputs,
                          [&](const TensorSpec& output) { return AlsoHangsOn(op, output, axis); }))
    return fmt::format("every output follows '{}' other than by one dimension", axis);
  return {};
}

std::string MisfitOfPadding(const OpSpec& op, const Arguments& arguments) {
  if (op.FindAxis(arguments[0])->kind != Axis::Kind::kVariable)
    return fmt::format("the extent of '{}' cannot be chosen", arguments[0]);
  return MisfitAlong(op, arguments);
}

// Indices keep their values, so that they would point elsewhere.
std::string MisfitOfPlaces(const OpSpec& op, const Arguments& arguments) {
  for (const TensorSpec& input : op.inputs) {
    if (input.domain.kind == Domain::Kind::kIndex && input.domain.of == arguments[0])
      return fmt::format("the indices in '{}' point along '{}'", input.name, arguments[0]);
  }
  return MisfitAlong(op, arguments);
}

std::string MisfitOfHalves(const OpSpec& op, const Arguments& arguments) {
  if (std::ranges::none_of(op.outputs, [&](const TensorSpec& output) {
        return DimensionOf(output, arguments[0]).has_value();
      }))
    return fmt::format("no output extends along '{}'", arguments[0]);
  const std::string places = MisfitOfPlaces(op, arguments);
  return places.empty() ? MisfitOfPadding(op, arguments) : places;
}

std::string MisfitOfShift(const OpSpec& op, const Arguments& arguments) {
  if (IsOfFloats(op, *op.FindInput(arguments[0]))) return {};
  return fmt::format("'{}' does not hold floats", arguments[0]);
}

std::string MisfitOfFeedback(const OpSpec& op, const Arguments& arguments) {
  const TensorSpec& input = *op.FindInput(arguments[0]);
  const TensorSpec& output = *op.FindOutput(arguments[1]);
  if (std::ranges::equal(input.shape, output.shape, {}, &Expression::text, &Expression::text))
    return {};
  return fmt::format("'{}' and '{}' have different shapes", input.name, output.name);
}

struct Word {
  PropertyArgument kind;
  std::string_view symbol, words;
};
constexpr std::array kWords = {
    Word{kInput, "INPUT", "input tensor that cases fill"},
    Word{kNumbers, "INPUT", "input tensor of numbers (neither indices nor choices)"},
    Word{kOutput, "OUTPUT", "output"},
    Word{kAxis, "AXIS", "axis along which an input tensor extends"}};

const Word& WordOf(PropertyArgument kind) { return *std::ranges::find(kWords, kind, &Word::kind); }

/// {"linear": ["INPUT", "OUTPUT"]}
std::string Form(const PropertyRow& row) {
  if (row.arguments.empty()) return fmt::format(R"("{}")", row.name);
  std::string symbols;
  for (const PropertyArgument kind : row.arguments)
    symbols += fmt::format(R"({}"{}")", symbols.empty() ? "" : ", ", WordOf(kind).symbol);
  return fmt::format(R"({{"{}": [{}]}})", row.name, symbols);
}

}  // namespace

std::span<const PropertyRow> PropertyRows() {
  static const std::vector<PropertyRow> kRows = {
      {"deterministic", {}, nullptr, true},
      {"any_alignment", {}, nullptr, true},
      {"independent_rows", {kInput, kAxis}, MisfitOfRows},
      {"permutation_equivariant", {kAxis}, MisfitOfPlaces},
      {"scale_equivariant", {kNumbers, kOutput}, nullptr},
      {"linear", {kNumbers, kOutput}, nullptr},
      {"scale_invariant", {kNumbers}, nullptr},
      {"shift_invariant", {kNumbers}, MisfitOfShift},
      {"idempotent", {kNumbers, kOutput}, MisfitOfFeedback},
      {"padding_neutral", {kAxis}, MisfitOfPadding},
      {"batch_split", {kAxis}, MisfitOfHalves},
  };
  return kRows;
}

const PropertyRow* FindPropertyRow(std::string_view name) {
  const auto rows = PropertyRows();
  const auto row = std::ranges::find(rows, name, &PropertyRow::name);
  return row == rows.end() ? nullptr : &*row;
}

bool HasProperty(const OpSpec& op, std::string_view name) {
  return std::ranges::any_of(op.properties,
                             [name](const Property& property) { return property.name == name; });
}

std::string PropertyText(const Property& property) {
  std::string text = property.name;
  for (const std::string& argument : property.arguments) text += " " + argument;
  return text;
}

Property PropertyFromText(std::string_view text) {
  Property property;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (property.name.empty()) {
      property.name = std::string(text.substr(0, end));
    } else {
      property.arguments.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return property;
}

Status CheckProperty(const OpSpec& op, const Property& property, const std::string& place) {
  const PropertyRow* row = FindPropertyRow(property.name);
  if (row == nullptr) {
    std::vector<std::string> known;
    for (const PropertyRow& each : PropertyRows()) known.emplace_back(each.name);
    return UnknownName("property", property.name, std::move(known), place);
  }
  if (row->arguments.size() != property.arguments.size()) {
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("'{}' takes {} arguments, not {}", row->name, row->arguments.size(),
                            property.arguments.size()),
                place, "write " + Form(*row));
  }
  for (std::size_t i = 0; i < row->arguments.size(); ++i) {
    const std::string& name = property.arguments[i];
    const std::vector<std::string> fitting = Candidates(op, row->arguments[i]);
    if (std::ranges::find(fitting, name) != fitting.end()) continue;
    const std::string nearest = Nearest(name, fitting);
    return Fail(ErrorKind::kMalformedInput,
                fmt::format("'{}' is no {}", name, WordOf(row->arguments[i]).words),
                fmt::format("{}/{}/{}", place, row->name, i),
                fitting.empty() ? fmt::format("the op has none; remove '{}'", row->name)
                : nearest.empty()
                    ? fmt::format("write {}, with one of: {}", Form(*row), fmt::join(fitting, ", "))
                    : fmt::format("did you mean '{}'?", nearest));
  }
  if (row->misfit == nullptr) return {};
  const std::string reason = row->misfit(op, property.arguments);
  if (reason.empty()) return {};
  return Fail(ErrorKind::kMalformedInput,
              fmt::format("'{}' does not fit this op: {}", PropertyText(property), reason), place,
              "remove it, or name others that fit: " + Form(*row));
}

std::optional<std::size_t> DimensionOf(const TensorSpec& tensor, std::string_view axis) {
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d].text() == axis) return d;
  }
  return std::nullopt;
}

bool IsOfOutputs(const OpSpec& op, std::string_view axis) {
  return std::ranges::any_of(
      op.outputs, [&](const TensorSpec& output) { return DimensionOf(output, axis).has_value(); });
}

bool MayBeReducedOver(const OpSpec& op, std::string_view axis) {
  const bool missing = std::ranges::any_of(
      op.outputs, [&](const TensorSpec& output) { return !DimensionOf(output, axis); });
  return missing || std::ranges::any_of(op.inputs, [&](const TensorSpec& input) {
           const auto dimension = DimensionOf(input, axis);
           return dimension && *dimension + 1 == input.shape.size();
         });
}

std::vector<std::string> AxesInStepWith(const OpSpec& op, std::string_view axis) {
  const auto compared = [&](std::string_view other) {
    return std::ranges::any_of(op.constraints, [&](const Expression& constraint) {
      const auto& names = constraint.names();
      return std::ranges::find(names, axis) != names.end() &&
             std::ranges::find(names, other) != names.end();
    });
  };
  std::vector<std::string> in_step;
  for (const Axis& other : op.axes) {
    const bool of_results = std::ranges::any_of(op.outputs, [&](const TensorSpec& output) {
      return DimensionOf(output, other.name).has_value();
    });
    if (of_results &&
        (other.name == axis || compared(other.name) || Followers(op, axis).contains(other.name) ||
         Followers(op, other.name).contains(axis)))
      in_step.push_back(other.name);
  }
  return in_step;
}

bool AlsoHangsOn(const OpSpec& op, const TensorSpec& tensor, std::string_view axis) {
  const auto dim = DimensionOf(tensor, axis);
  const auto followers = Followers(op, axis);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (d != dim && std::ranges::any_of(tensor.shape[d].names(),
                                        [&](const auto& name) { return followers.contains(name); }))
      return true;
  }
  return false;
}

}  // namespace assay::ops
