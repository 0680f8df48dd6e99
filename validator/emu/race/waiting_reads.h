// Reads of a block's own memory that wait for the block's next barrier.
//
// Most of what a tiled kernel does is to read, time and again, what was written before the last
// barrier: such a read races with nothing that came before it. It would matter to a write that comes
// after it, and no longer does once all threads of the block have met. So it is put aside, and
// forgotten when the block's barrier completes. If an access comes first that it might race with, the
// reads that wait are made up for, in the order in which they came.
//
// Memory is seen in granules of 256 bytes. A read waits where nobody has written since the last
// barrier, where no copy that somebody may not know of is under way, and where no strong access ever
// was. Any other access of a granule in which reads wait has all of them made up for first.
//
// Made up for later, a read must not pass for one that knew what its warp has learned since:
// ThreadOrder::OnlyBases.
//
// The reads of a tile (TileRead) wait together, and are made up for one by one.
//
// Cost: a copy of the read's addresses. Memory: 176 bytes for each read that waits, kMost of them at
// most. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "validator/emu/race/order.h"

namespace assay::emu {

class WaitingReads {
 public:
  /// A read as it was, or those of a tile; the launch's order has moved on since.
  struct Read {
    WarpNumber warp = 0;
    LaneMask lanes = 0;
    Time time = 0;
    std::uint32_t pc = 0;
    std::uint16_t bytes = 0;
    std::uint16_t element_bytes = 0;
    bool is_row = false;
    std::span<const std::uint16_t> places;  ///< TileRead::places; empty for one that is no tile's.
    std::uint32_t stride = 0;               ///< Of the tile, whose first line is at offsets[0].
    std::array<std::uint32_t, kWarpSize> offsets;

    std::size_t accesses() const { return places.empty() ? 1 : places.size() / kWarpSize; }
    /// Of one of them.
    void OffsetsOf(std::size_t access, std::uint64_t* to) const;
  };
  struct Own;  ///< What is known of one block's memory.

  explicit WaitingReads(ThreadOrder& order);
  ~WaitingReads();

  void Begin();
  void Add(BlockNumber block, RegionId region);
  void EndBlock(BlockNumber block, RegionId region);

  /// Null: this region is not one block's own.
  Own* Find(RegionId region) {
    if (owns_.empty()) return nullptr;
    const Found& found = found_[region % found_.size()];
    return found.region == region ? found.own : Look(region);
  }
  /// True: the read waits, and there is nothing more to be done about it now.
  bool Wait(Own& own, const WarpAccess& read);
  bool Wait(Own& own, const TileRead& tile);
  /// An access that is made now. True: the reads that wait are to be made up for first (Take).
  bool OnAccess(Own& own, const WarpAccess& access, bool async, WarpNumber stamped);
  /// A barrier of the whole block is complete. True: some reads are to be made up for.
  bool OnBlockMeets(BlockNumber block, Own*& own);
  static RegionId RegionOf(const Own& own);
  /// Hands over the reads that wait.
  std::vector<Read> Take(Own& own);
  /// Their memory, for the next ones.
  void GiveBack(std::vector<Read>&& reads);

  std::uint64_t bytes() const { return waiting_ * sizeof(Read); }

 private:
  /// One more that waits.
  Read& Append(Own& own, WarpNumber warp, LaneMask lanes);

  static constexpr std::size_t kMost = std::size_t{1} << 16;

  struct Found {
    RegionId region = ~0u;
    Own* own = nullptr;
  };
  Own* Look(RegionId region);

  ThreadOrder& order_;
  std::unordered_map<RegionId, std::unique_ptr<Own>> owns_;
  std::unordered_map<BlockNumber, RegionId> regions_;
  std::array<Found, 16> found_{};  // Looked up last, by number.
  std::size_t waiting_ = 0;
  std::vector<std::vector<Read>> spare_;
};

}  // namespace assay::emu
