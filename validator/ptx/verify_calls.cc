// Calls (9.7.12.5): each argument against the parameter that receives it.
#include <fmt/format.h>

#include <vector>

#include "validator/ptx/verifier_impl.h"

namespace assay::ptx {
namespace {

using Kind = Operand::Kind;

/// A scalar passed without a .param variable: same size, and bits or the same class.
bool ScalarFits(const Variable& parameter, Type type) {
  if (type == Type::kPred || BitsOf(type) != static_cast<int>(parameter.bytes * 8)) return false;
  return type == parameter.type || IsInteger(type) || parameter.type <= Type::kB128;
}

std::string ArgumentMismatch(const Function& function, const Variable& parameter,
                             const Operand& operand, bool is_return) {
  switch (operand.kind) {
    case Kind::kSymbol: {
      if (operand.symbol.scope != SymbolRef::Scope::kFunction ||
          operand.symbol.index >= function.variables.size() || operand.offset != 0) {
        return "is not a .param variable of this function";
      }
      const Variable& variable = function.variables[operand.symbol.index];
      if (variable.space != Space::kParam) return "is not a .param variable";
      if (variable.bytes != parameter.bytes) {
        return fmt::format("has {} bytes where {} are declared", variable.bytes, parameter.bytes);
      }
      return {};
    }
    case Kind::kRegister:
      if (operand.reg >= function.registers.size() || operand.negated)
        return "is no plain register";
      return ScalarFits(parameter, function.registers[operand.reg].type)
                 ? ""
                 : "has the wrong type or width";
    case Kind::kImmediate:
      if (is_return) return "is a constant";
      return parameter.bytes <= 8 &&
                     parameter.bytes * 8 == static_cast<std::uint64_t>(BitsOf(parameter.type))
                 ? ""
                 : "is a constant where an aggregate is declared";
    case Kind::kSink:
      return is_return ? "" : "is the sink";
    default:
      return "is of the wrong kind";
  }
}

std::string ListMismatch(const Function& function, const std::vector<Variable>& declared,
                         const Operand& list, bool is_return) {
  const std::string_view what = is_return ? "return value" : "argument";
  if (list.elements.size() != declared.size()) {
    return fmt::format("passes {} {}s where {} are declared", list.elements.size(), what,
                       declared.size());
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const std::string problem =
        ArgumentMismatch(function, declared[i], list.elements[i], is_return);
    if (!problem.empty()) return fmt::format("{} {} {}", what, i + 1, problem);
  }
  return {};
}

}  // namespace

std::string CallMismatch(const Module& module, const Function& function, const Instruction& in) {
  const std::vector<Operand>& operands = in.operands;
  const std::vector<Variable>* returns = nullptr;
  const std::vector<Variable>* params = nullptr;
  if (operands[1].kind == Kind::kFunction) {
    if (operands[1].function >= module.functions.size()) return "names no function";
    const Function& callee = module.functions[operands[1].function];
    if (callee.is_entry) return "calls an .entry";
    returns = &callee.returns;
    params = &callee.params;
  } else {
    if (operands[1].reg >= function.registers.size()) return "names no register";
    const Type type = function.registers[operands[1].reg].type;
    if (!IsInteger(type) || BitsOf(type) != module.address_bits) {
      return "calls a register that holds no address";
    }
    if (operands[3].target >= function.prototypes.size()) return "names no prototype";
    returns = &function.prototypes[operands[3].target].returns;
    params = &function.prototypes[operands[3].target].params;
  }
  std::string problem = ListMismatch(function, *returns, operands[0], true);
  if (problem.empty()) problem = ListMismatch(function, *params, operands[2], false);
  return problem;
}

}  // namespace assay::ptx
