// Windows: running only some blocks of a launch, for shapes with billions of elements.
//
// A grid of millions of blocks cannot be emulated, but the blocks at its ends can, and that is where
// an index computed in 32 bits shows. What a skipped block would have done must not matter to the
// others, so a grid is cut only where the launch is known not to let blocks depend on each other
// (facts of the program; clusters and cooperation of the plan) and hands nothing but its results on:
// no buffer of it that is not an input is used by a later launch.
//
//   if (!engine::CutToEnds(binding.execution, kernel.facts.get())) ...  // this plan cannot be cut
#pragma once

#include "validator/execution/execution.h"
#include "validator/ptx/facts/facts.h"

namespace assay::engine {

/// Grids of at most this many blocks run whole.
inline constexpr std::uint64_t kWholeGrid = 1024;

/// May launch number `launch` be cut, by the rule above? Not where the program is unknown (null).
bool MayCut(const Execution& execution, const facts::Facts* program, std::size_t launch);

/// Leaves the first block and the last two of every grid beyond kWholeGrid. False, and nothing is
/// changed, where one of them may not be cut.
bool CutToEnds(Execution& execution, const facts::Facts* program);

}  // namespace assay::engine
