// One access meets one cell: finds the races, and decides what the cell remembers afterwards.
//
// Order is asked of ThreadOrder; one edge more is found here, because it belongs to a single
// location: a strong write that a later read or read-modify-write has observed is ordered before
// whatever comes after that read (PTX ISA, causality order: observation, then base causality). So
// the last block may reset, by a plain store, the counter that all blocks incremented. It never
// orders anything at other locations, and never the sibling lanes of one instruction.
//
// A cell's elements stand in the order in which they were made. Those between two plain writes
// share a *value*: a read has observed the write that made its value and the read-modify-writes
// since.
//
// Most accesses are decided for a warp as a whole: a whole line of coalesced accesses is then one
// cell. Tried in turn: the plain case (one weak writer that is ordered before the access, and
// readers, of which a set changes alike in all cells where it stands, so that the change is looked
// up); the atomic case (a read-modify-write meets read-modify-writes that it cannot race with, or one
// strong access more meets many that it cannot); what was decided before for the same cell content, from a memo; the full rules, first for whole warps,
// then, for single cells only, lane by lane.
//
// Not thread-safe. Cost: linear in the cell's elements, which mostly are one writer and one reader.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "validator/emu/race/order.h"
#include "validator/emu/race/record_table.h"
#include "validator/emu/race/rules.h"

namespace assay::emu {

/// The access that is being looked at: lanes of `warp`, all at one place; or, for a line, lane
/// `lane` + i at its i-th element.
struct Actor {
  WarpNumber warp = 0;
  LaneMask lanes = 0;  ///< Of a cell. For a line: some of them, for reports only.
  std::uint32_t lane =
      0;  ///< Lane of reference: the lowest of `lanes`, or the one at the line's first byte.
  RecordId record = 0;
  LaneMask pattern = 1;  ///< Of the record.
  Traits traits;
  /// `lane` is all there is of the access: what is decided is decided for that lane, not for warps.
  bool alone = false;
};

/// A race found in a cell.
struct CellRace {
  RecordId earlier = 0;
  std::uint8_t earlier_lane = 0;
  std::uint8_t later_lane = 0;
  Conflict conflict = Conflict::kNone;
};

class CellRules {
 public:
  CellRules(ThreadOrder& order, RecordTable& table) : order_(order), table_(table) {}

  /// `narrow_scopes`: strong accesses of less than device scope may occur in this launch
  /// (RaceDetector::Shape).
  void BeginLaunch(bool narrow_scopes) { narrow_scopes_ = narrow_scopes; }

  /// Applies the access to a whole line. False, and nothing done, when its elements do not all fare
  /// alike, or one races: split it.
  bool ApplyLine(const Actor& actor, Ref& writers, Ref& readers) {
    return (!actor.traits.strong() && ApplyPlain(actor, writers, readers, true)) ||
           ApplyWarpWide(actor, writers, readers, true);
  }
  /// Applies the access to a cell; races are appended to `races`.
  void ApplyCell(const Actor& actor, Ref& writers, Ref& readers, std::vector<CellRace>& races) {
    if (actor.traits.strong()) {
      if (ApplyAtomic(actor, writers, readers) || ApplyAgain(actor, writers, readers) ||
          ApplyWide(actor, writers, readers)) {
        return;
      }
    } else if (ApplyPlain(actor, writers, readers, false)) {
      return;
    }
    if (actor.alone) return ApplyAlone(actor, writers, readers, races);
    if (ApplyWarpWide(actor, writers, readers, false)) return;
    ApplyByLanes(actor, writers, readers, races);
  }

 private:
  /// Elements of weak accesses that a cell keeps although a later write has raced with them: for
  /// reports of more pairs.
  static constexpr std::size_t kRacedKept = 8;
  /// Beyond so many, elements are kept only for what they can race with, no longer as evidence of
  /// order.
  static constexpr std::size_t kEvidenceKept = 32;
  /// From so many readers on, those that nobody can be ordered after are told apart by their
  /// instructions only;
  static constexpr std::size_t kFewReaders = 8;
  /// and one more is just added, with a look through all of them whenever they have doubled.
  static constexpr std::size_t kManyReaders = 32;

  struct Item {
    RecordId record = 0;
    std::uint8_t lane = 0;
    std::uint32_t value = 0;  // Grows with each plain write.
    bool behind = false;  // All strong stores that came later outdo it and are ordered after it.
  };
  /// Whom something was decided for: every lane that the record may stand for, at a cell or in a
  /// line, or one lane.
  enum class View : std::uint8_t { kCell, kLine, kLane };
  /// An access and the content that it meets, from lane 0's point of view.
  struct Question {
    std::uint64_t version = 0;  // Answers hold while nobody learns anything.
    Ref writers = 0, readers = 0;
    std::uint32_t generations[2] = {};
    RecordId record = 0;
    View view = View::kCell;
    std::uint8_t lane = 0;  // With kLane.
    bool operator==(const Question&) const = default;
  };
  struct Memo {
    Question question;
    Ref writers = 0, readers = 0;  // Afterwards.
    std::uint32_t generations[2] = {};
  };

  /// What a weak access does to a set of readers, from lane 0's point of view. Holds while nobody
  /// learns anything.
  struct ReadersMemo {
    std::uint64_t version = 0;
    Ref readers = 0;      // Before,
    Ref new_readers = 0;  // and after; 0 after a write.
    std::uint32_t generation = 0;
    std::uint32_t new_generation = 0;
    RecordId record = 0;
    bool line = false;
    bool plain = false;  // False: not decided here.
  };

  bool ApplyPlain(const Actor& actor, Ref& writers, Ref& readers, bool line);
  bool ApplyAtomic(const Actor& actor, Ref& writers, Ref& readers);
  bool ApplyAgain(const Actor& actor, Ref& writers, Ref& readers);
  bool PairAgain(const Actor& actor, Ref& writers, Ref& readers);
  bool UpdateAgain(const Actor& actor);
  bool StoreAgain(const Actor& actor);
  bool ApplyWide(const Actor& actor, Ref& writers, Ref& readers);
  bool ChangeReaders(const Actor& actor, Ref& readers, bool line);
  void DecideReaders(const Actor& actor, Ref readers, ReadersMemo& memo);
  bool IsPlainReader(const Record& record, const Actor& actor, bool line) const;
  void TidyReaders(bool all);
  Question QuestionOf(const Actor& actor, View view, Ref writers, Ref readers) const;
  Memo& MemoOf(const Question& question) {
    const std::uint32_t hash = question.writers * 0x9e3779b9u ^ question.readers * 0x85ebca6bu ^
                               question.record * 0xc2b2ae35u;
    return memo_[(hash ^ hash >> 16) % memo_.size()];
  }
  bool Recall(const Question& question, const Actor& actor, Ref& writers, Ref& readers);
  void Remember(const Question& question, const Actor& actor, Ref writers, Ref readers);
  bool ApplyWarpWide(const Actor& actor, Ref& writers, Ref& readers, bool line);
  void ApplyAlone(const Actor& actor, Ref& writers, Ref& readers, std::vector<CellRace>& races);
  void ApplyByLanes(const Actor& actor, Ref& writers, Ref& readers, std::vector<CellRace>& races);
  bool SameThreads(const Record& record, std::uint32_t lane, const Actor& actor, bool line) const {
    return record.warp == actor.warp && lane == actor.lane && record.pattern == actor.pattern &&
           (!line || record.traits.bytes == actor.traits.bytes);
  }
  /// Is it a copy that each of the actor's threads has issued at its own place, and knows to have arrived?
  bool IsOfOwnTwins(const Record& record, std::uint32_t lane, const Actor& actor, bool line) {
    return record.warp == TwinOf(actor.warp) && lane == actor.lane && record.pattern == 1 &&
           actor.pattern == 1 && (!line || record.traits.bytes == actor.traits.bytes) &&
           order_.EachKnowsItsTwin(actor.warp, record.time);
  }
  bool KnownToWarp(RecordId id, const Actor& actor);
  /// Is what the reference, no set, stands for ordered before the actor? False says nothing.
  bool Known(Ref ref, const Record& record, const Actor& actor) {
    if (!actor.alone || record.pattern != 1) return KnownToWarp(IndexOf(ref), actor);
    return order_.LaneKnows(actor.warp, static_cast<int>(actor.lane), record.warp,
                            static_cast<int>(LaneOf(ref)), record.time);
  }

  const Traits& TraitsOf(const Item& item) const { return table_.record(item.record).traits; }
  LaneMask LanesOf(const Item& item) const;
  Conflict Conflicts(const Record& a, const Record& b) const;
  bool Observable(const Item& item) const;
  /// A pair of lanes, the item's and one of `lanes`, that is not ordered; nothing when all are.
  /// Lane by lane only.
  std::optional<std::pair<int, int>> UnorderedPair(const Item& item, const Actor& actor,
                                                   LaneMask lanes) const;
  std::optional<std::pair<int, int>> UnorderedPairByAll(std::size_t i, const Actor& actor) const;
  /// The actor's lanes for which the i-th item is ordered before them because they come after
  /// somebody who observed it.
  LaneMask Evidence(std::size_t i, const Actor& actor) const;
  /// The item is ordered before all of the actor's lanes, by the threads' order alone.
  bool Ordered(const Item& item, const Actor& actor);
  /// Each of the item's lanes is ordered before one of the actor's at least: what comes after the
  /// actor comes after the item.
  bool Superseded(const Item& item, const Actor& actor);
  bool SupersededByAll(std::size_t i, const Actor& actor);
  bool OutdoneBy(const Record& later, const Record& old) const;

  void Load(Ref writers, Ref readers);
  void Store(Ref& writers, Ref& readers);
  void Check(const Actor& actor, std::vector<CellRace>& races) const;
  bool CheckWarpWide(const Actor& actor);
  void Insert(const Actor& actor) {
    return actor.traits.writes() ? InsertWrite(actor) : InsertRead(actor);
  }
  void InsertRead(const Actor& actor);
  void InsertWrite(const Actor& actor);
  void KeepEvidence(const Actor& actor);
  bool HasWitness(std::size_t i, std::size_t z) const;
  void DropEarlierOfThreads();
  void DropRaced();
  void DropImmortals();

  ThreadOrder& order_;
  RecordTable& table_;
  // State of one Apply: whether warps are looked at as a whole, a line, and whether that was too
  // coarse.
  bool warp_wide_ = false;
  bool line_ = false;
  bool undecided_ = false;
  std::vector<Item> items_;
  std::vector<bool> dropped_;
  std::vector<Element> elements_;
  std::vector<Element> reader_elements_;
  std::vector<std::uint32_t> readers_seen_;  // Of TidyReaders: places in elements_, plus one.
  // The last answer of KnownToWarp.
  std::uint64_t known_version_ = 0;
  std::uint64_t known_collections_ = 0;
  RecordId known_record_ = 0;
  WarpNumber known_warp_ = 0;
  bool known_ = false;
  std::array<Memo, 256> memo_{};
  std::array<ReadersMemo, 64> readers_memo_{};
  bool narrow_scopes_ = true;
};

inline bool CellRules::KnownToWarp(RecordId id, const Actor& actor) {
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

/// A weak access; one weak writer at most, ordered before it; and readers, which a write must be
/// ordered after: nearly all there is. False: not such a case.
inline bool CellRules::ApplyPlain(const Actor& actor, Ref& writers, Ref& readers, bool line) {
  const Ref fresh = actor.record << kLaneBits | actor.lane;
  const bool writes = actor.traits.writes();
  if (writers != 0) {
    if (IsSet(writers)) return false;
    const Record& record = table_.record(IndexOf(writers));
    if (record.traits.strong() || actor.traits.read_only_path()) return false;
    if (!(actor.pattern == 1 && SameThreads(record, LaneOf(writers), actor, line)) &&
        !Known(writers, record, actor) && !IsOfOwnTwins(record, LaneOf(writers), actor, line)) {
      return false;
    }
  }
  if (readers != 0 && readers != fresh) {
    if (IsSet(readers)) {
      if (!ChangeReaders(actor, readers, line)) return false;
      if (writes) writers = fresh;
      return true;
    }
    const Record& record = table_.record(IndexOf(readers));
    if (record.traits.strong()) return false;
    const bool same = SameThreads(record, LaneOf(readers), actor, line);
    if (writes) {
      if (record.traits.read_only_path()) return false;
      if (!(same && actor.pattern == 1) && !Known(readers, record, actor) &&
          !IsOfOwnTwins(record, LaneOf(readers), actor, line))
        return false;
    } else if (record.traits.read_only_path()) {
      if (!actor.traits.read_only_path()) return false;
    } else if (!same &&
               (record.time >= order_.NowOf(actor.warp) || !Known(readers, record, actor)) &&
               !IsOfOwnTwins(record, LaneOf(readers), actor, line)) {
      // Mostly another warp's read of the same time, which nobody knows yet.
      return ChangeReaders(actor, readers, line);
    }
  } else if (readers == fresh && writes) {
    return false;
  }
  if (writes) {
    writers = fresh;
    readers = 0;
  } else {
    readers = fresh;
  }
  return true;
}

/// Readers beside no writer or a weak one that is ordered before the access: what becomes of them
/// depends on nothing else in the cell. False: not decided, and nothing done.
inline bool CellRules::ChangeReaders(const Actor& actor, Ref& readers, bool line) {
  const std::uint64_t version = order_.version() + table_.collections();
  const Ref before = WithLane(readers, LaneOf(readers) - actor.lane);
  const std::uint32_t hash = before * 0x9e3779b9u ^ actor.record * 0xc2b2ae35u;
  ReadersMemo& memo = readers_memo_[(hash ^ hash >> 16) % readers_memo_.size()];
  if (memo.version != version || memo.record != actor.record || memo.readers != before ||
      memo.line != line || memo.generation != table_.Generation(before) ||
      memo.new_generation != table_.Generation(memo.new_readers)) {
    memo.version = version;
    memo.record = actor.record;
    memo.line = line;
    memo.readers = before;
    memo.generation = table_.Generation(before);
    DecideReaders(actor, readers, memo);
    if (!memo.plain) return false;
  } else {
    if (!memo.plain) return false;
    table_.Use(memo.new_readers);  // DecideReaders has counted the first one.
  }
  table_.Release(readers);
  readers =
      memo.new_readers == 0 ? 0 : WithLane(memo.new_readers, LaneOf(memo.new_readers) + actor.lane);
  return true;
}

}  // namespace assay::emu
