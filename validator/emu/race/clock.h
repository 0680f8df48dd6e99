// Vector clocks of a launch, sparse and hierarchical: what somebody knows of everybody else's
// accesses.
//
// Every block has one counter, its *time*; an access is stamped with its thread and the block's
// time. A clock says, for a thread, up to which stamp its accesses are known: through its block
// (`base`: all threads of the block, what a block-wide barrier gives), through its warp (`all`
// lanes, what a full warp barrier gives), or for single lanes (what a release by one thread gives).
// A million threads that only ever meet at barriers therefore cost nothing, and a thread that
// releases costs one entry.
//
// Agents (asynchronous copies) appear as warps of their own, numbered behind the real ones; they
// belong to no block's base.
//
// A Clock is a value; clocks that several threads share are immutable behind ClockPtr. Not
// thread-safe. Cost: Knows is two binary searches; Join is linear in both sizes.
//
//   Clock clock;
//   clock.RaiseBlock(3, 7);                    // everything of block 3 stamped 7 or less
//   clock.RaiseLanes(40, 1u << 5, 9);          // and lane 5 of warp 40 up to 9
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "validator/emu/semantics/warp_size.h"
#include "validator/emu/race/race.h"

namespace assay::emu {

using Time = std::uint32_t;
/// Not yet performed: no clock ever reaches it.
inline constexpr Time kNever = 0xffffffffu;

class Clock {
 public:
  void RaiseBlock(BlockNumber block, Time time);
  /// All those lanes of `warp` up to `time`.
  void RaiseLanes(WarpNumber warp, LaneMask lanes, Time time);
  void Join(const Clock& other);

  /// Up to which stamp every thread of the block is known.
  Time BlockBase(BlockNumber block) const;
  /// Up to which stamp this lane is known by itself; what its block's base gives is not looked at.
  Time LaneTime(WarpNumber warp, int lane) const;
  /// Up to which stamp all of these lanes are known by themselves.
  Time LanesTime(WarpNumber warp, LaneMask lanes) const;
  /// The latest stamp up to which any lane of the warp is known by itself.
  Time AnyLaneTime(WarpNumber warp) const;
  /// True when joining `other` into this clock would change nothing.
  bool Covers(const Clock& other) const;

  /// Forgets the entries of warps [first, last): their block's base has caught up with them.
  void DropWarps(WarpNumber first, WarpNumber last);

  bool empty() const { return blocks_.empty() && warps_.empty(); }
  std::uint64_t bytes() const;

 private:
  struct BlockEntry {
    BlockNumber block = 0;
    Time base = 0;
  };
  /// Lanes of `mask` are known up to `mask_time`, all lanes up to `all`. When one mask is not
  /// enough, `detail` indexes `details_`, which then holds every lane's time.
  struct WarpEntry {
    WarpNumber warp = 0;
    Time all = 0;
    LaneMask mask = 0;
    Time mask_time = 0;
    std::int32_t detail = -1;
  };
  using Detail = std::array<Time, kWarpSize>;

  const WarpEntry* Find(WarpNumber warp) const;
  void Raise(WarpEntry& entry, LaneMask lanes, Time time);
  Time At(const WarpEntry& entry, int lane) const;

  std::vector<BlockEntry> blocks_;  // Sorted by block.
  std::vector<WarpEntry> warps_;    // Sorted by warp.
  std::vector<Detail> details_;
};

using ClockPtr = std::shared_ptr<const Clock>;

/// The join of two shared clocks; one of the two itself where that is the join, so that sharing
/// survives.
ClockPtr Joined(const ClockPtr& a, const ClockPtr& b);

}  // namespace assay::emu
