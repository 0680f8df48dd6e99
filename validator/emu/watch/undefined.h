// Definedness of registers, bit by bit.
//
// Frame::undefined says, by register, which lanes hold a value that is not wholly defined. That is
// all there is while values are defined or undefined as a whole, and all that instructions look at
// whose sources are defined. Where only some bits of a lane's value are undefined (half of a pair
// was stored, a struct's padding was copied, a mask took bytes away), Frame::partial has the lane as
// well, and Frame::bits has its undefined bits.
//
// How bits travel (PropagateUndefined) is said by the instruction's row, ptx::Definedness:
//   moves, shifts, byte permutes, bit fields, widening, selp  run on the undefined bits themselves
//   and, or, xor, not, lop3   a bit is undefined where undefined sources can make it 0 and 1
//   add, sub, mul, mad (integers)   from the lowest undefined bit upwards
//   packed halves, and pairs put together by cvt   half by half
//   matrix products   by row of A and column of B
//   everything else   all bits of a result are undefined when any bit of a source is
// 128-bit registers are defined or undefined as a whole.
//
// Undefined lanes are of two classes (Frame::machine): not initialised, or the machine's choice
// (machine.h). A result of both is not initialised.
//
// Cost: nothing while sources are defined. Not thread-safe.
#pragma once

#include <array>

#include "validator/emu/core.h"

namespace assay::emu {

/// What the answer of the row comes to for one instruction, whose operands are decoded.
ptx::Definedness DefinednessOf(const Decoded& op);

/// The undefined bits of a lane of register `operand`; all of them when it is undefined as a whole.
std::uint64_t UndefinedBits(const Frame& frame, const DecodedOperand& operand, int lane);

/// Of `lanes`, those in `undefined` become undefined as a whole, the others defined. `origin`: the
/// pc that made them so.
void SetUndefined(Frame& frame, std::uint32_t shadow, LaneMask lanes, LaneMask undefined,
                  std::uint32_t origin);
/// The same by bits, for each of `lanes`. Bits past the register's width are ignored.
void SetUndefinedBits(Frame& frame, const DecodedOperand& operand, LaneMask lanes,
                      const LaneBitsets& bits, std::uint32_t origin);

/// Before the handler of an instruction runs that has an undefined source: what of its destinations
/// will be undefined.
void PropagateUndefined(CoreWarp& warp, const Decoded& op);
/// The same whether or not it has one.
void Propagate(CoreWarp& warp, const Decoded& op);

}  // namespace assay::emu
