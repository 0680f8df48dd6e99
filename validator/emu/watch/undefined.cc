#include "validator/emu/watch/undefined.h"

#include <algorithm>

#include "validator/emu/watch/propagation.h"

namespace assay::emu {
namespace {

using ptx::Definedness;
using ptx::Instruction;
using ptx::Mod;
using ptx::Type;

/// Two values side by side in 32 bits.
bool IsPairOfHalves(Type type) {
  constexpr Type kPairs[] = {Type::kF16x2, Type::kBF16x2, Type::kU16x2, Type::kS16x2};
  return std::ranges::find(kPairs, type) != std::end(kPairs);
}

}  // namespace

Definedness DefinednessOf(const Decoded& op) {
  const Instruction& in = *op.source;
  const Definedness row = op.rules.definedness;
  const bool pair = IsPairOfHalves(in.type());
  const bool results = op.destinations == 1;
  const bool rounds = in.Has(Mod::kHi) || in.Has(Mod::kSat);
  const bool wide = std::any_of(op.operands, op.operands + op.operand_count, [](const auto& o) {
    return o.kind == DecodedOperand::Kind::kSlot && o.bits > 64;
  });
  switch (row) {
    case Definedness::kUpward:
      if (pair) return Definedness::kByHalves;
      return IsInteger(in.type()) && !rounds ? row : Definedness::kWhole;
    case Definedness::kByHalves:
      return pair ? row : Definedness::kWhole;
    case Definedness::kConverted:
      if (pair && op.operand_count == 3) return Definedness::kPaired;
      return in.types.size() > 1 && IsInteger(in.types[0]) && IsInteger(in.types[1]) && !rounds
                 ? Definedness::kMovedOne
                 : Definedness::kWhole;
    case Definedness::kCompared: {
      if (pair && op.destinations == 2) return row;
      const bool equality = in.Has(Mod::kEq) || in.Has(Mod::kNe);
      return equality && IsInteger(in.type()) && results && op.operand_count == 3
                 ? Definedness::kDecided
                 : Definedness::kWhole;
    }
    case Definedness::kBitwise:
      // lop3 with a predicate result looks at all of the word.
      return results && !wide ? row : Definedness::kWhole;
    case Definedness::kMoved:
    case Definedness::kMovedOne:
    case Definedness::kMovedTwo:
      return wide ? Definedness::kWhole : row;
    default:
      return row;
  }
}

std::uint64_t UndefinedBits(const Frame& frame, const DecodedOperand& operand, int lane) {
  const LaneMask bit = LaneMask{1} << lane;
  if ((frame.undefined[operand.shadow] & bit) == 0) return 0;
  if ((frame.partial[operand.shadow] & bit) == 0) return OnesOf(operand.bits);
  return (*frame.bits[operand.shadow])[static_cast<std::size_t>(lane)];
}

void SetUndefined(Frame& frame, std::uint32_t shadow, LaneMask lanes, LaneMask undefined,
                  std::uint32_t origin) {
  LaneMask& mask = frame.undefined[shadow];
  mask = (mask & ~lanes) | (undefined & lanes);
  frame.partial[shadow] &= ~lanes;
  frame.machine[shadow] &= ~lanes;
  if ((undefined & lanes) != 0) frame.origin[shadow] = origin;
}

void SetUndefinedBits(Frame& frame, const DecodedOperand& operand, LaneMask lanes,
                      const LaneBitsets& bits, std::uint32_t origin) {
  const std::uint64_t ones = OnesOf(operand.bits);
  LaneMask some = 0;
  LaneMask partial = 0;
  ForEachLane(lanes, [&](int lane) {
    const std::uint64_t word = bits[static_cast<std::size_t>(lane)] & ones;
    some |= LaneMask{word != 0} << lane;
    partial |= LaneMask{word != 0 && word != ones} << lane;
  });
  SetUndefined(frame, operand.shadow, lanes, some, origin);
  if (partial == 0 || operand.bits > 64) return;
  if (frame.bits.size() <= operand.shadow) frame.bits.resize(operand.shadow + std::size_t{1});
  std::unique_ptr<LaneBitsets>& kept = frame.bits[operand.shadow];
  if (kept == nullptr) kept = std::make_unique<LaneBitsets>();
  ForEachLane(partial, [&](int lane) {
    (*kept)[static_cast<std::size_t>(lane)] = bits[static_cast<std::size_t>(lane)] & ones;
  });
  frame.partial[operand.shadow] |= partial;
}

}  // namespace assay::emu
