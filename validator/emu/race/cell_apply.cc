// How CellRules goes about an access: the plain case, the memo, whole warps, single lanes.
#include <algorithm>
#include <bit>
#include <span>

#include "validator/emu/race/cell_rules.h"

namespace assay::emu {

void CellRules::Load(Ref writers, Ref readers) {
  items_.clear();
  elements_.clear();
  if (table_.ReadersFirst(readers)) std::swap(writers, readers);
  table_.Decode(writers, elements_);
  table_.Decode(readers, elements_);
  std::uint32_t value = 0;
  for (const Element& element : elements_) {
    value += element.later_value ? 1 : 0;
    items_.push_back(Item{element.record, element.lane, value, element.behind});
  }
  // Stores that were just added (ApplyWide) were not held against those before them.
  for (std::size_t i = items_.size(); i > table_.TidySizeOf(writers); --i) {
    if (!elements_[i - 1].later_value) continue;
    for (Item& item : std::span(items_).first(i - 1)) item.behind = false;
    break;
  }
}

/// Writers and readers apart where only weak writes are: neighbouring cells then share more. The
/// order between the two matters as soon as a strong write is among them: then all stand together,
/// in the place of the writers. Two writes of one value (the second is a read-modify-write) need no
/// set: the earlier one stands in the place of the readers.
void CellRules::Store(Ref& writers, Ref& readers) {
  const bool together = std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return TraitsOf(item).writes() && TraitsOf(item).strong();
  });
  const bool pair = together && items_.size() == 2 && items_[0].value == items_[1].value &&
                    TraitsOf(items_[0]).writes() && TraitsOf(items_[1]).writes();
  elements_.clear();
  reader_elements_.clear();
  std::uint32_t value = items_.empty() ? 0 : items_.front().value;
  for (const Item& item : items_) {
    if (pair) {
      (&item == &items_[1] ? elements_ : reader_elements_)
          .push_back(Element{item.record, item.lane, false});
    } else if (together) {
      elements_.push_back(Element{item.record, item.lane, item.value != value, item.behind});
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

void CellRules::DecideReaders(const Actor& actor, Ref readers, ReadersMemo& memo) {
  memo.plain = false;
  memo.new_readers = 0;
  memo.new_generation = 0;
  if (actor.traits.read_only_path()) return;
  const bool writes = actor.traits.writes();
  const Element own_element{actor.record, static_cast<std::uint8_t>(actor.lane), false};
  const std::uint32_t size = table_.SizeOf(readers);
  if (!writes && size >= kManyReaders && size < 2 * table_.TidySizeOf(readers) &&
      IsPlainReader(table_.First(readers), actor, memo.line)) {
    // All of them are alike in that: one more, and now and then a look through all of them.
    memo.plain = true;
    const Ref after = table_.Append(readers, own_element);
    memo.new_readers = WithLane(after, LaneOf(after) - actor.lane);
    memo.new_generation = table_.Generation(after);
    return;
  }
  elements_.clear();
  table_.Decode(readers, elements_);
  const Time now = order_.NowOf(actor.warp);
  const BlockNumber block = order_.BlockOf(actor.warp);
  bool among_them = false;
  std::size_t kept = 0;
  for (const Element& element : elements_) {
    const Record& record = table_.record(element.record);
    if (!IsPlainReader(record, actor, memo.line)) return;
    // A read that nothing can be ordered after yet stays. Others are superseded by a reader that
    // knows them.
    const bool own = SameThreads(record, element.lane, actor, memo.line);
    const bool fresh = record.time == now && order_.BlockOf(record.issuer) == block && !own;
    const bool known = !fresh && ((own && (!writes || actor.pattern == 1)) ||
                                  order_.WarpKnows(actor.warp, record.warp, record.time));
    if (writes && !known) return;
    among_them = among_them || (element.record == actor.record && element.lane == actor.lane);
    if (!known) elements_[kept++] = element;
  }
  memo.plain = true;
  if (writes) return;
  Ref after = readers;
  if (among_them && size < kManyReaders) {
    table_.Use(after);
  } else {
    elements_.resize(kept);
    if (kept >= kFewReaders) TidyReaders(kept >= kManyReaders);
    elements_.push_back(own_element);
    after = table_.Encode(elements_);
  }
  memo.new_readers = WithLane(after, LaneOf(after) - actor.lane);
  memo.new_generation = table_.Generation(after);
}

bool CellRules::IsPlainReader(const Record& record, const Actor& actor, bool line) const {
  const Traits& traits = record.traits;
  return !traits.writes() && !traits.strong() && !traits.read_only_path() &&
         (!line || traits.bytes == actor.traits.bytes);
}

/// Of reads that nobody will ever be ordered after, one of each instruction stands for all: a write
/// races with either. With `all`, a thread's later read stands for its earlier ones as well.
void CellRules::TidyReaders(bool all) {
  // Those that stay move to the end, the last ones first; a table of places by hash finds them.
  const std::size_t size = elements_.size();
  readers_seen_.assign(std::bit_ceil(2 * size), 0);
  std::size_t first = size;
  for (std::size_t i = size; i-- > 0;) {
    const Element element = elements_[i];
    const Record& record = table_.record(element.record);
    const bool immortal = order_.NeverKnown(record.warp, record.time);
    std::uint32_t* seen = nullptr;
    if (immortal || all) {
      const auto alike = [&](const Element& other) {
        const Record& later = table_.record(other.record);
        if (later.traits != record.traits) return false;
        return immortal ? later.pc == record.pc && order_.NeverKnown(later.warp, later.time)
                        : later.warp == record.warp && other.lane == element.lane &&
                              later.pattern == record.pattern;
      };
      const std::uint64_t key = immortal ? record.pc : ~std::uint64_t{record.warp};
      std::size_t at = (key * 0x9e3779b97f4a7c15u >> 32) % readers_seen_.size();
      while (readers_seen_[at] != 0 && !alike(elements_[readers_seen_[at] - 1]))
        at = (at + 1) % readers_seen_.size();
      seen = &readers_seen_[at];
      if (*seen != 0) continue;
    }
    elements_[--first] = element;
    if (seen != nullptr) *seen = static_cast<std::uint32_t>(first + 1);
  }
  elements_.erase(elements_.begin(), elements_.begin() + static_cast<std::ptrdiff_t>(first));
}

/// A read-modify-write of device scope; the cell holds read-modify-writes of the same size and
/// scope, and one weak write before them at most: nothing there can race with it but that write. Of
/// read-modify-writes the last of its block stays, and the last of another block or cluster. False:
/// not such a case.
bool CellRules::ApplyAtomic(const Actor& actor, Ref& writers, Ref& readers) {
  const Traits& traits = actor.traits;
  if (traits.kind != AccessKind::kReadWrite || traits.reach() != Reach::kDevice) return false;
  const Ref fresh = actor.record << kLaneBits | actor.lane;
  if ((writers | readers) == 0) {
    writers = fresh;
    return true;
  }
  if (writers == 0 || IsSet(writers) || IsSet(readers)) return false;
  const auto alike = [&](const Traits& other) {
    return other == traits ||
           (other.kind == AccessKind::kReadWrite && other.strong() &&
            other.element_bytes == traits.element_bytes && other.reach() == Reach::kDevice);
  };
  const auto ordered = [&](Ref ref, const Record& record) {
    return (actor.pattern == 1 && SameThreads(record, LaneOf(ref), actor, false)) ||
           Known(ref, record, actor);
  };
  const Record& last = table_.record(IndexOf(writers));
  if (!alike(last.traits)) {
    // The first one after a weak write.
    if (readers != 0 || last.traits.strong() || !ordered(writers, last)) return false;
    readers = writers;
    writers = fresh;
    return true;
  }
  const BlockNumber block = order_.BlockOf(actor.warp);
  const BlockNumber last_block = order_.BlockOf(last.issuer);
  if (readers == 0) {
    if (last_block != block) readers = writers;
    writers = fresh;
    return true;
  }
  const Record& first = table_.record(IndexOf(readers));
  if (!first.traits.strong()) {
    if (!first.traits.writes() || last_block != block || !ordered(readers, first)) return false;
    writers = fresh;
    return true;
  }
  if (!alike(first.traits)) return false;
  if (last_block == block) {
    // Who knows `last`, but not this access, may only meet `first` unordered by it in the eyes of a
    // narrower scope (KeepEvidence): where there is any, the full rules decide.
    if (order_.BlockOf(first.issuer) == block) {
      readers = 0;
    } else if (narrow_scopes_ && !ordered(readers, first)) {
      return false;
    }
    writers = fresh;
    return true;
  }
  if (order_.ClusterOf(last_block) == order_.ClusterOf(block)) return false;
  readers = writers;
  writers = fresh;
  return true;
}

/// A strong write by the thread that was there last; the cell holds accesses that cannot race with
/// it. So each round of a lock that one thread takes again and again costs the same, whoever else has
/// had it. False: not such a case.
bool CellRules::ApplyAgain(const Actor& actor, Ref& writers, Ref& readers) {
  if (writers == 0 || actor.pattern != 1 || !actor.traits.writes() || actor.traits.async() ||
      IsSet(readers))
    return false;
  if (!IsSet(writers)) return PairAgain(actor, writers, readers);
  if (readers != 0 || table_.SizeOf(writers) > kEvidenceKept) return false;
  elements_.clear();
  table_.Decode(writers, elements_);
  const bool wide = actor.traits.reach() == Reach::kDevice &&
                    table_.WideBytesOf(writers) == actor.traits.element_bytes;
  const Record& own = table_.record(actor.record);
  if (!wide && std::ranges::any_of(elements_, [&](const Element& element) {
        const Record& record = table_.record(element.record);
        return !record.traits.strong() || Conflicts(record, own) != Conflict::kNone;
      }))
    return false;
  if (!(actor.traits.reads() ? UpdateAgain(actor) : StoreAgain(actor))) return false;
  const Ref after = table_.Encode(elements_);
  table_.Release(writers);
  writers = after;
  return true;
}

/// The same where one thread has been, since a weak write at most: a write, or a write and a
/// read-modify-write of its value (Store).
bool CellRules::PairAgain(const Actor& actor, Ref& writers, Ref& readers) {
  const Record& last = table_.record(IndexOf(writers));
  const auto is_own = [&](const Record& record, Ref ref) {
    return SameThreads(record, LaneOf(ref), actor, false) && record.traits.strong() &&
           record.traits.writes() && record.traits.element_bytes == actor.traits.element_bytes;
  };
  if (!is_own(last, writers)) return false;
  const bool reads = actor.traits.reads();
  if (readers == 0 && reads && !last.traits.reads()) {
    readers = writers;
  } else if (!Outdoes(actor.traits, last.traits)) {
    return false;
  } else if (readers != 0) {
    const Record& first = table_.record(IndexOf(readers));
    if (!last.traits.reads() || !first.traits.writes()) return false;
    if (!first.traits.strong()) {
      if (!reads || !Known(readers, first, actor)) return false;
    } else if (!is_own(first, readers) || first.traits.reads() ||
               !(reads || first.traits == actor.traits)) {
      return false;
    }
    if (!reads) readers = 0;
  }
  writers = actor.record << kLaneBits | actor.lane;
  return true;
}

/// A read-modify-write: behind the thread's own store, or in the place of its own last one, which was
/// a witness of nothing but what comes before it in its thread or has an earlier one (KeepEvidence).
bool CellRules::UpdateAgain(const Actor& actor) {
  Element& last = elements_.back();
  const Record& before = table_.record(last.record);
  if (!SameThreads(before, last.lane, actor, false)) return false;
  if (before.traits.kind == AccessKind::kWrite) {
    elements_.push_back(Element{actor.record, static_cast<std::uint8_t>(actor.lane), false});
    return true;
  }
  if (!before.traits.writes() || !Outdoes(actor.traits, before.traits)) return false;
  for (std::size_t i = elements_.size(); !elements_[--i].later_value && i > 0;) {
    const Record& record = table_.record(elements_[i - 1].record);
    if (!SameThreads(record, elements_[i - 1].lane, actor, false)) return false;
    if (record.traits.reads()) break;
  }
  last.record = actor.record;
  return true;
}

/// A store: in the place of the thread's own last one and of all that came after that. What that one
/// was ordered after (Item::behind), this one is.
bool CellRules::StoreAgain(const Actor& actor) {
  for (std::size_t i = elements_.size(); i-- > 0;) {
    const Record& record = table_.record(elements_[i].record);
    if (!SameThreads(record, elements_[i].lane, actor, false)) return false;
    if (record.traits == actor.traits) {
      elements_.resize(i + 1);
      elements_.back().record = actor.record;
      return true;
    }
    if (!Outdoes(actor.traits, record.traits)) return false;
  }
  return false;
}

/// A strong access of device scope; the cell holds many such, all of one size: none of them can race
/// with it. One more is added, with a look through all of them whenever they have doubled. False: not
/// such a case.
bool CellRules::ApplyWide(const Actor& actor, Ref& writers, Ref& readers) {
  const Traits& traits = actor.traits;
  if (readers != 0 || !IsSet(writers) || table_.WideBytesOf(writers) != traits.element_bytes ||
      traits.reach() != Reach::kDevice || traits.read_only_path())
    return false;
  const std::uint32_t size = table_.SizeOf(writers);
  if (size < kManyReaders || size >= 2 * table_.TidySizeOf(writers)) return false;
  const bool store = traits.kind == AccessKind::kWrite;
  const Ref after =
      table_.Append(writers, Element{actor.record, static_cast<std::uint8_t>(actor.lane), store});
  table_.Release(writers);
  writers = after;
  return true;
}

CellRules::Question CellRules::QuestionOf(const Actor& actor, View view, Ref writers,
                                          Ref readers) const {
  return {.version = order_.version() + table_.collections(),
          .writers = writers == 0 ? 0 : WithLane(writers, LaneOf(writers) - actor.lane),
          .readers = readers == 0 ? 0 : WithLane(readers, LaneOf(readers) - actor.lane),
          .generations = {table_.Generation(writers), table_.Generation(readers)},
          .record = actor.record,
          .view = view,
          .lane = static_cast<std::uint8_t>(view == View::kLane ? actor.lane : 0)};
}

bool CellRules::Recall(const Question& question, const Actor& actor, Ref& writers, Ref& readers) {
  const Memo& memo = MemoOf(question);
  if (memo.question != question || memo.generations[0] != table_.Generation(memo.writers) ||
      memo.generations[1] != table_.Generation(memo.readers)) {
    return false;
  }
  const auto turned = [&](Ref ref) {
    return ref == 0 ? 0 : WithLane(ref, LaneOf(ref) + actor.lane);
  };
  table_.Use(memo.writers);
  table_.Use(memo.readers);
  table_.Release(writers);
  table_.Release(readers);
  writers = turned(memo.writers);
  readers = turned(memo.readers);
  return true;
}

void CellRules::Remember(const Question& question, const Actor& actor, Ref writers, Ref readers) {
  MemoOf(question) = {.question = question,
                      .writers = writers == 0 ? 0 : WithLane(writers, LaneOf(writers) - actor.lane),
                      .readers = readers == 0 ? 0 : WithLane(readers, LaneOf(readers) - actor.lane),
                      .generations = {table_.Generation(writers), table_.Generation(readers)}};
}

bool CellRules::ApplyWarpWide(const Actor& actor, Ref& writers, Ref& readers, bool line) {
  const Question question = QuestionOf(actor, line ? View::kLine : View::kCell, writers, readers);
  if (Recall(question, actor, writers, readers)) return true;
  warp_wide_ = true;
  line_ = line;
  undecided_ = false;
  Load(writers, readers);
  if (!CheckWarpWide(actor) || undecided_) return false;
  Insert(actor);
  if (undecided_) return false;
  // Of lines, all elements must map bytes to lanes alike.
  if (line && std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
        return TraitsOf(item).bytes != actor.traits.bytes;
      })) {
    return false;
  }
  Store(writers, readers);
  Remember(question, actor, writers, readers);
  return true;
}

void CellRules::ApplyByLanes(const Actor& actor, Ref& writers, Ref& readers,
                             std::vector<CellRace>& races) {
  warp_wide_ = false;
  line_ = false;
  Load(writers, readers);
  Check(actor, races);
  Insert(actor);
  Store(writers, readers);
}

/// Nobody else's lane fares alike: warps as a whole need not be looked at.
void CellRules::ApplyAlone(const Actor& actor, Ref& writers, Ref& readers,
                           std::vector<CellRace>& races) {
  const Question question = QuestionOf(actor, View::kLane, writers, readers);
  if (Recall(question, actor, writers, readers)) return;
  const std::size_t before = races.size();
  ApplyByLanes(actor, writers, readers, races);
  if (races.size() == before) Remember(question, actor, writers, readers);
}

}  // namespace assay::emu
