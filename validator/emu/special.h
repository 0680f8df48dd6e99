// Values of special registers (PTX ISA section 10).
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// The value that each lane of `warp` reads.
void SpecialValues(const CoreWarp& warp, ptx::SpecialRegister special, int component,
                   std::uint64_t* lanes);

}  // namespace assay::emu
