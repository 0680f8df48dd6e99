// Data races in shared and global memory, by happens-before (field guide section 3; PTX ISA, memory
// consistency model).
//
// The core reports what warps do; the detector keeps, for each byte touched, who wrote and read it
// last, as packed (thread, epoch) stamps, and raises a race when two accesses conflict, are not
// morally strong, and neither is ordered before the other.
//
// Events are warp-wide: `lanes` says which lanes take part, `address[lane]` where. Addresses are
// offsets within one address space region (`region`): the core gives every allocation and every
// block's shared memory a region of its own.
//
// Not thread-safe: one detector serves one run. Shadow is allocated for touched pages only and
// stays under 8 bytes a byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "validator/emu/semantics/warp_size.h"

namespace assay::emu {

enum class AccessKind : std::uint8_t { kRead, kWrite, kReadWrite };  ///< kReadWrite: atomics.
/// kSeqCst: of fences only.
enum class Order : std::uint8_t {
  kWeak,
  kVolatile,
  kRelaxed,
  kAcquire,
  kRelease,
  kAcqRel,
  kSeqCst
};
enum class Scope : std::uint8_t { kCta, kCluster, kGpu, kSys };

/// Blocks and warps are numbered through the whole launch; a thread is warp * 32 + lane.
using WarpNumber = std::uint32_t;
using BlockNumber = std::uint32_t;
using RegionId = std::uint32_t;

struct Messages;

/// What had been published at a location at some moment (sync.h). Handed back to the detector when
/// a load reads what stood there at that moment.
using Published = std::shared_ptr<const Messages>;

/// Hears of writes that no instruction of a thread makes: asynchronous copies.
class WriteWatch {
 public:
  virtual ~WriteWatch() = default;
  virtual void OnAsyncWrite(RegionId region, std::uint64_t offset, std::uint32_t bytes) = 0;
};

/// Where the bytes of a write stand before it is made: looked at only when a race is found.
struct WriteValues {
  const std::byte* const* registers =
      nullptr;  ///< By element: its lanes side by side, `register_bytes` each.
  std::uint32_t register_bytes = 0;
  const std::uintptr_t* memory = nullptr;  ///< By lane: host address of what is overwritten.
};

struct WarpAccess {
  WarpNumber warp = 0;
  LaneMask lanes = 0;
  RegionId region = 0;
  const std::uint64_t* offsets =
      nullptr;  ///< 32 of them; byte offsets in the region. Only those of `lanes` count.
  std::uint32_t bytes = 0;  ///< A lane.
  AccessKind kind = AccessKind::kRead;
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
  bool atomic = false;          ///< atom or red: always strong.
  bool returns_value = true;    ///< False for red: it never acquires.
  bool read_only_path = false;  ///< ld.global.nc.
  std::uint32_t pc = 0;
  /// For same-value writes: the new bytes of each lane (`bytes` each, lane-major: lane * bytes).
  /// May be null.
  const std::byte* new_values = nullptr;
  const std::byte* old_values = nullptr;  ///< What stood there, in the same layout. Null: a
                                          ///< same-value write is not recognised.
  /// Instead of the two: the same, fetched when needed. May be null.
  const WriteValues* values = nullptr;
  /// Size of one element where a lane moves several (ld.v4): vector accesses are so many scalar
  /// ones, and two strong accesses of different sizes race. 0: `bytes`.
  std::uint32_t element_bytes = 0;
  /// The caller has seen that all 32 lanes take part and offsets[i] is offsets[0] + i * bytes.
  /// Never needed: saves looking again.
  bool is_row = false;
  /// The caller has seen that all offsets of `lanes` lie between these two, which are among them (or were of
  /// lanes that dropped out since). Never needed either; least above greatest: it has not looked.
  std::uint64_t least = 1;
  std::uint64_t greatest = 0;
  /// Lanes of this one instruction may store one value to one place: in shared memory one of them
  /// is carried out, and compilers count on that.
  bool siblings_may_agree = false;
  /// Atomics: lanes were executed from 31 down to 0. Decides which sibling read whose value.
  bool reversed = false;
  /// Reads, by lane: what the write had published that the lane read from, where that is not the
  /// newest one. Null, as a whole or for a lane: the newest.
  const Published* const* read_from = nullptr;
  /// Not null: a strong store that comes before a newer one, which stands in memory and stays there
  /// (stale.h). What it publishes goes here, for those who still read it.
  Published* aside = nullptr;
};

/// The weak reads that one instruction makes, one after the other, of a tile: lines of memory that lie
/// `stride` bytes apart.
struct TileRead {
  /// A place in a tile is its line times this, plus its byte in the line.
  static constexpr std::uint32_t kPitch = 128;

  WarpNumber warp = 0;
  RegionId region = 0;
  std::uint64_t offset = 0;  ///< Of the first line.
  std::uint64_t stride = 0;
  std::uint32_t lines = 0;
  std::uint32_t line_bytes = 0;
  std::uint32_t bytes = 0;  ///< A lane, of each read.
  std::uint32_t pc = 0;
  /// By read and lane: where in the tile. Outlives the detector. All 32 lanes take part.
  std::span<const std::uint16_t> places;
};

/// Why a thread does not know of another one's access.
struct OrderGap {
  enum class Kind : std::uint8_t {
    kRelease,  ///< Nothing was released since.
    kScope,    ///< It was, but at a scope that does not include the thread's block.
    kAcquire,  ///< What was written after the release has been read, and not acquired.
    kSignal,   ///< Nothing that was written after the release has been read.
  };
  static constexpr std::uint32_t kNowhere = 0xffffffffu;
  Kind kind = Kind::kRelease;
  std::uint32_t read_pc = kNowhere;  ///< kAcquire, kScope: the read of the signal, where known.
  bool elsewhere = false;  ///< Another thread of the block made that read; barriers lie between.
};

struct RaceSide {
  WarpNumber warp = 0;
  std::uint8_t lane = 0;
  std::uint32_t pc = 0;
  AccessKind kind = AccessKind::kRead;
  bool atomic = false;
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
  bool async = false;      ///< Made by a copy that this thread started (cp.async, bulk), not by the
                           ///< thread itself.
  std::uint32_t time = 0;  ///< Its stamp; of the earlier side.
};

struct Race {
  enum class Class : std::uint8_t {
    kRace,
    kSameValue,
    kScopeTooNarrow,
    kMixedSize,
    kReadOnlyCache,
    kProxy,  ///< In order, but no proxy fence lies between a write and the copy that reads it.
    kEnded  ///< Of shared memory of another block, which may have ended (peer_lives.h): `earlier` is the exit of a thread.
  };
  Class race_class = Class::kRace;
  RaceSide earlier;
  RaceSide later;
  RegionId region = 0;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint64_t occurrences = 1;  ///< Pairs with the same two program counters.
  bool same_warp = false;         ///< Of the first of them.
  bool across_warps = false;      ///< Of any of them.
  bool across_blocks = false;     ///< Of any of them.
  bool one_instruction = false;   ///< Of all of them: lanes of one instruction, at one time.
  std::optional<OrderGap> gap;    ///< Of a read behind a write, by a thread of another block.
};

class RaceDetector {
 public:
  struct Shape {
    std::uint32_t warps_per_block = 1;
    std::uint32_t blocks = 1;
    std::uint32_t blocks_per_cluster = 1;
    std::uint32_t threads_per_block = 0;  ///< 0: warps_per_block * 32.
    /// False: the caller knows that all strong accesses are of device scope or wider (volatile ones
    /// are), or of memory of one block alone. Atomics are then remembered in less, verdicts the same.
    bool narrow_scopes = true;
  };

  explicit RaceDetector(std::uint64_t max_shadow_bytes);
  ~RaceDetector();
  RaceDetector(const RaceDetector&) = delete;
  RaceDetector& operator=(const RaceDetector&) = delete;

  /// A launch begins: everything before it happens before everything in it.
  void BeginLaunch(const Shape& shape);
  /// Writes to this region are findings by themselves (an input): its reads are then not worth
  /// remembering. Holds for this launch.
  void SetReadOnly(RegionId region);
  /// This region is the block's own: no other block will ever access it. Saves time, mostly.
  void OnBlockRegion(BlockNumber block, RegionId region);
  /// The shared memory of a block of a cluster: it is there as long as one of its threads is, and
  /// whatever other blocks do to it must happen before that one exits.
  void OnClusterRegion(BlockNumber block, RegionId region);
  /// A block has ended; its shared region may be forgotten.
  void EndBlock(BlockNumber block, RegionId shared_region);

  /// These lanes have exited, there. Without it the detector still answers right (but for what reaches
  /// blocks that have ended), but blocks in which threads exit early get slow: each of their barriers
  /// is then a partial one.
  void OnThreadExit(WarpNumber warp, LaneMask lanes, std::uint32_t pc = 0);

  void OnAccess(const WarpAccess& access);
  /// All accesses of a tile at once, where nothing has to be done about them yet. False: nothing was
  /// done, and they are to come one by one.
  bool OnTileRead(const TileRead& tile);
  /// A block-wide (named) barrier: lanes arrive, and when it completes those that wait are
  /// released. `arrived` accumulates by (block, barrier); `OnBarrierComplete` orders all arrived
  /// before all that wait. False: the arrival is not ordered after the barrier's last completion, so
  /// that it might have counted for that one; who meets whom is then left to chance.
  bool OnBarrierArrive(BlockNumber block, std::uint32_t barrier, WarpNumber warp, LaneMask lanes,
                       bool waits);
  void OnBarrierComplete(BlockNumber block, std::uint32_t barrier);
  /// bar.warp.sync completed for these lanes.
  void OnWarpBarrier(WarpNumber warp, LaneMask lanes);
  /// barrier.cluster: like a block barrier over all blocks of a cluster. `relaxed_arrive` carries
  /// no release. A thread gains by its wait, not by the completion: between the two it may still
  /// race.
  void OnClusterArrive(BlockNumber block, WarpNumber warp, LaneMask lanes, bool relaxed_arrive);
  void OnClusterComplete(std::uint32_t cluster);
  void OnClusterWait(BlockNumber block, WarpNumber warp, LaneMask lanes);
  /// fence / membar.
  void OnFence(WarpNumber warp, LaneMask lanes, Order order, Scope scope);
  /// fence.proxy.async. What the async proxy (bulk copies, wgmma) reads of its own block's writes
  /// must have one between the write and itself.
  void OnProxyFence(WarpNumber warp, LaneMask lanes);
  /// Asynchronous copies (cp.async): the write happens at some time between issue and wait, by an
  /// agent of its own. `OnAsyncIssue` returns a token; `OnAsyncWait` makes the copies of those
  /// tokens visible to the lanes that issued them.
  std::uint64_t OnAsyncIssue(WarpNumber warp, LaneMask lanes, const WarpAccess& read,
                             const WarpAccess& write);
  void OnAsyncWait(WarpNumber warp, LaneMask lanes, std::uint64_t up_to_token);
  /// cp.async.mbarrier.arrive: what the lanes' copies up to that token wrote is published through
  /// the mbarrier's current phase. Comes when the copies are done, beside the arrival itself
  /// (OnMbarrierArrive, relaxed).
  void OnAsyncMbarrierArrive(RegionId region, std::uint64_t offset, WarpNumber warp, LaneMask lanes,
                             std::uint64_t up_to_token);
  /// mbarrier objects. The core reports their own eight bytes through OnAccess as well (init: a
  /// weak write; all others: a relaxed atomic), so that an object used before its init is
  /// seen is a race. What follows here carries order only: arrive is a release into the barrier
  /// object, a successful wait acquires what its phase collected.
  void OnMbarrierInit(RegionId region, std::uint64_t offset);
  void OnMbarrierArrive(RegionId region, std::uint64_t offset, WarpNumber warp, LaneMask lanes,
                        Scope scope, bool relaxed);
  void OnMbarrierPhaseComplete(RegionId region, std::uint64_t offset);
  void OnMbarrierWait(RegionId region, std::uint64_t offset, WarpNumber warp, LaneMask lanes,
                      Scope scope, bool relaxed);
  /// A bulk copy that writes `write` (one lane) and publishes it through this mbarrier's current
  /// phase (complete-tx), issued and completed at once. Same as OnBulkIssue and OnBulkComplete.
  void OnBulkWrite(const WarpAccess& write, RegionId barrier_region, std::uint64_t barrier_offset);
  /// A bulk copy begins (either side may be null): it runs as an agent of its own, ordered after
  /// what the issuing lane knows now.
  std::uint64_t OnBulkIssue(const WarpAccess* read, const WarpAccess* write);
  /// It has ended, and the mbarrier's current phase says so to those who wait for it. Only its own
  /// bytes become visible.
  void OnBulkComplete(std::uint64_t token, RegionId barrier_region, std::uint64_t barrier_offset);
  /// cp.async.bulk.wait_group: the issuing lane knows that the copy is done, or with `reads_only`
  /// (.read) that its source was read.
  void OnBulkWait(WarpNumber warp, std::uint8_t lane, std::uint64_t token, bool reads_only);
  /// wgmma.wait_group: all of `lanes` know that what the token stands for is done.
  void OnWarpgroupWait(WarpNumber warp, LaneMask lanes, std::uint64_t token);

  // For those who let loads return earlier values (stale.h).

  /// From now on knowledge follows this run's own order of sequentially consistent fences as well:
  /// a later one knows what an earlier one knew, as the model says of the order that they had. Races
  /// that this order hides are found by other runs.
  /// `seed`: decides which of the places that are left to a fence it takes.
  void FollowFenceOrder(std::uint64_t seed);
  void SetWriteWatch(WriteWatch* watch);
  /// A thread is about to look at memory: fences before it get their places in that order.
  void SettleBeforeRead(WarpNumber warp, int lane);
  /// Are there fences of the warp's block that may stay open across stores?
  bool HasLateFences(WarpNumber warp) const;
  /// The stamp of an access that a lane of `warp` makes now.
  std::uint32_t Now(WarpNumber warp);
  /// Does that access of another thread, stamped `time`, happen before whatever this lane does next?
  bool Knows(WarpNumber warp, int lane, WarpNumber other, int other_lane, std::uint32_t time);
  Published PublishedAt(RegionId region, std::uint64_t offset);
  using Gap = OrderGap;
  Gap GapBetween(WarpNumber writer, int writer_lane, std::uint32_t time, WarpNumber reader,
                 int reader_lane);

  /// Distinct races so far (by the two program counters and class), in the order found.
  const std::vector<Race>& races() const;
  /// True when the shadow limit was reached: the run is then inconclusive for races.
  bool exhausted() const;
  std::uint64_t shadow_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::emu
