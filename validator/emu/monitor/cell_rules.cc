#include "validator/emu/monitor/cell_rules.h"

#include <algorithm>
#include <bit>

namespace assay::emu {

LaneMask CellRules::LanesOf(const Element& element) const {
  return std::rotl(shadow_.record(element.record).pattern, element.lane);
}

Element CellRules::ElementOf(const Actor& actor) const {
  return Element{actor.record, static_cast<std::uint8_t>(std::countr_zero(actor.lanes)), false};
}

std::optional<std::pair<int, int>> CellRules::Unordered(const Element& element,
                                                        const Actor& actor) const {
  const Record& record = shadow_.record(element.record);
  if (order_.WarpKnows(actor.warp, record.warp, record.time)) return std::nullopt;
  for (LaneMask theirs = LanesOf(element); theirs != 0; theirs &= theirs - 1) {
    const int their_lane = std::countr_zero(theirs);
    for (LaneMask ours = actor.lanes; ours != 0; ours &= ours - 1) {
      const int our_lane = std::countr_zero(ours);
      if (record.warp == actor.warp && their_lane == our_lane) continue;
      if (!order_.LaneKnows(actor.warp, our_lane, record.warp, their_lane, record.time)) {
        return std::pair{their_lane, our_lane};
      }
    }
  }
  return std::nullopt;
}

/// True when a later access to the cell has observed this writer and is ordered before the actor.
bool CellRules::Observed(std::size_t writer, const Actor& actor) const {
  if (writers_[writer].stale) return false;
  // One lane that saw it is enough, but it must come before each of the actor's lanes.
  const auto comes_before = [&](const Element& observer) {
    const Record& record = shadow_.record(observer.record);
    for (LaneMask lanes = LanesOf(observer); lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      bool before = true;
      for (LaneMask ours = actor.lanes; before && ours != 0; ours &= ours - 1) {
        const int our_lane = std::countr_zero(ours);
        before = (record.warp == actor.warp && lane == our_lane) ||
                 order_.LaneKnows(actor.warp, our_lane, record.warp, lane, record.time);
      }
      if (before) return true;
    }
    return false;
  };
  for (std::size_t i = writer + 1; i < writers_.size(); ++i) {
    const Element& later = writers_[i];
    if (!later.stale && shadow_.record(later.record).traits.kind == AccessKind::kReadWrite &&
        comes_before(later)) {
      return true;
    }
  }
  return std::any_of(readers_.begin(), readers_.end(),
                     [&](const Element& reader) { return !reader.stale && comes_before(reader); });
}

void CellRules::Check(const Actor& actor, const std::vector<Element>& side, bool are_writers,
                      std::vector<CellRace>& races) {
  const BlockNumber block = order_.BlockOf(actor.warp);
  for (std::size_t i = 0; i < side.size(); ++i) {
    const Record& record = shadow_.record(side[i].record);
    const BlockNumber their_block = order_.BlockOf(record.issuer);
    const Conflict conflict = ConflictOf(record.traits, their_block, *actor.traits, block,
                                         order_.ClusterOf(their_block), order_.ClusterOf(block));
    if (conflict == Conflict::kNone) continue;
    const auto pair = Unordered(side[i], actor);
    if (conflict == Conflict::kReadOnly) {
      // The read-only path sees no order at all, not even its own thread's.
      const auto lane = static_cast<std::uint8_t>(std::countr_zero(actor.lanes));
      races.push_back(CellRace{side[i],
                               pair ? static_cast<std::uint8_t>(pair->first) : side[i].lane,
                               pair ? static_cast<std::uint8_t>(pair->second) : lane, conflict});
      continue;
    }
    if (!pair) continue;
    if (are_writers && Observed(i, actor)) continue;
    races.push_back(CellRace{side[i], static_cast<std::uint8_t>(pair->first),
                             static_cast<std::uint8_t>(pair->second), conflict});
  }
}

void CellRules::InsertRead(const Actor& actor) {
  const BlockNumber block = order_.BlockOf(actor.warp);
  std::erase_if(readers_, [&](const Element& old) {
    const Record& record = shadow_.record(old.record);
    return Outdoes(*actor.traits, block, record.traits, order_.BlockOf(record.issuer)) &&
           (record.traits.read_only_path || !Unordered(old, actor));
  });
  readers_.push_back(ElementOf(actor));
  if (readers_.size() > kKept) DropImmortals(readers_);
}

void CellRules::InsertWrite(const Actor& actor) {
  const Traits& traits = *actor.traits;
  const BlockNumber block = order_.BlockOf(actor.warp);
  const bool continues_chain = traits.kind == AccessKind::kReadWrite && traits.strong();
  const auto drop = [&](const Element& old, bool observed) {
    const Record& record = shadow_.record(old.record);
    if (record.traits.read_only_path) return false;
    return Outdoes(traits, block, record.traits, order_.BlockOf(record.issuer)) &&
           (observed || !Unordered(old, actor));
  };
  std::erase_if(writers_,
                [&](const Element& old) { return drop(old, continues_chain && !old.stale); });
  std::erase_if(readers_, [&](const Element& old) { return drop(old, false); });
  if (!continues_chain) {
    for (Element& old : writers_) old.stale = true;
  }
  for (Element& old : readers_) old.stale = true;
  if (!traits.strong()) {
    // What is left here has raced with this write, and was reported.
    if (writers_.size() > kKept)
      writers_.erase(writers_.begin(), writers_.end() - static_cast<std::ptrdiff_t>(kKept));
    if (readers_.size() > kKept) {
      std::size_t extra = readers_.size() - kKept;
      std::erase_if(readers_, [&](const Element& old) {
        return extra != 0 && !shadow_.record(old.record).traits.read_only_path && extra-- != 0;
      });
    }
  }
  writers_.push_back(ElementOf(actor));
  if (writers_.size() > kKept) DropImmortals(writers_);
}

/// Of accesses that nobody will ever be ordered after, one of each kind is as good as all.
void CellRules::DropImmortals(std::vector<Element>& side) {
  std::vector<std::pair<Traits, BlockNumber>> kept;
  std::erase_if(side, [&](const Element& element) {
    const Record& record = shadow_.record(element.record);
    if (!order_.NeverKnown(record.warp, record.time)) return false;
    const BlockNumber block = order_.BlockOf(record.issuer);
    for (const auto& [traits, traits_block] : kept) {
      if (Outdoes(traits, traits_block, record.traits, block)) return true;
    }
    kept.emplace_back(record.traits, block);
    return false;
  });
}

void CellRules::Apply(const Actor& actor, Ref& writers, Ref& readers,
                      std::vector<CellRace>& races) {
  writers_.clear();
  readers_.clear();
  shadow_.Decode(writers, writers_);
  shadow_.Decode(readers, readers_);
  Check(actor, writers_, true, races);
  if (actor.traits->writes()) {
    Check(actor, readers_, false, races);
    InsertWrite(actor);
    writers = shadow_.Encode(writers_, writers);
  } else {
    InsertRead(actor);
  }
  readers = shadow_.Encode(readers_, readers);
}

}  // namespace assay::emu
