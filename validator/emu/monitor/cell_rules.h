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
// Not thread-safe. Cost: linear in the cell's elements, which mostly are one writer and one reader.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "validator/emu/monitor/order.h"
#include "validator/emu/monitor/rules.h"
#include "validator/emu/monitor/shadow.h"

namespace assay::emu {

/// The access that is being looked at: `lanes` of `warp`, all at one place.
struct Actor {
  WarpNumber warp = 0;
  LaneMask lanes = 0;
  RecordId record = 0;
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
  CellRules(ThreadOrder& order, Shadow& shadow) : order_(order), shadow_(shadow) {}

  /// Applies the access to the cell; races are appended to `races`.
  void Apply(const Actor& actor, Ref& writers, Ref& readers, std::vector<CellRace>& races);

 private:
  /// Elements of weak accesses that a cell keeps although a later write has raced with them: for
  /// reports of more pairs.
  static constexpr std::size_t kRacedKept = 8;
  /// Beyond so many, elements are kept only for what they can race with, no longer as evidence of
  /// order.
  static constexpr std::size_t kEvidenceKept = 32;

  struct Item {
    RecordId record = 0;
    std::uint8_t lane = 0;
    std::uint32_t value = 0;  // Grows with each plain write.
  };

  const Traits& TraitsOf(const Item& item) const { return shadow_.record(item.record).traits; }
  LaneMask LanesOf(const Item& item) const;
  Conflict Conflicts(const Record& a, const Record& b) const;
  /// Nothing when all of the item's lanes are ordered before these lanes of the actor; a pair of
  /// lanes that is not otherwise.
  std::optional<std::pair<int, int>> Unordered(const Item& item, const Actor& actor,
                                               LaneMask lanes) const;
  /// The actor's lanes for which the i-th item is ordered before them because they come after
  /// somebody who observed it.
  bool Observable(const Item& item) const;
  LaneMask Evidence(std::size_t i, const Actor& actor) const;
  std::optional<std::pair<int, int>> UnorderedByAll(std::size_t i, const Actor& actor) const;
  bool OutdoneBy(const Record& later, const Record& old) const;

  void Load(Ref writers, Ref readers);
  void Store(Ref& writers, Ref& readers);
  void Check(const Actor& actor, std::vector<CellRace>& races) const;
  void InsertRead(const Actor& actor);
  void InsertWrite(const Actor& actor);
  void KeepEvidence(const Actor& actor);
  void DropRaced();
  void DropImmortals();

  ThreadOrder& order_;
  Shadow& shadow_;
  // Scratch of Apply.
  std::vector<Item> items_;
  std::vector<bool> dropped_;
  std::vector<Element> elements_;
  std::vector<Element> reader_elements_;
};

}  // namespace assay::emu
