// What the files of undefined.h's propagation share.
#pragma once

#include <bit>
#include <cstdint>

#include "validator/emu/core.h"

namespace assay::emu {

inline std::uint64_t OnesOf(int bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// Calls `visit(lane)` for each lane of the mask, the lowest first.
template <class Visit>
void ForEachLane(LaneMask lanes, Visit visit) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

inline bool IsRegister(const DecodedOperand& operand) {
  return operand.kind == DecodedOperand::Kind::kSlot ||
         operand.kind == DecodedOperand::Kind::kPredicate;
}

/// The positions of an accumulator that are undefined: those of undefined rows of A, of undefined columns
/// of B, and of its own. `origin`: of a result none of whose sources says where it comes from.
void PropagateMatrix(CoreWarp& warp, const Decoded& op, std::uint32_t origin);

}  // namespace assay::emu
