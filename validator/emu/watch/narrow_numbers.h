// How large numbers became that an instruction takes for whole, or keeps less of than there is: an index of 32 bits that
// is widened to reach memory, a row's number that is put into 16.
//
// What is a number of elements at each shape that runs is one at those that are too large to run, and then it has no room
// (campaign/outgrown.h). Where monitors watch and coverage is asked for, such instructions note the largest number that
// any lane had, in Device::numbers.
//
// Which these are is found when a module is loaded, by a look at the registers of a function that looks at no order. Not
// among them is what loses nothing: a quotient or remainder; the lower half of a product whose upper half is computed as
// well; what is widened only to be cut again, as where a compiler divides in 32 bits what fits in them.
#pragma once

#include "validator/emu/program.h"

namespace assay::emu {

/// Numbers of one instruction: the factors of a wide product are two.
inline constexpr std::size_t kNumbersOfOne = 2;

/// Has such instructions note their numbers. Before MarkBoundaries, which keeps what it finds.
void NoteNarrowNumbers(Program::Impl& impl);

/// Of how many digits an instruction that notes them keeps them whole.
int DigitsKept(const ptx::Instruction& instruction);

}  // namespace assay::emu
