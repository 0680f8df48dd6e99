#include "ops/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "ops/names.h"

namespace assay::ops {
namespace {

template <class T>
const T* FindByName(const std::vector<T>& items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &T::name);
  return found == items.end() ? nullptr : &*found;
}

// "sm_90", "sm_90a", "sm_120f"
bool IsArch(std::string_view arch) {
  if (!arch.starts_with("sm_")) return false;
  arch.remove_prefix(3);
  if (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) arch.remove_suffix(1);
  return arch.size() >= 2 && arch.size() <= 3 &&
         std::ranges::all_of(arch, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const TensorSpec* OpSpec::FindInput(std::string_view input) const {
  return FindByName(inputs, input);
}
const TensorSpec* OpSpec::FindOutput(std::string_view output) const {
  return FindByName(outputs, output);
}
const Axis* OpSpec::FindAxis(std::string_view axis) const { return FindByName(axes, axis); }

std::span<const std::string_view> TruthKinds() {
  static constexpr std::array<std::string_view, 2> kKinds = {"cuda", "python"};
  return kKinds;
}

bool OpSpec::Chooses() const {
  return std::ranges::any_of(outputs, [](const TensorSpec& output) {
    return output.relation.kind == Relation::Kind::kChoice;
  });
}

OpSpec ReferenceOf(const OpSpec& op) {
  OpSpec seen = op;
  seen.outputs.clear();
  seen.hidden.clear();
  for (const auto* specs : {&op.outputs, &op.hidden}) {
    for (const TensorSpec& spec : *specs) {
      const bool chosen = spec.relation.kind == Relation::Kind::kChoice;
      TensorSpec& added = (chosen ? seen.inputs : seen.outputs).emplace_back(spec);
      added.relation = {};
      added.updates.clear();
    }
  }
  return seen;
}

OpSpec GeneratorOf(const OpSpec& op) {
  ASSAY_CHECK(op.generator.has_value(), "asked for the generator of an op without one");
  OpSpec made = op;
  made.inputs.clear();
  made.outputs.clear();
  made.hidden.clear();
  for (const TensorSpec& spec : op.inputs)
    (spec.IsGenerated() ? made.outputs : made.inputs).push_back(spec);
  made.reference = *op.generator;
  made.truth = TruthKinds().front();
  made.generator.reset();
  made.digest += "/generator";
  made.contract = {};
  return made;
}

DType Instance::TypeOf(const TensorSpec& tensor) const {
  if (const auto bound = binding.find(tensor.dtype_name); bound != binding.end())
    return bound->second;
  const auto type = ParseDType(tensor.dtype_name);
  ASSAY_CHECK(type.has_value(), "LoadOp let an unknown dtype pass");
  return *type;
}

std::string Instance::Id() const {
  std::string id = op.name;
  for (const auto& [variable, type] : binding) id += fmt::format("-{}={}", variable, Name(type));
  return id + "-" + arch;
}

Result<Instance> MakeInstance(OpSpec op, const std::map<std::string, std::string>& choices,
                              std::string arch) {
  if (!IsArch(arch)) {
    return Fail(ErrorKind::kUsage, fmt::format("'{}' is not a target", arch), "--arch",
                "name one as sm_90, sm_90a or sm_120");
  }
  Instance instance;
  for (const auto& [variable, types] : op.dtypes) instance.binding[variable] = types.front();
  for (const auto& [variable, choice] : choices) {
    const auto types = op.dtypes.find(variable);
    if (types == op.dtypes.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : op.dtypes) known.push_back(name);
      auto unknown = UnknownName("dtype variable", variable, std::move(known), "--dtype");
      return unknown;
    }
    const auto type = ParseDType(choice);
    if (!type || std::ranges::find(types->second, *type) == types->second.end()) {
      std::vector<std::string_view> names;
      for (const DType known : types->second) names.push_back(Name(known));
      return Fail(ErrorKind::kUsage,
                  fmt::format("the op '{}' has no {}={}", op.name, variable, choice), "--dtype",
                  fmt::format("choices: {}", fmt::join(names, ", ")));
    }
    instance.binding[variable] = *type;
  }
  instance.op = std::move(op);
  instance.arch = std::move(arch);
  return instance;
}

Result<AxisValues> ResolveAxes(const OpSpec& op, const AxisValues& variables) {
  const auto place = [&](const std::string& axis) {
    return fmt::format("axis {} of {}", axis, op.name);
  };
  AxisValues values;
  for (const auto& [name, value] : variables) {
    const Axis* axis = op.FindAxis(name);
    if (axis == nullptr) return UnknownName("axis", name, AxisNames(op), op.name);
    if (axis->kind != Axis::Kind::kVariable) {
      return Fail(ErrorKind::kMalformedInput, "is not variable, so it cannot be given", place(name),
                  "leave it out; it follows from the op");
    }
    if (value < axis->min || value > axis->max) {
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("{} is outside of [{}, {}]", value, axis->min, axis->max),
                  place(name));
    }
    values[name] = value;
  }
  // Derived axes are in an order in which each depends on earlier axes only (LoadOp sees to it).
  for (const Axis& axis : op.axes) {
    switch (axis.kind) {
      case Axis::Kind::kConstant:
        values[axis.name] = axis.value;
        break;
      case Axis::Kind::kVariable:
        if (!values.contains(axis.name)) {
          return Fail(ErrorKind::kMalformedInput, "has no value", place(axis.name), "give one");
        }
        break;
      case Axis::Kind::kExpression: {
        if (!axis.expression)
          return Fail(ErrorKind::kInternal, "is derived and has no expression", place(axis.name));
        ASSAY_TRY(const std::int64_t value, axis.expression->Evaluate(values));
        if (value < 0) {
          return Fail(ErrorKind::kMalformedInput, fmt::format("comes to {}", value),
                      place(axis.name), "an extent is at least 0");
        }
        values[axis.name] = value;
        break;
      }
    }
  }
  for (const Expression& constraint : op.constraints) {
    ASSAY_TRY(const std::int64_t holds, constraint.Evaluate(values));
    if (holds == 0) {
      std::vector<std::string> shown;
      for (const std::string& name : constraint.names()) {
        shown.push_back(fmt::format("{}={}", name, values.at(name)));
      }
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("the constraint '{}' does not hold for {}", constraint.text(),
                              fmt::join(shown, " ")),
                  constraint.place());
    }
  }
  return values;
}

Result<Shape> ResolveShape(const TensorSpec& tensor, const AxisValues& axes) {
  Shape shape;
  for (const Expression& extent : tensor.shape) {
    ASSAY_TRY(const std::int64_t value, extent.Evaluate(axes));
    if (value < 0) {
      return Fail(ErrorKind::kMalformedInput,
                  fmt::format("an extent of '{}' comes to {}", tensor.name, value), extent.place());
    }
    shape.push_back(value);
  }
  if (auto count = ElementCount(shape); !count) {
    return std::unexpected(WithPlace(std::move(count).error(), tensor.name));
  }
  return shape;
}

}  // namespace assay::ops
