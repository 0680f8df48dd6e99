// Lanes that a warp-wide instruction names in its mask and that pass it by.
//
// A warp-wide instruction waits for the lanes of its mask that have not exited. Lanes that take
// another way and then do what lies behind the instruction, and exit in the end, were not exited
// when the others came: the mask named lanes that never come, and the result is undefined (CUDA
// programming guide, warp-wide functions). Lanes that leave for good without such work are the
// common early return, and in order.
//
// The same with a barrier of the whole block: threads that go on to code behind it, and exit, were
// not exited when the others came.
//
// Cost: a look at each turn of a warp in which lanes wait; nothing otherwise.
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// The running split did the instructions [first, last): notes which of its lanes others wait for.
void NotePassing(CoreWarp& warp, std::uint32_t first, std::uint32_t last);
/// `lanes` are about to exit: reports those that passed by instructions that wait for them.
void ReportPassing(CoreWarp& warp, LaneMask lanes);
/// The same for those that have passed by a barrier at which others wait. The barrier is still open.
void ReportPassedBarrier(CoreWarp& warp, LaneMask lanes);

}  // namespace assay::emu
