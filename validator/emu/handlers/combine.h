// The operations of atom and red on one element, for the instructions that reduce asynchronously.
#pragma once

#include <cstddef>

#include "validator/ptx/module.h"

namespace assay::emu {

/// *at = *at OP *value. `flush`: f32 sums flush subnormals, as they do in global memory.
using Combine = void (*)(std::byte* at, const std::byte* value, bool flush);

/// The operation that the instruction's modifiers name, on `type`; null when there is none.
Combine CombinerOf(const ptx::Instruction& in, ptx::Type type);

}  // namespace assay::emu
