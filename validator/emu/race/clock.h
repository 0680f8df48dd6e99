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
// thread-safe.
//
// Cost. Threads that hand a lock around copy what all others know again and again, with a word of
// their own added. Two things keep that from growing with the number of threads: a clock is a layer
// that copies share and a few entries above it; and a clock knows a *line* of clocks each of which
// covers those before, its own place in it and the place that it was made from, so that mostly
// nothing has to be compared. Otherwise Covers and Join are linear in both sizes; what is asked of
// a thread or block is a few binary searches.
//
//   Clock clock;
//   clock.RaiseBlock(3, 7);                    // everything of block 3 stamped 7 or less
//   clock.RaiseLanes(40, 1u << 5, 9);          // and lane 5 of warp 40 up to 9
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "validator/emu/race/race.h"
#include "validator/emu/semantics/warp_size.h"

namespace assay::emu {

using Time = std::uint32_t;
/// Not yet performed: no clock ever reaches it.
inline constexpr Time kNever = 0xffffffffu;

class Clock {
 public:
  /// A place in a line of clocks. Line 0: none.
  struct Place {
    std::uint64_t line = 0;
    std::uint64_t step = 0;
  };

  Clock() = default;
  /// The copy shares the layer below, and is made from the original's place.
  Clock(const Clock& other);
  Clock& operator=(const Clock& other);
  Clock(Clock&&) = default;
  Clock& operator=(Clock&&) = default;
  ~Clock() = default;

  void RaiseBlock(BlockNumber block, Time time) { top_.RaiseBlock(block, time); }
  /// All those lanes of `warp` up to `time`.
  void RaiseLanes(WarpNumber warp, LaneMask lanes, Time time) {
    top_.RaiseLanes(warp, lanes, time);
  }
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
  /// The same, if their places tell; false says nothing.
  bool CoversByPlace(const Clock& other) const {
    const Place& at = other.place_;
    return at.line != 0 && ((place_.line == at.line && place_.step >= at.step) ||
                            (made_from_.line == at.line && made_from_.step >= at.step));
  }

  const Place& place() const { return place_; }
  const Place& made_from() const { return made_from_; }
  /// Gives a clock that has no place one. It covers all that stand before it in that line, and stays
  /// as it is from here on.
  void SetPlace(const Place& place) const { place_ = place; }

  /// Forgets the entries of warps [first, last): their block's base has caught up with them.
  void DropWarps(WarpNumber first, WarpNumber last);

  bool empty() const { return top_.empty() && (below_ == nullptr || below_->empty()); }
  std::uint64_t bytes() const { return sizeof(Clock) + top_.bytes(); }

 private:
  struct BlockEntry {
    BlockNumber block = 0;
    Time base = 0;
  };
  /// Lanes of `mask` are known up to `mask_time`, all lanes up to `all`. When one mask is not
  /// enough, `detail` indexes `details`, which then holds every lane's time.
  struct WarpEntry {
    WarpNumber warp = 0;
    Time all = 0;
    LaneMask mask = 0;
    Time mask_time = 0;
    std::int32_t detail = -1;
  };
  using Detail = std::array<Time, kWarpSize>;

  struct Layer {
    std::vector<BlockEntry> blocks;  // Sorted by block.
    std::vector<WarpEntry> warps;    // Sorted by warp.
    std::vector<Detail> details;

    void RaiseBlock(BlockNumber block, Time time);
    void RaiseLanes(WarpNumber warp, LaneMask lanes, Time time);
    void Raise(WarpEntry& entry, LaneMask lanes, Time time);
    void Join(const Layer& other);
    Time BlockBase(BlockNumber block) const;
    const WarpEntry* Find(WarpNumber warp) const;
    Time At(const WarpEntry& entry, int lane) const;
    /// The least of those lanes' times.
    Time Least(const WarpEntry& entry, LaneMask lanes) const;
    void DropWarps(WarpNumber first, WarpNumber last);
    bool empty() const { return blocks.empty() && warps.empty(); }
    std::size_t size() const { return blocks.size() + warps.size(); }
    std::uint64_t bytes() const;
  };
  using LayerPtr = std::shared_ptr<const Layer>;
  /// Entries above the shared layer that are still copied one by one.
  static constexpr std::size_t kAbove = 24;

  void Settle() const;
  bool CoversLayer(const Layer& other) const;

  // What a clock says is both together. A clock that is copied often moves what stands above into
  // a layer that its copies share, which changes nothing of what it says.
  mutable LayerPtr below_;
  mutable Layer top_;
  mutable Place place_;
  Place made_from_;
};

using ClockPtr = std::shared_ptr<const Clock>;

/// The join of two shared clocks; one of the two itself where that is the join, so that sharing
/// survives.
ClockPtr Joined(const ClockPtr& a, const ClockPtr& b);

}  // namespace assay::emu
