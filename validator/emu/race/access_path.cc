#include "validator/emu/race/access_path.h"

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
  traits.flags = static_cast<std::uint8_t>((access.atomic ? Traits::kAtomic : 0) |
                                           (access.read_only_path ? Traits::kReadOnlyPath : 0) |
                                           (async ? Traits::kAsync : 0));
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
  actor_.alone = (access.lanes & (access.lanes - 1)) == 0;
  if (!by.async && by.time == 0) order_.OnTouch(access.warp, access.lanes);
  actor_.record = 0;
  if (IsRow(access)) {
    SetRecord(access, 1);
    Row(access, access.offsets[0], 0, kWarpSize);
    return;
  }
  FindGroups(access);
  if (GroupsAreRow(access)) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(groups_[0].lanes));
    SetRecord(access, std::rotr(groups_[0].lanes, static_cast<int>(lane)));
    Row(access, groups_[0].offset, lane, static_cast<std::uint32_t>(group_count_));
    return;
  }
  if (access.bytes == 2 || access.bytes == 4) return Words(access);
  for (std::size_t g = 0; g < group_count_ && !shadow_.exhausted(); ++g) Place(access, groups_[g]);
}

void AccessPath::CheckProxy(const WarpAccess& read, ProxyFences& fences) {
  const BlockNumber block = order_.BlockOf(read.warp);
  std::vector<Element> elements;
  const auto check = [&](Ref writers, int issuer_lane, std::uint64_t offset) {
    elements.clear();
    table_.Decode(writers, elements);
    for (const Element& element : elements) {
      const Record& write = table_.record(element.record);
      const bool by_async_proxy = IsAgent(write.warp) && !IsTwin(write.warp);
      if (!write.traits.writes() || by_async_proxy || order_.BlockOf(write.issuer) != block)
        continue;
      const int lane = element.lane;
      const bool own = write.warp == read.warp && lane == issuer_lane;
      // Without any order it is a race anyway.
      if (!own && !order_.LaneKnows(read.warp, issuer_lane, write.warp, lane, write.time)) continue;
      if (fences.Between(write, lane, read.warp, issuer_lane)) continue;
      Race race;
      race.race_class = Race::Class::kProxy;
      race.earlier = SideOf(write, element.lane);
      race.later = SideOf(read, static_cast<std::uint8_t>(issuer_lane), true);
      race.region = read.region;
      race.offset = offset;
      race.bytes = write.traits.bytes;
      race.same_warp = write.issuer == read.warp;
      race.across_warps = !race.same_warp;
      log_.Add(race);
    }
  };
  if (shadow_.IsReadOnly(read.region)) return;
  for (LaneMask rest = read.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t end = read.offsets[lane] + read.bytes;
    for (std::uint64_t at = read.offsets[lane]; at < end;) {
      Shadow::Page* const page = shadow_.PageAt(read.region, at);
      if (page == nullptr) return;
      const std::size_t index = at / Shadow::kLineBytes % Shadow::kPageLines;
      const std::uint64_t next = (at / Shadow::kLineBytes + 1) * Shadow::kLineBytes;
      Shadow::Line& line = page->lines[index];
      if (line.cells == nullptr) {
        check(line.writers, lane, at);
      } else {
        const Shadow::Cells cells = shadow_.Split(*page, index, page->shift[index]);
        for (std::uint64_t byte = at; byte < std::min(next, end);
             byte += std::uint64_t{1} << cells.shift)
          check(cells.writers[byte % Shadow::kLineBytes >> cells.shift], lane, byte);
      }
      at = next;
    }
  }
}

void AccessPath::Words(const WarpAccess& access) {
  constexpr std::uint64_t kPageBytes = std::uint64_t{Shadow::kLineBytes} * Shadow::kPageLines;
  const bool writes = actor_.traits.writes();
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(access.bytes));
  const std::uint32_t of_line = Shadow::kLineBytes >> shift;
  std::uint64_t page_number = ~std::uint64_t{0};
  Shadow::Page* page = nullptr;
  for (std::size_t g = 0; g < group_count_; ++g) {
    const Group& group = groups_[g];
    const std::uint64_t offset = group.offset;
    if (offset / kPageBytes != page_number) {
      page_number = offset / kPageBytes;
      page = shadow_.PageAt(access.region, offset);
      if (page == nullptr) return;
    }
    const std::size_t line = offset / Shadow::kLineBytes % Shadow::kPageLines;
    Ref* const refs = page->lines[line].cells.get();
    if (refs == nullptr || page->shift[line] != shift || offset % access.bytes != 0 ||
        (writes && (group.lanes & (group.lanes - 1)) != 0)) {
      Place(access, group);
      if (shadow_.exhausted()) return;
      continue;
    }
    actor_.lane = static_cast<std::uint32_t>(std::countr_zero(group.lanes));
    actor_.lanes = group.lanes;
    const LaneMask pattern = std::rotr(group.lanes, static_cast<int>(actor_.lane));
    if (pattern != actor_.pattern || actor_.record == 0 || by_.pins != nullptr)
      SetRecord(access, pattern);
    Shadow::Cells cells{refs, refs + of_line, shift};
    Cell(access, cells, (offset >> shift) % of_line, offset, offset);
  }
}

void AccessPath::SetRecord(const WarpAccess& access, LaneMask pattern) {
  if (actor_.record != 0 && actor_.pattern == pattern && by_.pins == nullptr) return;
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
    record.time = by_.time != 0 ? by_.time : order_.NowOf(access.warp);
    actor_.record = table_.Intern(record);
  }
  actor_.pattern = pattern;
}

bool AccessPath::IsRow(const WarpAccess& access) const {
  const std::uint64_t bytes = access.bytes;
  const std::uint64_t base = access.offsets[0];
  if (access.lanes != kAllLanes || bytes > kWidestLane || (bytes & (bytes - 1)) != 0 ||
      (base & (bytes - 1)) != 0) {
    return false;
  }
  if (access.is_row) return true;
  // Vectors of two, because this is a good part of what a coalesced access costs.
  using Pair = std::uint64_t __attribute__((vector_size(16)));
  const Pair step = {4 * bytes, 4 * bytes};
  Pair expected = {base, base + bytes};
  Pair expected_too = {base + 2 * bytes, base + 3 * bytes};
  Pair wrong = {};
  Pair wrong_too = {};
  for (int lane = 0; lane < kWarpSize; lane += 4) {
    Pair actual;
    Pair actual_too;
    std::memcpy(&actual, access.offsets + lane, sizeof(Pair));
    std::memcpy(&actual_too, access.offsets + lane + 2, sizeof(Pair));
    wrong |= actual ^ expected;
    wrong_too |= actual_too ^ expected_too;
    expected += step;
    expected_too += step;
  }
  wrong |= wrong_too;
  return (wrong[0] | wrong[1]) == 0;
}

void AccessPath::FindGroups(const WarpAccess& access) {
  group_count_ = 0;
  std::size_t last = 0;
  bool hashed = false;
  const auto slot_of = [&](std::uint64_t offset) -> Slot& {
    std::uint64_t at = offset * 0x9e3779b97f4a7c15u >> 58;
    while (slots_[at].number == slot_number_ && groups_[slots_[at].group].offset != offset)
      at = (at + 1) % slots_.size();
    return slots_[at];
  };
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = access.offsets[lane];
    // The place of the lane before, or the one after that, round and round.
    if (group_count_ != 0) {
      if (groups_[last].offset != offset) last = last + 1 == group_count_ ? 0 : last + 1;
      if (groups_[last].offset == offset) {
        groups_[last].lanes |= 1u << lane;
        continue;
      }
    }
    // A new one for certain, as long as they ascend; then a table knows.
    if (!hashed && (group_count_ == 0 || offset > groups_[group_count_ - 1].offset)) {
      last = group_count_;
      groups_[group_count_++] = Group{offset, 1u << lane};
      continue;
    }
    if (!hashed) {
      hashed = true;
      ++slot_number_;
      for (std::uint32_t g = 0; g < group_count_; ++g)
        slot_of(groups_[g].offset) = {slot_number_, g};
    }
    Slot& slot = slot_of(offset);
    if (slot.number != slot_number_) {
      slot = {slot_number_, static_cast<std::uint32_t>(group_count_)};
      groups_[group_count_++] = Group{offset, 0};
    }
    last = slot.group;
    groups_[last].lanes |= 1u << lane;
  }
}

bool AccessPath::GroupsAreRow(const WarpAccess& access) const {
  const std::uint64_t bytes = access.bytes;
  if (bytes > kWidestLane || (bytes & (bytes - 1)) != 0 || (groups_[0].offset & (bytes - 1)) != 0 ||
      bytes * group_count_ < Shadow::kLineBytes || by_.pins != nullptr) {
    return false;
  }
  // Several lanes that write one place are looked at one by one.
  if ((groups_[0].lanes & (groups_[0].lanes - 1)) != 0 && actor_.traits.writes()) return false;
  for (std::size_t g = 1; g < group_count_; ++g) {
    if (groups_[g].offset != groups_[0].offset + g * bytes ||
        groups_[g].lanes != std::rotl(groups_[0].lanes, static_cast<int>(g))) {
      return false;
    }
  }
  return true;
}

void AccessPath::Row(const WarpAccess& access, std::uint64_t base, std::uint32_t lane,
                     std::uint32_t count) {
  const std::uint64_t end = base + std::uint64_t{count} * access.bytes;
  const auto log_bytes = static_cast<std::uint32_t>(std::countr_zero(access.bytes));
  for (std::uint64_t at = base; at < end;) {
    const std::uint64_t line_base = at / Shadow::kLineBytes * Shadow::kLineBytes;
    const std::uint64_t stop = std::min(end, line_base + Shadow::kLineBytes);
    Shadow::Page* page = shadow_.PageAt(access.region, line_base);
    if (page == nullptr) return;
    const std::size_t index = line_base / Shadow::kLineBytes % Shadow::kPageLines;
    Shadow::Line& line = page->lines[index];
    if (stop - at == Shadow::kLineBytes && line.cells == nullptr) {
      actor_.lane = lane + static_cast<std::uint32_t>((at - base) >> log_bytes);
      if (rules_.ApplyLine(actor_, line.writers, line.readers)) {
        at = stop;
        continue;
      }
    }
    Shadow::Cells cells = shadow_.Split(*page, index, std::min(Shadow::kCoarsest, log_bytes));
    if (shadow_.exhausted()) return;
    for (; at < stop; at += std::uint64_t{1} << cells.shift) {
      const std::uint64_t element = (at - base) >> log_bytes;
      actor_.lane = lane + static_cast<std::uint32_t>(element);
      actor_.lanes = std::rotl(actor_.pattern, static_cast<int>(actor_.lane));
      Cell(access, cells, (at - line_base) >> cells.shift, base + (element << log_bytes), at);
    }
  }
}

void AccessPath::Place(const WarpAccess& access, const Group& group) {
  if (actor_.traits.writes() && (group.lanes & (group.lanes - 1)) != 0)
    ReportSiblings(access, group.lanes);
  actor_.lane = static_cast<std::uint32_t>(std::countr_zero(group.lanes));
  actor_.lanes = group.lanes;
  SetRecord(access, std::rotr(group.lanes, static_cast<int>(actor_.lane)));
  const std::uint64_t begin = group.offset;
  const std::uint64_t end = begin + access.bytes;
  // The finest granule that this access needs.
  const std::uint32_t shift = std::min(
      Shadow::kCoarsest, static_cast<std::uint32_t>(std::countr_zero(begin | access.bytes)));
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

void AccessPath::Report(const WarpAccess& access, std::uint32_t shift, std::uint64_t begin,
                        std::uint64_t offset) {
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
    race.across_warps = !race.same_warp;
    race.across_blocks = order_.BlockOf(earlier.issuer) != order_.BlockOf(access.warp);
    const bool both_write =
        earlier.traits.kind == AccessKind::kWrite && access.kind == AccessKind::kWrite;
    if (hit.conflict == Conflict::kWeak && both_write) {
      const Values values = ValuesOf(access);
      const std::uint64_t at = hit.later_lane * std::uint64_t{access.bytes} + (offset - begin);
      if (values.now != nullptr && values.before != nullptr &&
          std::memcmp(values.now + at, values.before + at, std::size_t{1} << shift) == 0) {
        race.race_class = Race::Class::kSameValue;
      }
    }
    log_.Add(race);
  }
  found_.clear();
}

AccessPath::Values AccessPath::ValuesOf(const WarpAccess& access) {
  if (access.values == nullptr) return {access.new_values, access.old_values};
  const std::size_t element = access.element_bytes != 0 ? access.element_bytes : access.bytes;
  new_values_.resize(std::size_t{kWarpSize} * access.bytes);
  old_values_.resize(new_values_.size());
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::size_t at = lane * access.bytes;
    for (std::size_t e = 0; e * element < access.bytes; ++e) {
      std::memcpy(new_values_.data() + at + e * element,
                  access.values->registers[e] + lane * access.values->register_bytes, element);
    }
    std::memcpy(old_values_.data() + at,
                reinterpret_cast<const std::byte*>(access.values->memory[lane]), access.bytes);
  }
  return {new_values_.data(), old_values_.data()};
}

/// Lanes of one instruction that write the same place: nothing orders them.
void AccessPath::ReportSiblings(const WarpAccess& access, LaneMask lanes) {
  const BlockNumber block = order_.BlockOf(access.warp);
  const std::uint32_t cluster = order_.ClusterOf(block);
  if (ConflictOf(actor_.traits, block, actor_.traits, block, cluster, cluster) != Conflict::kWeak)
    return;
  const int first = std::countr_zero(lanes);
  int other = std::countr_zero(lanes & (lanes - 1));
  const std::byte* const values = ValuesOf(access).now;
  bool same = values != nullptr;
  for (LaneMask rest = lanes & (lanes - 1); same && rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto bytes = static_cast<std::ptrdiff_t>(access.bytes);
    if (std::memcmp(values + first * bytes, values + lane * bytes, access.bytes) != 0) {
      same = false;
      other = lane;
    }
  }
  if (same && access.siblings_may_agree) return;
  Race race;
  race.race_class = same ? Race::Class::kSameValue : Race::Class::kRace;
  race.earlier = SideOf(access, static_cast<std::uint8_t>(first), by_.async);
  race.later = SideOf(access, static_cast<std::uint8_t>(other), by_.async);
  race.region = access.region;
  race.offset = access.offsets[first];
  race.bytes = access.bytes;
  race.same_warp = true;
  race.one_instruction = true;
  log_.Add(race);
}

}  // namespace assay::emu
