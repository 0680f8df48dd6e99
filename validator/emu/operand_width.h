// How wide an instruction reads each of its operands: immediates and special registers take the
// width of the place they stand in.
#pragma once

#include <cstddef>

#include "validator/ptx/module.h"

namespace assay::emu {

/// Bits that `in` reads or writes at operand `index` (in PTX order, vectors not flattened): 1 for
/// predicates, otherwise 16, 32, 64 or 128. Meaningful for operands that are not registers, which
/// have a width of their own.
int OperandBits(const ptx::Instruction& in, std::size_t index);

/// How many operands, from the front and before flattening, are written.
std::size_t DestinationOperands(const ptx::Instruction& in);

}  // namespace assay::emu
