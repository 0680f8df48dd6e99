// Loops that never end, among those that take long.
//
// Model: where a thread goes next is decided by its guards, and those by what they are computed from:
// often a counter and a bound, whatever else the loop does. While all instructions on its way that
// compute something for a guard are plain arithmetic (no load but of parameters, no clock, no other
// lane), the thread's place and those few registers are an automaton of their own. If it comes back to a
// state that it was in, it goes round for ever, whatever memory holds, whoever else runs, and on every
// machine: a 32-bit index that wraps below its bound, a step that is zero. Barriers on the way do not
// matter: if they are not passed, it waits for ever.
//
// Not shown: loops whose end something in memory decides (spin_watch.h finds those that wait), that
// exchange with other lanes or call, and those that take longer than is looked at to come round.
//
// Cost: nothing but where a run has taken 2^28 steps, eight times as many, and so on, or has reached its
// limit; then a quarter more at most, and forty million, of one warp of each of two blocks. They are a part of the run:
// it may go on behind them. Deterministic.
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// Looks whether a thread that has not ended ever will; adds a livelock finding (without `missing`:
/// there is nothing that would end it) where it is shown that it will not.
bool ReportEndless(Device& device);

}  // namespace assay::emu
