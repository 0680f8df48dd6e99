// Outstanding asynchronous copies of a warp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "validator/emu/watch/copied_bytes.h"

namespace assay::emu {

/// cp.async copies of a warp that are not yet waited for. The bytes arrive when they are waited for, or at issue: both are
/// legal, and the schedule chooses.
struct AsyncGroups {
  /// What is rare of a lane's copy: bytes that are not all defined, or a place that the machine chose.
  struct Rare {
    int lane = 0;
    CopiedBytes known;
    std::uint64_t open = 0;        ///< Bits of the destination's address that the machine chose,
    std::uint32_t choice = kNoPc;  ///< and where.
  };
  /// One instruction's copies, a lane each.
  struct Copies {
    LaneMask waiting = 0;  ///< Those that have not arrived.
    std::uint32_t pc = 0;
    std::uint32_t bytes = 0;  ///< A lane.
    std::uint64_t token = 0;  ///< The race detector's.
    /// By lane the number of the group that they are of, and the least and greatest of those numbers.
    std::array<std::uint32_t, kWarpSize> group{};
    std::uint32_t first_group = 0, last_group = 0;
    std::array<MemoryRegion*, kWarpSize> region{};
    std::array<std::uint64_t, kWarpSize> offset{};
    alignas(64) std::array<std::array<std::byte, 16>, kWarpSize> data{};
    std::vector<Rare> rare;  ///< By lane.
  };
  std::vector<std::unique_ptr<Copies>> copies;  ///< In the order of issue;
  std::vector<std::unique_ptr<Copies>> spare;   ///< and such as serve the next ones.
  /// By lane, how many groups it has committed: the number of its open one.
  std::array<std::uint32_t, kWarpSize> committed{};
  struct Lane {
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

}  // namespace assay::emu
