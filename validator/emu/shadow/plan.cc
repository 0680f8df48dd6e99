#include "validator/emu/shadow/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "validator/emu/handlers/mma_forms.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Operation;
using ptx::Type;

struct TypeRow {
  Type type;
  NumberFormat format;
  std::uint8_t packed;
};
constexpr TypeRow kTypes[] = {
    {Type::kF16, NumberFormat::kF16, 1},   {Type::kBF16, NumberFormat::kBF16, 1},
    {Type::kF32, NumberFormat::kF32, 1},   {Type::kF64, NumberFormat::kF64, 1},
    {Type::kF16x2, NumberFormat::kF16, 2}, {Type::kBF16x2, NumberFormat::kBF16, 2},
    {Type::kF32x2, NumberFormat::kF32, 2}, {Type::kTF32, NumberFormat::kF32, 1},
};

const TypeRow* FindType(Type type) {
  const auto found = std::ranges::find(kTypes, type, &TypeRow::type);
  return found == std::end(kTypes) ? nullptr : &*found;
}

/// The magnitude of an operand that is the same constant in all lanes, or 0.
double ConstantSize(const Program::Impl& program, std::uint32_t pc, const DecodedOperand& operand,
                    NumberFormat format) {
  const FunctionCode& code = program.functions[program.function_of[pc]];
  if (operand.kind != DecodedOperand::Kind::kSlot || operand.slot >= code.constant_slots) return 0;
  for (const ConstantSlot& constant : code.constants) {
    if (constant.slot == operand.slot && constant.kind == ConstantSlot::Kind::kBits)
      return std::fabs(ToDouble(format, constant.value));
  }
  return 0;
}

/// x + 1.5 * 2^23 is how floats are rounded to integers without a conversion: what it takes away is
/// meant, not lost. The sum's last place is then between a quarter and one.
bool RoundsToInteger(const Program::Impl& program, std::uint32_t pc, const Plan& plan) {
  const Decoded& op = program.code[pc];
  const Operation operation = op.rules.operation;
  const bool sum = operation == Operation::kSum || operation == Operation::kDifference;
  const bool fused = operation == Operation::kMultiplyAdd;
  if ((!sum && !fused) || plan.packed != 1) return false;
  const int digits = plan.from == NumberFormat::kF32   ? 24
                     : plan.from == NumberFormat::kF64 ? 53
                                                       : 0;
  if (digits == 0) return false;
  for (int i = sum ? 0 : 2; i < plan.operands; ++i) {
    const double size = ConstantSize(program, pc, op.operands[op.destinations + i], plan.from);
    if (size >= std::ldexp(1, digits - 2) && size <= std::ldexp(1, digits)) return true;
  }
  return false;
}

Plan ConversionPlan(const Decoded& op) {
  const Instruction& in = *op.source;
  Plan plan{.act = Act::kOpaque};
  const TypeRow* const to = FindType(in.type(0));
  const TypeRow* const from = FindType(in.type(1));
  const bool from_integer = ptx::IsInteger(in.type(1));
  const bool to_integer = ptx::IsInteger(in.type(0));
  if (from_integer && to_integer) {
    plan.act = Act::kBits;
    return plan;
  }
  if (to != nullptr) plan.to = to->format;
  if (from != nullptr) plan.from = from->format;
  plan.saturates = in.Has(Mod::kSat);
  plan.clamps_negative = in.Has(Mod::kRelu);
  if (from_integer && to != nullptr && to->packed == 1) {
    plan.act = Act::kFromInteger;
  } else if (to_integer && from != nullptr && from->packed == 1) {
    plan.act = Act::kToInteger;
  } else if (to != nullptr && from != nullptr && from->packed == 1) {
    const bool integral =
        in.Has(Mod::kRni) || in.Has(Mod::kRzi) || in.Has(Mod::kRmi) || in.Has(Mod::kRpi);
    plan.packed = to->packed;
    plan.act = to->packed == 2                      ? Act::kPack
               : integral && to->type == from->type ? Act::kRoundToIntegral
                                                    : Act::kNarrow;
    if (plan.act == Act::kPack && op.operand_count < 3) plan.act = Act::kOpaque;
  }
  return plan;
}

Plan MatrixPlan(const Decoded& op) {
  const Instruction& in = *op.source;
  Plan plan{.act = Act::kOpaque};
  if (in.Has(Mod::kM8n8k4)) return plan;
  const MmaForm& form = MmaFormAt(op.aux);
  if (form.shape.family == MmaFamily::kSparse) return plan;
  switch (form.shape.elements) {
    case MmaElements::kF16:
      plan.from = NumberFormat::kF16;
      break;
    case MmaElements::kBF16:
      plan.from = NumberFormat::kBF16;
      break;
    case MmaElements::kTF32:
      plan.from = NumberFormat::kF32;
      break;
    default:
      return plan;
  }
  plan.act = Act::kMatrix;
  return plan;
}

/// What a row's answer comes to where no formula applies.
Act ActOf(ptx::Shadow shadow) {
  switch (shadow) {
    case ptx::Shadow::kPlain:
    case ptx::Shadow::kConvert:
    case ptx::Shadow::kCompare:
      return Act::kPlain;
    case ptx::Shadow::kOpaque:
    case ptx::Shadow::kProduct:
      return Act::kOpaque;
    case ptx::Shadow::kBits:
      return Act::kBits;
    case ptx::Shadow::kMove:
      return Act::kMove;
    case ptx::Shadow::kSelect:
      return Act::kSelect;
    case ptx::Shadow::kShuffle:
      return Act::kShuffle;
    case ptx::Shadow::kLoad:
      return Act::kLoad;
    case ptx::Shadow::kStore:
      return Act::kStore;
    case ptx::Shadow::kAtomic:
      return Act::kAtomic;
    case ptx::Shadow::kAsyncCopy:
      return Act::kAsyncCopy;
    case ptx::Shadow::kRows:
      return Act::kMatrixRows;
    case ptx::Shadow::kFragment:
      return Act::kFragment;
  }
  return Act::kOpaque;
}

Plan BasicPlan(const Program::Impl& program, std::uint32_t pc) {
  const Decoded& op = program.code[pc];
  const Instruction& in = *op.source;
  if (op.rules.shadow == ptx::Shadow::kConvert) return ConversionPlan(op);
  if (op.rules.shadow == ptx::Shadow::kProduct) return MatrixPlan(op);
  Plan plan{.act = ActOf(op.rules.shadow)};
  const TypeRow* const type = FindType(in.type());
  if (plan.act == Act::kMove && in.type() == Type::kPred) plan.act = Act::kPlain;
  if (type == nullptr) return plan;
  if (op.rules.shadow == ptx::Shadow::kCompare) {
    plan.act = Act::kCompare;
    plan.from = type->format;
    plan.packed = type->packed;
  }
  if (plan.act == Act::kAtomic) {
    plan.from = plan.to = type->format;
    plan.packed = type->packed;
  }
  const FormulaRow* const formula = FindFormula(op.rules.operation);
  if (formula == nullptr) return plan;
  plan.act = Act::kOpaque;
  // Forms that mix formats (add.f32.bf16) name a second type.
  if (in.types.size() != 1 || op.destinations != 1) return plan;
  const int sources = op.operand_count - op.destinations;
  const bool fits = sources == formula->operands || (formula->extreme() && sources == 3);
  const bool odd = in.Has(Mod::kXorsign) || in.Has(Mod::kOob);
  plan.act = fits && !odd ? Act::kFormula : Act::kOpaque;
  plan.formula = formula;
  plan.from = plan.to = type->format;
  plan.packed = type->packed;
  plan.operands = static_cast<std::uint8_t>(sources);
  plan.saturates = in.Has(Mod::kSat);
  plan.clamps_negative = in.Has(Mod::kRelu);
  plan.steps = fits && RoundsToInteger(program, pc, plan);
  return plan;
}

}  // namespace

std::vector<bool> FloatRegisters(const ptx::Function& function) {
  constexpr Operation kKeep[] = {Operation::kCopy,       Operation::kAnd,   Operation::kOr,
                                 Operation::kXor,        Operation::kLogic, Operation::kSum,
                                 Operation::kDifference, Operation::kSelect};
  const auto& registers = function.registers;
  std::vector<bool> floats(registers.size());
  for (std::size_t i = 0; i < registers.size(); ++i) floats[i] = registers[i].type == Type::kF32;
  const auto holds = [&](const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::kRegister && floats[operand.reg];
  };
  std::vector<bool> becomes = floats;  // What is moved into a float, and what that is made of.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& in : function.body) {
      const Operation operation = ptx::FormOf(in).rules.operation;
      if (std::ranges::find(kKeep, operation) == std::end(kKeep) || in.operands.size() < 2 ||
          ptx::BitsOf(in.type()) != 32)
        continue;
      const ptx::Operand& d = in.operands[0];
      if (d.kind != ptx::Operand::Kind::kRegister) continue;
      if (!floats[d.reg] && std::any_of(in.operands.begin() + 1, in.operands.end(), holds))
        floats[d.reg] = changed = true;
      if (!becomes[d.reg]) continue;
      for (const ptx::Operand& source : std::span(in.operands).subspan(1)) {
        if (source.kind != ptx::Operand::Kind::kRegister || becomes[source.reg] ||
            registers[source.reg].type == Type::kPred)
          continue;
        becomes[source.reg] = changed = true;
      }
    }
  }
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = floats[i] || becomes[i];
  return floats;
}

Plan PlanFor(const Program::Impl& program, std::uint32_t pc, const std::vector<bool>& floats) {
  Plan plan = BasicPlan(program, pc);
  const Decoded& op = program.code[pc];
  const Instruction& in = *op.source;
  if (plan.act != Act::kBits && plan.act != Act::kMove) return plan;
  // Operands before the flattening of vectors are those after it where only destinations are vectors.
  const std::size_t named = ptx::RulesOf(in).written();
  for (std::size_t i = named; i < in.operands.size() && i < 32; ++i) {
    if (in.operands[i].kind == ptx::Operand::Kind::kVector) return plan;
    const std::size_t flat = op.destinations + i - named;
    if (in.operands[i].kind != ptx::Operand::Kind::kRegister || !floats[in.operands[i].reg] ||
        flat >= op.operand_count || op.operands[flat].bits != 32)
      continue;
    // Moves of whole numbers keep them whole.
    if (plan.act == Act::kMove && op.destinations == 1) continue;
    plan.float_sources |= std::uint32_t{1} << flat;
  }
  return plan;
}

}  // namespace assay::emu
