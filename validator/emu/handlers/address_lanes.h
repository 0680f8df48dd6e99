// The addresses of a warp's lanes against one region: the inner loop of every memory instruction,
// compiled once a level (semantics/level.h); rows.cc picks the level.
#pragma once

#include <cstdint>

#include "validator/emu/exec.h"

namespace assay::emu {

/// A region as a warp-wide access sees it.
struct AddressRange {
  std::uint64_t base = 0;   ///< Address of its first byte.
  std::uint64_t last = 0;   ///< The greatest offset at which an access may begin.
  std::uintptr_t data = 0;  ///< Where its first byte is in this process.
};
struct AddressCheck {
  bool inside = false;         ///< Each lane's access lies in the region.
  bool dense = false;          ///< All 32 lanes, `bytes` apart.
  bool same = false;           ///< All lanes at one place.
  std::uint64_t low = 0;       ///< Misaligned by what its low bits say, where any lane is.
  std::uint64_t least = 0;     ///< The least offset in the region,
  std::uint64_t greatest = 0;  ///< and the greatest, where all are inside.
};

/// Looks at the lanes of `lanes`, at least one, and sets the pointers of all 32. Sizes are far below 2^63.
AddressCheck CheckAddressesBest(const std::uint64_t* address, LaneMask lanes, std::uint64_t bytes,
                                const AddressRange& range, std::uintptr_t* pointer);

/// Where the pointers of `lanes` begin: the least and the greatest. At least one lane.
struct PointerSpan {
  std::uintptr_t least = 0;
  std::uintptr_t greatest = 0;
};
PointerSpan SpanOfPointersBest(const std::uintptr_t* pointer, LaneMask lanes);

}  // namespace assay::emu
