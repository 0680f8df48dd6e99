// Release and acquire: which knowledge is published at which memory location, and who picks it up
// (PTX ISA, memory consistency model: release and acquire patterns, observation order).
//
// A strong write leaves *messages* at its location: the clock of a release operation, and of each
// fence that came before the write in its thread (fence, then strong write). Read-modify-writes add
// to the messages that they find, because they continue the release sequence; any other write
// replaces them, a weak one by nothing. A reader takes over what it finds at once when it is an
// acquire operation, or at its next acquiring fence when it is only strong. A message counts only
// if the scope of the releasing operation or fence includes the reader and that of the acquiring
// one includes the releaser.
//
// Sequentially consistent fences (fence.sc, membar, __threadfence) do more. "Every thread fences; a
// barrier; one thread takes the ticket" has no release pattern, because the fence and the strong
// write are different threads'; nor has "one thread reads the ticket; a barrier; every thread fences"
// an acquire pattern. But any two such fences are ordered, and the opposite order would put the
// ticket that was read behind the one that read it (PTX ISA, Fence-SC and coherence). So a strong
// write leaves messages, too, of those fences that happen before it through barriers of its
// block or warp, and a fence.sc takes those of the strong reads that happen before it in the same
// way. Only sequentially consistent fences take such messages.
//
// A relaxed access without fences publishes and learns nothing; `red` never reads.
// mbarriers and cluster barriers collect messages by phase and hand over the last complete phase.
//
// Cost: nothing for kernels without fences and without acquire or release operations. What was
// published at a location since the last plain write is kept joined: who acquires at device scope
// takes one clock, however many released there, and mostly by pointer (clock.h, lines). Of messages
// and acquirers of narrower scope, those of the block, or cluster, that took last are kept joined;
// others look at the messages one by one. Not thread-safe.
//
// Kept short of the letter: a relaxed write continues its own thread's earlier release operation on
// the same location only for the last kReleasedKept locations that the thread released.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "validator/emu/race/order.h"

namespace assay::emu {

/// How wide a scope reaches. System scope is as wide as the GPU here: one device runs.
enum class Reach : std::uint8_t { kBlock, kCluster, kDevice };
inline constexpr std::size_t kReaches = 3;
inline Reach ReachOf(Scope scope) {
  if (scope == Scope::kCta) return Reach::kBlock;
  return scope == Scope::kCluster ? Reach::kCluster : Reach::kDevice;
}

struct Location {
  RegionId region = 0;
  std::uint64_t offset = 0;
  bool operator==(const Location&) const = default;
};

/// A clock that was released at a location.
struct Message {
  ClockPtr clock;
  BlockNumber block = 0;  ///< Of the releaser.
  Reach reach = Reach::kBlock;
  bool sequential = false;  ///< Only for a fence.sc.
};
/// Append-only, so that states of the location share it.
using MessageLog = std::vector<Message>;

/// What is published at a location. Immutable: a later state is another object.
struct Messages {
  std::uint64_t chain = 0;  ///< The same from one plain write of the location to the next.
  std::uint64_t version = 0;
  /// All that reaches the whole device, joined; and all that is only for fence.sc.
  ClockPtr wide;
  ClockPtr sequential;
  /// Message by message, the sequential ones aside: the first `count` of the log.
  std::shared_ptr<MessageLog> log;
  std::size_t count = 0;
  bool narrow = false;      ///< Some of them reach less than the device.
  std::size_t compact = 0;  ///< Length of the log after it was last compacted.

  /// What a block, or a cluster, takes of the log's first `count`, joined. Later states go on from
  /// there, so that a lock costs each of a block's threads the same.
  struct Part {
    std::uint32_t whose = ~0u;
    std::size_t count = 0;
    ClockPtr joined;
  };
  /// Of those who took last. States share it until one of them goes on.
  struct Parts {
    Part of_block;
    Part of_cluster;
  };
  mutable std::shared_ptr<Parts> parts;
};

/// Of messages that every waiter may take: bulk copies speak to whoever waits at their mbarrier.
inline constexpr BlockNumber kAnyBlock = 0xffffffffu;

class SyncObjects {
 public:
  explicit SyncObjects(ThreadOrder& order) : order_(order) {}

  void Begin();
  void EndRegion(RegionId region);
  void EndBlock(BlockNumber block);

  /// `sequential`: fence.sc.
  void OnFence(WarpNumber warp, LaneMask lanes, bool acquires, bool releases, bool sequential,
               Reach reach);
  /// Fences that are sequentially consistent know what those before them in this run knew
  /// (RaceDetector::FollowFenceOrder).
  void FollowFenceOrder(std::uint64_t seed);
  /// Whoever keeps what was published at a location hears when that has changed afterwards.
  void SetWriteWatch(WriteWatch* watch) { watch_ = watch; }
  /// The block's fences that have no place in that order yet get the next one. By chance a fence has
  /// its place when it runs, or it is left open while nobody in its block does anything that could
  /// tell: the first place shows what a missing acquire does, the last one what a missing release.
  void SettleFences(BlockNumber block) {
    if (!open_fences_.empty()) SettleOpen(block);
  }
  /// Before a strong load, and before any strong access: the fences that it decides about get their
  /// places. In every other run fences stay open across the stores behind them (late_fences.cc).
  void SettleBeforeRead(WarpNumber warp, int lane);
  void SettleBefore(const WarpAccess& access, bool acquires);
  /// Has the warp's block fences that stay open?
  bool HasLateFences(WarpNumber warp) const {
    return late_fences_ && late_.contains(order_.BlockOf(warp));
  }
  /// A warp arrives at a barrier of its block or of itself: what open fences of the block will learn
  /// is for all who meet there. What was read and not acquired stays so: a barrier is no acquire
  /// pattern.
  void OnArrival(WarpNumber warp) {
    if (!open_fences_.empty()) MeetOpen(order_.BlockOf(warp));
  }
  Published PublishedAt(Location at) const;
  RaceDetector::Gap GapBetween(WarpNumber writer, int writer_lane, Time time, WarpNumber reader,
                               int reader_lane);

  /// A barrier of the whole block, or of all lanes of a warp, is complete.
  void OnBlockMeets(BlockNumber block);
  void OnWarpMeets(WarpNumber warp);
  /// Anything published in this region? Anything remembered of this warp? If neither, a relaxed
  /// access has no effect here.
  bool HasChains(RegionId region) const { return !regions_.empty() && regions_.contains(region); }
  bool HasLanes(WarpNumber warp) const {
    return sequential_fences_ || (!lanes_.empty() && lanes_.contains(warp));
  }
  /// `from`: what had been published where the read took its value from; null: all there is.
  void OnStrongRead(WarpNumber warp, int lane, Location at, std::uint32_t pc, bool acquires,
                    Reach reach, const Published* from = nullptr);
  void OnStrongWrite(WarpNumber warp, int lane, Location at, std::uint32_t bytes,
                     bool read_modify_write, bool releases, Reach reach);
  /// A store that a newer one has overtaken: what is known at the location stays; what it publishes
  /// itself is returned.
  Published OnOvertakenWrite(WarpNumber warp, int lane, Location at, bool releases, Reach reach);
  void OnWeakWrite(Location at, std::uint32_t bytes) { Break(at, bytes); }

  void MbarrierInit(Location at);
  void MbarrierArrive(Location at, WarpNumber warp, LaneMask lanes, bool releases, Reach reach);
  void MbarrierPublish(Location at, BlockNumber block, const Clock& clock);
  void MbarrierPhaseComplete(Location at);
  void MbarrierWait(Location at, WarpNumber warp, LaneMask lanes, bool acquires, Reach reach);
  /// The agent that stands for bulk copies published through this mbarrier, and the stamp of its
  /// current phase.
  std::pair<WarpNumber, Time> MbarrierAgent(Location at);
  /// A fresh agent.
  WarpNumber NewAgent() { return kAgentBits | next_agent_++; }

  void ClusterArrive(WarpNumber warp, LaneMask lanes, bool releases);
  void ClusterComplete(std::uint32_t cluster);
  void ClusterWait(WarpNumber warp, LaneMask lanes);

  std::uint64_t bytes() const;

 private:
  static constexpr std::size_t kReleasedKept = 16;
  static constexpr std::size_t kPendingKept = 16;

  struct Pending {
    Published messages;
    Location at;
    std::uint32_t pc = RaceDetector::Gap::kNowhere;  ///< Of the read, and its stamp.
    Time time = 0;
    bool narrow = false;  ///< It was acquired, at a scope that may not reach the releaser.
  };
  struct Released {
    Location at;
    Message message;
  };
  struct LaneState {
    std::array<Snapshot, kReaches> fence;  // The last releasing fence that reaches at least so far.
    std::array<ClockPtr, kReaches> exported;  // The same as clocks, once they were needed.
    std::vector<Pending> pending;
    std::array<ClockPtr, kReaches>
        spilled;  // Pending messages joined, by the reach that an acquire needs.
    std::vector<Released> released;
    Published acquired;  // What was acquired last, so that spinning does it once.
    Reach acquired_reach = Reach::kBlock;
    std::uint64_t told = 0;  // The chain that has all that this lane has to say, by itself.
  };
  using WarpLanes = std::array<LaneState, kWarpSize>;
  /// Lanes that fenced together, knowing the same.
  struct Fenced {
    Snapshot snapshot;
    LaneMask lanes = 0;
  };
  /// What sequentially consistent fences and strong reads of a block (or warp) have left since it
  /// last met, and what everybody in it has in common since then. Device-wide fences only.
  struct Meeting {
    std::vector<Fenced> fresh_fences;
    ClockPtr more_fences;  // Fresh ones, too, joined: there were many.
    ClockPtr fences;
    std::uint64_t told = 0;  // The chain that `fences` was published in last.
    std::vector<Pending> fresh_reads;
    std::vector<Pending> reads;
  };
  static constexpr std::size_t kReadsKept = 16;
  /// Messages of a phase, one for each block and reach.
  struct Phase {
    struct Part {
      BlockNumber block = 0;
      Reach reach = Reach::kBlock;
      std::shared_ptr<Clock> clock;
    };
    std::vector<Part> parts;
  };
  struct Mbarrier {
    Phase collecting;
    Published completed;
    WarpNumber agent = 0;
    Time phase = 1;
  };
  struct ClusterBarrier {
    Phase collecting;
    Published completed;
  };

  // Events of one warp, at one place, come in runs: the last answer is kept, and looked at first.
  LaneState& Lane(WarpNumber warp, int lane) {
    const bool found = warp_found_ != nullptr && warp_found_number_ == warp;
    return (found ? *warp_found_ : MakeLanes(warp))[static_cast<std::size_t>(lane)];
  }
  LaneState* FindLane(WarpNumber warp, int lane) {
    const bool found = warp_found_ != nullptr && warp_found_number_ == warp;
    WarpLanes* const lanes = found ? warp_found_ : SeekLanes(warp);
    return lanes == nullptr ? nullptr : &(*lanes)[static_cast<std::size_t>(lane)];
  }
  WarpLanes& MakeLanes(WarpNumber warp);
  WarpLanes* SeekLanes(WarpNumber warp);
  bool HasSaidAll(WarpNumber warp, int lane, std::uint64_t chain);
  void MessagesOf(WarpNumber warp, int lane, Location at, bool releases, Reach reach,
                  std::uint64_t chain, std::vector<Message>& out);
  /// The least reach that an acquirer in `block` needs, or nothing when the message does not reach
  /// it.
  bool Needed(const Message& message, BlockNumber block, Reach& needed) const;
  void Take(WarpNumber warp, LaneMask lanes, const Messages& messages, Reach reach,
            bool sequential = false);
  const ClockPtr& PartOfBlock(const Messages& messages, BlockNumber block);
  const ClockPtr& PartOfCluster(const Messages& messages, std::uint32_t cluster);
  template <class Takes>
  const ClockPtr& JoinPart(const Messages& messages, Messages::Part Messages::Parts::* which,
                           std::uint32_t whose, const Takes& takes);
  void AddPending(WarpNumber warp, int lane, const Published& messages, Location at,
                  std::uint32_t pc, bool narrow);
  /// Which of those reads saw something that was published behind the access?
  std::optional<RaceDetector::Gap> GapAt(const LaneState& state, WarpNumber writer, int writer_lane,
                                         Time time, BlockNumber to) const;
  /// A fence whose place in the order of this run's sequentially consistent ones is open.
  struct OpenFence {
    BlockNumber block = 0;
    WarpNumber warp = 0;
    LaneMask lanes = 0;
    Reach reach = Reach::kBlock;
    bool met = false;  ///< A barrier has come since.
    Time time = 0;
    ClockPtr knew;
  };
  void JoinFenceOrder(const OpenFence& fence);
  void MeetOpen(BlockNumber block);
  void SettleOpen(BlockNumber block);
  /// A thread that knows of stores behind an open fence, since when.
  struct Witness {
    WarpNumber warp = 0;
    int lane = 0;
    Time time = 0;
    bool ended = false;
  };
  /// What came behind a block's open fences.
  struct Late {
    struct Place {
      Location cell;       ///< The offset counts cells.
      bool again = false;  ///< Overwritten since.
    };
    std::vector<Place> places;  ///< Where it wrote.
    std::vector<Witness> witnesses;
    bool ended = false;
  };
  bool Covers(const OpenFence& fence, WarpNumber warp, int lane) const {
    return fence.met ? order_.BlockOf(warp) == fence.block
                     : fence.warp == warp && (fence.lanes >> lane & 1u) != 0;
  }
  static void Overwrite(Late& late, Location cell);
  bool Witnesses(Late& late, WarpNumber warp, int lane);
  bool IsWitness(const Late& late, WarpNumber warp, LaneMask lanes) const;
  bool MustFollow(BlockNumber block, const Late& late, WarpNumber warp, LaneMask lanes);
  void SettleBeforeFence(WarpNumber warp, LaneMask lanes, bool acquires, bool sequential,
                         Reach reach);
  /// Does what reaches so far from the one block include the other?
  bool Includes(Reach reach, BlockNumber from, BlockNumber to) const;
  void BeginLate(BlockNumber block);
  void ForgetLate(BlockNumber block);
  void EndLate(BlockNumber block);
  void TellLate(BlockNumber block, const Late& late, const ClockPtr& order, Reach reach);
  void Append(Published& published, const std::vector<Message>& messages);
  static void Compact(Messages& messages);
  /// Puts a clock that covers `before`, or begins with it, into a line of such.
  void Place(const ClockPtr& clock, const ClockPtr& before);
  /// Of a location that has had messages; null: never.
  Published* FindPublished(Location at) const {
    return found_ != nullptr && found_at_ == at ? found_ : SeekPublished(at);
  }
  Published* SeekPublished(Location at) const;
  void Break(Location at, std::uint32_t bytes);
  static void NoteRead(std::vector<Pending>& reads, const Published& messages, Location at);
  struct Meetings {
    Meeting* of_block = nullptr;
    Meeting* of_warp = nullptr;
  };
  /// What the warp's block, and the warp, have met for; only where a fence.sc was seen.
  Meetings MeetingsOf(WarpNumber warp) {
    if (meetings_.of_warp == nullptr || meetings_of_ != warp) SeekMeetings(warp);
    return meetings_;
  }
  void SeekMeetings(WarpNumber warp);
  void NoteFence(const Meetings& meetings, WarpNumber warp, LaneMask lanes);
  void NoteFenced(Meeting& meeting, const Fenced& fenced);
  void Meet(Meeting& meeting);
  void TakeReads(WarpNumber warp, LaneMask lanes, const std::vector<Pending>& reads);
  static void Collect(Phase& phase, BlockNumber block, Reach reach, const Clock& clock);
  static void CollectAll(Phase& phase, BlockNumber block, const std::vector<Message>& messages);
  Published Completed(Phase& phase);

  ThreadOrder& order_;
  std::unordered_map<WarpNumber, std::unique_ptr<WarpLanes>> lanes_;
  // The warp that was looked up last.
  WarpNumber warp_found_number_ = 0;
  WarpLanes* warp_found_ = nullptr;
  using Places = std::map<std::uint64_t, Published>;  // By offset.
  mutable std::unordered_map<RegionId, Places> regions_;
  // The place that was looked up last.
  mutable Location found_at_{0xffffffffu, ~0ull};
  mutable Published* found_ = nullptr;
  std::uint64_t next_chain_ = 1;
  std::vector<std::uint64_t> last_steps_ = std::vector<std::uint64_t>(1);  // By line of clocks.
  std::unordered_map<RegionId, std::map<std::uint64_t, Mbarrier>> mbarriers_;
  std::unordered_map<std::uint32_t, ClusterBarrier> clusters_;
  // By block, and by warp; only where a fence.sc was seen.
  std::unordered_map<BlockNumber, Meeting> block_meetings_;
  std::unordered_map<WarpNumber, Meeting> warp_meetings_;
  Meetings meetings_;  // Of the warp that was looked up last.
  WarpNumber meetings_of_ = 0;
  bool sequential_fences_ = false;
  std::optional<Rng> follow_fences_;
  /// What the sequentially consistent fences so far knew that reach the device, a cluster, a block.
  std::vector<OpenFence> open_fences_;
  bool late_fences_ = false;
  WriteWatch* watch_ = nullptr;
  std::map<BlockNumber, Late> late_;  ///< By block with open fences; only with late_fences_.
  std::map<std::pair<RegionId, std::uint64_t>, std::vector<BlockNumber>> late_places_;
  ClockPtr device_fences_;
  std::unordered_map<std::uint32_t, ClockPtr> cluster_fences_;
  std::unordered_map<BlockNumber, ClockPtr> block_fences_;
  /// With follow_fences_: when the lanes of blocks that have ended fenced last, by reach.
  using FenceTimes = std::array<std::array<Time, kWarpSize>, kReaches>;
  std::unordered_map<WarpNumber, std::unique_ptr<FenceTimes>> ended_fences_;
  std::uint32_t next_agent_ = 1;
  std::vector<Message> scratch_;
};

}  // namespace assay::emu
