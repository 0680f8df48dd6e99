// Barriers of ThreadOrder: of a block, of a part of it, of a warp.
#include <algorithm>
#include <bit>

#include "validator/emu/race/order.h"

namespace assay::emu {

ThreadOrder::BarrierState& ThreadOrder::BarrierAt(BlockNumber block, std::uint32_t barrier) {
  Live& live = LiveAt(block);
  for (BarrierState& state : live.barriers) {
    if (state.barrier == barrier) return state;
  }
  BarrierState& state = live.barriers.emplace_back();
  state.barrier = barrier;
  state.waiting.resize(warps_per_block_);
  return state;
}

/// Each of the lanes was released by the last completion, or was told by somebody who was.
bool ThreadOrder::KnowsCompletion(const BarrierState& state, WarpNumber warp, LaneMask lanes) {
  if (state.completed == 0) return true;
  const WarpNumber first = warp - warp % warps_per_block_;
  for (LaneMask rest = lanes & ~state.released[warp - first]; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    bool told = false;
    for (std::uint32_t w = 0; !told && w < warps_per_block_; ++w) {
      for (LaneMask theirs = state.released[w]; !told && theirs != 0; theirs &= theirs - 1)
        told = LaneKnows(warp, lane, first + w, std::countr_zero(theirs), state.completed);
    }
    if (!told) return false;
  }
  return true;
}

bool ThreadOrder::BarrierArrive(BlockNumber block, std::uint32_t barrier, WarpNumber warp,
                                LaneMask lanes, bool waits) {
  BarrierState& state = BarrierAt(block, barrier);
  const bool in_order = KnowsCompletion(state, warp, lanes);
  if (waits) {
    state.waiting[warp % warps_per_block_] |= lanes;
    return in_order;
  }
  if (state.arrived == nullptr) state.arrived = std::make_unique<Clock>();
  Contribute(*state.arrived, block, warp, lanes);
  Tick(block);
  return in_order;
}

bool ThreadOrder::BarrierComplete(BlockNumber block, std::uint32_t barrier) {
  BarrierState& state = BarrierAt(block, barrier);
  Live& live = LiveAt(block);
  bool full = state.arrived == nullptr;
  for (std::uint32_t w = 0; full && w < warps_per_block_; ++w) {
    full = (state.waiting[w] | live.warps[w].gone) == kAllLanes;
  }
  if (full) {
    CompleteFull(block);
  } else {
    auto joined = std::make_shared<Clock>();
    if (state.arrived != nullptr) joined->Join(*state.arrived);
    for (std::uint32_t w = 0; w < warps_per_block_; ++w) {
      if (state.waiting[w] != 0)
        Contribute(*joined, block, block * warps_per_block_ + w, state.waiting[w]);
    }
    const ClockPtr shared = std::move(joined);
    for (std::uint32_t w = 0; w < warps_per_block_; ++w) {
      if (state.waiting[w] != 0) SetClock(live.warps[w], state.waiting[w], shared);
    }
    Tick(block);
  }
  state.released.swap(state.waiting);
  state.waiting.assign(warps_per_block_, 0u);
  // Of everybody's own events, those from here on come after the barrier.
  state.completed = full ? 0 : At(block).time;
  state.arrived.reset();
  return full;
}

void ThreadOrder::CompleteFull(BlockNumber block) {
  BlockState& state = At(block);
  Live& live = LiveAt(block);
  // Clocks differ only after partial barriers, acquires and the like; mostly all of them are the
  // same pointer, often null.
  bool uniform = true;
  const ClockPtr& first = live.warps.front().common;
  for (const WarpState& warp : live.warps) {
    if (warp.split != nullptr || warp.common != first) uniform = false;
  }
  if (!uniform) {
    ClockPtr shared;
    const Clock* previous = nullptr;
    for (const WarpState& warp : live.warps) {
      for (int lane = 0; lane < kWarpSize; ++lane) {
        const ClockPtr& clock = ClockOf(warp, lane);
        if ((warp.gone >> lane & 1u) != 0 || clock.get() == previous) continue;
        shared = Joined(shared, clock);
        previous = clock.get();
      }
    }
    // The base speaks for the block's own threads from here on, except for ghosts. A clock that has
    // a place is worth more as it is.
    if (shared != nullptr && shared->place().line == 0 && state.ghosts.empty()) {
      auto others = std::make_shared<Clock>(*shared);
      others->DropWarps(block * warps_per_block_, (block + 1) * warps_per_block_);
      shared.reset();
      if (!others->empty()) shared = std::move(others);
    }
    for (WarpState& warp : live.warps) {
      warp.common = shared;
      warp.split.reset();
    }
  }
  // What a ghost's warp knew of it, everybody knows now.
  for (Ghost& ghost : state.ghosts) {
    if (live.warps[ghost.warp % warps_per_block_].gone != kAllLanes) {
      ghost.base = std::max(ghost.base, ghost.own_all);
    }
  }
  for (WarpState& warp : live.warps) {
    warp.touched = 0;
    if (warp.twin != nullptr) {
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        if ((warp.gone >> lane & 1u) == 0) warp.twin->published[lane] = warp.twin->known[lane];
      }
      warp.twin->published_of_all = std::ranges::min(warp.twin->published);
    }
  }
  state.base = state.time;
  Tick(block);
}

bool ThreadOrder::WarpBarrier(WarpNumber warp, LaneMask lanes) {
  const BlockNumber block = BlockOf(warp);
  WarpState& state = WarpAt(warp);
  const bool full = (lanes | state.gone) == kAllLanes;
  bool same_clock = state.split == nullptr;
  bool same_twins = true;
  if (state.twin != nullptr) same_twins = state.twin->known == state.twin->published;
  if (!full || !same_clock || !same_twins) {
    auto joined = std::make_shared<Clock>();
    Contribute(*joined, block, warp, lanes & ~state.gone);
    SetClock(state, lanes & ~state.gone, joined);
  }
  if (full) state.own_all = At(block).time;
  Tick(block);
  return full;
}

}  // namespace assay::emu
