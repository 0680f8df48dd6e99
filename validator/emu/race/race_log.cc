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

namespace {

void CountIn(Race& known, const Race& race, bool settled) {
  ++known.occurrences;
  if (settled) return;
  known.across_warps = known.across_warps || race.across_warps;
  known.across_blocks = known.across_blocks || race.across_blocks;
  known.one_instruction = known.one_instruction && race.one_instruction;
}

}  // namespace

void RaceLog::Add(const Race& race) {
  const auto [low, high] = std::minmax(race.earlier.pc, race.later.pc);
  if (race.race_class == Race::Class::kSameValue) {
    const auto graver = index_.find({low, high, Race::Class::kRace});
    if (graver != index_.end()) {
      CountIn(races_[graver->second], race, graver->second < settled_);
      return;
    }
  }
  const auto [at, fresh] = index_.try_emplace({low, high, race.race_class}, races_.size());
  if (!fresh) {
    CountIn(races_[at->second], race, at->second < settled_);
    return;
  }
  if (race.race_class == Race::Class::kRace) {
    const auto milder = index_.find({low, high, Race::Class::kSameValue});
    if (milder != index_.end() && milder->second >= settled_) {
      const Race mild = races_[milder->second];
      at->second = milder->second;
      races_[at->second] = race;
      CountIn(races_[at->second], mild, false);
      races_[at->second].occurrences = mild.occurrences + 1;
      index_.erase(milder);
      return;
    }
  }
  races_.push_back(race);
}

}  // namespace assay::emu
