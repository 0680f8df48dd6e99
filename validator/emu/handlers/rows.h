// The arithmetic families' tables of resolvers, which the core joins with its own.
//
// Each call returns the rows compiled for the best x86-64 level that this processor has (semantics/level.h).
//
// What handlers expect of the decoder, beyond exec.h:
//   - d is the first destination's slot, or its predicate index; a, b, c are the slots of the first three sources, likewise.
//   - operands[] holds all of them, vectors flattened, destinations first; the sink `_` is Kind::kSink.
//   - immediates are constant slots, in the width of the operand's type: 16-bit ones for 8- and 16-bit types. Where an instruction
//     takes a table or count as immediate (lop3, vector modes), `source` still holds it.
//   - an immediate in the place of a predicate is a constant slot; not zero is true.
#pragma once

#include <span>

#include "validator/emu/exec.h"

namespace assay::emu {

/// abs add div mad max min mul neg sub, for integers and floating point.
std::span<const ResolverRow> ArithmeticRows();
/// Carry chains, bit fields, logic, shifts, permutes, dot products.
std::span<const ResolverRow> IntegerRows();
/// mov, selp, slct.
std::span<const ResolverRow> MoveRows();
/// setp, set.
std::span<const ResolverRow> CompareRows();
/// fma, rcp, sqrt, the approximate functions, testp, copysign.
std::span<const ResolverRow> FloatRows();
/// cvt, cvt.pack.
std::span<const ResolverRow> ConvertRows();
/// mma, wmma.mma, movmatrix.
std::span<const ResolverRow> MatrixRows();

}  // namespace assay::emu
