#include "loaders/declaration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/expression_steps.h"

namespace assay::loaders {
namespace {

using ops::ExpressionStep;
using Step = ExpressionStep::Kind;
using Known = std::set<std::string, std::less<>>;

bool AllKnown(const ops::Expression& expression, const Known& known) {
  return std::ranges::all_of(expression.names(),
                             [&](const std::string& name) { return known.contains(name); });
}

std::optional<ops::Expression> Leaf(const ExpressionStep& step, const Known& known) {
  if (step.kind == Step::kLiteral) return ops::Expression::Constant(step.value);
  if (step.kind != Step::kName || !known.contains(step.name)) return std::nullopt;
  const Result<ops::Expression> parsed = ops::Expression::Parse(step.name, "");
  return parsed ? std::optional(*parsed) : std::nullopt;
}

// The one axis that `extent` tells once `known` are: it alone, or in a sum, difference or product
// with something known.
struct Told {
  std::string axis;
  AxisSource::Undo undo = AxisSource::Undo::kNothing;
  std::optional<ops::Expression> other;
};
std::optional<Told> Tells(const ops::Expression& extent, const Known& known) {
  const std::vector<ExpressionStep> steps = ops::StepsOf(extent);
  const auto open = [&](const ExpressionStep& step) {
    return step.kind == Step::kName && !known.contains(step.name);
  };
  if (steps.size() == 1 && open(steps[0]))
    return Told{.axis = steps[0].name, .undo = {}, .other = {}};
  if (steps.size() != 3) return std::nullopt;
  const bool first = open(steps[0]);
  if (first == open(steps[1])) return std::nullopt;
  std::optional<ops::Expression> other = Leaf(steps[first ? 1 : 0], known);
  if (!other) return std::nullopt;
  Told told{.axis = steps[first ? 0 : 1].name, .undo = {}, .other = std::move(other)};
  switch (steps[2].kind) {
    case Step::kMultiply:
      told.undo = AxisSource::Undo::kDivide;
      return told;
    case Step::kAdd:
      told.undo = AxisSource::Undo::kSubtract;
      return told;
    case Step::kSubtract:
      told.undo = AxisSource::Undo::kAdd;
      return first ? std::optional(told) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string_view CallOf(Step kind) {
  switch (kind) {
    case Step::kAdd:
      return "add";
    case Step::kSubtract:
      return "subtract";
    case Step::kMultiply:
      return "multiply";
    case Step::kDivide:
      return "divide";
    case Step::kRemainder:
      return "modulo";
    case Step::kMin:
      return "minimum";
    case Step::kMax:
      return "maximum";
    case Step::kCeilDiv:
      return "ceil_div";
    case Step::kRoundUp:
      return "round_up";
    default:
      return {};
  }
}

std::string_view ComparisonOf(Step kind) {
  switch (kind) {
    case Step::kEqual:
      return "==";
    case Step::kNotEqual:
      return "!=";
    case Step::kLess:
      return "<";
    case Step::kLessEqual:
      return "<=";
    case Step::kGreater:
      return ">";
    case Step::kGreaterEqual:
      return ">=";
    default:
      return {};
  }
}

}  // namespace

std::vector<AxisSource> SolveAxes(const ops::OpSpec& op,
                                  const std::vector<const ops::TensorSpec*>& tensors) {
  std::vector<AxisSource> told;
  std::vector<AxisSource> given;
  Known known;
  const auto derive = [&](const ops::Axis& axis) {
    if (axis.kind == ops::Axis::Kind::kVariable || known.contains(axis.name)) return false;
    if (axis.expression && !AllKnown(*axis.expression, known)) return false;
    told.push_back({.kind = AxisSource::Kind::kDerived, .axis = &axis, .other = {}});
    return true;
  };
  const auto read = [&](const ops::TensorSpec& tensor, bool plain) {
    for (std::size_t at = 0; at < tensor.shape.size(); ++at) {
      std::optional<Told> one = Tells(tensor.shape[at], known);
      if (!one || (plain && one->undo != AxisSource::Undo::kNothing)) continue;
      const ops::Axis* const axis = op.FindAxis(one->axis);
      if (axis == nullptr || axis->kind != ops::Axis::Kind::kVariable) continue;
      told.push_back({.kind = AxisSource::Kind::kExtent,
                      .axis = axis,
                      .tensor = &tensor,
                      .dimension = at,
                      .undo = one->undo,
                      .other = std::move(one->other)});
      return true;
    }
    return false;
  };
  // The plain ones first: an extent that is the axis itself needs no undoing.
  while (known.size() < op.axes.size()) {
    const auto once = [&] {
      if (std::ranges::any_of(op.axes, derive)) return true;
      for (const bool plain : {true, false}) {
        if (std::ranges::any_of(tensors, [&](const auto* t) { return read(*t, plain); }))
          return true;
      }
      return false;
    };
    if (once()) {
      known.insert(told.back().axis->name);
      continue;
    }
    const auto open = std::ranges::find_if(op.axes, [&](const ops::Axis& axis) {
      return axis.kind == ops::Axis::Kind::kVariable && !known.contains(axis.name);
    });
    ASSAY_CHECK(open != op.axes.end(), "derived axes follow from variable ones");
    given.push_back({.kind = AxisSource::Kind::kGiven, .axis = &*open, .other = {}});
    known.insert(open->name);
  }
  given.insert(given.end(), std::make_move_iterator(told.begin()),
               std::make_move_iterator(told.end()));
  return given;
}

Names::Names(std::set<std::string, std::less<>> reserved, std::vector<std::string> names) {
  std::set<std::string, std::less<>> taken(names.begin(), names.end());
  for (const std::string& name : names) {
    std::string chosen = name;
    while (reserved.contains(chosen) || (chosen != name && taken.contains(chosen))) chosen += '_';
    taken.insert(chosen);
    names_[name] = chosen;
  }
}

const std::string& Names::Of(std::string_view name) const {
  const auto found = names_.find(name);
  ASSAY_CHECK(found != names_.end(), "every name of the op is known");
  return found->second;
}

std::string Print(const ops::Expression& expression, const Dialect& dialect) {
  std::vector<std::string> stack;
  const auto pop = [&stack] {
    std::string text = std::move(stack.back());
    stack.pop_back();
    return text;
  };
  for (const ExpressionStep& step : ops::StepsOf(expression)) {
    if (step.kind == Step::kLiteral) {
      stack.push_back(std::to_string(step.value));
      continue;
    }
    if (step.kind == Step::kName) {
      stack.push_back(dialect.name(step.name));
      continue;
    }
    const std::string b = pop();
    if (step.kind == Step::kNegate) {
      stack.push_back(fmt::format("negate({})", b));
      continue;
    }
    if (step.kind == Step::kNot) {
      stack.push_back(fmt::format("{}({} == 0)", dialect.truth, b));
      continue;
    }
    const std::string a = pop();
    if (const std::string_view call = CallOf(step.kind); !call.empty()) {
      stack.push_back(fmt::format("{}({}, {})", call, a, b));
    } else if (const std::string_view sign = ComparisonOf(step.kind); !sign.empty()) {
      stack.push_back(fmt::format("{}({} {} {})", dialect.truth, a, sign, b));
    } else {
      const std::string_view word =
          step.kind == Step::kAnd ? dialect.conjunction : dialect.disjunction;
      stack.push_back(fmt::format("{}({} != 0 {} {} != 0)", dialect.truth, a, word, b));
    }
  }
  return stack.back();
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += byte >= 0x20 && byte < 0x7f ? c : '.';
  }
  return quoted + "\"";
}

std::string Joined(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ", "));
}

std::size_t AlignmentOf(const LoaderInput& input, const std::string& tensor, DType dtype) {
  // What the copy engine asks for.
  const bool mapped = std::ranges::any_of(input.plan.tensor_maps,
                                          [&](const auto& map) { return map.tensor == tensor; });
  return mapped ? std::max<std::size_t>(16, SizeOf(dtype)) : SizeOf(dtype);
}

DType WorkspaceType(const LoaderInput& input, std::string_view name) {
  const auto found = std::ranges::find(input.plan.workspace, name, &ops::WorkspacePlan::name);
  ASSAY_CHECK(found != input.plan.workspace.end(), "a plan names what it has");
  ops::TensorSpec spec;
  spec.dtype_name = found->dtype_name;
  return input.instance.TypeOf(spec);
}

std::vector<ops::Expression> ConstraintsOf(const ops::OpSpec& op) {
  std::vector<ops::Expression> constraints = op.constraints;
  for (const ops::Axis& axis : op.axes) {
    if (axis.kind != ops::Axis::Kind::kExpression) continue;
    Result<ops::Expression> positive = ops::Expression::Parse(axis.name + " >= 0", axis.name);
    ASSAY_CHECK(positive, "the name of an axis is an expression");
    constraints.push_back(*std::move(positive));
  }
  return constraints;
}

ScalarDomain DomainOf(const ops::TensorSpec& scalar) {
  ScalarDomain domain;
  switch (scalar.domain.kind) {
    case ops::Domain::Kind::kRange:
      domain.low = fmt::format("{}", scalar.domain.low);
      domain.high = fmt::format("{}", scalar.domain.high);
      break;
    case ops::Domain::Kind::kChoice:
      for (const double value : scalar.domain.values)
        domain.choices.push_back(fmt::format("{}", value));
      break;
    case ops::Domain::Kind::kIndex:
      domain.below = scalar.domain.of;
      break;
    case ops::Domain::Kind::kAny:
    case ops::Domain::Kind::kGenerated:
      break;
  }
  return domain;
}

}  // namespace assay::loaders
