// kernel.py: the part that is one kernel's own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "loaders/declaration.h"
#include "loaders/runtime_text.h"

namespace assay::loaders {
namespace {

using NameSet = std::set<std::string, std::less<>>;

// Words of the language, and what the functions below call.
constexpr const char* kReserved[] = {
    "False",  "None",      "True",      "and",      "as",       "assert",   "async",
    "await",  "break",     "class",     "continue", "def",      "del",      "elif",
    "else",   "except",    "finally",   "for",      "from",     "global",   "if",
    "import", "in",        "is",        "lambda",   "nonlocal", "not",      "or",
    "pass",   "raise",     "return",    "try",      "while",    "with",     "yield",
    "shape",  "given",     "axes",      "add",      "subtract", "multiply", "divide",
    "modulo", "negate",    "ceil_div",  "round_up", "minimum",  "maximum",  "Plan",
    "Launch", "Workspace", "TensorMap", "int",      "KERNEL",   "__debug__"};

// What stands at the left margin of a Python text.
void AddTopLevelNames(std::string_view text, NameSet& names) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    for (const std::string_view word : {"def ", "class ", "import ", "from "}) {
      if (line.starts_with(word)) line.remove_prefix(word.size());
    }
    std::size_t at = 0;
    while (at < line.size() &&
           (std::isalnum(static_cast<unsigned char>(line[at])) != 0 || line[at] == '_'))
      ++at;
    if (at > 0) names.emplace(line.substr(0, at));
  }
}

class Writer {
 public:
  explicit Writer(const LoaderInput& input)
      : input_(input), op_(input.instance.op), names_(Reserved(), AllNames(op_)) {
    std::vector<const ops::TensorSpec*> tensors;
    for (const ops::TensorSpec& tensor : op_.inputs) {
      if (!tensor.is_scalar) tensors.push_back(&tensor);
    }
    sources_ = SolveAxes(op_, tensors);
    constraints_ = ConstraintsOf(op_);
    dialect_ = {.conjunction = "and",
                .disjunction = "or",
                .truth = "int",
                .name = [this](std::string_view name) { return names_.Of(name); }};
  }

  std::string Run() {
    const std::string own = Tables() + Functions();
    NameSet taken = Reserved();
    for (const std::string_view text : {kPythonHead, kPythonTail, std::string_view(own)})
      AddTopLevelNames(text, taken);
    for (const char* word : {"Any", "Mapping", "Sequence", "Callable", "OrderedDict", "dataclass"})
      taken.insert(word);
    const std::string function = Names(std::move(taken), {op_.name}).Of(op_.name);
    return Docstring(function) + std::string(kPythonHead) +
           "# ------------------------------------------------------------------------------- the "
           "kernel\n\n" +
           own + std::string(kPythonTail) + Function(function);
  }

 private:
  static NameSet Reserved() { return {std::begin(kReserved), std::end(kReserved)}; }
  static std::vector<std::string> AllNames(const ops::OpSpec& op) {
    std::vector<std::string> names;
    for (const ops::Axis& axis : op.axes) names.push_back(axis.name);
    for (const auto* tensors : {&op.inputs, &op.outputs}) {
      for (const ops::TensorSpec& tensor : *tensors) names.push_back(tensor.name);
    }
    return names;
  }

  /// Passed by value: an output without a shape is a tensor of one element.
  bool IsValue(const ops::TensorSpec& tensor) const {
    return tensor.is_scalar && op_.FindInput(tensor.name) != nullptr;
  }

  std::string Of(const ops::Expression& expression) const { return Print(expression, dialect_); }

  /// "(a, b)", "(a,)", "()"
  std::string Tuple(const std::vector<std::string>& items) const {
    return fmt::format("({}{})", Joined(items), items.size() == 1 ? "," : "");
  }
  template <class List>
  std::string Expressions(const List& expressions) const {
    std::vector<std::string> items;
    for (const ops::Expression& expression : expressions) items.push_back(Of(expression));
    return Tuple(items);
  }
  static std::string Truth(bool value) { return value ? "True" : "False"; }

  std::vector<std::string> Given() const {
    std::vector<std::string> names;
    for (const AxisSource& source : sources_) {
      if (source.kind == AxisSource::Kind::kGiven) names.push_back(source.axis->name);
    }
    return names;
  }

  /// What a person sees of a tensor: "bf16 [tokens, hidden]".
  std::string Form(const ops::TensorSpec& tensor) const {
    std::string text(Name(input_.instance.TypeOf(tensor)));
    if (IsValue(tensor)) return text;
    std::vector<std::string> extents;
    for (const ops::Expression& extent : tensor.shape) extents.push_back(extent.text());
    return fmt::format("{} [{}]", text, Joined(extents));
  }

  std::vector<std::string> Parameters(bool typed) const {
    std::vector<std::string> parameters;
    for (const ops::TensorSpec& input : op_.inputs) {
      const DType type = input_.instance.TypeOf(input);
      const std::string_view hint = !input.is_scalar       ? "torch.Tensor"
                                    : type == DType::kBool ? "bool"
                                    : IsFloat(type)        ? "float"
                                                           : "int";
      parameters.push_back(typed ? fmt::format("{}: {}", names_.Of(input.name), hint)
                                 : names_.Of(input.name));
    }
    const std::vector<std::string> given = Given();
    if (typed && !given.empty()) parameters.emplace_back("*");
    for (const std::string& name : given)
      parameters.push_back(typed ? names_.Of(name) + ": int" : names_.Of(name));
    return parameters;
  }

  std::string Docstring(const std::string& function) const {
    std::vector<std::string> arguments;
    for (const std::string& parameter : Parameters(false)) arguments.push_back(parameter);
    for (const std::string& name : Given()) {
      for (std::string& argument : arguments) {
        if (argument == names_.Of(name)) argument += "=...";
      }
    }
    std::vector<std::string> results;
    for (const ops::TensorSpec& output : op_.outputs) results.push_back(output.name);
    return fmt::format(
        "\"\"\"{}: a CUDA kernel that Assay vetted, as a custom operator of PyTorch.\n\n"
        "    from kernel import {}\n"
        "    {} = {}({})\n\n"
        "Works under torch.compile. Refuses, with what to do about it, whatever the kernel was not "
        "vetted\n"
        "for: another dtype, an extent out of range, strides, a CPU tensor, another chip. "
        "KERNEL.watch\n"
        "checks a share of the calls against a reference, KERNEL.differentiable adds a "
        "gradient.\n\n"
        "Written by Assay from launch.json, op.json and certificate.json, which holds this file's "
        "digest.\n"
        "Needs torch and a CUDA driver, nothing else.\n\"\"\"\n\n",
        input_.instance.Id(), function, Joined(results), function, Joined(arguments));
  }

  std::string Tables() const {
    std::string text;
    text += fmt::format("NAME = {}\n", Quote(op_.name));
    text += fmt::format("INSTANCE = {}\n", Quote(input_.instance.Id()));
    text += fmt::format("ARCH = {}\n", Quote(input_.instance.arch));
    text += "IMAGES = {  # what holds the program, the preferred one first, and its SHA-256\n";
    for (const auto& [name, digest] : input_.images)
      text += fmt::format("    {}: {},\n", Quote(name), Quote(digest));
    text += "}\nAXES: list[Axis] = [\n";
    for (const ops::Axis& axis : op_.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      const auto found = input_.reach.find(axis.name);
      const Reach reach = found == input_.reach.end() ? Reach{} : found->second;
      text += fmt::format("    Axis({}, low={}, high={}, whole={}, in_slices={}, at_ends={}),\n",
                          Quote(axis.name), axis.min, axis.max, reach.whole, reach.in_slices,
                          reach.at_ends);
    }
    text += "]\nINPUTS: list[Tensor | Scalar] = [\n";
    for (const ops::TensorSpec& input : op_.inputs)
      text += input.is_scalar ? ScalarRow(input) : TensorRow(input);
    text += "]\nOUTPUTS: list[Tensor] = [\n";
    for (const ops::TensorSpec& output : op_.outputs) text += TensorRow(output);
    text += "]\nGIVEN: list[str] = [  # axes that no input tells: arguments of their own\n";
    for (const std::string& name : Given()) text += fmt::format("    {},\n", Quote(name));
    text += "]\nSHAPES: dict[str, tuple[str, ...]] = {\n";
    for (const auto* tensors : {&op_.inputs, &op_.outputs}) {
      for (const ops::TensorSpec& tensor : *tensors) {
        if (IsValue(tensor)) continue;
        std::vector<std::string> extents;
        for (const ops::Expression& extent : tensor.shape) extents.push_back(Quote(extent.text()));
        text += fmt::format("    {}: {},\n", Quote(tensor.name), Tuple(extents));
      }
    }
    return text + "}\n";
  }

  std::string TensorRow(const ops::TensorSpec& tensor) const {
    const DType type = input_.instance.TypeOf(tensor);
    const std::string updates =
        tensor.updates.empty() ? "" : fmt::format(", updates={}", Quote(tensor.updates));
    return fmt::format("    Tensor({}, {}, rank={}, align={}{}),\n", Quote(tensor.name),
                       Quote(Name(type)), tensor.shape.size(),
                       AlignmentOf(input_, tensor.name, type), updates);
  }

  std::string ScalarRow(const ops::TensorSpec& scalar) const {
    const ScalarDomain domain = DomainOf(scalar);
    std::string text = fmt::format("    Scalar({}, {}", Quote(scalar.name),
                                   Quote(Name(input_.instance.TypeOf(scalar))));
    if (!domain.low.empty()) text += fmt::format(", low={}, high={}", domain.low, domain.high);
    if (!domain.choices.empty()) text += fmt::format(", choices={}", Tuple(domain.choices));
    if (!domain.below.empty()) text += fmt::format(", below={}", Quote(domain.below));
    if (scalar.domain.allow_nan) text += ", allow_nan=True";
    if (scalar.domain.allow_infinity) text += ", allow_infinity=True";
    return text + "),\n";
  }

  /// The axes as local variables.
  std::string Unpacked() const {
    std::string text;
    for (const ops::Axis& axis : op_.axes)
      text += fmt::format("    {} = axes[{}]\n", names_.Of(axis.name), Quote(axis.name));
    return text;
  }

  std::string Solve() const {
    std::string text =
        "\n\ndef solve(shape: Mapping[str, Sequence[int]], given: Mapping[str, Any]) -> dict[str, "
        "int]:\n"
        "    \"\"\"The axes, from the shapes of the inputs.\"\"\"\n";
    std::vector<std::string> items;
    for (const AxisSource& source : sources_) {
      const std::string& name = names_.Of(source.axis->name);
      if (source.kind == AxisSource::Kind::kGiven) {
        text += fmt::format("    {} = given[{}]\n", name, Quote(source.axis->name));
      } else if (source.kind == AxisSource::Kind::kDerived) {
        text += fmt::format("    {} = {}\n", name,
                            source.axis->expression ? Of(*source.axis->expression)
                                                    : std::to_string(source.axis->value));
      } else {
        text += fmt::format("    {} = {}\n", name, Extent(source));
      }
    }
    for (const ops::Axis& axis : op_.axes)
      items.push_back(fmt::format("{}: {}", Quote(axis.name), names_.Of(axis.name)));
    return text + fmt::format("    return {{{}}}\n", Joined(items));
  }

  std::string Extent(const AxisSource& source) const {
    const std::string extent =
        fmt::format("shape[{}][{}]", Quote(source.tensor->name), source.dimension);
    const std::string other = source.other ? Of(*source.other) : std::string();
    switch (source.undo) {
      case AxisSource::Undo::kDivide:
        return fmt::format("divide({}, {})", extent, other);
      case AxisSource::Undo::kSubtract:
        return fmt::format("subtract({}, {})", extent, other);
      case AxisSource::Undo::kAdd:
        return fmt::format("add({}, {})", extent, other);
      case AxisSource::Undo::kNothing:
        break;
    }
    return extent;
  }

  std::string Functions() const {
    std::string text = Solve();
    text +=
        "\n\ndef shapes(axes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:\n"
        "    \"\"\"What the inputs must be, and the outputs will be.\"\"\"\n" +
        Unpacked() + "    return {\n";
    for (const auto* tensors : {&op_.inputs, &op_.outputs}) {
      for (const ops::TensorSpec& tensor : *tensors) {
        if (IsValue(tensor)) continue;
        text += fmt::format("        {}: {},\n", Quote(tensor.name), Expressions(tensor.shape));
      }
    }
    text +=
        "    }\n\n\ndef constraints(axes: Mapping[str, int]) -> list[tuple[str, int]]:\n"
        "    \"\"\"What the op asks of the axes; 0: not so.\"\"\"\n" +
        (constraints_.empty() ? "    return []\n" : Unpacked() + "    return [\n");
    for (const ops::Expression& constraint : constraints_)
      text += fmt::format("        ({}, {}),\n", Quote(constraint.text()), Of(constraint));
    if (!constraints_.empty()) text += "    ]\n";
    return text + PlanText();
  }

  std::string PlanText() const {
    std::string text =
        "\n\ndef plan(axes: Mapping[str, int]) -> Plan:\n"
        "    \"\"\"launch.json for one shape.\"\"\"\n" +
        Unpacked() + "    return Plan(\n        workspace=(\n";
    for (const ops::WorkspacePlan& buffer : input_.plan.workspace) {
      ops::TensorSpec spec;
      spec.dtype_name = buffer.dtype_name;
      text += fmt::format("            Workspace({}, {}, {}, zero={}),\n", Quote(buffer.name),
                          Quote(Name(input_.instance.TypeOf(spec))), Expressions(buffer.shape),
                          Truth(buffer.init == ops::WorkspacePlan::Init::kZero));
    }
    text += "        ),\n        tensor_maps=(\n";
    for (const ops::TensorMapPlan& map : input_.plan.tensor_maps) {
      text += fmt::format(
          "            TensorMap(\n                {}, {}, {}, {},\n"
          "                strides={}, box={}, swizzle={}, fill_nan={},\n            ),\n",
          Quote(map.name), Quote(map.tensor), Quote(Name(TypeOf(map.tensor))),
          Expressions(map.shape), Expressions(map.strides), Expressions(map.box), map.swizzle,
          Truth(map.fill_nan));
    }
    text += "        ),\n        launches=(\n";
    for (const ops::KernelPlan& kernel : input_.plan.kernels) {
      std::vector<std::string> args;
      for (const std::string& arg : kernel.args) args.push_back(Quote(arg));
      text += fmt::format(
          "            Launch(  # {}\n                {},\n                grid={},\n"
          "                block={},\n                cluster={},\n                "
          "shared_bytes={},\n"
          "                cooperative={},\n                args={},\n            ),\n",
          kernel.entry, Quote(input_.symbols.at(kernel.entry)), Expressions(kernel.grid),
          Expressions(kernel.block), Expressions(kernel.cluster), Of(kernel.shared_bytes),
          Truth(kernel.cooperative), Tuple(args));
    }
    return text + "        ),\n    )\n";
  }

  DType TypeOf(const std::string& tensor) const {
    for (const auto* tensors : {&op_.inputs, &op_.outputs}) {
      for (const ops::TensorSpec& spec : *tensors) {
        if (spec.name == tensor) return input_.instance.TypeOf(spec);
      }
    }
    return WorkspaceType(input_, tensor);
  }

  std::string Function(const std::string& function) const {
    std::string text = fmt::format(
        "\n\ndef {}({}) -> {}:\n    \"\"\"The kernel.\n\n", function, Joined(Parameters(true)),
        op_.outputs.size() == 1 ? "torch.Tensor" : "tuple[torch.Tensor, ...]");
    for (const ops::TensorSpec& input : op_.inputs)
      text += fmt::format("    {}: {}\n", names_.Of(input.name), Form(input));
    text += "    Returns\n";
    for (const ops::TensorSpec& output : op_.outputs)
      text += fmt::format("    {}: {}\n", names_.Of(output.name), Form(output));
    return text +
           fmt::format("    \"\"\"\n    return KERNEL.op({})  # type: ignore[no-any-return]\n",
                       Joined(Parameters(false)));
  }

  const LoaderInput& input_;
  const ops::OpSpec& op_;
  Names names_;
  std::vector<AxisSource> sources_;
  std::vector<ops::Expression> constraints_;
  Dialect dialect_;
};

}  // namespace

std::string WritePython(const LoaderInput& input) { return Writer(input).Run(); }

}  // namespace assay::loaders
