// Recognises addresses that come from a 32-bit index computation that wrapped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "validator/emu/core.h"

namespace assay::emu {

struct WrappedIndex {
  std::string expression;    ///< "70000 * 70000 = 4900000000"
  std::int64_t wrapped = 0;  ///< What the register holds instead.
  std::uint32_t pc = 0;      ///< Where it wrapped.
  std::string inputs;        ///< "rows = 70000, blockIdx.x = 3": what it was computed from.
};

/// Follows the address register of `op` back through its definitions, computing without wrapping,
/// and returns the first 32-bit operation of which the exact result does not fit. Called after a
/// fault only; looks at a few hundred instructions.
std::optional<WrappedIndex> FindWrappedIndex(CoreWarp& warp, const Decoded& op, int lane);

}  // namespace assay::emu
