// What an instruction costs the emulator, in steps, where it is far more than one a lane.
//
// Budgets are steps, so that they do not depend on the machine or on what else it does. A matrix
// product of thousands of multiplications that counted as one instruction a lane would reach the
// wall clock's guard before any budget: so it counts by its multiplications.
#pragma once

#include <cstdint>

#include "validator/ptx/module.h"

namespace assay::emu {

/// Multiplications that the emulator does in the time of a step, at least.
inline constexpr std::uint64_t kProductsOfStep = 8;

/// Steps of a warp beyond those of its lanes; 0 for all but matrix products.
std::uint64_t ExtraSteps(const ptx::Instruction& in);

}  // namespace assay::emu
