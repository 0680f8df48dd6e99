#include "validator/ptx/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "validator/ptx/isa.h"
#include "validator/ptx/parser.h"
#include "validator/ptx/printer.h"
#include "validator/ptx/verifier_impl.h"

namespace assay::ptx {
namespace {

/// Empty when the constants of `in`, whose operands fit, are among those that its row allows.
std::string BadConstant(const Instruction& in) {
  const OperandRules rules = RulesOf(in);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Operand& operand = in.operands[i];
    const std::vector<ConstantRange>& ranges = rules[i].constants;
    if (ranges.empty() || operand.kind != Operand::Kind::kImmediate ||
        operand.immediate_type != Type::kNone)
      continue;
    const auto value = static_cast<std::int64_t>(operand.bits);
    const auto holds = [value](const ConstantRange& range) {
      return value >= range.low && value <= range.high && value % range.step == 0;
    };
    if (std::ranges::any_of(ranges, holds)) continue;
    const bool lone = ranges.front().low == ranges.front().high;
    if (lone && ranges.size() == 1)
      return fmt::format("the constant {} must be {}", value, ranges[0].low);
    if (lone && ranges.size() == 2)
      return fmt::format("the constant {} must be {} or {}", value, ranges[0].low, ranges[1].low);
    return fmt::format("the constant {} is not allowed here", value);
  }
  return {};
}

class Verifier {
 public:
  Verifier(const Module& module, std::string_view file) : module_(module), file_(file) {}

  Status Run() {
    if (module_.version_major == 0) return Fault(1, "the module has no .version");
    if (module_.target.empty())
      return Fault(1, "the module has no .target", "add .target sm_90 or its like");
    if (module_.address_bits != 32 && module_.address_bits != 64) {
      return Fault(1, "an address size is 32 or 64");
    }
    ASSAY_TRY_VOID(CheckLocations());
    for (const Variable& variable : module_.variables) {
      ASSAY_TRY_VOID(CheckVariable(variable));
      ASSAY_TRY_VOID(CheckInitialiser(variable));
    }
    for (const Function& function : module_.functions) ASSAY_TRY_VOID(CheckFunction(function));
    return {};
  }

 private:
  std::unexpected<Error> Fault(std::uint32_t line, std::string message, std::string cure = {},
                               ErrorKind kind = ErrorKind::kMalformedInput) const {
    return Fail(kind, std::move(message), fmt::format("{}:{}", file_, line), std::move(cure));
  }

  Status CheckLocations() const {
    for (std::size_t i = 0; i < module_.locations.size(); ++i) {
      // A call site stands before what is inlined into it, so chains end.
      if (module_.locations[i].inlined_at >= static_cast<std::int64_t>(i)) {
        return Fault(1, "a location that is inlined at a later one");
      }
    }
    return {};
  }

  Status CheckVariable(const Variable& variable) const {
    const int bits = BitsOf(variable.type);
    const bool storable = bits >= 8 || variable.space == Space::kReg;
    if (!storable || (bits >= 8 && variable.bytes % (static_cast<std::uint64_t>(bits) / 8) != 0)) {
      return Fault(variable.ptx_line,
                   fmt::format("the size of '{}' is no multiple of its type's", variable.name));
    }
    if (!std::has_single_bit(variable.align)) {
      return Fault(variable.ptx_line,
                   fmt::format("the alignment of '{}' is no power of two", variable.name));
    }
    if (variable.bytes > kLimits.variable_bytes) {
      return Fault(variable.ptx_line, fmt::format("'{}' is too large", variable.name), {},
                   ErrorKind::kLimit);
    }
    return {};
  }

  Status CheckInitialiser(const Variable& variable) const {
    if (variable.initialiser.size() > variable.bytes) {
      return Fault(variable.ptx_line,
                   fmt::format("the initialiser of '{}' is larger than it", variable.name));
    }
    std::uint64_t end = 0;
    for (const Relocation& relocation : variable.relocations) {
      const std::size_t count =
          relocation.to_function ? module_.functions.size() : module_.variables.size();
      const bool inside = relocation.offset >= end && relocation.bytes > 0 &&
                          relocation.bytes + relocation.first_byte <= 8 &&
                          relocation.bytes <= variable.initialiser.size() &&
                          relocation.offset <= variable.initialiser.size() - relocation.bytes;
      if (!inside || relocation.index >= count) {
        return Fault(
            variable.ptx_line,
            fmt::format("an address in the initialiser of '{}' is out of place", variable.name));
      }
      end = relocation.offset + relocation.bytes;
    }
    return {};
  }

  Status CheckFunction(const Function& function) const {
    for (const std::vector<Variable>* list : {&function.returns, &function.params}) {
      for (const Variable& variable : *list) ASSAY_TRY_VOID(CheckVariable(variable));
    }
    if (function.alias_of >= 0 &&
        (static_cast<std::size_t>(function.alias_of) >= module_.functions.size() ||
         function.has_body ||
         !module_.functions[static_cast<std::size_t>(function.alias_of)].has_body)) {
      return Fault(function.ptx_line, fmt::format("'{}' is an alias of nothing", function.name));
    }
    if (!function.has_body) return {};
    ASSAY_TRY_VOID(CheckParameterCopies(function));
    for (const Variable& variable : function.variables) ASSAY_TRY_VOID(CheckVariable(variable));
    InstructionIndex previous = 0;
    for (const auto& [name, target] : function.labels) {
      if (target > function.body.size() || target < previous) {
        return Fault(function.ptx_line, fmt::format("label '{}' is out of place", name));
      }
      previous = target;
    }
    for (const Instruction& in : function.body) ASSAY_TRY_VOID(CheckInstruction(function, in));
    return {};
  }

  /// Returns and parameters open the variables, and register parameters the registers.
  Status CheckParameterCopies(const Function& function) const {
    std::size_t variable = 0, reg = 0;
    for (const std::vector<Variable>* list : {&function.returns, &function.params}) {
      for (const Variable& parameter : *list) {
        const bool in_register = parameter.space == Space::kReg;
        if (variable >= function.variables.size() || function.variables[variable] != parameter ||
            (in_register && (reg >= function.registers.size() ||
                             function.registers[reg].type != parameter.type))) {
          return Fault(
              function.ptx_line,
              fmt::format("the parameters of '{}' are not its first variables", function.name));
        }
        ++variable;
        reg += in_register ? 1 : 0;
      }
    }
    return {};
  }

  std::unexpected<Error> InstructionFault(const Function& function, const Instruction& in,
                                          std::string_view problem, std::string cure = {},
                                          ErrorKind kind = ErrorKind::kMalformedInput) const {
    return Fault(in.ptx_line,
                 fmt::format("'{}'{}{}", PrintInstruction(module_, function, in),
                             problem.starts_with(':') ? "" : " ", problem),
                 std::move(cure), kind);
  }

  Status CheckInstruction(const Function& function, const Instruction& in) const {
    if (in.guard.present && (in.guard.predicate >= function.registers.size() ||
                             function.registers[in.guard.predicate].type != Type::kPred)) {
      return InstructionFault(function, in, "has a guard that is no predicate",
                              "guard with a .pred register");
    }
    if (in.location >= static_cast<std::int64_t>(module_.locations.size())) {
      return InstructionFault(function, in, "has no such location");
    }
    const std::span<const Form> forms = Forms();
    if (in.form == 0 || in.form >= forms.size() || forms[in.form].opcode != in.opcode ||
        !ModifiersFit(forms[in.form], in)) {
      return NoForm(function, in);
    }
    if (const auto misfit = OperandsMisfit(forms[in.form], module_, function, in)) {
      return OperandFault(function, in, forms[in.form], *misfit);
    }
    if (in.opcode == Opcode::kCall) {
      const std::string problem = CallMismatch(module_, function, in);
      if (!problem.empty()) return InstructionFault(function, in, problem);
    }
    for (const Operand& operand : in.operands) {
      for (const InstructionIndex target : operand.targets) {
        if (target > function.body.size()) return InstructionFault(function, in, "names no label");
      }
    }
    const std::string problem = BadConstant(in);
    if (!problem.empty()) return InstructionFault(function, in, ": " + problem);
    return {};
  }

  std::unexpected<Error> OperandFault(const Function& function, const Instruction& in,
                                      const Form& form, const Misfit& misfit) const {
    std::string problem = misfit.operand < 0
                              ? std::string("has the wrong number of operands")
                              : fmt::format(": operand {} {}", misfit.operand + 1, misfit.reason);
    const auto i = static_cast<std::size_t>(misfit.operand);
    if (misfit.operand >= 0 && i < in.operands.size() &&
        in.operands[i].kind == Operand::Kind::kRegister &&
        in.operands[i].reg < function.registers.size()) {
      const Register& reg = function.registers[in.operands[i].reg];
      problem += fmt::format(" ({} is .{})", reg.name, Name(reg.type));
    }
    return InstructionFault(function, in, problem,
                            fmt::format("the form is: {} (PTX ISA {})", Text(form), form.section));
  }

  /// The parser found no row: says which operand stood in the way of the nearest one, or that no
  /// row has these modifiers.
  std::unexpected<Error> NoForm(const Function& function, const Instruction& in) const {
    const std::vector<std::uint16_t> candidates = CandidateForms(in);
    const Form* nearest = nullptr;
    Misfit furthest{-2, {}};
    for (const std::uint16_t index : candidates) {
      const auto misfit = OperandsMisfit(Forms()[index], module_, function, in);
      if (!misfit) return InstructionFault(function, in, "is not marked with its form");
      if (misfit->operand > furthest.operand) {
        furthest = *misfit;
        nearest = &Forms()[index];
      }
    }
    if (nearest != nullptr) return OperandFault(function, in, *nearest, furthest);
    constexpr std::size_t kMostShown = 6;
    std::string cure = "forms that are covered:";
    std::size_t shown = 0;
    for (const std::uint16_t index : FormsOf(in.opcode)) {
      if (shown++ == kMostShown) break;
      cure += "\n    " + Text(Forms()[index]);
    }
    if (shown > kMostShown) cure += "\n    ...";
    return InstructionFault(function, in, "is a form that is not covered", std::move(cure),
                            ErrorKind::kUnsupported);
  }

  const Module& module_;
  std::string_view file_;
};

}  // namespace

Status Verify(const Module& module, std::string_view file) { return Verifier(module, file).Run(); }

}  // namespace assay::ptx
