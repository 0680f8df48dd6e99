#include "validator/emu/race/cell_rules.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace assay::emu {
namespace {

bool IsReadModifyWrite(const Traits& traits) {
  return traits.kind == AccessKind::kReadWrite && traits.strong();
}

}  // namespace

LaneMask CellRules::LanesOf(const Item& item) const {
  return std::rotl(table_.record(item.record).pattern, item.lane);
}

Conflict CellRules::Conflicts(const Record& a, const Record& b) const {
  if (NeverConflict(a.traits, b.traits)) return Conflict::kNone;
  const BlockNumber a_block = order_.BlockOf(a.issuer);
  const BlockNumber b_block = order_.BlockOf(b.issuer);
  return ConflictOf(a.traits, a_block, b.traits, b_block, order_.ClusterOf(a_block),
                    order_.ClusterOf(b_block));
}

std::optional<std::pair<int, int>> CellRules::UnorderedPair(const Item& item, const Actor& actor,
                                                            LaneMask lanes) const {
  const Record& record = table_.record(item.record);
  const LaneMask all = LanesOf(item);
  if (!(std::has_single_bit(all) && std::has_single_bit(lanes)) &&
      order_.WarpKnows(actor.warp, record.warp, record.time))
    return std::nullopt;
  for (LaneMask theirs = all; theirs != 0; theirs &= theirs - 1) {
    const int their_lane = std::countr_zero(theirs);
    for (LaneMask ours = lanes; ours != 0; ours &= ours - 1) {
      const int our_lane = std::countr_zero(ours);
      if (record.warp == actor.warp && their_lane == our_lane) continue;
      if (!order_.LaneKnows(actor.warp, our_lane, record.warp, their_lane, record.time)) {
        return std::pair{their_lane, our_lane};
      }
    }
  }
  return std::nullopt;
}

/// A strong write whose value a later read of the same value has seen for certain. Of several plain
/// writes by sibling lanes nobody can tell whose value was read.
bool CellRules::Observable(const Item& item) const {
  const Traits& traits = TraitsOf(item);
  if (!traits.writes() || !traits.strong()) return false;
  return IsReadModifyWrite(traits) || std::has_single_bit(LanesOf(item));
}

LaneMask CellRules::Evidence(std::size_t i, const Actor& actor) const {
  const Record& written = table_.record(items_[i].record);
  if (!Observable(items_[i])) return 0;
  LaneMask ordered = 0;
  std::size_t end = i + 1;
  while (end < items_.size() && items_[end].value == items_[i].value) ++end;
  // From the newest on: mostly it is the last observer that the actor comes after.
  for (std::size_t z = end; --z > i && ordered != actor.lanes;) {
    const Record& observer = table_.record(items_[z].record);
    if (!observer.traits.reads()) continue;
    // An observer that raced with what it saw shows nothing.
    if (Conflicts(written, observer) != Conflict::kNone) continue;
    for (LaneMask ours = actor.lanes & ~ordered; ours != 0; ours &= ours - 1) {
      const int our_lane = std::countr_zero(ours);
      for (LaneMask theirs = LanesOf(items_[z]); theirs != 0; theirs &= theirs - 1) {
        const int lane = std::countr_zero(theirs);
        if ((observer.warp == actor.warp && lane == our_lane) ||
            order_.LaneKnows(actor.warp, our_lane, observer.warp, lane, observer.time)) {
          ordered |= 1u << our_lane;
          break;
        }
      }
    }
  }
  return ordered;
}

std::optional<std::pair<int, int>> CellRules::UnorderedPairByAll(std::size_t i,
                                                                 const Actor& actor) const {
  const auto pair = UnorderedPair(items_[i], actor, actor.lanes);
  if (!pair) return pair;
  const LaneMask evidence = Evidence(i, actor);
  return evidence == 0 ? pair : UnorderedPair(items_[i], actor, actor.lanes & ~evidence);
}

bool CellRules::Ordered(const Item& item, const Actor& actor) {
  if (!warp_wide_) return !UnorderedPair(item, actor, actor.lanes);
  const Record& record = table_.record(item.record);
  if (IsOfOwnTwins(record, item.lane, actor, line_)) return true;
  const auto knowledge = order_.WarpKnowledge(actor.warp, record.warp, record.time);
  if (knowledge == ThreadOrder::Knowledge::kAll) return true;
  if (record.warp == actor.warp) {
    if (SameThreads(record, item.lane, actor, line_) && actor.pattern == 1) return true;
    undecided_ = true;
  }
  undecided_ = undecided_ || knowledge == ThreadOrder::Knowledge::kSome;
  return false;
}

bool CellRules::Superseded(const Item& item, const Actor& actor) {
  const Record& record = table_.record(item.record);
  if (warp_wide_) return SameThreads(record, item.lane, actor, line_) || Ordered(item, actor);
  for (LaneMask theirs = LanesOf(item); theirs != 0; theirs &= theirs - 1) {
    const int their_lane = std::countr_zero(theirs);
    bool before = record.warp == actor.warp && (actor.lanes >> their_lane & 1u) != 0;
    for (LaneMask ours = actor.lanes; !before && ours != 0; ours &= ours - 1) {
      before = order_.LaneKnows(actor.warp, std::countr_zero(ours), record.warp, their_lane,
                                record.time);
    }
    if (!before) return false;
  }
  return true;
}

bool CellRules::SupersededByAll(std::size_t i, const Actor& actor) {
  if (Superseded(items_[i], actor)) return true;
  if (warp_wide_) {
    undecided_ = undecided_ || Observable(items_[i]);
    return false;
  }
  return Evidence(i, actor) == actor.lanes;
}

void CellRules::Check(const Actor& actor, std::vector<CellRace>& races) const {
  const Record& own = table_.record(actor.record);
  const std::size_t before = races.size();
  const Item* newest = nullptr;  // The last read-modify-write that races.
  for (std::size_t i = items_.size(); i-- > 0;) {
    const Record& record = table_.record(items_[i].record);
    const Conflict conflict = Conflicts(record, own);
    if (conflict == Conflict::kNone) continue;
    auto pair = UnorderedPairByAll(i, actor);
    // The read-only path sees no order at all, not even its own thread's.
    if (!pair && conflict == Conflict::kReadOnly)
      pair = {items_[i].lane, std::countr_zero(actor.lanes)};
    if (!pair) continue;
    if (IsReadModifyWrite(record.traits)) {
      // Where those between the two were not kept (ApplyAtomic), nobody knows whether the actor is
      // ordered after the earlier one.
      if (!narrow_scopes_ && newest != nullptr && newest->value == items_[i].value) continue;
      newest = &items_[i];
    }
    races.push_back(CellRace{items_[i].record, static_cast<std::uint8_t>(pair->first),
                             static_cast<std::uint8_t>(pair->second), conflict});
  }
  std::reverse(races.begin() + static_cast<std::ptrdiff_t>(before), races.end());
}

/// True when nothing in the cell races with the actor, as far as warps as a whole can tell.
bool CellRules::CheckWarpWide(const Actor& actor) {
  const Record& own = table_.record(actor.record);
  for (const Item& item : items_) {
    const Record& record = table_.record(item.record);
    // A line's elements belong to the same lanes only if they are as wide.
    if (line_ && record.traits.bytes != actor.traits.bytes &&
        !order_.WarpKnows(actor.warp, record.warp, record.time)) {
      return false;
    }
    const Conflict conflict = Conflicts(record, own);
    if (conflict == Conflict::kNone) continue;
    if (conflict == Conflict::kReadOnly || !Ordered(item, actor)) return false;
  }
  return true;
}

/// Outdone by a weak access, or by one of the same block: narrow scopes, if there are any, then look
/// at both alike.
bool CellRules::OutdoneBy(const Record& later, const Record& old) const {
  if (!Outdoes(later.traits, old.traits)) return false;
  return !later.traits.strong() || !narrow_scopes_ ||
         order_.BlockOf(later.issuer) == order_.BlockOf(old.issuer);
}

void CellRules::InsertRead(const Actor& actor) {
  const Record& own = table_.record(actor.record);
  const auto lane = static_cast<std::uint8_t>(actor.lane);
  const std::uint32_t value = items_.empty() ? 0 : items_.back().value;
  // Who has seen a strong write is evidence that what follows that reader is ordered after the
  // write; a later reader says that of fewer. Where only weak writes are, evidence is of no use: a
  // reader without order has raced.
  const bool strong = std::any_of(items_.begin(), items_.end(), [&](const Item& i) {
    return TraitsOf(i).writes() && TraitsOf(i).strong();
  });
  const bool evidence = strong && items_.size() < kEvidenceKept;
  std::erase_if(items_, [&](const Item& old) {
    if (old.record == actor.record && old.lane == lane && old.value == value) return true;
    const Record& record = table_.record(old.record);
    return !evidence && OutdoneBy(own, record) &&
           (record.traits.read_only_path() || Superseded(old, actor));
  });
  if (items_.size() >= kManyReaders && !line_) DropEarlierOfThreads();
  items_.push_back(Item{actor.record, lane, value});
  if (items_.size() > kRacedKept) DropImmortals();
}

void CellRules::InsertWrite(const Actor& actor) {
  const Record& own = table_.record(actor.record);
  const Traits& traits = own.traits;
  const bool continues = IsReadModifyWrite(traits);
  const std::uint32_t value = items_.empty() ? 0 : items_.back().value;
  const std::uint32_t cluster = order_.ClusterOf(order_.BlockOf(actor.warp));

  // From the newest to the oldest: what covers an item is younger than it. Of scopes that may be
  // narrow: an item that two stores outdo and come after, in clusters of their own, is covered as
  // well, since whoever races with it races with one of the two. Whether the older of them came
  // after it is kept with the item (`behind`): a lock that is handed on through blocks costs each of
  // them the same.
  dropped_.assign(items_.size(), false);
  bool stores = false;     // Kept: a strong store,
  bool far_store = false;  // and one from another cluster than the actor's.
  bool other_cluster =
      false;  // Kept: a read-modify-write of this value from another cluster than the actor's.
  for (std::size_t i = items_.size(); i-- > 0;) {
    const Item& old = items_[i];
    const Record& record = table_.record(old.record);
    if (record.traits.read_only_path()) continue;
    const bool observed = continues && old.value == value && record.traits.writes() &&
                          (Observable(old) || !record.traits.strong());
    const bool outdone = Outdoes(traits, record.traits);
    if (outdone) {
      // A later access of narrow scope cannot be in the block of both, if two that are far apart
      // are kept.
      const bool covered = OutdoneBy(own, record) || (observed && other_cluster);
      dropped_[i] = covered && (observed || SupersededByAll(i, actor));
    }
    if (narrow_scopes_ && traits.strong() && !dropped_[i]) {
      const bool far = old.behind && far_store;
      const bool after = outdone && (far || !continues) && Superseded(old, actor);
      dropped_[i] = far && after;
      if (!continues) items_[i].behind = after && (old.behind || !stores);
    }
    // A weak write ends what strong accesses before it were good for; if it was not ordered after
    // them, that was reported.
    if (!traits.strong() && record.traits.strong()) dropped_[i] = true;
    if (dropped_[i] || !record.traits.strong() || !record.traits.writes()) continue;
    const bool far = order_.ClusterOf(order_.BlockOf(record.issuer)) != cluster;
    if (!IsReadModifyWrite(record.traits)) {
      stores = true;
      far_store = far_store || far;
    } else {
      other_cluster = other_cluster || (observed && far);
    }
  }
  if (traits.strong() && items_.size() < kEvidenceKept) KeepEvidence(actor);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!dropped_[i]) items_[kept++] = items_[i];
  }
  items_.resize(kept);
  if (!traits.strong() && items_.size() > kRacedKept) DropRaced();
  if (items_.size() >= kManyReaders && !line_) DropEarlierOfThreads();
  items_.push_back(
      Item{actor.record, static_cast<std::uint8_t>(actor.lane), continues ? value : value + 1});
  if (items_.size() > kRacedKept) DropImmortals();
}

/// A writer that stays, and is ordered before the actor by evidence alone, needs its witnesses: of
/// each thread the first one, since who comes after a later one comes after that as well.
void CellRules::KeepEvidence(const Actor& actor) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (dropped_[i] || !Observable(items_[i])) continue;
    const Record& written = table_.record(items_[i].record);
    std::optional<bool> ordered;  // Asked where there is a witness.
    for (std::size_t z = i + 1; z < items_.size() && items_[z].value == items_[i].value; ++z) {
      const Record& witness = table_.record(items_[z].record);
      if (!dropped_[z] || !witness.traits.reads() ||
          Conflicts(written, witness) != Conflict::kNone) {
        continue;
      }
      if (!ordered) ordered = Ordered(items_[i], actor);
      if (*ordered) break;
      dropped_[z] = HasWitness(i, z);
    }
  }
}

/// Has the i-th item an earlier witness of the same threads than the z-th, that stays?
bool CellRules::HasWitness(std::size_t i, std::size_t z) const {
  const Record& written = table_.record(items_[i].record);
  const Record& later = table_.record(items_[z].record);
  for (std::size_t y = i + 1; y < z; ++y) {
    const Record& earlier = table_.record(items_[y].record);
    if (!dropped_[y] && earlier.warp == later.warp && items_[y].lane == items_[z].lane &&
        earlier.pattern == later.pattern && earlier.traits.reads() &&
        Conflicts(written, earlier) == Conflict::kNone) {
      return true;
    }
  }
  return false;
}

/// After a weak write, all that is left has raced with it and was reported, but for reads by the
/// read-only path.
void CellRules::DropRaced() {
  std::size_t extra = items_.size() - kRacedKept;
  std::erase_if(items_, [&](const Item& old) {
    if (extra == 0 || TraitsOf(old).read_only_path()) return false;
    --extra;
    return true;
  });
}

/// Of many strong accesses, a thread's later one stands for its earlier ones that race with no more.
/// Those are no evidence any longer, where there are so many.
void CellRules::DropEarlierOfThreads() {
  const auto key = [&](const Item& item) {
    const Record& record = table_.record(item.record);
    return std::tuple(record.warp, item.lane, record.pattern);
  };
  std::vector<std::size_t> order(items_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return key(items_[i]); });
  dropped_.assign(items_.size(), false);
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && key(items_[order[end]]) == key(items_[order[first]])) ++end;
    // From the newest on, what stays: a handful of kinds.
    std::vector<const Traits*> kept;
    for (std::size_t i = end; i-- > first;) {
      const Traits& traits = TraitsOf(items_[order[i]]);
      if (!traits.strong()) continue;
      const bool stands =
          std::ranges::any_of(kept, [&](const Traits* later) { return Outdoes(*later, traits); });
      dropped_[order[i]] = stands;
      if (!stands) kept.push_back(&traits);
    }
    first = end;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!dropped_[i]) items_[kept++] = items_[i];
  }
  items_.resize(kept);
}

/// Of accesses that nobody will ever be ordered after, one of each kind is as good as all; of
/// strong ones two that are far apart.
void CellRules::DropImmortals() {
  std::vector<const Record*> kept;
  std::erase_if(items_, [&](const Item& item) {
    const Record& record = table_.record(item.record);
    if (!order_.NeverKnown(record.warp, record.time)) return false;
    const Record* first = nullptr;
    for (const Record* other : kept) {
      if (!Outdoes(other->traits, record.traits)) continue;
      if (OutdoneBy(*other, record)) return true;
      if (first != nullptr && order_.ClusterOf(order_.BlockOf(first->issuer)) !=
                                  order_.ClusterOf(order_.BlockOf(other->issuer))) {
        return true;
      }
      if (first == nullptr) first = other;
    }
    kept.push_back(&record);
    return false;
  });
}

}  // namespace assay::emu
