// Windows: running only some blocks of a launch, for shapes with billions of elements.
//
// A grid of millions of blocks cannot be emulated, but the blocks at its ends can, and that is where
// an index computed in 32 bits shows. What a skipped block would have done must not matter to the
// others, so a grid is cut only where the launch is known not to let blocks depend on each other
// (facts of the program; cooperation of the plan). Blocks of a cluster run together or not at all.
//
// A cut launch may hand something on: a later one then finds undefined what the skipped blocks would
// have written. That is told, for whoever runs it has to find out which results hang on it (by
// running it twice, over different garbage). What is filled before the first launch would hide it;
// so such a buffer bars the cut.
//
//   const engine::Cut cut = engine::CutToEnds(binding.execution, kernel.facts.get());
//   if (cut == engine::Cut::kRefused) ...  // this plan cannot be cut
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "validator/execution/execution.h"
#include "validator/ptx/facts/facts.h"

namespace assay::engine {

/// Grids of at most this many blocks run whole.
inline constexpr std::uint64_t kWholeGrid = 1024;

enum class Cut : std::uint8_t {
  kRefused,      ///< Blocks may depend on each other, or a filled buffer is handed on.
  kIndependent,  ///< What the blocks left compute is what they compute in the whole grid.
  kHandedOn,     ///< Unless it is undefined, for a later launch uses what a cut one wrote.
};

/// Of cutting launch number `launch`, by the rule above: what it may write hands on, not what it only reads. An unknown
/// program (null) bars it.
Cut MayCut(const Execution& execution, const facts::Facts* program, std::size_t launch);

/// A grid of `blocks` blocks loops over so much that only one block of it can be run.
constexpr bool LastBlockOnly(std::int64_t elements, std::uint64_t blocks) {
  constexpr std::int64_t kForOneBlock = 1 << 18;
  constexpr std::int64_t kForAll = 1 << 22;
  return blocks <= kWholeGrid ? elements > kForAll
                              : elements / static_cast<std::int64_t>(blocks) > kForOneBlock;
}

/// The buffers that a launch stores to, by additions only where it stores as well. Nothing where that is not known.
std::optional<std::set<std::uint32_t>> StoredBy(const Execution& execution,
                                                const facts::Facts* program, std::size_t launch);

/// The buffers that a launch may write to: all that it takes but inputs, where nothing more is known.
std::set<std::uint32_t> MayWriteTo(const Execution& execution, const facts::Facts* program,
                                   const Launch& launch);

/// Outputs, by buffer, that several launches may write: what one wrote may be overwritten by blocks of a later one.
std::set<std::uint32_t> OutputsOfSeveral(const Execution& execution, const facts::Facts* program);

/// Leaves the first block and the last two of every grid beyond kWholeGrid, of each of its rows along x where
/// these are few; or, where
/// `last_block_only`, the last one of every grid of more than a few. Nothing is changed where one of
/// them may not be cut.
Cut CutToEnds(Execution& execution, const facts::Facts* program, bool last_block_only = false);

/// Leaves the same blocks whatever the program may do, for a run that is to show that they meet no others
/// (Counters::may_meet). Nothing is changed where the launch itself says that they do: it is cooperative, or has clusters.
bool TakeEnds(Execution& execution, bool last_block_only = false);

/// Neither a cooperative launch nor one of clusters: only by what the program does may blocks meet.
bool IsAlone(const Launch& launch);

/// May a launch find in workspace what an earlier one left there, which blocks between them would have overwritten that do
/// not run? So where it is not known which buffers launches store to. Of launches before number `readers`, if that is given.
bool MayFindOld(const Execution& execution, const facts::Facts* program,
                std::optional<std::size_t> readers = std::nullopt);

/// Leaves the last two blocks, or the last one, of the first grid of more than a few whose blocks meet in
/// floats that they add (facts::OnlyAdds), and of later grids beyond kWholeGrid, which must be such as may
/// be cut. What the blocks add is what they add in the whole grid; nothing else of what they write is
/// used later. Returns the number of that launch; nothing, and nothing is changed, where there is none such.
std::optional<std::size_t> CutToSums(Execution& execution, const facts::Facts* program,
                                     bool last_block_only = false);

/// Leaves ends as CutToEnds does, of launches as well whose blocks meet in floats that they add (facts::OnlyAdds), and takes
/// those away that use such sums. Returns the buffers that do not hold what they would in the whole grid then: the sums, and
/// what those launches would have stored. What else is written is. Nothing, and nothing is changed, where that is not known,
/// or no launch adds.
std::optional<std::set<std::uint32_t>> CutBesideSums(Execution& execution,
                                                     const facts::Facts* program,
                                                     bool last_block_only = false);

/// After a whole run: the launches that have to run again because these buffers, inputs, hold something else now, in their
/// order; what the others left stays as it is. All of them where one of those stores to what one of the others uses, or that
/// is not known.
std::vector<std::size_t> LaunchesThatHangOn(const Execution& execution, const facts::Facts* program,
                                            std::set<std::uint32_t> buffers);

}  // namespace assay::engine
