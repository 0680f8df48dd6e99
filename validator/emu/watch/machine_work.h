// What the machine does for one PTX instruction: which unit it occupies, for how many issues, and
// when its result is there.
//
// PTX is not machine code. Copies of registers vanish in the assembler, sums of 64 bits become two
// instructions, a division becomes a routine. The figures here are rough ones of what an assembler makes
// of each on sm_80 and sm_90, estimated and not counted in listings; throughput follows from them by
// the tables of the chip (validator/cost/chips.h).
//
// Pure; thread-safe.
//
//   const MachineWork work = WorkOf(*op.source);
#pragma once

#include <cstdint>

#include "validator/execution/launch_counts.h"
#include "validator/ptx/module.h"

namespace assay::emu {

struct MachineWork {
  Pipe pipe = Pipe::kAlu;
  std::uint8_t issues = 1;   ///< Instructions of `pipe`; 0: none.
  std::uint8_t special = 0;  ///< Instructions of Pipe::kSpecial beside them.
  /// Nothing before it may be put off until after it, and nothing after it be done before: the end
  /// of a basic block, a barrier, a fence.
  bool ends_region = false;
  bool barrier = false;  ///< Of the block.
};

MachineWork WorkOf(const ptx::Instruction& in);

/// The operands' type of a product of matrices.
MatrixType MatrixTypeOf(const ptx::Instruction& in);

}  // namespace assay::emu
