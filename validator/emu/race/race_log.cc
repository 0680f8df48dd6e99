#include "validator/emu/race/race_log.h"

#include <algorithm>

namespace assay::emu {

RaceSide SideOf(const Record& record, std::uint8_t lane) {
  RaceSide side;
  side.warp = record.issuer;
  side.lane = lane;
  side.pc = record.pc;
  side.kind = record.traits.kind;
  side.atomic = record.traits.atomic();
  side.order = record.traits.order;
  side.scope = record.traits.scope;
  side.async = record.traits.async();
  side.time = record.time;
  return side;
}

RaceSide SideOf(const WarpAccess& access, std::uint8_t lane, bool async) {
  RaceSide side;
  side.warp = access.warp;
  side.lane = lane;
  side.pc = access.pc;
  side.kind = access.kind;
  side.atomic = access.atomic;
  side.order = access.order;
  side.scope = access.scope;
  side.async = async;
  return side;
}

void RaceLog::Add(const Race& race) {
  const auto [low, high] = std::minmax(race.earlier.pc, race.later.pc);
  if (race.race_class == Race::Class::kSameValue) {
    const auto graver = index_.find({low, high, Race::Class::kRace});
    if (graver != index_.end()) {
      ++races_[graver->second].occurrences;
      return;
    }
  }
  const auto [at, fresh] = index_.try_emplace({low, high, race.race_class}, races_.size());
  if (!fresh) {
    ++races_[at->second].occurrences;
    return;
  }
  if (race.race_class == Race::Class::kRace) {
    const auto milder = index_.find({low, high, Race::Class::kSameValue});
    if (milder != index_.end() && milder->second >= settled_) {
      const std::uint64_t occurrences = races_[milder->second].occurrences + 1;
      at->second = milder->second;
      races_[at->second] = race;
      races_[at->second].occurrences = occurrences;
      index_.erase(milder);
      return;
    }
  }
  races_.push_back(race);
}

}  // namespace assay::emu
