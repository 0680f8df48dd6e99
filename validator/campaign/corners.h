// The corners of a numbering: of a row of numbers that stands for several axes (tiles of a row in it, rows of a head), the
// numbers at either end of each axis.
//
// What each number comes to is taken to move evenly along an axis, forwards or backwards, and where it no longer does the next
// axis begins. Whoever comes to the first or the last place of all is a corner then. That is a guess, from a few numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"

namespace assay::campaign {

/// The first place that a number comes to. Nothing: none, or it is not known.
using PlaceOf = std::function<Result<std::optional<std::int64_t>>(std::uint64_t number)>;

/// Of the numbers below `count`, ascending; no more than eight. About 2 log2(count) places are asked for.
Result<std::vector<std::uint64_t>> CornersOf(std::uint64_t count, const PlaceOf& place_of);

}  // namespace assay::campaign
