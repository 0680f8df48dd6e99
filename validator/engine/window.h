// Windows: running only some blocks of a launch, for shapes with billions of elements.
//
// A grid of millions of blocks cannot be emulated, but the blocks at its ends can, and that is where
// an index computed in 32 bits shows. What a skipped block would have done must not matter to the
// others, so a grid is cut only where the launch neither communicates between blocks (atomics,
// volatile or acquiring loads on global memory, clusters, cooperation) nor hands anything but its
// results on: no buffer of it that is not an input is used by a later launch.
//
//   if (!engine::CutToEnds(binding.execution)) ...  // this plan cannot be cut
//
// Cost: linear in the PTX. Any text is acceptable.
#pragma once

#include <string_view>

#include "validator/execution/execution.h"

namespace assay::engine {

/// Grids of at most this many blocks run whole.
inline constexpr std::uint64_t kWholeGrid = 1024;

/// May blocks of `entry` depend on each other, as far as its text tells? True when in doubt.
bool BlocksCommunicate(std::string_view ptx, std::string_view entry);

/// May launch number `launch` be cut, by the rule above?
bool MayCut(const Execution& execution, std::size_t launch);

/// Leaves the first block and the last two of every grid beyond kWholeGrid. False, and nothing is
/// changed, where one of them may not be cut.
bool CutToEnds(Execution& execution);

}  // namespace assay::engine
