// What an instruction costs the emulator, where it is far more than one a lane.
//
// Budgets are counts, so that they do not depend on the machine or on what else it does. Steps say when a run ends: a
// matrix product of thousands of multiplications that counted as one instruction a lane would reach the wall clock's
// guard before any limit, so it counts by its multiplications. Work says how much of a budget a run has taken: with
// monitors a load takes as long as twenty additions, whatever the number of its lanes.
#pragma once

#include <cstdint>

#include "validator/ptx/module.h"

namespace assay::emu {

/// Multiplications that the emulator does in the time of a step, at least.
inline constexpr std::uint64_t kProductsOfStep = 8;

/// Steps of a warp beyond those of its lanes; 0 for all but matrix products.
std::uint64_t ExtraSteps(const ptx::Instruction& in);

/// Plain instructions of a warp that it takes as long as with all monitors, beyond itself (docs/performance.md).
std::uint16_t ExtraWork(const ptx::Instruction& in);

}  // namespace assay::emu
