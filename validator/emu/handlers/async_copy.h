// Outstanding asynchronous copies of a warp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "validator/emu/watch/copied_bytes.h"

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
    std::uint32_t pc = 0;
    CopiedBytes known;             ///< Of `data`.
    std::uint64_t open = 0;        ///< Bits of the destination's address that the machine chose,
    std::uint32_t choice = kNoPc;  ///< and where.
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
  /// wgmma whose accumulators may not be touched yet, oldest first.
  struct Product {
    std::uint32_t pc = 0;
    Frame* frame = nullptr;
    bool committed = false;
    std::uint64_t group = 0;  ///< Number of its group, when committed.
    /// What its accumulators will be: shadow index and undefined bits, of those that have any.
    std::vector<std::pair<std::uint32_t, LaneBitsets>> undefined;
    /// All of those bits are the machine's choice: the pc of one, or else kNoPc.
    std::uint32_t choice = kNoPc;
  };
  std::vector<Product> in_flight;
  std::uint64_t product_groups = 0;  ///< Committed so far.
  bool products_fenced = false;      ///< By wgmma.fence, once.
};

/// Is that the pc of a wgmma whose accumulators may not be touched yet?
bool IsInFlight(const CoreWarp& warp, std::uint32_t pc);

AsyncGroups& GroupsOf(CoreWarp& warp);

/// Writes all copies of `lane` without telling the detector that the lane waited. Returns the
/// newest token.
std::uint64_t DeliverCopies(CoreWarp& warp, int lane);

/// Lets the copies of `lane` in all but the newest `keep` committed groups arrive; `keep` < 0: all
/// copies, committed or not.
void CompleteCopies(CoreWarp& warp, int lane, int keep);

}  // namespace assay::emu
