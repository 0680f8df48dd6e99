#include "validator/emu/race/peer_lives.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "validator/emu/race/race_log.h"

namespace assay::emu {

void PeerLives::Add(BlockNumber owner, RegionId region) {
  owners_[region] = owner;
  lives_[owner] = {.region = region};
}

void PeerLives::OnAccess(const WarpAccess& access) {
  if (owners_.empty()) return;
  const auto owner = owners_.find(access.region);
  if (owner == owners_.end() || owner->second == order_.BlockOf(access.warp)) return;
  std::vector<Reach>& reached = lives_[owner->second].reached[access.warp];
  for (Reach& before : reached) before.lanes &= ~access.lanes;
  std::erase_if(reached, [](const Reach& before) { return before.lanes == 0; });
  const int lane = std::countr_zero(access.lanes);
  Reach reach{.lanes = access.lanes,
              .side = SideOf(access, static_cast<std::uint8_t>(lane), false),
              .offset = access.offsets[lane],
              .bytes = access.bytes};
  reach.side.time = order_.NowOf(access.warp);
  reached.push_back(reach);
}

void PeerLives::OnExit(WarpNumber warp, LaneMask lanes, std::uint32_t pc) {
  const auto found = lives_.find(order_.BlockOf(warp));
  if (found == lives_.end()) return;
  Life& life = found->second;
  life.exit = {.warp = warp,
               .lane = static_cast<std::uint8_t>(std::countr_zero(lanes)),
               .pc = pc,
               .kind = AccessKind::kWrite};
  // What nobody has reached yet will not be known to those who are gone.
  if (!life.reached.empty()) life.known.Join(order_.ExportLanes(warp, lanes));
}

bool PeerLives::IsKnown(const ClockPtr& known, WarpNumber warp, int lane, Time stamp) const {
  return order_.SnapshotKnows({.clock = known}, warp, lane, stamp);
}

std::vector<Race> PeerLives::EndBlock(BlockNumber block) {
  std::vector<Race> races;
  const auto ended = lives_.find(block);
  if (ended == lives_.end()) return races;
  ended->second.ended = true;
  const BlockNumber first_block = order_.ClusterOf(block) * order_.blocks_per_cluster();
  const auto first = lives_.lower_bound(first_block);
  const auto end = lives_.lower_bound(first_block + order_.blocks_per_cluster());
  if (!std::all_of(first, end, [](const auto& entry) { return entry.second.ended; })) return races;
  for (auto at = first; at != end; ++at) {
    Life& life = at->second;
    owners_.erase(life.region);
    const auto known = std::make_shared<const Clock>(std::move(life.known));
    for (const auto& [warp, reached] : life.reached) {
      for (const Reach& reach : reached) {
        LaneMask late = 0;
        for (LaneMask rest = reach.lanes; rest != 0; rest &= rest - 1) {
          const int lane = std::countr_zero(rest);
          if (!IsKnown(known, warp, lane, reach.side.time)) late |= 1u << lane;
        }
        if (late == 0) continue;
        Race race{.race_class = Race::Class::kEnded,
                  .earlier = life.exit,
                  .later = reach.side,
                  .region = life.region,
                  .offset = reach.offset,
                  .bytes = reach.bytes,
                  .across_warps = true,
                  .across_blocks = true};
        race.later.lane = static_cast<std::uint8_t>(std::countr_zero(late));
        races.push_back(race);
      }
    }
  }
  lives_.erase(first, end);
  return races;
}

}  // namespace assay::emu
