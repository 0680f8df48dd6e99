#include "validator/emu/race/proxy.h"

#include <algorithm>
#include <bit>

namespace assay::emu {

void ProxyFences::EndBlock(BlockNumber block) {
  if (warps_.empty()) return;
  for (std::uint32_t w = 0; w < order_.warps_per_block(); ++w)
    warps_.erase(block * order_.warps_per_block() + w);
}

void ProxyFences::OnFence(WarpNumber warp, LaneMask lanes) {
  WarpFences& fences = warps_[warp];
  if (fences.events.size() == kKept) {
    fences.forgotten = fences.events.front().time;
    fences.events.pop_front();
  }
  Event& event = fences.events.emplace_back();
  event.time = order_.NowOf(warp);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    event.lanes.emplace_back(lane, order_.Take(warp, lane));
  }
  order_.Tick(order_.BlockOf(warp));
}

bool ProxyFences::Covers(const Event& event, WarpNumber by, const Record& write, int lane,
                         WarpNumber issuer, int issuer_lane) {
  return std::any_of(event.lanes.begin(), event.lanes.end(), [&](const auto& fence) {
    const auto& [fence_lane, snapshot] = fence;
    return order_.SnapshotKnows(snapshot, write.warp, lane, write.time) &&
           ((by == issuer && fence_lane == issuer_lane) ||
            order_.LaneKnows(issuer, issuer_lane, by, fence_lane, event.time));
  });
}

bool ProxyFences::Between(const Record& write, int lane, WarpNumber issuer, int issuer_lane) {
  const WarpNumber first = order_.BlockOf(issuer) * order_.warps_per_block();
  for (std::uint32_t w = 0; w < order_.warps_per_block(); ++w) {
    const auto at = warps_.find(first + w);
    if (at == warps_.end()) continue;
    if (write.time <= at->second.forgotten) return true;
    for (auto event = at->second.events.rbegin(); event != at->second.events.rend(); ++event) {
      if (Covers(*event, first + w, write, lane, issuer, issuer_lane)) return true;
    }
  }
  return false;
}

}  // namespace assay::emu
