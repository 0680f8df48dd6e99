// Who knows what: the happens-before order between the threads of a launch, as far as barriers,
// exits and handed-over clocks make it. What is released where, and who acquires it, is decided one
// level up (sync.h); this class carries knowledge only.
//
// Each block has a time; accesses carry the time at which they were made. Three levels, cheapest
// first:
//   base      every thread of the block knows every access of the block stamped base or less (a
//             complete block-wide barrier)
//   own_all   every lane of a warp knows every access of that warp stamped own_all or less (a
//             complete warp barrier)
//   clocks    everything else: partial barriers, acquires, asynchronous copies. Lanes of a warp
//             share one clock until they differ.
// A kernel that only uses __syncthreads and __syncwarp never allocates a clock.
//
// Threads that have exited do not hold a barrier up, and are not ordered by it either: their
// accesses since the last barrier that they took part in stay unordered. Such threads are *ghosts*,
// looked at only in blocks that have any.
//
// Agents: cp.async copies of a lane are accesses of the lane's twin, TwinOf(warp); a wait makes the
// lane know its twin's accesses.
//
// Not thread-safe. Memory: 64 bytes a block, some 100 bytes a warp of the blocks that run now.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "validator/emu/race/clock.h"
#include "validator/emu/race/race.h"

namespace assay::emu {

inline constexpr WarpNumber kTwinBit = 1u << 31;
inline constexpr WarpNumber kAgentBits = 3u << 30;
/// More warps than this and the numbers of agents would collide with theirs.
inline constexpr std::uint64_t kMaxWarps = 1u << 30;

inline WarpNumber TwinOf(WarpNumber warp) { return warp | kTwinBit; }
inline bool IsAgent(WarpNumber warp) { return (warp & kTwinBit) != 0; }
inline bool IsTwin(WarpNumber warp) { return (warp & kAgentBits) == kTwinBit; }

/// What a thread knew at one moment, cheap to take. `warp` and `lane` say whose it is.
struct Snapshot {
  ClockPtr clock;
  WarpNumber warp = 0;
  std::uint8_t lane = 0;
  Time base = 0;
  Time own_all = 0;
  Time now = 0;  ///< 0: nothing was ever taken.
};

class ThreadOrder {
 public:
  void Begin(const RaceDetector::Shape& shape);
  void EndBlock(BlockNumber block);

  BlockNumber BlockOf(WarpNumber warp) const { return warp / warps_per_block_; }
  std::uint32_t ClusterOf(BlockNumber block) const { return block / blocks_per_cluster_; }
  std::uint32_t warps_per_block() const { return warps_per_block_; }
  std::uint32_t blocks_per_cluster() const { return blocks_per_cluster_; }
  /// The block's time: the stamp for an access made now.
  Time Now(BlockNumber block) { return At(block).time; }
  Time NowOf(WarpNumber warp) { return Focused(warp).state->time; }
  /// Later accesses of the block get a later stamp.
  void Tick(BlockNumber block);
  void OnExit(WarpNumber warp, LaneMask lanes);
  void OnTouch(WarpNumber warp, LaneMask lanes) { Focused(warp).own->touched |= lanes; }

  /// False: some of the lanes may not have known that the barrier's last use was over.
  bool BarrierArrive(BlockNumber block, std::uint32_t barrier, WarpNumber warp, LaneMask lanes,
                     bool waits);
  /// True when all threads of the block took part that have not exited.
  bool BarrierComplete(BlockNumber block, std::uint32_t barrier);
  /// The same for a warp.
  bool WarpBarrier(WarpNumber warp, LaneMask lanes);

  /// How much the lanes of `warp` know, as a whole, of the lanes of `other` up to `stamp`. kAll:
  /// each knows each. kNone: none knows any (a thread's own accesses left aside). kSome: ask lane
  /// by lane.
  enum class Knowledge : std::uint8_t { kNone, kSome, kAll };
  Knowledge WarpKnowledge(WarpNumber warp, WarpNumber other, Time stamp);
  /// Grows whenever anybody learns anything, or a block ends: answers given before may be different
  /// now.
  std::uint64_t version() const { return version_; }
  /// True only when each lane of `warp` knows each lane of `other` up to `stamp`: the cheap answer
  /// for whole warps. False says nothing: ask lane by lane.
  bool WarpKnows(WarpNumber warp, WarpNumber other, Time stamp);
  /// While on: nobody knows more than what complete barriers of its block have told everybody.
  /// Accesses that are made up for later (waiting_reads.h) must not know what came since.
  void OnlyBases(bool on) {
    ++version_;
    only_bases_ = on;
  }
  /// Did threads of the block exit since the last barrier that they took part in?
  bool HasGhosts(BlockNumber block) { return !At(block).ghosts.empty(); }
  /// The whole block was told, by a barrier, of the copies of those lanes up to `stamp`.
  bool TwinIsKnown(WarpNumber warp, LaneMask lanes, Time stamp);
  /// Does each lane of the warp know its own twin's copies up to `stamp`? (Not those of other lanes.)
  bool EachKnowsItsTwin(WarpNumber warp, Time stamp) {
    const Twin* const twin = WarpAt(warp).twin.get();
    return twin != nullptr && stamp <= twin->known_of_all && !only_bases_;
  }
  /// Does this lane know that lane's accesses up to `stamp`? A thread does not need to ask about
  /// itself.
  bool LaneKnows(WarpNumber warp, int lane, WarpNumber other, int other_lane, Time stamp);

  Snapshot Take(WarpNumber warp, int lane);
  /// Did the snapshot's owner know that lane's accesses up to `stamp`?
  bool SnapshotKnows(const Snapshot& snapshot, WarpNumber other, int other_lane, Time stamp) const;
  /// Lanes of the warp that would take the same snapshot now, but for whose it is.
  LaneMask Alike(WarpNumber warp, int lane);
  /// The snapshot as a clock to hand over, its owners included: lanes of its warp.
  ClockPtr Export(const Snapshot& snapshot, LaneMask owners);
  /// What these lanes together know, themselves up to now included, to hand over.
  Clock ExportLanes(WarpNumber warp, LaneMask lanes);
  /// These lanes learn what `clock` knows.
  void Learn(WarpNumber warp, LaneMask lanes, const ClockPtr& clock);
  /// Each of these lanes learns of its twin's copies up to `stamp`.
  void LearnTwin(WarpNumber warp, LaneMask lanes, Time stamp);

  /// True when nobody will ever be ordered after that access in this launch, except the thread
  /// itself: its block has ended, and nothing that the block handed over covers it.
  bool NeverKnown(WarpNumber warp, Time stamp);

  std::uint64_t bytes() const;

 private:
  using LaneClocks = std::array<ClockPtr, kWarpSize>;
  struct Twin {
    std::array<Time, kWarpSize> known{};      // What each lane knows of its own twin.
    Time known_of_all = 0;                    // The least of it.
    std::array<Time, kWarpSize> published{};  // What the whole block knows of it,
    Time published_of_all = 0;                // the least of it.
  };
  struct WarpState {
    ClockPtr common;  // Of all lanes, unless `split`.
    std::unique_ptr<LaneClocks> split;
    std::unique_ptr<Twin> twin;
    Time own_all = 0;
    LaneMask touched = 0;  // Lanes with accesses since the last complete barrier.
    LaneMask gone = 0;     // Lanes that exited, or that never were,
    LaneMask ghosts = 0;   // and those of them that are ghosts.
  };
  struct BarrierState {
    std::uint32_t barrier = 0;
    std::vector<LaneMask> waiting;   // By warp of the block.
    std::unique_ptr<Clock> arrived;  // Of those that only arrive.
    std::vector<LaneMask> released;  // Those that waited when it completed last, by warp,
    Time completed = 0;              // and the stamp after that.
  };
  struct Ghost {
    WarpNumber warp = 0;
    LaneMask lanes = 0;
    Time base = 0;     // Up to where the block's base speaks for it,
    Time own_all = 0;  // and its warp's.
  };
  struct Live {
    std::vector<WarpState> warps;
    std::vector<BarrierState> barriers;
    bool has_twins = false;
  };
  struct BlockState {
    Time time = 1;
    Time base = 0;
    Time published = 0;  // The latest moment that anything handed over speaks of.
    bool ended = false;
    std::unique_ptr<Live> live;
    std::vector<Ghost> ghosts;
  };
  static constexpr std::size_t kChunk = 256;
  using Chunk = std::array<BlockState, kChunk>;

  BlockState& At(BlockNumber block);
  Live& LiveAt(BlockNumber block);
  /// Where the warp's state is. Events of one warp come in runs, so the last answer is kept.
  struct Focus {
    WarpNumber warp = ~0u;
    WarpNumber first = 0;  // Of the block.
    BlockState* state = nullptr;
    WarpState* own = nullptr;
  };
  const Focus& Focused(WarpNumber warp) {
    if (focus_.warp != warp) Refocus(warp);
    return focus_;
  }
  void Refocus(WarpNumber warp);
  WarpState& WarpAt(WarpNumber warp) { return *Focused(warp).own; }
  static const ClockPtr& ClockOf(const WarpState& state, int lane);
  static void SetClock(WarpState& state, LaneMask lanes, const ClockPtr& clock);
  bool IsGhost(const BlockState& state, WarpNumber warp, int lane, Time stamp, bool by_base) const;
  bool KnowsCompletion(const BarrierState& state, WarpNumber warp, LaneMask lanes);
  bool KnowsTwin(WarpNumber warp, WarpNumber twin_warp, Time stamp);
  bool HasGhost(const BlockState& state, WarpNumber warp) const;
  void Contribute(Clock& into, BlockNumber block, WarpNumber warp, LaneMask lanes);
  void CompleteFull(BlockNumber block);
  BarrierState& BarrierAt(BlockNumber block, std::uint32_t barrier);
  ClockPtr JoinedLately(const ClockPtr& before, const ClockPtr& clock);

  std::uint32_t warps_per_block_ = 1;
  std::uint32_t blocks_per_cluster_ = 1;
  std::uint32_t threads_per_block_ = 32;
  Focus focus_;
  std::uint64_t version_ = 0;
  bool only_bases_ = false;
  // What was joined last, and what came of it: those who wait for one barrier know the same before it, and learn the
  // same, of their cluster and of their block.
  struct Learned {
    ClockPtr before, clock, after;
  };
  std::array<Learned, 2> learned_;
  std::size_t learned_next_ = 0;
  std::vector<std::unique_ptr<Live>> spare_;  // Of blocks that have ended.
  std::vector<std::unique_ptr<Chunk>> chunks_;
  // The block that was asked for last: events come in runs.
  BlockNumber last_block_ = 0;
  BlockState* last_ = nullptr;
};

}  // namespace assay::emu
