// How long a block's shared memory is there for the other blocks of its cluster: as long as one of its threads is. What
// another block does to it must happen before one of these exits; mostly a barrier of the cluster behind the last access
// sees to that. (CUDA C++ Programming Guide, "Distributed Shared Memory".)
//
// Of each thread the last access to each other block is kept, for whoever knows of it knows of those before. What the
// threads of a block know when they exit is joined, and asked when the last block of the cluster has ended: the answer
// does not hang on who was faster. Copies that run by themselves (cp.async.bulk, st.async) are not looked at: whoever
// waits for them is there.
//
// Not thread-safe. Memory: some hundred bytes for each warp and block that it reaches, while the cluster runs.
#pragma once

#include <map>
#include <vector>

#include "validator/emu/race/clock.h"
#include "validator/emu/race/order.h"
#include "validator/emu/race/race.h"

namespace assay::emu {

class PeerLives {
 public:
  explicit PeerLives(ThreadOrder& order) : order_(order) {}

  /// A launch begins.
  void Begin() {
    owners_.clear();
    lives_.clear();
  }
  /// The shared memory of a block of a cluster of several.
  void Add(BlockNumber owner, RegionId region);
  /// Before the access gets its stamp.
  void OnAccess(const WarpAccess& access);
  /// Before the order hears of it. `pc`: where.
  void OnExit(WarpNumber warp, LaneMask lanes, std::uint32_t pc);
  /// A block has ended. Of the last one of its cluster: accesses that came to a block which may have been gone.
  std::vector<Race> EndBlock(BlockNumber block);

 private:
  /// Lanes of a warp whose last access to a block is that one.
  struct Reach {
    LaneMask lanes = 0;
    RaceSide side;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct Life {
    RegionId region = 0;
    std::map<WarpNumber, std::vector<Reach>> reached;
    Clock known;    ///< By those of its threads that have exited, together.
    RaceSide exit;  ///< The last of them.
    bool ended = false;
  };

  bool IsKnown(const ClockPtr& known, WarpNumber warp, int lane, Time stamp) const;

  ThreadOrder& order_;
  // Of clusters that run.
  std::map<RegionId, BlockNumber> owners_;
  std::map<BlockNumber, Life> lives_;
};

}  // namespace assay::emu
