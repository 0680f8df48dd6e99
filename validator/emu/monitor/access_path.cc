#include "validator/emu/monitor/access_path.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace assay::emu {
namespace {

constexpr std::uint32_t kWidestLane = 16;

Traits TraitsOf(const WarpAccess& access, bool async) {
  const auto narrow = [](std::uint32_t bytes) {
    return static_cast<std::uint16_t>(std::min(bytes, 0xffffu));
  };
  Traits traits;
  traits.kind = access.kind;
  traits.order = access.order;
  traits.scope = access.scope;
  traits.atomic = access.atomic;
  traits.read_only_path = access.read_only_path;
  traits.async = async;
  traits.bytes = narrow(access.bytes);
  traits.element_bytes = narrow(access.element_bytes != 0 ? access.element_bytes : access.bytes);
  return traits;
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

void AccessPath::Access(const WarpAccess& access, const AccessBy& by) {
  if (access.kind == AccessKind::kRead && shadow_.IsReadOnly(access.region)) return;
  shadow_.MaybeCollect();
  by_ = by;
  actor_.warp = access.warp;
  actor_.traits = TraitsOf(access, by.async);
  if (!by.async) order_.OnTouch(access.warp, access.lanes);
  if (IsRow(access)) {
    Row(access);
  } else {
    Places(access);
  }
}

void AccessPath::SetRecord(const WarpAccess& access, LaneMask pattern) {
  Record record;
  record.warp = by_.stamped;
  record.pc = access.pc;
  record.pattern = pattern;
  record.issuer = access.warp;
  record.traits = actor_.traits;
  if (by_.pins != nullptr) {
    record.time = kNever;
    actor_.record = table_.NewPinned(record);
    by_.pins->push_back(actor_.record);
  } else {
    record.time = order_.Now(order_.BlockOf(access.warp));
    actor_.record = table_.Intern(record);
  }
  actor_.pattern = pattern;
}

bool AccessPath::IsRow(const WarpAccess& access) const {
  if (access.lanes != kAllLanes || access.bytes > kWidestLane || !std::has_single_bit(access.bytes))
    return false;
  const std::uint64_t base = access.offsets[0];
  std::uint64_t difference = base % access.bytes;
  for (std::uint64_t lane = 0; lane < kWarpSize; ++lane) {
    difference |= access.offsets[lane] ^ (base + lane * access.bytes);
  }
  return difference == 0;
}

void AccessPath::Row(const WarpAccess& access) {
  SetRecord(access, 1);
  const std::uint64_t base = access.offsets[0];
  const std::uint64_t end = base + std::uint64_t{kWarpSize} * access.bytes;
  const auto log_bytes = static_cast<std::uint32_t>(std::countr_zero(access.bytes));
  for (std::uint64_t at = base; at < end;) {
    const std::uint64_t line_base = at / Shadow::kLineBytes * Shadow::kLineBytes;
    const std::uint64_t stop = std::min(end, line_base + Shadow::kLineBytes);
    Shadow::Page* page = shadow_.PageAt(access.region, line_base);
    if (page == nullptr) return;
    const std::size_t index = line_base / Shadow::kLineBytes % Shadow::kPageLines;
    Shadow::Line& line = page->lines[index];
    if (stop - at == Shadow::kLineBytes && line.cells == nullptr) {
      actor_.lane = static_cast<std::uint32_t>((at - base) >> log_bytes);
      if (rules_.ApplyLine(actor_, line.writers, line.readers)) {
        at = stop;
        continue;
      }
    }
    Shadow::Cells cells = shadow_.Split(*page, index, std::min(2u, log_bytes));
    if (shadow_.exhausted()) return;
    for (; at < stop; at += std::uint64_t{1} << cells.shift) {
      const std::uint64_t lane = (at - base) >> log_bytes;
      actor_.lane = static_cast<std::uint32_t>(lane);
      actor_.lanes = 1u << lane;
      Cell(access, cells, (at - line_base) >> cells.shift, base + (lane << log_bytes), at);
    }
  }
}

void AccessPath::Places(const WarpAccess& access) {
  for (LaneMask rest = access.lanes; rest != 0;) {
    const int first = std::countr_zero(rest);
    const std::uint64_t begin = access.offsets[first];
    LaneMask group = 1u << first;
    for (LaneMask lanes = rest & (rest - 1); lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      if (access.offsets[lane] == begin) group |= 1u << lane;
    }
    rest &= ~group;
    Place(access, group, begin);
    if (shadow_.exhausted()) return;
  }
}

void AccessPath::Place(const WarpAccess& access, LaneMask lanes, std::uint64_t begin) {
  if (actor_.traits.writes() && (lanes & (lanes - 1)) != 0) Siblings(access, lanes);
  actor_.lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
  actor_.lanes = lanes;
  SetRecord(access, std::rotr(lanes, static_cast<int>(actor_.lane)));
  const std::uint64_t end = begin + access.bytes;
  // The finest granule that this access needs.
  const auto shift =
      static_cast<std::uint32_t>(std::min(2, std::countr_zero(begin | access.bytes)));
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t line_base = at / Shadow::kLineBytes * Shadow::kLineBytes;
    const std::uint64_t stop = std::min(end, line_base + Shadow::kLineBytes);
    Shadow::Page* page = shadow_.PageAt(access.region, line_base);
    if (page == nullptr) return;
    Shadow::Cells cells =
        shadow_.Split(*page, line_base / Shadow::kLineBytes % Shadow::kPageLines, shift);
    if (shadow_.exhausted()) return;
    for (; at < stop; at += std::uint64_t{1} << cells.shift) {
      Cell(access, cells, (at - line_base) >> cells.shift, begin, at);
    }
  }
}

void AccessPath::Cell(const WarpAccess& access, Shadow::Cells& cells, std::uint64_t cell,
                      std::uint64_t begin, std::uint64_t offset) {
  rules_.ApplyCell(actor_, cells.writers[cell], cells.readers[cell], found_);
  if (found_.empty()) return;
  for (const CellRace& hit : found_) {
    const Record& earlier = table_.record(hit.earlier);
    Race race;
    race.race_class = ClassOf(hit.conflict);
    race.earlier = SideOf(earlier, hit.earlier_lane);
    race.later = SideOf(access, hit.later_lane, by_.async);
    race.region = access.region;
    race.offset = begin;
    race.bytes = access.bytes;
    race.same_warp = earlier.issuer == access.warp;
    const bool both_write =
        earlier.traits.kind == AccessKind::kWrite && access.kind == AccessKind::kWrite;
    if (hit.conflict == Conflict::kWeak && both_write && access.new_values != nullptr &&
        access.old_values != nullptr) {
      const std::uint64_t at = hit.later_lane * std::uint64_t{access.bytes} + (offset - begin);
      if (std::memcmp(access.new_values + at, access.old_values + at,
                      std::size_t{1} << cells.shift) == 0) {
        race.race_class = Race::Class::kSameValue;
      }
    }
    log_.Add(race);
  }
  found_.clear();
}

/// Lanes of one instruction that write the same place: nothing orders them.
void AccessPath::Siblings(const WarpAccess& access, LaneMask lanes) {
  const BlockNumber block = order_.BlockOf(access.warp);
  const std::uint32_t cluster = order_.ClusterOf(block);
  if (ConflictOf(actor_.traits, block, actor_.traits, block, cluster, cluster) != Conflict::kWeak)
    return;
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
  race.earlier = SideOf(access, static_cast<std::uint8_t>(first), by_.async);
  race.later = SideOf(access, static_cast<std::uint8_t>(other), by_.async);
  race.region = access.region;
  race.offset = access.offsets[first];
  race.bytes = access.bytes;
  race.same_warp = true;
  log_.Add(race);
}

}  // namespace assay::emu
