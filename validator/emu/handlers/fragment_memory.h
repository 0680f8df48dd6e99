// What handlers of matrix fragments in memory share: fragments.cc, matrix_rows.cc.
//
// Definedness is kept by register, as everywhere: a register is undefined in the lanes for which a
// byte of it was.
#pragma once

#include "validator/emu/memory.h"

namespace assay::emu {

/// The instruction's state space.
inline ptx::Space FragmentSpace(const ptx::Instruction& in) {
  return in.space == ptx::Space::kReg ? ptx::Space::kGeneric : in.space;
}

/// Of a register just written, in the lanes that run.
inline void SetUndefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& target,
                         LaneMask undefined) {
  if (!warp.engine->track_defined || target.kind != DecodedOperand::Kind::kSlot) return;
  LaneMask& mask = warp.frame->undefined[target.shadow];
  mask = (mask & ~warp.exec) | (undefined & warp.exec);
  if ((undefined & warp.exec) != 0) warp.frame->origin[target.shadow] = warp.PcOf(op);
}

inline LaneMask UndefinedOf(const CoreWarp& warp, const DecodedOperand& source) {
  return warp.engine->track_defined ? warp.frame->undefined[source.shadow] : 0;
}

/// The whole warp runs `handler` at once.
inline Handler AsFragmentHandler(Decoded& decoded, Handler handler) {
  decoded.flags |= kFlagControl | kFlagWarpWide | kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return handler;
}

/// Registers [first, first + count) exist and have `bits`; where a sink may stand, it may.
inline bool AreRegisters(const Decoded& decoded, std::size_t first, std::size_t count, int bits) {
  if (decoded.operand_count < first + count) return false;
  for (std::size_t i = first; i < first + count; ++i) {
    const DecodedOperand& operand = decoded.operands[i];
    if (operand.kind != DecodedOperand::Kind::kSlot || operand.bits != bits) return false;
  }
  return true;
}

}  // namespace assay::emu
