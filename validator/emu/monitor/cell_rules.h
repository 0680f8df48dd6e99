// One access meets one cell: finds the races, and decides what the cell remembers afterwards.
//
// Order is asked of ThreadOrder; one edge more is found here, because it belongs to a single
// location: a write that a later read or read-modify-write has observed is ordered before whatever
// comes after that read (PTX ISA, causality order: observation, then base causality). So the last
// block may reset the counter that all blocks incremented. It never orders anything at other
// locations, and never the sibling lanes of one instruction.
//
// Not thread-safe.
#pragma once

#include <optional>
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
  const Traits* traits = nullptr;
  Time time = 0;
};

/// A race found in a cell.
struct CellRace {
  Element earlier;
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
  /// Unordered writers that a cell keeps once it has a race to its name.
  static constexpr std::size_t kKept = 8;

  LaneMask LanesOf(const Element& element) const;
  /// Nothing when all of the element's lanes are ordered before all of the actor's; a pair of lanes
  /// that is not otherwise.
  std::optional<std::pair<int, int>> Unordered(const Element& element, const Actor& actor) const;
  bool Observed(std::size_t writer, const Actor& actor) const;
  void Check(const Actor& actor, const std::vector<Element>& side, bool are_writers,
             std::vector<CellRace>& races);
  void InsertRead(const Actor& actor);
  void InsertWrite(const Actor& actor);
  void DropImmortals(std::vector<Element>& side);
  Element ElementOf(const Actor& actor) const;

  ThreadOrder& order_;
  Shadow& shadow_;
  // Scratch of Apply.
  std::vector<Element> writers_;
  std::vector<Element> readers_;
};

}  // namespace assay::emu
