// What each translation unit of handlers/ exports: one resolver a family, once a level. rows.cc
// picks the level.
//
// Translation units that are compiled per level see ptx::Instruction through the functions below,
// which are compiled once, so that no inline function of a header gets compiled for a processor
// that may be absent.
#pragma once

#include "validator/emu/exec.h"
#include "validator/emu/semantics/level.h"

namespace assay::emu {

std::size_t OperandCount(const ptx::Instruction& instruction);
/// The bits of operand `index`; false when it is not an immediate.
bool ImmediateOperand(const ptx::Instruction& instruction, std::size_t index, std::uint64_t& bits);
bool HasMod(const ptx::Instruction& instruction, ptx::Mod mod);
ptx::Type TypeAt(const ptx::Instruction& instruction, std::size_t index);

/// Vector operands of a two-operand instruction: how many elements destination and source have (0:
/// no vector).
struct VectorOperands {
  bool any = false;
  std::size_t destination = 0;
  std::size_t source = 0;
  int type_bytes = 0;  ///< Of the instruction's type.
};
VectorOperands VectorOperandsOf(const ptx::Instruction& instruction);

inline namespace ASSAY_EMU_LEVEL {
Handler ResolveInteger(const ptx::Instruction& instruction, Decoded& decoded);
Handler ResolveArithmetic(const ptx::Instruction& instruction, Decoded& decoded);
Handler ResolveMove(const ptx::Instruction& instruction, Decoded& decoded);
Handler ResolveCompare(const ptx::Instruction& instruction, Decoded& decoded);
/// f32 and f64, exact.
Handler ResolveFloat(const ptx::Instruction& instruction, Decoded& decoded);
/// f16 and bf16, exact.
Handler ResolveHalf(const ptx::Instruction& instruction, Decoded& decoded);
Handler ResolveApprox(const ptx::Instruction& instruction, Decoded& decoded);
/// All of them.
Handler ResolveFloatFamily(const ptx::Instruction& instruction, Decoded& decoded);
Handler ResolveConvert(const ptx::Instruction& instruction, Decoded& decoded);
}  // namespace ASSAY_EMU_LEVEL

/// How many of the levels v2, v3, v4 this processor runs, at least one. Handlers of the last are
/// what LaneResolver gives.
int SupportedLevels();
/// The arithmetic families at one level, 0 <= level < SupportedLevels(): tests compare the levels
/// with each other.
Handler ResolveAtLevel(int level, const ptx::Instruction& instruction, Decoded& decoded);

// Compiled once, for any processor.
Handler ResolveRounded(const ptx::Instruction& instruction, Decoded& decoded);
Handler ResolveConvertRare(const ptx::Instruction& instruction, Decoded& decoded);

}  // namespace assay::emu
