#include "validator/emu/race/race.h"

#include <algorithm>
#include <bit>
#include <map>

#include "validator/emu/race/access_path.h"
#include "validator/emu/race/order.h"
#include "validator/emu/race/peer_lives.h"
#include "validator/emu/race/proxy.h"
#include "validator/emu/race/shadow.h"
#include "validator/emu/race/sync.h"
#include "validator/emu/race/waiting_reads.h"

namespace assay::emu {
namespace {

bool Acquires(Order order) {
  return order == Order::kAcquire || order == Order::kAcqRel || order == Order::kSeqCst;
}
bool Releases(Order order) {
  return order == Order::kRelease || order == Order::kAcqRel || order == Order::kSeqCst;
}

}  // namespace

struct RaceDetector::Impl {
  explicit Impl(std::uint64_t max_shadow_bytes)
      : sync(order),
        proxies(order),
        waiting(order),
        lives(order),
        shadow(table, max_shadow_bytes),
        path(order, table, shadow, log) {}

  void Access(const WarpAccess& access, const AccessBy& by) {
    const std::size_t known = log.races().size();
    if (WaitingReads::Own* const own = waiting.Find(access.region)) {
      const bool may_wait = access.kind == AccessKind::kRead && access.order == Order::kWeak &&
                            !access.atomic && !access.read_only_path && !by.async;
      if (may_wait && waiting.Wait(*own, access)) return;
      if (waiting.OnAccess(*own, access, by.async, by.stamped)) MakeUp(*own);
    }
    if (!by.async) lives.OnAccess(access);
    path.Access(access, by);
    if (log.races().size() != known) [[unlikely]]
      ExplainRaces(known);
    Synchronise(access);
    if (watch != nullptr && by.async && access.kind != AccessKind::kRead) ReportAsync(access);
  }
  void ReportAsync(const WarpAccess& access);
  /// The races from that one on have just been found.
  void ExplainRaces(std::size_t first);
  /// Accesses of reads that have waited (waiting_reads.h).
  void MakeUp(WaitingReads::Own& own);
  /// What the access publishes and learns, beyond being made.
  void Synchronise(const WarpAccess& access);
  bool exhausted() const { return too_large || shadow.exhausted(); }

  ThreadOrder order;
  SyncObjects sync;
  ProxyFences proxies;
  WaitingReads waiting;
  PeerLives lives;
  RecordTable table;
  Shadow shadow;
  RaceLog log;
  AccessPath path;
  struct Bulk {
    std::vector<RecordId> reads;
    std::vector<RecordId> writes;
    WarpNumber warp = 0;
  };
  std::map<std::uint64_t, Bulk> bulks;
  void BulkWait(WarpNumber warp, LaneMask lanes, std::uint64_t token, bool reads_only);
  std::uint64_t next_bulk = 1;
  bool too_large = false;
  WriteWatch* watch = nullptr;
};

RaceDetector::RaceDetector(std::uint64_t max_shadow_bytes)
    : impl_(std::make_unique<Impl>(max_shadow_bytes)) {}
RaceDetector::~RaceDetector() = default;

const std::vector<Race>& RaceDetector::races() const { return impl_->log.races(); }
bool RaceDetector::exhausted() const { return impl_->exhausted(); }
std::uint64_t RaceDetector::shadow_bytes() const {
  return impl_->shadow.peak_bytes() + impl_->order.bytes() + impl_->sync.bytes() +
         impl_->waiting.bytes();
}

void RaceDetector::BeginLaunch(const Shape& shape) {
  Impl& impl = *impl_;
  impl.too_large =
      impl.too_large || std::uint64_t{shape.blocks} * shape.warps_per_block > kMaxWarps;
  if (impl.too_large) return;
  impl.log.BeginLaunch();
  impl.order.Begin(shape);
  impl.sync.Begin();
  impl.proxies.Begin();
  impl.waiting.Begin();
  impl.lives.Begin();
  impl.shadow.Clear();
  impl.path.BeginLaunch(shape.narrow_scopes);
  impl.bulks.clear();
}

void RaceDetector::SetReadOnly(RegionId region) {
  if (!exhausted()) impl_->shadow.SetReadOnly(region);
}

void RaceDetector::OnBlockRegion(BlockNumber block, RegionId region) {
  if (!exhausted()) impl_->waiting.Add(block, region);
}

void RaceDetector::OnClusterRegion(BlockNumber block, RegionId region) {
  if (!exhausted()) impl_->lives.Add(block, region);
}

void RaceDetector::EndBlock(BlockNumber block, RegionId shared_region) {
  if (exhausted()) return;
  for (const Race& race : impl_->lives.EndBlock(block)) impl_->log.Add(race);
  impl_->sync.EndRegion(shared_region);
  impl_->sync.EndBlock(block);
  impl_->proxies.EndBlock(block);
  impl_->waiting.EndBlock(block, shared_region);
  impl_->order.EndBlock(block);
  impl_->shadow.DropRegion(shared_region);
}

void RaceDetector::OnThreadExit(WarpNumber warp, LaneMask lanes, std::uint32_t pc) {
  if (exhausted()) return;
  impl_->lives.OnExit(warp, lanes, pc);
  impl_->order.OnExit(warp, lanes);
}

void RaceDetector::OnAccess(const WarpAccess& access) {
  if (exhausted() || access.lanes == 0 || access.bytes == 0) return;
  impl_->Access(access, AccessBy{access.warp, false, nullptr});
}

bool RaceDetector::OnTileRead(const TileRead& tile) {
  if (exhausted()) return true;
  WaitingReads::Own* const own = impl_->waiting.Find(tile.region);
  return own != nullptr && impl_->waiting.Wait(*own, tile);
}

bool RaceDetector::OnBarrierArrive(BlockNumber block, std::uint32_t barrier, WarpNumber warp,
                                   LaneMask lanes, bool waits) {
  if (exhausted()) return true;
  impl_->sync.OnArrival(warp);
  return impl_->order.BarrierArrive(block, barrier, warp, lanes, waits);
}

void RaceDetector::OnBarrierComplete(BlockNumber block, std::uint32_t barrier) {
  if (exhausted() || !impl_->order.BarrierComplete(block, barrier)) return;
  impl_->sync.OnBlockMeets(block);
  WaitingReads::Own* own = nullptr;
  if (impl_->waiting.OnBlockMeets(block, own)) impl_->MakeUp(*own);
}

void RaceDetector::OnWarpBarrier(WarpNumber warp, LaneMask lanes) {
  if (exhausted()) return;
  impl_->sync.OnArrival(warp);
  if (impl_->order.WarpBarrier(warp, lanes)) impl_->sync.OnWarpMeets(warp);
}

void RaceDetector::OnClusterArrive(BlockNumber, WarpNumber warp, LaneMask lanes,
                                   bool relaxed_arrive) {
  if (exhausted()) return;
  impl_->sync.SettleFences(impl_->order.BlockOf(warp));
  impl_->sync.ClusterArrive(warp, lanes, !relaxed_arrive);
}

void RaceDetector::OnClusterComplete(std::uint32_t cluster) {
  if (!exhausted()) impl_->sync.ClusterComplete(cluster);
}

void RaceDetector::OnClusterWait(BlockNumber, WarpNumber warp, LaneMask lanes) {
  if (!exhausted()) impl_->sync.ClusterWait(warp, lanes);
}

void RaceDetector::OnFence(WarpNumber warp, LaneMask lanes, Order order, Scope scope) {
  if (!exhausted())
    impl_->sync.OnFence(warp, lanes, Acquires(order), Releases(order), order == Order::kSeqCst,
                        ReachOf(scope));
}

void RaceDetector::OnProxyFence(WarpNumber warp, LaneMask lanes) {
  if (!exhausted()) impl_->proxies.OnFence(warp, lanes);
}

std::uint64_t RaceDetector::OnAsyncIssue(WarpNumber warp, LaneMask lanes, const WarpAccess& read,
                                         const WarpAccess& write) {
  if (exhausted() || lanes == 0) return 0;
  const BlockNumber block = impl_->order.BlockOf(warp);
  const Time token = impl_->order.Now(block);
  const AccessBy by{TwinOf(warp), true, nullptr};
  if (read.lanes != 0 && read.bytes != 0) impl_->Access(read, by);
  if (write.lanes != 0 && write.bytes != 0) impl_->Access(write, by);
  impl_->order.Tick(block);
  return token;
}

void RaceDetector::OnAsyncWait(WarpNumber warp, LaneMask lanes, std::uint64_t up_to_token) {
  if (!exhausted()) impl_->order.LearnTwin(warp, lanes, static_cast<Time>(up_to_token));
}

void RaceDetector::OnAsyncMbarrierArrive(RegionId region, std::uint64_t offset, WarpNumber warp,
                                         LaneMask lanes, std::uint64_t up_to_token) {
  if (exhausted()) return;
  Clock copies;
  copies.RaiseLanes(TwinOf(warp), lanes, static_cast<Time>(up_to_token));
  impl_->sync.MbarrierPublish({region, offset}, impl_->order.BlockOf(warp), copies);
}

void RaceDetector::OnMbarrierInit(RegionId region, std::uint64_t offset) {
  if (!exhausted()) impl_->sync.MbarrierInit({region, offset});
}

void RaceDetector::OnMbarrierArrive(RegionId region, std::uint64_t offset, WarpNumber warp,
                                    LaneMask lanes, Scope scope, bool relaxed) {
  if (exhausted()) return;
  impl_->sync.SettleFences(impl_->order.BlockOf(warp));
  impl_->sync.MbarrierArrive({region, offset}, warp, lanes, !relaxed, ReachOf(scope));
}

void RaceDetector::OnMbarrierPhaseComplete(RegionId region, std::uint64_t offset) {
  if (!exhausted()) impl_->sync.MbarrierPhaseComplete({region, offset});
}

void RaceDetector::OnMbarrierWait(RegionId region, std::uint64_t offset, WarpNumber warp,
                                  LaneMask lanes, Scope scope, bool relaxed) {
  if (!exhausted())
    impl_->sync.MbarrierWait({region, offset}, warp, lanes, !relaxed, ReachOf(scope));
}

void RaceDetector::OnBulkWrite(const WarpAccess& write, RegionId barrier_region,
                               std::uint64_t barrier_offset) {
  OnBulkComplete(OnBulkIssue(nullptr, &write), barrier_region, barrier_offset);
}

std::uint64_t RaceDetector::OnBulkIssue(const WarpAccess* read, const WarpAccess* write) {
  const WarpAccess* either = write != nullptr ? write : read;
  if (exhausted() || either == nullptr) return 0;
  Impl& impl = *impl_;
  const std::uint64_t token = impl.next_bulk++;
  Impl::Bulk& bulk = impl.bulks[token];
  bulk.warp = either->warp;
  if (read != nullptr && read->lanes != 0 && read->bytes != 0) {
    impl.path.CheckProxy(*read, impl.proxies);
    impl.Access(*read, AccessBy{impl.sync.NewAgent(), true, &bulk.reads});
  }
  if (write != nullptr && write->lanes != 0 && write->bytes != 0) {
    impl.Access(*write, AccessBy{impl.sync.NewAgent(), true, &bulk.writes});
  }
  impl.order.Tick(impl.order.BlockOf(bulk.warp));
  return token;
}

void RaceDetector::OnBulkComplete(std::uint64_t token, RegionId barrier_region,
                                  std::uint64_t barrier_offset) {
  Impl& impl = *impl_;
  const auto at = impl.bulks.find(token);
  if (exhausted() || at == impl.bulks.end()) return;
  const auto [agent, phase] = impl.sync.MbarrierAgent({barrier_region, barrier_offset});
  for (const auto* ids : {&at->second.reads, &at->second.writes}) {
    for (const RecordId id : *ids) {
      impl.table.record(id).warp = agent;
      impl.table.record(id).time = phase;
      impl.table.Unpin(id);
    }
  }
  impl.bulks.erase(at);
}

void RaceDetector::OnBulkWait(WarpNumber warp, std::uint8_t lane, std::uint64_t token,
                              bool reads_only) {
  if (!exhausted()) impl_->BulkWait(warp, 1u << lane, token, reads_only);
}

void RaceDetector::OnWarpgroupWait(WarpNumber warp, LaneMask lanes, std::uint64_t token) {
  if (!exhausted()) impl_->BulkWait(warp, lanes, token, false);
}

void RaceDetector::FollowFenceOrder(std::uint64_t seed) { impl_->sync.FollowFenceOrder(seed); }
void RaceDetector::SettleBeforeRead(WarpNumber warp, int lane) {
  if (!exhausted()) impl_->sync.SettleBeforeRead(warp, lane);
}
bool RaceDetector::HasLateFences(WarpNumber warp) const {
  return !exhausted() && impl_->sync.HasLateFences(warp);
}
void RaceDetector::SetWriteWatch(WriteWatch* watch) {
  impl_->watch = watch;
  impl_->sync.SetWriteWatch(watch);
}
std::uint32_t RaceDetector::Now(WarpNumber warp) { return impl_->order.NowOf(warp); }
bool RaceDetector::Knows(WarpNumber warp, int lane, WarpNumber other, int other_lane,
                         std::uint32_t time) {
  if (exhausted() || (warp == other && lane == other_lane)) return true;
  return impl_->order.LaneKnows(warp, lane, other, other_lane, time);
}
Published RaceDetector::PublishedAt(RegionId region, std::uint64_t offset) {
  return impl_->sync.PublishedAt({region, offset});
}
RaceDetector::Gap RaceDetector::GapBetween(WarpNumber writer, int writer_lane, std::uint32_t time,
                                           WarpNumber reader, int reader_lane) {
  return impl_->sync.GapBetween(writer, writer_lane, time, reader, reader_lane);
}

void RaceDetector::Impl::ExplainRaces(std::size_t first) {
  for (std::size_t i = first; i < log.races().size(); ++i) {
    const Race& race = log.races()[i];
    if (race.earlier.kind == AccessKind::kRead || race.later.kind != AccessKind::kRead ||
        race.earlier.async || race.later.async ||
        order.BlockOf(race.earlier.warp) == order.BlockOf(race.later.warp))
      continue;
    log.Explain(i, sync.GapBetween(race.earlier.warp, race.earlier.lane, race.earlier.time,
                                   race.later.warp, race.later.lane));
  }
}

void RaceDetector::Impl::MakeUp(WaitingReads::Own& own) {
  std::vector<WaitingReads::Read> reads = waiting.Take(own);
  alignas(64) std::uint64_t offsets[kWarpSize];
  WarpAccess access;
  access.region = WaitingReads::RegionOf(own);
  access.offsets = offsets;
  order.OnlyBases(true);
  for (const WaitingReads::Read& read : reads) {
    access.warp = read.warp;
    access.lanes = read.lanes;
    access.bytes = read.bytes;
    access.element_bytes = read.element_bytes;
    access.is_row = read.is_row;
    access.pc = read.pc;
    for (std::size_t i = 0; i < read.accesses(); ++i) {
      read.OffsetsOf(i, offsets);
      path.Access(access, AccessBy{read.warp, false, nullptr, read.time});
    }
  }
  order.OnlyBases(false);
  waiting.GiveBack(std::move(reads));
}

void RaceDetector::Impl::ReportAsync(const WarpAccess& access) {
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1)
    watch->OnAsyncWrite(access.region, access.offsets[std::countr_zero(rest)], access.bytes);
}

void RaceDetector::Impl::BulkWait(WarpNumber warp, LaneMask lanes, std::uint64_t token,
                                  bool reads_only) {
  Impl& impl = *this;
  const auto at = impl.bulks.find(token);
  if (at == impl.bulks.end()) return;
  Clock done;
  for (auto* ids : {&at->second.reads, &at->second.writes}) {
    if (reads_only && ids == &at->second.writes) continue;
    for (const RecordId id : *ids) {
      Record& record = impl.table.record(id);
      record.time = 1;
      done.RaiseLanes(record.warp, kAllLanes, 1);
      impl.table.Unpin(id);
    }
    ids->clear();
  }
  impl.order.Learn(warp, lanes, std::make_shared<Clock>(std::move(done)));
  if (at->second.writes.empty()) impl.bulks.erase(at);
}

void RaceDetector::Impl::Synchronise(const WarpAccess& access) {
  const bool strong = access.atomic || access.order != Order::kWeak;
  const bool writes = access.kind != AccessKind::kRead;
  if (!strong && (!writes || !sync.HasChains(access.region))) return;
  const bool acquires = Acquires(access.order);
  const bool releases = Releases(access.order);
  if (strong) sync.SettleBefore(access, acquires);
  if (strong && !acquires && !releases && !sync.HasLanes(access.warp) &&
      !sync.HasChains(access.region))
    return;
  const Reach reach = access.order == Order::kVolatile ? Reach::kDevice : ReachOf(access.scope);
  const bool reads = access.kind == AccessKind::kRead ||
                     (access.kind == AccessKind::kReadWrite && access.returns_value);
  for (LaneMask rest = access.lanes; rest != 0;) {
    const int lane =
        access.reversed ? kWarpSize - 1 - std::countl_zero(rest) : std::countr_zero(rest);
    rest &= ~(LaneMask{1} << lane);
    const Location at{access.region, access.offsets[lane]};
    if (!strong) {
      sync.OnWeakWrite(at, access.bytes);
      continue;
    }
    if (reads) {
      sync.OnStrongRead(access.warp, lane, at, access.pc, acquires, reach,
                        access.read_from == nullptr ? nullptr : access.read_from[lane]);
    }
    if (access.aside != nullptr) {
      *access.aside = sync.OnOvertakenWrite(access.warp, lane, at, releases, reach);
    } else if (writes) {
      sync.OnStrongWrite(access.warp, lane, at, access.bytes, access.kind == AccessKind::kReadWrite,
                         releases, reach);
    }
  }
}

}  // namespace assay::emu
