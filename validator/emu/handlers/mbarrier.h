// mbarrier objects: eight opaque bytes of shared memory.
//
// The word that is kept there: pending arrivals (20 bits), expected arrivals (20), transaction
// count (23, biased), phase (1). The phase completes when no arrivals and no transactions are
// pending; the next begins at once.
#pragma once

#include <cstdint>

#include "validator/emu/memory.h"

namespace assay::emu {

/// One mbarrier, found and checked.
struct MbarrierPlace {
  std::byte* word = nullptr;
  RegionId region = 0;
  std::uint64_t offset = 0;
};

/// What to do to an mbarrier, in this order: expect transactions, complete transactions, arrive.
struct MbarrierUpdate {
  std::uint32_t expect = 0;
  std::uint32_t complete = 0;
  std::uint32_t arrivals = 0;
  bool drop = false;  ///< The arrivals leave for good.
  bool must_not_complete = false;
};

/// The mbarrier at access.address[lane], resolved before. Only its place: whether it was
/// initialised is seen when it is used.
MbarrierPlace MbarrierAt(const LaneAccess& access, int lane);

/// Applies `update` for one lane. Returns the word before it, or reports a misuse, ends the run and
/// returns 0.
std::uint64_t UpdateMbarrier(CoreWarp& warp, const Decoded& op, int lane,
                             const MbarrierPlace& place, const MbarrierUpdate& update);

/// Tells the race detector of the access to the object itself.
void ReportMbarrierAccess(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                          bool initialises);

}  // namespace assay::emu
