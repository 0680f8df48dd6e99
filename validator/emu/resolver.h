// From an instruction to what executes it: the resolvers of the families (handlers/rows.h) in one
// table, by opcode.
#pragma once

#include "validator/emu/exec.h"

namespace assay::emu {

/// Sets decoded.run (and monitored, propagate, flags). False when no family covers the
/// instruction.
bool Resolve(const ptx::Instruction& instruction, Decoded& decoded);

}  // namespace assay::emu
