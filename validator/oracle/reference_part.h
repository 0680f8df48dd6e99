// Which threads of a reference write which elements of its outputs, and running those alone.
//
// By convention a reference has one thread for each element of an output, or one for each row of it,
// or, in blocks of [lanes, n], so many lanes for each row (docs/ops.md); the grid tells which. What skipped threads would have done must not matter to the
// others (engine::MayCut).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validator/engine/bind.h"
#include "validator/oracle/truth_source.h"
#include "validator/ptx/facts/facts.h"

namespace assay::oracle {

enum class Unit : std::uint8_t { kThread, kWarp };
/// Cuts every grid down to warps, or threads (groups of lanes), that write what is wanted, at most
/// `most` for each output, from its first to its last element. False where one beyond engine::kWholeGrid cannot be cut so.
bool CutToWanted(engine::Binding& binding, const facts::Facts* program, const Wanted& wanted,
                 std::size_t most, Unit unit);

/// The warps that write what is wanted of one output.
struct OutputWarps {
  std::size_t launch = 0;
  std::string output;
  std::int64_t inner = 1;            ///< Elements of a block.
  std::vector<std::uint64_t> warps;  ///< In the order of running them.
};

/// For each output the warps that write what is wanted, the last and the first before others from near
/// and far, in an order that `seed` says; their launches then have blocks of one warp. Launches whose threads hand something on
/// stay whole. Nothing where no output can be cut so.
std::optional<std::vector<OutputWarps>> WarpsOf(engine::Binding& binding,
                                                const facts::Facts* program, const Wanted& wanted,
                                                std::uint64_t seed);

/// Leaves the warps from `first` up to `end` for each output. A launch that has none of these stays as it is.
void CutToWarps(engine::Binding& binding, const std::vector<OutputWarps>& warps, std::size_t first,
                std::size_t end);

/// Keeps of `wanted` what the first `count` warps write, unless `count_only`, and says how much that
/// is.
std::size_t KeepWritten(const std::vector<OutputWarps>& warps, std::size_t count, Wanted& wanted,
                        bool count_only);

}  // namespace assay::oracle
