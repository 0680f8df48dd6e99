// Waiting for the lanes that a warp-wide instruction names in its mask.
#pragma once

#include <array>

#include "validator/emu/core.h"

namespace assay::emu {

/// Lanes that execute a warp-wide instruction together: same mask, all present.
struct SyncGroups {
  std::array<LaneMask, kWarpSize> lanes{};
  int count = 0;
};

/// Sorts the executing lanes by the mask that each names. Lanes whose group is not complete are put
/// aside as a waiting split; the groups returned go on, and `warp.exec` holds their lanes. When
/// lanes were put aside, warp.outcome is kReschedule and warp.pc stands where the rest continues.
SyncGroups JoinWarp(CoreWarp& warp, const Decoded& op, const DecodedOperand& mask);

/// For instructions that the whole warp executes (.sync.aligned): true when all living lanes are
/// here. Otherwise those that are wait as JoinWarp's do.
bool JoinWholeWarp(CoreWarp& warp);

}  // namespace assay::emu
