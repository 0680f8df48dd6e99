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

#include <array>
#include <cstdint>
#include <vector>

#include "validator/emu/race/cell_rules.h"
#include "validator/emu/race/order.h"
#include "validator/emu/race/proxy.h"
#include "validator/emu/race/race_log.h"
#include "validator/emu/race/shadow.h"

namespace assay::emu {

/// Who makes an access: the warp itself, or an agent that it started.
struct AccessBy {
  WarpNumber stamped = 0;  ///< Whose stamp the record carries.
  bool async = false;
  std::vector<RecordId>* pins =
      nullptr;    ///< A bulk copy: its records, to be filled in when it is done.
  Time time = 0;  ///< When it was made; 0: now.
};

class AccessPath {
 public:
  AccessPath(ThreadOrder& order, RecordTable& table, Shadow& shadow, RaceLog& log)
      : order_(order), table_(table), shadow_(shadow), log_(log), rules_(order, table) {}

  void BeginLaunch(bool narrow_scopes) { rules_.BeginLaunch(narrow_scopes); }
  void Access(const WarpAccess& access, const AccessBy& by);
  /// Before a copy reads through the async proxy: reports writes of the issuer's block that are
  /// ordered before it, but with no proxy fence between.
  void CheckProxy(const WarpAccess& read, ProxyFences& fences);

 private:
  /// Lanes that access the same place.
  struct Group {
    std::uint64_t offset = 0;
    LaneMask lanes = 0;
  };

  bool IsRow(const WarpAccess& access) const;
  /// Fills groups_, by lowest lane.
  void FindGroups(const WarpAccess& access);
  /// True when the groups' lowest lanes are neighbours that access neighbouring elements, and the
  /// groups look alike.
  bool GroupsAreRow(const WarpAccess& access) const;
  /// Lane `lane` + i accesses the i-th of `count` elements at `base`; others with it, by the
  /// record's pattern.
  void Row(const WarpAccess& access, std::uint64_t base, std::uint32_t lane, std::uint32_t count);
  /// The groups of an access of two or four bytes a lane, each mostly one cell.
  void Words(const WarpAccess& access);
  /// The lanes of the group, at one place.
  void Place(const WarpAccess& access, const Group& group);
  /// One cell; `begin` is where the lanes' access begins, `offset` where the cell does.
  void Cell(const WarpAccess& access, Shadow::Cells& cells, std::uint64_t cell, std::uint64_t begin,
            std::uint64_t offset) {
    if (cells.readers != nullptr) {
      rules_.ApplyCell(actor_, cells.writers[cell], cells.readers[cell], found_);
    } else {
      Ref writers = 0;
      Ref readers = 0;
      table_.Separate(cells.writers[cell], writers, readers);
      rules_.ApplyCell(actor_, writers, readers, found_);
      cells.writers[cell] = table_.Combine(writers, readers);
    }
    if (!found_.empty()) Report(access, cells.shift, begin, offset);
  }
  void Report(const WarpAccess& access, std::uint32_t shift, std::uint64_t begin,
              std::uint64_t offset);
  void ReportSiblings(const WarpAccess& access, LaneMask lanes);
  /// The lanes' new and old bytes, `access.bytes` each; null where the caller gave none.
  struct Values {
    const std::byte* now = nullptr;
    const std::byte* before = nullptr;
  };
  Values ValuesOf(const WarpAccess& access);
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
  std::vector<std::byte> new_values_;
  std::vector<std::byte> old_values_;
  std::array<Group, kWarpSize> groups_;
  std::size_t group_count_ = 0;
  // FindGroups' table of places: a slot is taken when its number is the current one's.
  struct Slot {
    std::uint32_t number = 0;
    std::uint32_t group = 0;
  };
  std::array<Slot, 2 * kWarpSize> slots_{};
  std::uint32_t slot_number_ = 0;
};

}  // namespace assay::emu
