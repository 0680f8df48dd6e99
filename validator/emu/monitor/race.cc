#include "validator/emu/monitor/race.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "validator/emu/monitor/cell_rules.h"
#include "validator/emu/monitor/order.h"
#include "validator/emu/monitor/shadow.h"
#include "validator/emu/monitor/sync.h"

namespace assay::emu {
namespace {

bool Acquires(Order order) { return order == Order::kAcquire || order == Order::kAcqRel; }
bool Releases(Order order) { return order == Order::kRelease || order == Order::kAcqRel; }

Traits TraitsOf(const WarpAccess& access, bool async) {
  Traits traits;
  traits.kind = access.kind;
  traits.order = access.order;
  traits.scope = access.scope;
  traits.atomic = access.atomic;
  traits.read_only_path = access.read_only_path;
  traits.async = async;
  traits.bytes = static_cast<std::uint16_t>(access.bytes);
  traits.element_bytes =
      static_cast<std::uint16_t>(access.element_bytes != 0 ? access.element_bytes : access.bytes);
  return traits;
}

/// The finest granule that this access needs.
std::uint8_t ShiftOf(std::uint64_t offset, std::uint64_t bytes) {
  return static_cast<std::uint8_t>(std::min(2, std::countr_zero(offset | bytes)));
}

Race::Class ClassOf(Conflict conflict) {
  switch (conflict) {
    case Conflict::kScope:
      return Race::Class::kScopeTooNarrow;
    case Conflict::kSize:
      return Race::Class::kMixedSize;
    case Conflict::kReadOnly:
      return Race::Class::kReadOnlyCache;
    default:
      return Race::Class::kRace;
  }
}

}  // namespace

struct RaceDetector::Impl {
  explicit Impl(std::uint64_t max_shadow_bytes)
      : sync(order), shadow(max_shadow_bytes), rules(order, shadow) {}

  /// Who makes an access: the warp itself, or an agent that it started.
  struct Who {
    WarpNumber stamped = 0;  // Whose stamp the record carries.
    bool async = false;
    bool pinned = false;  // A bulk copy: the record is filled in when it is done.
    std::vector<RecordId>* pins = nullptr;
  };

  void Access(const WarpAccess& access, const Who& who);
  void Group(const WarpAccess& access, const Who& who, const Traits& traits, LaneMask lanes);
  void Synchronise(const WarpAccess& access, const Traits& traits);
  void Siblings(const WarpAccess& access, const Traits& traits, LaneMask lanes);
  void Report(const Race& race);
  RaceSide SideOf(const Record& record, std::uint8_t lane) const;
  RaceSide SideOf(const WarpAccess& access, std::uint8_t lane, bool async) const;

  ThreadOrder order;
  SyncObjects sync;
  Shadow shadow;
  CellRules rules;
  std::vector<Race> races;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Race::Class>, std::size_t> race_index;
  std::vector<CellRace> found;
  struct Bulk {
    std::vector<RecordId> reads;
    std::vector<RecordId> writes;
    WarpNumber warp = 0;
  };
  std::map<std::uint64_t, Bulk> bulks;
  std::uint64_t next_bulk = 1;
  bool too_large = false;
};

RaceDetector::RaceDetector(std::uint64_t max_shadow_bytes)
    : impl_(std::make_unique<Impl>(max_shadow_bytes)) {}
RaceDetector::~RaceDetector() = default;

const std::vector<Race>& RaceDetector::races() const { return impl_->races; }
bool RaceDetector::exhausted() const { return impl_->too_large || impl_->shadow.exhausted(); }
std::uint64_t RaceDetector::shadow_bytes() const {
  return impl_->shadow.peak_bytes() + impl_->order.bytes() + impl_->sync.bytes();
}

void RaceDetector::BeginLaunch(const Shape& shape) {
  Impl& impl = *impl_;
  impl.too_large =
      impl.too_large || std::uint64_t{shape.blocks} * shape.warps_per_block > kMaxWarps;
  if (impl.too_large) return;
  impl.order.Begin(shape);
  impl.sync.Begin();
  impl.shadow.Clear();
  impl.bulks.clear();
}

void RaceDetector::EndBlock(BlockNumber block, RegionId shared_region) {
  if (exhausted()) return;
  impl_->sync.EndRegion(shared_region);
  impl_->sync.EndBlock(block);
  impl_->order.EndBlock(block);
  impl_->shadow.DropRegion(shared_region);
}

void RaceDetector::OnThreadExit(WarpNumber warp, LaneMask lanes) {
  if (!exhausted()) impl_->order.OnExit(warp, lanes);
}

void RaceDetector::OnAccess(const WarpAccess& access) {
  if (exhausted() || access.lanes == 0 || access.bytes == 0) return;
  impl_->Access(access, Impl::Who{access.warp, false, false, nullptr});
}

void RaceDetector::OnBarrierArrive(BlockNumber block, std::uint32_t barrier, WarpNumber warp,
                                   LaneMask lanes, bool waits) {
  if (!exhausted()) impl_->order.BarrierArrive(block, barrier, warp, lanes, waits);
}

void RaceDetector::OnBarrierComplete(BlockNumber block, std::uint32_t barrier) {
  if (!exhausted()) impl_->order.BarrierComplete(block, barrier);
}

void RaceDetector::OnWarpBarrier(WarpNumber warp, LaneMask lanes) {
  if (!exhausted()) impl_->order.WarpBarrier(warp, lanes);
}

void RaceDetector::OnClusterArrive(BlockNumber, WarpNumber warp, LaneMask lanes,
                                   bool relaxed_arrive) {
  if (!exhausted()) impl_->sync.ClusterArrive(warp, lanes, !relaxed_arrive);
}

void RaceDetector::OnClusterComplete(std::uint32_t cluster) {
  if (!exhausted()) impl_->sync.ClusterComplete(cluster);
}

void RaceDetector::OnClusterWait(BlockNumber, WarpNumber warp, LaneMask lanes) {
  if (!exhausted()) impl_->sync.ClusterWait(warp, lanes);
}

void RaceDetector::OnFence(WarpNumber warp, LaneMask lanes, Order order, Scope scope) {
  if (!exhausted())
    impl_->sync.OnFence(warp, lanes, Acquires(order), Releases(order), ReachOf(scope));
}

std::uint64_t RaceDetector::OnAsyncIssue(WarpNumber warp, LaneMask lanes, const WarpAccess& read,
                                         const WarpAccess& write) {
  if (exhausted() || lanes == 0) return 0;
  const BlockNumber block = impl_->order.BlockOf(warp);
  const Time token = impl_->order.Now(block);
  const Impl::Who who{TwinOf(warp), true, false, nullptr};
  if (read.lanes != 0 && read.bytes != 0) impl_->Access(read, who);
  if (write.lanes != 0 && write.bytes != 0) impl_->Access(write, who);
  impl_->order.Tick(block);
  return token;
}

void RaceDetector::OnAsyncWait(WarpNumber warp, std::uint8_t lane, std::uint64_t up_to_token) {
  if (!exhausted()) impl_->order.LearnTwin(warp, lane, static_cast<Time>(up_to_token));
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
  if (!exhausted())
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
    impl.Access(*read, Impl::Who{impl.sync.NewAgent(), true, true, &bulk.reads});
  }
  if (write != nullptr && write->lanes != 0 && write->bytes != 0) {
    impl.Access(*write, Impl::Who{impl.sync.NewAgent(), true, true, &bulk.writes});
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
      impl.shadow.record(id).warp = agent;
      impl.shadow.record(id).time = phase;
      impl.shadow.Unpin(id);
    }
  }
  impl.bulks.erase(at);
}

void RaceDetector::OnBulkWait(WarpNumber warp, std::uint8_t lane, std::uint64_t token,
                              bool reads_only) {
  Impl& impl = *impl_;
  const auto at = impl.bulks.find(token);
  if (exhausted() || at == impl.bulks.end()) return;
  Clock done;
  for (auto* ids : {&at->second.reads, &at->second.writes}) {
    if (reads_only && ids == &at->second.writes) continue;
    for (const RecordId id : *ids) {
      Record& record = impl.shadow.record(id);
      record.time = 1;
      done.RaiseLanes(record.warp, kAllLanes, 1);
      impl.shadow.Unpin(id);
    }
    ids->clear();
  }
  impl.order.Learn(warp, 1u << lane, std::make_shared<Clock>(std::move(done)));
  if (at->second.writes.empty()) impl.bulks.erase(at);
}

RaceSide RaceDetector::Impl::SideOf(const Record& record, std::uint8_t lane) const {
  RaceSide side;
  side.warp = record.issuer;
  side.lane = lane;
  side.pc = record.pc;
  side.kind = record.traits.kind;
  side.atomic = record.traits.atomic;
  side.order = record.traits.order;
  side.scope = record.traits.scope;
  side.async = record.traits.async;
  return side;
}

RaceSide RaceDetector::Impl::SideOf(const WarpAccess& access, std::uint8_t lane, bool async) const {
  RaceSide side;
  side.warp = access.warp;
  side.lane = lane;
  side.pc = access.pc;
  side.kind = access.kind;
  side.atomic = access.atomic;
  side.order = access.order;
  side.scope = access.scope;
  side.async = async;
  return side;
}

void RaceDetector::Impl::Report(const Race& race) {
  const auto [low, high] = std::minmax(race.earlier.pc, race.later.pc);
  const auto [at, fresh] = race_index.try_emplace({low, high, race.race_class}, races.size());
  if (fresh) {
    races.push_back(race);
  } else {
    ++races[at->second].occurrences;
  }
}

/// Lanes of one instruction that write the same place: nothing orders them.
void RaceDetector::Impl::Siblings(const WarpAccess& access, const Traits& traits, LaneMask lanes) {
  const BlockNumber block = order.BlockOf(access.warp);
  const std::uint32_t cluster = order.ClusterOf(block);
  if (ConflictOf(traits, block, traits, block, cluster, cluster) != Conflict::kWeak) return;
  const int first = std::countr_zero(lanes);
  int other = std::countr_zero(lanes & (lanes - 1));
  bool same = access.new_values != nullptr;
  for (LaneMask rest = lanes & (lanes - 1); same && rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto bytes = static_cast<std::ptrdiff_t>(access.bytes);
    if (std::memcmp(access.new_values + first * bytes, access.new_values + lane * bytes,
                    access.bytes) != 0) {
      same = false;
      other = lane;
    }
  }
  Race race;
  race.race_class = same ? Race::Class::kSameValue : Race::Class::kRace;
  race.earlier = SideOf(access, static_cast<std::uint8_t>(first), traits.async);
  race.later = SideOf(access, static_cast<std::uint8_t>(other), traits.async);
  race.region = access.region;
  race.offset = access.offsets[first];
  race.bytes = access.bytes;
  race.same_warp = true;
  Report(race);
}

void RaceDetector::Impl::Group(const WarpAccess& access, const Who& who, const Traits& traits,
                               LaneMask lanes) {
  const int first = std::countr_zero(lanes);
  const std::uint64_t begin = access.offsets[first];
  const std::uint64_t end = begin + access.bytes;
  const std::uint8_t shift = ShiftOf(begin, access.bytes);
  if (traits.writes() && (lanes & (lanes - 1)) != 0) Siblings(access, traits, lanes);

  Record record;
  record.warp = who.stamped;
  record.time = who.pinned ? kNever : order.Now(order.BlockOf(access.warp));
  record.pc = access.pc;
  record.pattern = std::rotr(lanes, first);
  record.issuer = access.warp;
  record.traits = traits;
  Actor actor{access.warp, lanes, 0};
  if (who.pinned) {
    actor.record = shadow.NewPinned(record);
    who.pins->push_back(actor.record);
  } else {
    actor.record = shadow.Intern(record);
  }

  for (std::uint64_t line = begin / Shadow::kLineBytes; line * Shadow::kLineBytes < end; ++line) {
    Shadow::Cells* cells = shadow.Touch(access.region, line, shift);
    if (cells == nullptr) return;
    const std::uint64_t base = line * Shadow::kLineBytes;
    const std::uint64_t from = std::max(begin, base) - base;
    const std::uint64_t to = std::min(end, base + Shadow::kLineBytes) - base;
    for (std::uint64_t cell = from >> cells->shift; cell << cells->shift < to; ++cell) {
      found.clear();
      rules.Apply(actor, cells->writers()[cell], cells->readers()[cell], found);
      for (const CellRace& hit : found) {
        const Record& earlier = shadow.record(hit.earlier);
        Race race;
        race.race_class = ClassOf(hit.conflict);
        race.earlier = SideOf(earlier, hit.earlier_lane);
        race.later = SideOf(access, hit.later_lane, traits.async);
        race.region = access.region;
        race.offset = begin;
        race.bytes = access.bytes;
        race.same_warp = earlier.issuer == access.warp;
        const bool both_write =
            earlier.traits.kind == AccessKind::kWrite && traits.kind == AccessKind::kWrite;
        if (hit.conflict == Conflict::kWeak && both_write && access.new_values != nullptr &&
            access.old_values != nullptr) {
          const std::uint64_t at = hit.later_lane * std::uint64_t{access.bytes} +
                                   (base + (cell << cells->shift) - begin);
          if (std::memcmp(access.new_values + at, access.old_values + at,
                          std::size_t{1} << cells->shift) == 0) {
            race.race_class = Race::Class::kSameValue;
          }
        }
        Report(race);
      }
    }
  }
}

void RaceDetector::Impl::Access(const WarpAccess& access, const Who& who) {
  const Traits traits = TraitsOf(access, who.async);
  if (!who.async) order.OnTouch(access.warp, access.lanes);
  for (LaneMask rest = access.lanes; rest != 0;) {
    const std::uint64_t offset = access.offsets[std::countr_zero(rest)];
    LaneMask group = 0;
    for (LaneMask lanes = rest; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      if (access.offsets[lane] == offset) group |= 1u << lane;
    }
    rest &= ~group;
    Group(access, who, traits, group);
    if (shadow.exhausted()) return;
  }
  Synchronise(access, traits);
}

void RaceDetector::Impl::Synchronise(const WarpAccess& access, const Traits& traits) {
  std::uint64_t low = ~0ull;
  std::uint64_t high = 0;
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t offset = access.offsets[std::countr_zero(rest)];
    low = std::min(low, offset);
    high = std::max(high, offset + access.bytes);
  }
  if (!traits.strong()) {
    if (!traits.writes() || !sync.HasChains(access.region, low, high)) return;
    for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
      sync.OnWeakWrite({access.region, access.offsets[std::countr_zero(rest)]}, access.bytes);
    }
    return;
  }
  const bool acquires = Acquires(access.order);
  const bool releases = Releases(access.order);
  if (!acquires && !releases && !sync.Matters(access.warp, access.region, low, high)) return;
  const bool reads = traits.reads() && (access.kind == AccessKind::kRead || access.returns_value);
  for (int i = 0; i < kWarpSize; ++i) {
    const int lane = access.reversed ? kWarpSize - 1 - i : i;
    if ((access.lanes >> lane & 1u) == 0) continue;
    const Location at{access.region, access.offsets[lane]};
    if (reads) sync.OnStrongRead(access.warp, lane, at, acquires, traits.reach());
    if (traits.writes()) {
      sync.OnStrongWrite(access.warp, lane, at, access.bytes, access.kind == AccessKind::kReadWrite,
                         releases, traits.reach());
    }
  }
}

}  // namespace assay::emu
