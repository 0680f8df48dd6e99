#include "validator/emu/weak/updates.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace assay::emu {
namespace {

using ptx::Mod;
using ptx::Opcode;
using Kind = DecodedOperand::Kind;

bool Same(const DecodedOperand& a, const DecodedOperand& b) {
  return a.kind == b.kind && a.slot == b.slot;
}
bool Holds(const std::vector<DecodedOperand>& all, const DecodedOperand& one) {
  return std::ranges::any_of(all, [&](const DecodedOperand& each) { return Same(each, one); });
}
bool IsRegister(const DecodedOperand& operand) {
  return operand.kind == Kind::kSlot || operand.kind == Kind::kPredicate;
}

bool IsFloat(ptx::Type type) {
  constexpr ptx::Type kFloats[] = {ptx::Type::kF16,    ptx::Type::kF16x2, ptx::Type::kBF16,
                                   ptx::Type::kBF16x2, ptx::Type::kF32,   ptx::Type::kF64};
  return std::ranges::find(kFloats, type) != std::end(kFloats);
}
/// Rounds: what is done in another order may come out otherwise.
bool IsFloatArithmetic(const ptx::Instruction& in) {
  constexpr Opcode kArithmetic[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul,  Opcode::kFma,
                                    Opcode::kMad, Opcode::kDiv, Opcode::kSqrt, Opcode::kRcp};
  return std::ranges::find(kArithmetic, in.opcode) != std::end(kArithmetic) && IsFloat(in.type());
}

std::size_t Bytes(const DecodedOperand& operand) {
  return operand.kind == Kind::kPredicate ? sizeof(LaneMask) : kWarpSize * operand.bits / 8u;
}
std::byte* Place(CoreWarp& warp, const DecodedOperand& operand) {
  return operand.kind == Kind::kPredicate
             ? reinterpret_cast<std::byte*>(&warp.predicates[operand.slot])
             : warp.Lanes<std::byte>(operand.slot);
}

Updates::Value Get(CoreWarp& warp, const DecodedOperand& operand, int lane) {
  Updates::Value value{};
  if (operand.kind == Kind::kPredicate) {
    value[0] = static_cast<std::byte>(warp.predicates[operand.slot] >> lane & 1u);
  } else {
    const std::size_t width = operand.bits / 8u;
    std::memcpy(value.data(), Place(warp, operand) + static_cast<std::size_t>(lane) * width, width);
  }
  return value;
}
void Put(CoreWarp& warp, const DecodedOperand& operand, int lane, const Updates::Value& value) {
  if (operand.kind == Kind::kPredicate) {
    LaneMask& mask = warp.predicates[operand.slot];
    mask &= ~(LaneMask{1} << lane);
    mask |= static_cast<LaneMask>(value[0] != std::byte{0}) << lane;
  } else {
    const std::size_t width = operand.bits / 8u;
    std::memcpy(Place(warp, operand) + static_cast<std::size_t>(lane) * width, value.data(), width);
  }
}

}  // namespace

bool Updates::IsLabel(std::uint32_t pc) const {
  const auto& code = device_.program.code;
  const auto& tables = device_.program.branch_tables;
  return std::ranges::any_of(code,
                             [&](const Decoded& op) {
                               return op.source != nullptr && op.source->opcode == Opcode::kBra &&
                                      op.target == pc;
                             }) ||
         std::ranges::any_of(tables, [&](const auto& table) {
           return std::ranges::find(table, pc) != table.end();
         });
}

std::optional<Updates::Update> Updates::Derive(std::uint32_t pc) const {
  constexpr std::uint32_t kFar = 48;
  const auto& code = device_.program.code;
  const Decoded& swap = code[pc];
  const std::size_t address_at = swap.destinations;
  if (swap.source->opcode != Opcode::kAtom || address_at != 1) return std::nullopt;
  const bool compares = swap.source->Has(Mod::kCas);
  if (!compares && !swap.source->Has(Mod::kExch)) return std::nullopt;
  // Destination, address, what to compare with, the new value.
  Update update;
  update.result = swap.operands[address_at + (compares ? 2 : 1)];
  if (compares) update.found = swap.operands[address_at + 1];
  if (!IsRegister(update.result) || update.result.bits > 64) return std::nullopt;
  const auto& function = device_.program.functions[device_.program.function_of[pc]];
  const auto is_constant = [&](const DecodedOperand& operand) {
    return operand.kind == Kind::kSlot && operand.slot < function.constant_slots;
  };
  if (compares && (!IsRegister(update.found) || is_constant(update.found))) return std::nullopt;

  std::vector<DecodedOperand> needed = {update.result};
  std::vector<DecodedOperand> later;  ///< Registers that are written between here and the swap.
  bool settled = false;               ///< `found` is, as it stands.
  bool arithmetic = false;
  for (std::uint32_t at = pc; at > function.first_pc && at + kFar > pc && !IsLabel(at);) {
    const Decoded& op = code[--at];
    const bool branches = op.source != nullptr && op.source->opcode == Opcode::kBra;
    if (op.source == nullptr || (branches && op.guard == kNoSlot) ||
        (!branches && (op.flags & kFlagControl) != 0))
      break;
    const std::span destinations(op.operands, op.destinations);
    const std::span sources(op.operands + op.destinations, op.operand_count - op.destinations);
    const auto is_needed = [&](const DecodedOperand& each) { return Holds(needed, each); };
    const bool wanted = std::ranges::any_of(destinations, is_needed);
    // An exchange that took out what the later one puts back.
    if (!compares && !settled && wanted && op.source->opcode == Opcode::kAtom &&
        op.source->Has(Mod::kExch) && Same(sources[0], swap.operands[address_at]) &&
        sources[0].offset == swap.operands[address_at].offset) {
      update.found = destinations[0];
      settled = true;
    }
    const bool defines_found = std::ranges::any_of(
        destinations, [&](const auto& each) { return Same(each, update.found); });
    // The original of a copy is what is varied.
    const bool copies = defines_found && !settled && op.source->opcode == Opcode::kMov &&
                        op.guard == kNoSlot && destinations.size() == 1 && sources.size() == 1 &&
                        IsRegister(sources[0]) && !is_constant(sources[0]) &&
                        !Holds(later, sources[0]);
    if (copies || (wanted && !defines_found && (op.flags & kFlagMemory) == 0)) {
      if (op.guard != kNoSlot) return std::nullopt;
      std::erase_if(needed, [&](const DecodedOperand& each) {
        return std::ranges::any_of(destinations, [&](const auto& d) { return Same(d, each); });
      });
      for (const DecodedOperand& source : sources) {
        // Constants too: special registers differ by lane.
        if (!IsRegister(source)) continue;
        const bool changes =
            Holds(later, source) ||
            std::ranges::any_of(destinations, [&](const auto& d) { return Same(d, source); });
        if (changes || source.bits > 64) return std::nullopt;
        if (!is_needed(source)) needed.push_back(source);
      }
      update.body.push_back(at);
      arithmetic = arithmetic || IsFloatArithmetic(*op.source);
      if (copies) update.found = sources[0];
      for (const DecodedOperand& each : destinations) {
        if (IsRegister(each)) update.overwrites.push_back(each);
      }
    } else {
      // Results that are given, as they stand: what made them is of no interest.
      settled = settled || defines_found;
      std::erase_if(needed, [&](const DecodedOperand& each) {
        const bool given =
            std::ranges::any_of(destinations, [&](const auto& d) { return Same(d, each); });
        if (given) update.inputs.push_back(each);
        return given;
      });
    }
    for (const DecodedOperand& each : destinations) {
      if (IsRegister(each)) later.push_back(each);
    }
  }
  update.inputs.insert(update.inputs.end(), needed.begin(), needed.end());
  if (!arithmetic || update.found.kind != Kind::kSlot || !Holds(update.inputs, update.found))
    return std::nullopt;
  std::ranges::reverse(update.body);
  std::erase_if(update.inputs,
                [&](const DecodedOperand& each) { return Same(each, update.found); });
  return update;
}

const Updates::Update* Updates::Find(std::uint32_t pc) {
  auto at = known_.find(pc);
  if (at == known_.end()) at = known_.emplace(pc, Derive(pc)).first;
  return at->second ? &*at->second : nullptr;
}

Updates::Value Updates::Found(CoreWarp& warp, std::uint32_t pc, int lane) {
  return Get(warp, Find(pc)->found, lane);
}

std::vector<Updates::Value> Updates::Inputs(CoreWarp& warp, std::uint32_t pc, int lane) {
  std::vector<Value> values;
  for (const DecodedOperand& input : Find(pc)->inputs) values.push_back(Get(warp, input, lane));
  return values;
}

Updates::Value Updates::Apply(CoreWarp& warp, std::uint32_t pc, const std::vector<Value>& inputs,
                              const Value& found) {
  const Update& update = *Find(pc);
  std::vector<DecodedOperand> touched = update.overwrites;
  touched.insert(touched.end(), update.inputs.begin(), update.inputs.end());
  touched.push_back(update.found);
  std::vector<std::vector<std::byte>> before;
  for (const DecodedOperand& each : touched)
    before.emplace_back(Place(warp, each), Place(warp, each) + Bytes(each));
  const LaneMask exec = warp.exec;
  const LaneMask carry = warp.carry;
  constexpr int kLane = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) Put(warp, update.inputs[i], kLane, inputs[i]);
  Put(warp, update.found, kLane, found);
  warp.exec = LaneMask{1} << kLane;
  for (const std::uint32_t at : update.body) {
    const Decoded& op = device_.program.code[at];
    op.run(warp, op);
  }
  const Value result = Get(warp, update.result, kLane);
  warp.exec = exec;
  warp.carry = carry;
  for (std::size_t i = touched.size(); i-- > 0;)
    std::memcpy(Place(warp, touched[i]), before[i].data(), before[i].size());
  return result;
}

}  // namespace assay::emu
