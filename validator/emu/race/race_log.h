// Races as they are reported: one entry for each pair of program counters and class, with the first
// occurrence and a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "validator/emu/race/race.h"
#include "validator/emu/race/record_table.h"

namespace assay::emu {

RaceSide SideOf(const Record& record, std::uint8_t lane);
RaceSide SideOf(const WarpAccess& access, std::uint8_t lane, bool async);

/// How far apart threads were is known of all occurrences together: the first may be within a warp,
/// and the next between blocks. Of one pair of program counters, writes of the same value are not told apart from other races:
/// the graver class stands for both.
class RaceLog {
 public:
  /// What was logged so far may have been read; from here on it does not change any more, but for
  /// its count.
  void BeginLaunch() { settled_ = races_.size(); }
  void Add(const Race& race);
  /// What is missing between the two sides of a race.
  void Explain(std::size_t index, const OrderGap& gap) { races_[index].gap = gap; }
  const std::vector<Race>& races() const { return races_; }

 private:
  std::vector<Race> races_;
  std::size_t settled_ = 0;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Race::Class>, std::size_t> index_;
};

}  // namespace assay::emu
