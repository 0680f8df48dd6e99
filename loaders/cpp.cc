// kernel.hpp: the part that is one kernel's own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "loaders/declaration.h"
#include "loaders/runtime_text.h"

namespace assay::loaders {
namespace {

constexpr const char* kReserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
    "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
    "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual", "void", "volatile",
    "wchar_t", "while", "xor", "xor_eq", "std", "Axes", "Call", "Tensor",
    // Macros of systems' headers that are no capitals.
    "linux", "unix", "i386", "errno", "stdin", "stdout", "stderr", "assert"};

// Names of macros are capitals, or begin with an underscore.
bool LooksLikeMacro(std::string_view name) {
  if (name.starts_with('_')) return true;
  return name.size() > 1 && std::ranges::none_of(name, [](char c) {
           return std::islower(static_cast<unsigned char>(c)) != 0;
         });
}

class Writer {
 public:
  explicit Writer(const LoaderInput& input)
      : input_(input), op_(input.instance.op), names_(MakeNames(op_)) {
    std::vector<const ops::TensorSpec*> tensors;
    for (const auto* list : {&op_.inputs, &op_.outputs}) {
      for (const ops::TensorSpec& tensor : *list) {
        if (!tensor.is_scalar) tensors.push_back(&tensor);
      }
    }
    sources_ = SolveAxes(op_, tensors);
    constraints_ = ConstraintsOf(op_);
    dialect_ = {.conjunction = "&&",
                .disjunction = "||",
                .truth = "std::int64_t",
                .name = [this](std::string_view name) { return "axes." + names_.Of(name); }};
  }

  std::string Run() const {
    std::string head(kCppHead);
    const std::string place = "//@namespace@\n";
    head.replace(head.find(place), place.size(), fmt::format("namespace {} {{\n", Namespace()));
    std::string tail(kCppTail);
    const std::string end = "//@end@\n";
    tail.replace(tail.find(end), end.size(), fmt::format("}}  // namespace {}\n", Namespace()));
    return Introduction() + head +
           "// The kernel's own.\n\n"
           "#pragma GCC diagnostic push\n"
           "#pragma GCC diagnostic ignored \"-Wtautological-compare\"  // plans may say what is "
           "so\n\n" +
           Tables() + Structs() + Functions() + "\n#pragma GCC diagnostic pop\n" + tail;
  }

 private:
  static Names MakeNames(const ops::OpSpec& op) {
    std::set<std::string, std::less<>> reserved(std::begin(kReserved), std::end(kReserved));
    std::vector<std::string> names;
    for (const ops::Axis& axis : op.axes) names.push_back(axis.name);
    for (const auto* tensors : {&op.inputs, &op.outputs}) {
      for (const ops::TensorSpec& tensor : *tensors) names.push_back(tensor.name);
    }
    for (const std::string& name : names) {
      if (LooksLikeMacro(name)) reserved.insert(name);
    }
    return Names(std::move(reserved), std::move(names));
  }

  std::string Of(const ops::Expression& expression) const { return Print(expression, dialect_); }
  template <class List>
  std::string ListOf(const List& expressions) const {
    std::vector<std::string> items;
    for (const ops::Expression& expression : expressions) items.push_back(Of(expression));
    return fmt::format("{{{}}}", Joined(items));
  }
  static std::string Truth(bool value) { return value ? "true" : "false"; }
  static std::string TypeText(DType type) {
    return fmt::format("DType::{}", type == DType::kBool ? "boolean" : Name(type));
  }

  /// "assay_kernels::softmax_T_f32_sm_90"
  std::string Namespace() const {
    std::string name = "assay_kernels::" + op_.name;
    for (const auto& [variable, dtype] : input_.instance.binding)
      name += fmt::format("_{}_{}", variable, Name(dtype));
    return name + "_" + input_.instance.arch;
  }

  std::string Introduction() const {
    return fmt::format(
        "// {}: a CUDA kernel that Assay vetted, for C++17 and the CUDA driver.\n//\n"
        "//   namespace vetted = {};\n"
        "//   vetted::Kernel kernel(\"the folder of this file\");   // into the current context\n"
        "//   vetted::Call call;                                  // its members are the "
        "arguments\n"
        "//   kernel(call, stream);\n//\n"
        "// Throws Refused, with what to do about it, for whatever the kernel was not vetted for: "
        "another "
        "dtype, an extent out of\n"
        "// range, strides, memory of the CPU, another chip. Kernel::watch checks a share of the "
        "calls "
        "against a reference.\n//\n"
        "// Written by Assay from launch.json, op.json and certificate.json, which holds this "
        "file's "
        "digest. Needs the CUDA driver\n// when it runs, and nothing of CUDA when it is "
        "compiled.\n",
        input_.instance.Id(), Namespace());
  }

  std::string Tables() const {
    std::string text =
        fmt::format("inline constexpr const char* instance = {};\n", Quote(input_.instance.Id()));
    text += fmt::format("inline constexpr const char* arch = {};\n", Quote(input_.instance.arch));
    text +=
        "/// What holds the program, the preferred one first, and its SHA-256.\n"
        "inline const std::vector<std::pair<std::string, std::string>>& images() {\n"
        "  static const std::vector<std::pair<std::string, std::string>> all = {\n";
    for (const auto& [name, digest] : input_.images)
      text += fmt::format("      {{{}, {}}},\n", Quote(name), Quote(digest));
    text += "  };\n  return all;\n}\n";
    text +=
        "/// Extents that vary.\n"
        "inline const std::vector<Axis>& axis_table() {\n"
        "  static const std::vector<Axis> all = {\n"
        "      // name, low, high, whole, in_slices, at_ends\n";
    for (const ops::Axis& axis : op_.axes) {
      if (axis.kind != ops::Axis::Kind::kVariable) continue;
      const auto found = input_.reach.find(axis.name);
      const Reach reach = found == input_.reach.end() ? Reach{} : found->second;
      text += fmt::format("      {{{}, {}, {}, {}, {}, {}}},\n", Quote(axis.name), axis.min,
                          axis.max, reach.whole, reach.in_slices, reach.at_ends);
    }
    return text + "  };\n  return all;\n}\n";
  }

  std::string Structs() const {
    std::string text = "\n/// One call. Outputs are written.\nstruct Call {\n";
    for (const ops::TensorSpec& input : op_.inputs) text += Member(input, "");
    for (const ops::TensorSpec& output : op_.outputs) text += Member(output, "output, ");
    for (const AxisSource& source : sources_) {
      if (source.kind == AxisSource::Kind::kGiven)
        text += fmt::format("  std::int64_t {} = 0;  ///< No tensor tells it.\n",
                            names_.Of(source.axis->name));
    }
    text += "};\n\nstruct Axes {\n";
    for (const ops::Axis& axis : op_.axes)
      text += fmt::format("  std::int64_t {} = 0;\n", names_.Of(axis.name));
    return text + "};\n";
  }

  std::string Member(const ops::TensorSpec& tensor, std::string_view what) const {
    const DType type = input_.instance.TypeOf(tensor);
    if (tensor.is_scalar && op_.FindInput(tensor.name) != nullptr) {
      const std::string_view cpp = IsFloat(type) ? "double" : "std::int64_t";
      return fmt::format("  {} {} = 0;  ///< {}\n", cpp, names_.Of(tensor.name), Name(type));
    }
    std::vector<std::string> extents;
    for (const ops::Expression& extent : tensor.shape) extents.push_back(extent.text());
    return fmt::format("  Tensor {};  ///< {}{} [{}]\n", names_.Of(tensor.name), what, Name(type),
                       Joined(extents));
  }

  std::string Functions() const {
    std::string text =
        "\n/// The axes, from the shapes.\ninline Axes solve(const Call& call) {\n  Axes axes;\n";
    for (const AxisSource& source : sources_) {
      text += fmt::format("  axes.{} = {};\n", names_.Of(source.axis->name), ValueOf(source));
    }
    if (op_.axes.empty() || sources_.empty()) text += "  (void)call;\n";
    text +=
        "  return axes;\n}\n\n/// Those of axis_table().\ninline std::vector<std::int64_t> "
        "values_of(const Axes& axes) {\n  (void)axes;\n";
    std::vector<std::string> items;
    for (const ops::Axis& axis : op_.axes) {
      if (axis.kind == ops::Axis::Kind::kVariable) items.push_back("axes." + names_.Of(axis.name));
    }
    text += fmt::format("  return {{{}}};\n}}\n", Joined(items));
    text +=
        "\n/// What the op asks of the axes.\ninline std::vector<Constraint> constraints(const "
        "Axes& "
        "axes) {\n  (void)axes;\n  return {\n";
    for (const ops::Expression& constraint : constraints_)
      text += fmt::format("      {{{}, {} != 0}},\n", Quote(constraint.text()), Of(constraint));
    return text + "  };\n}\n" + Operands() + Outputs() + PlanText();
  }

  std::string ValueOf(const AxisSource& source) const {
    if (source.kind == AxisSource::Kind::kGiven) return "call." + names_.Of(source.axis->name);
    if (source.kind == AxisSource::Kind::kDerived)
      return source.axis->expression ? Of(*source.axis->expression)
                                     : std::to_string(source.axis->value);
    const std::string extent =
        fmt::format("extent(call.{}, {})", names_.Of(source.tensor->name), source.dimension);
    switch (source.undo) {
      case AxisSource::Undo::kDivide:
        return fmt::format("divide({}, {})", extent, Of(*source.other));
      case AxisSource::Undo::kSubtract:
        return fmt::format("subtract({}, {})", extent, Of(*source.other));
      case AxisSource::Undo::kAdd:
        return fmt::format("add({}, {})", extent, Of(*source.other));
      case AxisSource::Undo::kNothing:
        break;
    }
    return extent;
  }

  std::string Operands() const {
    std::string text =
        "\n/// All arguments by name, with what each must be.\n"
        "inline std::vector<Operand> operands_of(const Call& call, const Axes& axes) {\n"
        "  using Kind = Operand::Kind;\n  const double infinity = "
        "std::numeric_limits<double>::infinity();\n  (void)infinity;\n  return {\n";
    for (const ops::TensorSpec& input : op_.inputs)
      text += input.is_scalar ? ScalarRow(input) : TensorRow(input, "input");
    for (const ops::TensorSpec& output : op_.outputs) text += TensorRow(output, "output");
    for (const ops::Axis& axis : op_.axes) {
      text += fmt::format(
          "      {{{}, Kind::axis, nullptr, DType::i64, 1, {{}}, \"\", 0, axes.{}, {{}}}},\n",
          Quote(axis.name), names_.Of(axis.name));
    }
    return text + "  };\n}\n";
  }

  std::string TensorRow(const ops::TensorSpec& tensor, std::string_view kind) const {
    const DType type = input_.instance.TypeOf(tensor);
    std::vector<std::string> extents;
    for (const ops::Expression& extent : tensor.shape) extents.push_back(extent.text());
    return fmt::format("      {{{}, Kind::{}, &call.{}, {}, {}, {}, {}, 0, 0, {{}}, {}}},\n",
                       Quote(tensor.name), kind, names_.Of(tensor.name), TypeText(type),
                       AlignmentOf(input_, tensor.name, type), ListOf(tensor.shape),
                       Quote(Joined(extents)), Quote(tensor.updates));
  }

  std::string ScalarRow(const ops::TensorSpec& scalar) const {
    const DType type = input_.instance.TypeOf(scalar);
    const ScalarDomain domain = DomainOf(scalar);
    std::string low = domain.low.empty() ? "-infinity" : domain.low;
    std::string high = domain.high.empty() ? "infinity" : domain.high;
    if (!domain.below.empty()) {
      low = "0";
      high = fmt::format("static_cast<double>(axes.{}) - 1", names_.Of(domain.below));
    }
    const std::string value = "call." + names_.Of(scalar.name);
    return fmt::format(
        "      {{{}, Kind::scalar, nullptr, {}, 1, {{}}, \"\", {}, {}, {{{}, {}, {{{}}}, {}, "
        "{}}}}},\n",
        Quote(scalar.name), TypeText(type), IsFloat(type) ? value : "0",
        IsFloat(type) ? "0" : value, low, high, Joined(domain.choices),
        Truth(scalar.domain.allow_nan), Truth(scalar.domain.allow_infinity));
  }

  std::string Outputs() const {
    std::string text =
        "\ninline std::vector<std::pair<std::string, Tensor*>> outputs_of(Call& call) {\n  return "
        "{";
    std::vector<std::string> items;
    for (const ops::TensorSpec& output : op_.outputs)
      items.push_back(fmt::format("{{{}, &call.{}}}", Quote(output.name), names_.Of(output.name)));
    return text + Joined(items) + "};\n}\n";
  }

  std::string PlanText() const {
    std::string text =
        "\n/// launch.json for one shape.\ninline Plan plan_of(const Axes& axes) {\n  (void)axes;\n"
        "  Plan plan;\n";
    for (const ops::WorkspacePlan& buffer : input_.plan.workspace) {
      text += fmt::format("  plan.workspace.push_back({{{}, {}, {}, {}}});\n", Quote(buffer.name),
                          TypeText(WorkspaceType(input_, buffer.name)), ListOf(buffer.shape),
                          Truth(buffer.init == ops::WorkspacePlan::Init::kZero));
    }
    for (const ops::TensorMapPlan& map : input_.plan.tensor_maps) {
      text += fmt::format("  plan.tensor_maps.push_back({{{}, {}, {}, {}, {}, {}, {}, {}}});\n",
                          Quote(map.name), Quote(map.tensor), TypeText(TypeOf(map.tensor)),
                          ListOf(map.shape), ListOf(map.strides), ListOf(map.box), map.swizzle,
                          Truth(map.fill_nan));
    }
    for (const ops::KernelPlan& kernel : input_.plan.kernels) {
      std::vector<std::string> args;
      for (const std::string& arg : kernel.args) args.push_back(Quote(arg));
      text += fmt::format(
          "  plan.launches.push_back({{\n      {},\n      {{{}}},  // grid\n      {{{}}},  // "
          "block\n"
          "      {{{}}},  // cluster\n      {},  // bytes of shared memory\n      {},  // "
          "cooperative\n"
          "      {{{}}},\n  }});\n",
          Quote(input_.symbols.at(kernel.entry)), ListOf(kernel.grid), ListOf(kernel.block),
          ListOf(kernel.cluster), Of(kernel.shared_bytes), Truth(kernel.cooperative), Joined(args));
    }
    return text + "  return plan;\n}\n";
  }

  DType TypeOf(const std::string& tensor) const {
    for (const auto* tensors : {&op_.inputs, &op_.outputs}) {
      for (const ops::TensorSpec& spec : *tensors) {
        if (spec.name == tensor) return input_.instance.TypeOf(spec);
      }
    }
    return WorkspaceType(input_, tensor);
  }

  const LoaderInput& input_;
  const ops::OpSpec& op_;
  Names names_;
  std::vector<AxisSource> sources_;
  std::vector<ops::Expression> constraints_;
  Dialect dialect_;
};

}  // namespace

std::string WriteCpp(const LoaderInput& input) { return Writer(input).Run(); }

}  // namespace assay::loaders
