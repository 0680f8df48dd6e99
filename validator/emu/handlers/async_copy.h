// Outstanding asynchronous copies of a warp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

/// cp.async copies of each lane that are not yet waited for, by group. The bytes arrive when they
/// are waited for, or at issue: both are legal, and the schedule chooses.
struct AsyncGroups {
  struct Copy {
    std::byte* destination = nullptr;
    std::array<std::byte, 16> data{};
    std::uint32_t bytes = 0;
    std::uint64_t token = 0;  ///< The race detector's.
    MemoryRegion* region = nullptr;
    std::uint64_t offset = 0;
    std::uint32_t undefined = 0;  ///< Bit i: byte i of `data` is undefined.
  };
  struct Group {
    std::vector<Copy> copies;
  };
  struct Lane {
    std::vector<Group> committed;
    Group open;
    std::uint64_t delivered = 0;  ///< Newest token of copies that arrived for an mbarrier, not
                                  ///< waited for by the lane itself.
    std::vector<std::vector<std::uint64_t>> bulk_committed;  ///< Tokens of bulk groups.
    std::vector<std::uint64_t> bulk_open;
  };
  std::array<Lane, kWarpSize> lanes;
  /// wgmma: the detector's tokens of what the warp's products read, by group.
  std::vector<std::vector<std::uint64_t>> products_committed;
  std::vector<std::uint64_t> products_open;
};

AsyncGroups& GroupsOf(CoreWarp& warp);

/// Writes all copies of `lane` without telling the detector that the lane waited. Returns the
/// newest token.
std::uint64_t DeliverCopies(CoreWarp& warp, int lane);

/// Lets the copies of `lane` in all but the newest `keep` committed groups arrive; `keep` < 0: all
/// copies, committed or not.
void CompleteCopies(CoreWarp& warp, int lane, int keep);

}  // namespace assay::emu
