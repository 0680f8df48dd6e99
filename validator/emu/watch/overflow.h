// Recognises addresses that come from a 32-bit index computation that wrapped.
//
// Registers are followed back through the text, for nothing is recorded while a kernel runs: through
// copies, sums, products, signed quotients, conversions, shuffles, stores whose register still holds
// what was loaded, and calls. What is found explains the bits that are there, to the last one; what
// has been overwritten since is not told. Unsigned sums and quotients may have been meant to wrap.
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
  bool cut = false;          ///< Computed in 64 bits, and cut down to 32 there.
  std::string inputs;        ///< "rows = 70000, blockIdx.x = 3": what it was computed from.
};

/// Follows the address register of `op` back through its definitions, computing without wrapping,
/// and returns the first 32-bit operation of which the exact result does not fit. Called after a
/// fault only; looks at a few thousand instructions.
std::optional<WrappedIndex> FindWrappedIndex(CoreWarp& warp, const Decoded& op, int lane);

}  // namespace assay::emu
