// Values of special registers (PTX ISA section 10).
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// Is it the same for the warps of one number in all blocks of a launch, at any time?
bool IsOfTheWarp(ptx::SpecialRegister special);

/// The value that each lane of `warp` reads.
void SpecialValues(const CoreWarp& warp, ptx::SpecialRegister special, int component,
                   std::uint64_t* lanes);

}  // namespace assay::emu
