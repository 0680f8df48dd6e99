#include "validator/emu/race/peer_lives.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "validator/emu/race/race_log.h"

namespace assay::emu {

void PeerLives::Add(BlockNumber owner, RegionId region) { lives_[region] = {.owner = owner}; }

void PeerLives::OnAccess(const WarpAccess& access) {
  if (lives_.empty()) return;
  const auto life = lives_.find(access.region);
  if (life == lives_.end() || life->second.owner == order_.BlockOf(access.warp)) return;
  std::vector<Reach>& reached = life->second.reached[access.warp];
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
  const BlockNumber block = order_.BlockOf(warp);
  for (auto& [region, life] : lives_) {
    if (life.owner != block) continue;
    life.exit = {.warp = warp,
                 .lane = static_cast<std::uint8_t>(std::countr_zero(lanes)),
                 .pc = pc,
                 .kind = AccessKind::kWrite};
    // What nobody has reached yet will not be known to those who are gone.
    if (!life.reached.empty()) life.known.Join(order_.ExportLanes(warp, lanes));
  }
}

bool PeerLives::IsKnown(const ClockPtr& known, WarpNumber warp, int lane, Time stamp) const {
  return order_.SnapshotKnows({.clock = known}, warp, lane, stamp);
}

std::vector<Race> PeerLives::EndBlock(BlockNumber block) {
  std::vector<Race> races;
  if (lives_.empty()) return races;
  const std::uint32_t cluster = order_.ClusterOf(block);
  bool is_over = true;
  for (auto& [region, life] : lives_) {
    life.ended = life.ended || life.owner == block;
    is_over = is_over && (life.ended || order_.ClusterOf(life.owner) != cluster);
  }
  if (!is_over) return races;
  std::erase_if(lives_, [&](auto& entry) {
    auto& [region, life] = entry;
    if (order_.ClusterOf(life.owner) != cluster) return false;
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
                  .region = region,
                  .offset = reach.offset,
                  .bytes = reach.bytes,
                  .across_warps = true,
                  .across_blocks = true};
        race.later.lane = static_cast<std::uint8_t>(std::countr_zero(late));
        races.push_back(race);
      }
    }
    return true;
  });
  return races;
}

}  // namespace assay::emu
