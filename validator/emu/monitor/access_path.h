// The way of one warp-wide access into the shadow: which lines and cells it meets, as few and as
// large pieces as possible.
//
// A warp whose lanes access neighbouring elements in order (a *row*) is taken line by line;
// everything else is taken place by place, the lanes that access the same place together. What
// happens at a line or cell is in cell_rules.h.
//
// Cost: a row of 32 lanes is two to eight lines; a scattered access up to 32 cells. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/monitor/cell_rules.h"
#include "validator/emu/monitor/order.h"
#include "validator/emu/monitor/race_log.h"
#include "validator/emu/monitor/shadow.h"

namespace assay::emu {

/// Who makes an access: the warp itself, or an agent that it started.
struct AccessBy {
  WarpNumber stamped = 0;  ///< Whose stamp the record carries.
  bool async = false;
  std::vector<RecordId>* pins =
      nullptr;  ///< A bulk copy: its records, to be filled in when it is done.
};

class AccessPath {
 public:
  AccessPath(ThreadOrder& order, RecordTable& table, Shadow& shadow, RaceLog& log)
      : order_(order), table_(table), shadow_(shadow), log_(log), rules_(order, table) {}

  void Access(const WarpAccess& access, const AccessBy& by);

 private:
  bool IsRow(const WarpAccess& access) const;
  void Row(const WarpAccess& access);
  void Places(const WarpAccess& access);
  /// The lanes `lanes`, which all access the place at `begin`.
  void Place(const WarpAccess& access, LaneMask lanes, std::uint64_t begin);
  /// One cell; `begin` is where the lanes' access begins, `offset` where the cell does.
  void Cell(const WarpAccess& access, Shadow::Cells& cells, std::uint64_t cell, std::uint64_t begin,
            std::uint64_t offset);
  void Siblings(const WarpAccess& access, LaneMask lanes);
  void SetRecord(const WarpAccess& access, LaneMask pattern);

  ThreadOrder& order_;
  RecordTable& table_;
  Shadow& shadow_;
  RaceLog& log_;
  CellRules rules_;
  // Of the access in hand.
  AccessBy by_;
  Actor actor_;
  std::vector<CellRace> found_;
};

}  // namespace assay::emu
