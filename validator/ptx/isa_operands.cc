// Does one operand fit its rule? Kinds, classes and widths (9.4.1); never reads beyond the module.
#include "validator/ptx/isa_operands.h"

#include <algorithm>
#include <array>

#include "validator/ptx/names.h"

namespace assay::ptx {
namespace {

using Kind = Operand::Kind;
using Count = OperandRule::Count;

enum class Class : std::uint8_t { kBits, kInteger, kFloat, kPacked, kPredicate };

Class ClassOf(Type type) {
  switch (type) {
    case Type::kPred:
      return Class::kPredicate;
    case Type::kB8:
    case Type::kB16:
    case Type::kB32:
    case Type::kB64:
    case Type::kB128:
      return Class::kBits;
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
      return Class::kInteger;
    case Type::kF16:
    case Type::kBF16:
    case Type::kF16x2:
    case Type::kBF16x2:
    case Type::kF32:
    case Type::kF64:
      return Class::kFloat;
    default:
      return Class::kPacked;
  }
}

/// Table of 9.4.1: bits go with everything of their size; integers with integers and bits; floats
/// with themselves and bits.
bool RegisterFits(Type wanted, Type declared, bool relaxed) {
  const Class want = ClassOf(wanted);
  const Class have = ClassOf(declared);
  if (want == Class::kPredicate || have == Class::kPredicate) return want == have;
  const int wanted_bits = std::max(BitsOf(wanted), 8);
  const int bits = BitsOf(declared);
  if (relaxed ? bits < wanted_bits : bits != wanted_bits) return false;
  if (want == Class::kBits || have == Class::kBits || wanted == declared) return true;
  return want == Class::kInteger && have == Class::kInteger;
}

bool ConstantFits(Type wanted, Type constant) {
  if (constant == Type::kNone) {
    const Class want = ClassOf(wanted);
    return want == Class::kPredicate || want == Class::kInteger ||
           (want == Class::kBits && wanted != Type::kB128);
  }
  // 0f and 0d literals convert between each other; as bits they keep their size.
  return wanted == Type::kF32 || wanted == Type::kF64 ||
         (wanted == Type::kB32 && constant == Type::kF32) ||
         (wanted == Type::kB64 && constant == Type::kF64);
}

bool SpecialFits(Type wanted, const Operand& operand, bool relaxed) {
  const Type have = TypeOf(operand.special);
  if (relaxed) return ClassOf(wanted) == Class::kInteger && have != Type::kPred;
  // The thread and block indices were 16 bits wide once.
  const bool halves =
      operand.special == SpecialRegister::kTid || operand.special == SpecialRegister::kNtid ||
      operand.special == SpecialRegister::kCtaid || operand.special == SpecialRegister::kNctaid;
  if (halves && BitsOf(wanted) == 16) return ClassOf(wanted) != Class::kFloat;
  return ClassOf(wanted) != Class::kFloat && RegisterFits(wanted, have, false);
}

/// The space without its sub-qualifier.
Space Window(Space space) {
  switch (space) {
    case Space::kParamEntry:
    case Space::kParamFunc:
      return Space::kParam;
    case Space::kSharedCta:
    case Space::kSharedCluster:
      return Space::kShared;
    default:
      return space;
  }
}

bool Is32BitSpace(Space space) { return space != Space::kGlobal && space != Space::kGeneric; }

/// The context of one match.
struct Match {
  const Module& module;
  const Function& function;
  const Instruction& in;

  const Variable* Find(SymbolRef symbol) const {
    const auto& list =
        symbol.scope == SymbolRef::Scope::kModule ? module.variables : function.variables;
    return symbol.index < list.size() ? &list[symbol.index] : nullptr;
  }
  std::string_view Scalar(const OperandRule& rule, Type wanted, const Operand& operand) const;
  std::string_view Vector(const OperandRule& rule, Type wanted, const Operand& operand) const;
  std::string_view Address(const Operand& operand) const;
  std::string_view Tensor(const Operand& operand) const;
  static std::string_view Call(const Instruction& in);
  std::string_view One(const OperandRule& rule, const Operand& operand) const;
  std::size_t ElementCount(const OperandRule& rule) const;
};

std::size_t Dimensions(const Instruction& in) {
  constexpr std::array kDims = {Mod::kDim1d, Mod::kDim2d, Mod::kDim3d, Mod::kDim4d, Mod::kDim5d};
  for (std::size_t i = 0; i < kDims.size(); ++i) {
    if (in.Has(kDims[i])) return i + 1;
  }
  return 0;
}

/// N of .m64nNkK; 0 for other modifiers.
std::size_t WgmmaColumns(const Instruction& in) {
  for (const Mod mod : in.mods) {
    std::string_view name = Name(mod);
    if (!name.starts_with("m64n")) continue;
    std::size_t n = 0;
    for (name.remove_prefix(4); !name.empty() && name[0] != 'k'; name.remove_prefix(1)) {
      n = n * 10 + static_cast<std::size_t>(name[0] - '0');
    }
    return n;
  }
  return 0;
}

std::size_t Match::ElementCount(const OperandRule& rule) const {
  switch (rule.count_rule) {
    case Count::kScalar:
      return 1;
    case Count::kFixed:
      return rule.count;
    case Count::kWidth:
      return in.vector_width;
    case Count::kMatrices:
      return in.Has(Mod::kX4) ? 4u : in.Has(Mod::kX2) ? 2u : 1u;
    // 64 rows of N, over 128 threads, in registers of 32 bits.
    case Count::kAccumulator:
      return WgmmaColumns(in) / 2 * static_cast<std::size_t>(BitsOf(in.type())) / 32;
    case Count::kPack:
      return 0;
    case Count::kOffsets:
      return Dimensions(in) - 2;
  }
  return 0;
}

std::string_view Match::Scalar(const OperandRule& rule, Type wanted, const Operand& operand) const {
  switch (operand.kind) {
    case Kind::kRegister: {
      if (operand.reg >= function.registers.size()) return "names no register";
      if (rule.constant_only) return "must be a constant";
      if (operand.negated && !rule.negatable) return "cannot be negated";
      if (operand.selector != 0) return "cannot select part of a register";
      const Type declared = function.registers[operand.reg].type;
      if (rule.any_address) {
        const bool integer =
            ClassOf(declared) == Class::kInteger || ClassOf(declared) == Class::kBits;
        return integer && BitsOf(declared) >= 32 && BitsOf(declared) <= 64 ? ""
                                                                           : "is not an address";
      }
      return RegisterFits(wanted, declared, rule.relaxed) ? "" : "has the wrong type or width";
    }
    case Kind::kImmediate:
      if (!rule.constant) return "must be a register";
      if (operand.immediate_type != Type::kNone && operand.immediate_type != Type::kF32 &&
          operand.immediate_type != Type::kF64) {
        return "is a constant of an impossible type";
      }
      return ConstantFits(wanted, operand.immediate_type) ? "" : "is a constant of the wrong type";
    case Kind::kSpecial:
      if (!rule.special) return "cannot be a special register here: copy it with mov";
      if (operand.component > 3) return "names no component of a special register";
      return SpecialFits(wanted, operand, rule.relaxed) ? "" : "has the wrong type or width";
    case Kind::kSymbol: {
      if (!rule.symbol) return "cannot be the address of a variable here";
      const Variable* const variable = Find(operand.symbol);
      if (variable == nullptr) return "names no variable";
      if (variable->space == Space::kReg) return "is a register, without an address";
      const bool integer = ClassOf(wanted) == Class::kInteger || ClassOf(wanted) == Class::kBits;
      const bool fits = BitsOf(wanted) == module.address_bits ||
                        (BitsOf(wanted) == 32 && Is32BitSpace(variable->space));
      return integer && fits ? "" : "is an address of another width";
    }
    case Kind::kFunction:
      if (!rule.symbol) return "cannot be the address of a function here";
      if (operand.function >= module.functions.size()) return "names no function";
      return BitsOf(wanted) == module.address_bits ? "" : "is an address of another width";
    case Kind::kSink:
      return rule.sink ? "" : "cannot be the sink";
    case Kind::kVector:
      return "cannot be a vector";
    default:
      return "is of the wrong kind";
  }
}

std::string_view Match::Vector(const OperandRule& rule, Type wanted, const Operand& operand) const {
  if (operand.kind != Kind::kVector) return "must be a vector in braces";
  std::size_t count = ElementCount(rule);
  if (rule.count_rule == Count::kPack) {
    count = operand.elements.size();
    if (count != 2 && count != 4) return "must have 2 or 4 elements";
    const int bits = BitsOf(wanted) / static_cast<int>(count);
    wanted = bits == 64   ? Type::kB64
             : bits == 32 ? Type::kB32
             : bits == 16 ? Type::kB16
                          : Type::kB8;
    if (bits < 8) return "has too many elements";
  }
  if (operand.elements.size() != count) return "has the wrong number of elements";
  for (const Operand& element : operand.elements) {
    const std::string_view problem = Scalar(rule, wanted, element);
    if (!problem.empty())
      return problem == "cannot be a vector" ? problem : "has an element that does not fit";
  }
  return "";
}

std::string_view Match::Address(const Operand& operand) const {
  if (operand.kind != Kind::kAddress) return "must be an address in brackets";
  if (operand.has_base_register && operand.has_symbol) return "has two bases";
  if (operand.has_base_register) {
    if (operand.reg >= function.registers.size()) return "names no register";
    const Type type = function.registers[operand.reg].type;
    if (ClassOf(type) != Class::kInteger && ClassOf(type) != Class::kBits) {
      return "has a base that is no integer";
    }
    if (BitsOf(type) == 64) return "";
    if (BitsOf(type) != 32) return "has a base of neither 32 nor 64 bits";
    const Family family = FamilyOf(in.opcode);
    const bool plain =
        family == Family::kMemory || family == Family::kAtomic || family == Family::kMbarrier;
    const bool narrow =
        module.address_bits == 32 || !plain || Is32BitSpace(in.space) || Is32BitSpace(in.space2);
    return narrow ? "" : "has a 32-bit base where addresses have 64 bits";
  }
  if (operand.has_symbol) {
    const Variable* const variable = Find(operand.symbol);
    if (variable == nullptr) return "names no variable";
    if (variable->space == Space::kReg) return "has a base that is a register parameter";
    const Family family = FamilyOf(in.opcode);
    const bool plain = family == Family::kMemory || family == Family::kAtomic;
    const bool clash =
        plain && in.space != Space::kGeneric && Window(in.space) != Window(variable->space);
    return clash ? "is in another state space than the instruction" : "";
  }
  return in.space == Space::kLocal ? "" : "is a constant, which only .local addresses may be";
}

std::string_view Match::Tensor(const Operand& operand) const {
  if (operand.kind != Kind::kTensor || operand.elements.empty()) {
    return "must be an address with coordinates";
  }
  const std::string_view problem = Address(operand.elements[0]);
  if (!problem.empty()) return problem;
  if (operand.elements.size() != 1 + Dimensions(in)) return "has the wrong number of coordinates";
  const OperandRule rule;
  for (std::size_t i = 1; i < operand.elements.size(); ++i) {
    const std::string_view coordinate = Scalar(rule, Type::kS32, operand.elements[i]);
    if (!coordinate.empty()) return "has a coordinate that is no 32-bit integer";
  }
  return "";
}

std::string_view Match::Call(const Instruction& in) {
  const std::vector<Operand>& operands = in.operands;
  if (operands.size() < 3 || operands.size() > 4) return "has the wrong parts";
  if (operands[0].kind != Kind::kParamList || operands[2].kind != Kind::kParamList)
    return "has the wrong parts";
  if (operands[1].kind == Kind::kFunction) {
    return operands.size() == 3 ? "" : "is a direct call, which needs no prototype";
  }
  if (operands[1].kind != Kind::kRegister) return "needs a function or a register";
  return operands.size() == 4 && operands[3].kind == Kind::kPrototype
             ? ""
             : "is an indirect call without a .callprototype";
}

std::string_view Match::One(const OperandRule& rule, const Operand& operand) const {
  using Body = OperandRule::Body;
  if (operand.paired != rule.paired)
    return rule.paired ? "must be joined by '|'" : "cannot be joined by '|'";
  switch (rule.body) {
    case Body::kAddress:
      return Address(operand);
    case Body::kTensor:
      return Tensor(operand);
    case Body::kLabel:
      return operand.kind == Kind::kLabel && operand.target <= function.body.size()
                 ? ""
                 : "must be a label";
    case Body::kTargets:
      return operand.kind == Kind::kLabelList ? "" : "must be a list of labels";
    case Body::kSink:
      return operand.kind == Kind::kSink ? "" : "must be the sink '_'";
    case Body::kCall:
      return "";
    case Body::kValue:
      break;
  }
  const Type wanted = TypeOf(rule, in);
  if (rule.count_rule != Count::kScalar) return Vector(rule, wanted, operand);
  if (rule.vector_of_one && operand.kind == Kind::kVector && operand.elements.size() == 1) {
    return Scalar(rule, wanted, operand.elements[0]);
  }
  return Scalar(rule, wanted, operand);
}

}  // namespace

std::string_view OperandProblem(const OperandRule& rule, const Module& module,
                                const Function& function, const Instruction& in,
                                const Operand& operand) {
  return Match{module, function, in}.One(rule, operand);
}

std::string_view CallProblem(const Instruction& in) { return Match::Call(in); }

int BitsOf(const OperandRule& rule, const Instruction& in, const Operand& operand) {
  if (rule.body == OperandRule::Body::kAddress || rule.body == OperandRule::Body::kTensor)
    return 64;
  const Type type = TypeOf(rule, in);
  if (type == Type::kPred) return 1;
  if (type == Type::kNone) return 32;
  const bool pack = rule.count_rule == Count::kPack && !operand.elements.empty();
  return std::max(16, BitsOf(type) / static_cast<int>(pack ? operand.elements.size() : 1));
}

Type TypeOf(const OperandRule& rule, const Instruction& in) {
  if (rule.body != OperandRule::Body::kValue) return Type::kNone;
  if (rule.any_address) return Type::kU64;
  if (rule.fixed != Type::kNone) return rule.fixed;
  const Type type = in.type(rule.type_index);
  if (!rule.doubled) return type;
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return Type::kNone;
  }
}

}  // namespace assay::ptx
