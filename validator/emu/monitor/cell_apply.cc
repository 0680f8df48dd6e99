// How CellRules goes about an access: the plain case, the memo, whole warps, single lanes.
#include <algorithm>

#include "validator/emu/monitor/cell_rules.h"

namespace assay::emu {

void CellRules::Load(Ref writers, Ref readers) {
  items_.clear();
  elements_.clear();
  table_.Decode(writers, elements_);
  table_.Decode(readers, elements_);
  std::uint32_t value = 0;
  for (const Element& element : elements_) {
    value += element.later_value ? 1 : 0;
    items_.push_back(Item{element.record, element.lane, value});
  }
}

/// Writers and readers apart where only weak writes are: neighbouring cells then share more. The
/// order between the two matters as soon as a strong write is among them: then all stand together,
/// in the place of the writers.
void CellRules::Store(Ref& writers, Ref& readers) {
  const bool together = std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return TraitsOf(item).writes() && TraitsOf(item).strong();
  });
  elements_.clear();
  reader_elements_.clear();
  std::uint32_t value = items_.empty() ? 0 : items_.front().value;
  for (const Item& item : items_) {
    if (together) {
      elements_.push_back(Element{item.record, item.lane, item.value != value});
      value = item.value;
    } else {
      (TraitsOf(item).writes() ? elements_ : reader_elements_)
          .push_back(Element{item.record, item.lane, false});
    }
  }
  const Ref old_writers = writers;
  const Ref old_readers = readers;
  writers = table_.Encode(elements_);
  readers = table_.Encode(reader_elements_);
  table_.Release(old_writers);
  table_.Release(old_readers);
}

bool CellRules::KnownToWarp(RecordId id, const Actor& actor) {
  if (id == known_record_ && actor.warp == known_warp_ && order_.version() == known_version_ &&
      table_.collections() == known_collections_) {
    return known_;
  }
  const Record& record = table_.record(id);
  known_ = order_.WarpKnows(actor.warp, record.warp, record.time);
  known_record_ = id;
  known_warp_ = actor.warp;
  known_version_ = order_.version();
  known_collections_ = table_.collections();
  return known_;
}

/// One weak writer and one weak reader at most, both ordered before a weak access: nearly all there
/// is. False: not such a case.
bool CellRules::ApplyPlain(const Actor& actor, Ref& writers, Ref& readers, bool line) {
  const Ref fresh = actor.record << kLaneBits | actor.lane;
  if ((writers | readers) == 0) {
    (actor.traits.writes() ? writers : readers) = fresh;
    return true;
  }
  if (actor.traits.strong() || IsSet(writers) || IsSet(readers)) return false;
  if (writers != 0) {
    const Record& record = table_.record(IndexOf(writers));
    if (record.traits.strong() || actor.traits.read_only_path()) return false;
    const bool own = actor.pattern == 1 && SameThreads(record, LaneOf(writers), actor, line);
    if (!own && !KnownToWarp(IndexOf(writers), actor)) return false;
  }
  if (readers == fresh) return !actor.traits.writes();
  if (readers != 0) {
    const Record& record = table_.record(IndexOf(readers));
    if (record.traits.strong()) return false;
    if (actor.traits.writes()) {
      if (record.traits.read_only_path()) return false;
      const bool own = actor.pattern == 1 && SameThreads(record, LaneOf(readers), actor, line);
      if (!own && !KnownToWarp(IndexOf(readers), actor)) return false;
    } else if (record.traits.read_only_path()) {
      if (!actor.traits.read_only_path()) return false;
    } else if (!SameThreads(record, LaneOf(readers), actor, line) &&
               !KnownToWarp(IndexOf(readers), actor)) {
      return false;
    }
  }
  if (actor.traits.writes()) {
    writers = fresh;
    readers = 0;
  } else {
    readers = fresh;
  }
  return true;
}

bool CellRules::ApplyWarpWide(const Actor& actor, Ref& writers, Ref& readers, bool line) {
  const std::uint64_t version = order_.version() + table_.collections();
  const Ref before_writers = writers == 0 ? 0 : WithLane(writers, LaneOf(writers) - actor.lane);
  const Ref before_readers = readers == 0 ? 0 : WithLane(readers, LaneOf(readers) - actor.lane);
  const std::uint32_t hash =
      before_writers * 0x9e3779b9u ^ before_readers * 0x85ebca6bu ^ actor.record * 0xc2b2ae35u;
  Memo& memo = memo_[(hash ^ hash >> 16) % memo_.size()];
  const auto turned = [&](Ref ref) {
    return ref == 0 ? 0 : WithLane(ref, LaneOf(ref) + actor.lane);
  };
  if (memo.version == version && memo.record == actor.record && memo.line == line &&
      memo.writers == before_writers && memo.readers == before_readers &&
      memo.generations[0] == table_.Generation(before_writers) &&
      memo.generations[1] == table_.Generation(before_readers) &&
      memo.generations[2] == table_.Generation(memo.new_writers) &&
      memo.generations[3] == table_.Generation(memo.new_readers)) {
    table_.Use(memo.new_writers);
    table_.Use(memo.new_readers);
    table_.Release(writers);
    table_.Release(readers);
    writers = turned(memo.new_writers);
    readers = turned(memo.new_readers);
    return true;
  }
  warp_wide_ = true;
  line_ = line;
  undecided_ = false;
  Load(writers, readers);
  if (!CheckWarpWide(actor) || undecided_) return false;
  if (actor.traits.writes()) {
    InsertWrite(actor);
  } else {
    InsertRead(actor);
  }
  if (undecided_) return false;
  // Of lines, all elements must map bytes to lanes alike.
  if (line && std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
        return TraitsOf(item).bytes != actor.traits.bytes;
      })) {
    return false;
  }
  const std::uint32_t old_generations[2] = {table_.Generation(writers), table_.Generation(readers)};
  Store(writers, readers);
  memo.version = version;
  memo.record = actor.record;
  memo.line = line;
  memo.writers = before_writers;
  memo.readers = before_readers;
  memo.new_writers = writers == 0 ? 0 : WithLane(writers, LaneOf(writers) - actor.lane);
  memo.new_readers = readers == 0 ? 0 : WithLane(readers, LaneOf(readers) - actor.lane);
  memo.generations[0] = old_generations[0];
  memo.generations[1] = old_generations[1];
  memo.generations[2] = table_.Generation(writers);
  memo.generations[3] = table_.Generation(readers);
  return true;
}

void CellRules::ApplyByLanes(const Actor& actor, Ref& writers, Ref& readers,
                             std::vector<CellRace>& races) {
  warp_wide_ = false;
  line_ = false;
  Load(writers, readers);
  Check(actor, races);
  if (actor.traits.writes()) {
    InsertWrite(actor);
  } else {
    InsertRead(actor);
  }
  Store(writers, readers);
}

}  // namespace assay::emu
