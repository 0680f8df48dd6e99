#include "validator/emu/race/order.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace assay::emu {

void ThreadOrder::Begin(const RaceDetector::Shape& shape) {
  ++version_;
  warps_per_block_ = std::max(1u, shape.warps_per_block);
  blocks_per_cluster_ = std::max(1u, shape.blocks_per_cluster);
  threads_per_block_ =
      shape.threads_per_block != 0 ? shape.threads_per_block : warps_per_block_ * kWarpSize;
  last_ = nullptr;
  focus_ = {};
  chunks_.clear();
  chunks_.resize(shape.blocks / kChunk + 1);
}

ThreadOrder::BlockState& ThreadOrder::At(BlockNumber block) {
  if (last_ != nullptr && last_block_ == block) return *last_;
  const std::size_t index = block / kChunk;
  ASSAY_CHECK(index < chunks_.size(), "a block outside of the launch");
  if (chunks_[index] == nullptr) chunks_[index] = std::make_unique<Chunk>();
  last_block_ = block;
  last_ = &(*chunks_[index])[block % kChunk];
  return *last_;
}

ThreadOrder::Live& ThreadOrder::LiveAt(BlockNumber block) {
  BlockState& state = At(block);
  if (state.live == nullptr) {
    if (spare_.empty()) {
      state.live = std::make_unique<Live>();
    } else {
      state.live = std::move(spare_.back());
      spare_.pop_back();
    }
    state.live->warps.resize(warps_per_block_);
    for (std::uint32_t w = 0; w < warps_per_block_; ++w) {
      const std::uint32_t first = w * kWarpSize;
      const std::uint32_t lanes =
          threads_per_block_ > first
              ? std::min<std::uint32_t>(kWarpSize, threads_per_block_ - first)
              : 0;
      state.live->warps[w].gone = lanes == kWarpSize ? 0 : ~((1u << lanes) - 1);
    }
  }
  return *state.live;
}

void ThreadOrder::Refocus(WarpNumber warp) {
  const BlockNumber block = BlockOf(warp);
  Live& live = LiveAt(block);
  const WarpNumber first = block * warps_per_block_;
  focus_ = Focus{warp, first, &At(block), &live.warps[warp - first]};
}

void ThreadOrder::EndBlock(BlockNumber block) {
  focus_ = {};
  BlockState& state = At(block);
  ++version_;
  state.ended = true;
  if (state.live != nullptr && spare_.size() < 16) {
    state.live->warps.clear();
    state.live->barriers.clear();
    state.live->has_twins = false;
    spare_.push_back(std::move(state.live));
  }
  state.live.reset();
}

void ThreadOrder::Tick(BlockNumber block) {
  ++version_;
  Time& time = At(block).time;
  // Two thousand million events of one block: long past any step limit.
  ASSAY_CHECK(time < kNever - 1, "a block's clock ran over");
  ++time;
}

void ThreadOrder::OnExit(WarpNumber warp, LaneMask lanes) {
  const BlockNumber block = BlockOf(warp);
  WarpState& state = WarpAt(warp);
  ++version_;
  const LaneMask ghosts = lanes & state.touched & ~state.gone;
  state.gone |= lanes;
  state.ghosts |= ghosts;
  if (ghosts != 0) At(block).ghosts.push_back(Ghost{warp, ghosts, At(block).base, state.own_all});
}

bool ThreadOrder::HasGhost(const BlockState& state, WarpNumber warp) const {
  return std::any_of(state.ghosts.begin(), state.ghosts.end(),
                     [&](const Ghost& g) { return g.warp == warp; });
}

bool ThreadOrder::IsGhost(const BlockState& state, WarpNumber warp, int lane, Time stamp,
                          bool by_base) const {
  return std::any_of(state.ghosts.begin(), state.ghosts.end(), [&](const Ghost& g) {
    return g.warp == warp && (g.lanes >> lane & 1u) != 0 && stamp > (by_base ? g.base : g.own_all);
  });
}

const ClockPtr& ThreadOrder::ClockOf(const WarpState& state, int lane) {
  return state.split != nullptr ? (*state.split)[static_cast<std::size_t>(lane)] : state.common;
}

void ThreadOrder::SetClock(WarpState& state, LaneMask lanes, const ClockPtr& clock) {
  if ((lanes | state.gone) == kAllLanes) {
    state.common = clock;
    state.split.reset();
    return;
  }
  if (state.split == nullptr) {
    state.split = std::make_unique<LaneClocks>();
    state.split->fill(state.common);
    state.common.reset();
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    (*state.split)[static_cast<std::size_t>(std::countr_zero(rest))] = clock;
  }
}

/// Everything that these lanes know, themselves up to now included.
void ThreadOrder::Contribute(Clock& into, BlockNumber block, WarpNumber warp, LaneMask lanes) {
  BlockState& state = At(block);
  Live& live = LiveAt(block);
  WarpState& own = live.warps[warp % warps_per_block_];
  const Clock* previous = nullptr;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const ClockPtr& clock = ClockOf(own, std::countr_zero(rest));
    if (clock != nullptr && clock.get() != previous) into.Join(*clock);
    previous = clock.get();
  }
  into.RaiseBlock(block, state.base);
  if (own.own_all > state.base) {
    // What a ghost did after it was last heard of is not in own_all.
    LaneMask ghosts = 0;
    for (const Ghost& ghost : state.ghosts) {
      if (ghost.warp == warp) {
        ghosts |= ghost.lanes;
        into.RaiseLanes(warp, ghost.lanes, std::min(ghost.own_all, own.own_all));
      }
    }
    into.RaiseLanes(warp, ~ghosts, own.own_all);
  }
  into.RaiseLanes(warp, lanes, state.time);
  if (!live.has_twins) return;
  const WarpNumber first = block * warps_per_block_;
  for (std::uint32_t w = 0; w < warps_per_block_; ++w) {
    const Twin* twin = live.warps[w].twin.get();
    if (twin == nullptr) continue;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const auto l = static_cast<std::size_t>(lane);
      const bool mine = first + w == warp && (lanes >> lane & 1u) != 0;
      into.RaiseLanes(TwinOf(first + w), 1u << lane, mine ? twin->known[l] : twin->published[l]);
    }
  }
}

bool ThreadOrder::WarpKnows(WarpNumber warp, WarpNumber other, Time stamp) {
  const Focus& focus = Focused(warp);
  if (other - focus.first < warps_per_block_) {  // The same block's, and no agent.
    const BlockState& state = *focus.state;
    if (stamp <= state.base || (other == warp && stamp <= focus.own->own_all && !only_bases_)) {
      return state.ghosts.empty() || !HasGhost(state, other);
    }
  }
  const WarpState& own = *focus.own;
  if (stamp == kNever || own.split != nullptr) return false;
  if (IsTwin(other) && KnowsTwin(warp, other, stamp)) return true;
  if (own.common == nullptr || only_bases_) return false;
  if (!IsAgent(other)) {
    const BlockNumber other_block = BlockOf(other);
    if (stamp <= own.common->BlockBase(other_block) && !HasGhost(At(other_block), other))
      return true;
  }
  return own.common->LanesTime(other, kAllLanes) >= stamp;
}

/// The whole block was told of that twin's copies by a barrier.
bool ThreadOrder::KnowsTwin(WarpNumber warp, WarpNumber twin_warp, Time stamp) {
  const WarpNumber owner = twin_warp & ~kTwinBit;
  if (BlockOf(owner) != BlockOf(warp)) return false;
  const Twin* twin = WarpAt(owner).twin.get();
  return twin != nullptr && twin->published_of_all >= stamp;
}

bool ThreadOrder::TwinIsKnown(WarpNumber warp, LaneMask lanes, Time stamp) {
  const Twin* twin = WarpAt(warp).twin.get();
  if (twin == nullptr) return false;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    if (twin->published[static_cast<std::size_t>(std::countr_zero(rest))] < stamp) return false;
  }
  return true;
}

ThreadOrder::Knowledge ThreadOrder::WarpKnowledge(WarpNumber warp, WarpNumber other, Time stamp) {
  if (stamp == kNever) return Knowledge::kNone;
  if (WarpKnows(warp, other, stamp)) return Knowledge::kAll;
  if (only_bases_) return Knowledge::kSome;
  const BlockNumber block = BlockOf(warp);
  const WarpState& own = WarpAt(warp);
  if (own.split != nullptr) return Knowledge::kSome;
  if (IsTwin(other) && BlockOf(other & ~kTwinBit) == block) {
    const Twin* twin = WarpAt(other & ~kTwinBit).twin.get();
    if (twin != nullptr && *std::max_element(twin->known.begin(), twin->known.end()) >= stamp) {
      return Knowledge::kSome;
    }
  }
  if (other - block * warps_per_block_ < warps_per_block_ &&
      (stamp <= At(block).base || (other == warp && stamp <= own.own_all))) {
    return Knowledge::kSome;  // Ghosts among them.
  }
  if (own.common == nullptr) return Knowledge::kNone;
  if (!IsAgent(other) && stamp <= own.common->BlockBase(BlockOf(other))) return Knowledge::kSome;
  return own.common->AnyLaneTime(other) >= stamp ? Knowledge::kSome : Knowledge::kNone;
}

bool ThreadOrder::LaneKnows(WarpNumber warp, int lane, WarpNumber other, int other_lane,
                            Time stamp) {
  if (stamp == kNever) return false;
  const BlockNumber block = BlockOf(warp);
  WarpState& own = WarpAt(warp);
  if (!IsAgent(other)) {
    const BlockNumber other_block = BlockOf(other);
    if (other_block == block) {
      const BlockState& state = At(block);
      if (stamp <= state.base && !IsGhost(state, other, other_lane, stamp, true)) return true;
      if (only_bases_) return false;
      if (other == warp && stamp <= own.own_all && !IsGhost(state, other, other_lane, stamp, false))
        return true;
    }
    const ClockPtr& clock = ClockOf(own, lane);
    if (clock == nullptr) return false;
    if (stamp <= clock->BlockBase(other_block) &&
        !IsGhost(At(other_block), other, other_lane, stamp, true))
      return true;
    return clock->LaneTime(other, other_lane) >= stamp;
  }
  if (IsTwin(other)) {
    const WarpNumber owner = other & ~kTwinBit;
    if (BlockOf(owner) == block) {
      const Twin* twin = WarpAt(owner).twin.get();
      const auto l = static_cast<std::size_t>(other_lane);
      if (twin != nullptr && stamp <= twin->published[l]) return true;
      if (only_bases_) return false;
      if (twin != nullptr && owner == warp && other_lane == lane && stamp <= twin->known[l])
        return true;
    }
  }
  const ClockPtr& clock = ClockOf(own, lane);
  return clock != nullptr && clock->LaneTime(other, other_lane) >= stamp;
}

Snapshot ThreadOrder::Take(WarpNumber warp, int lane) {
  const BlockNumber block = BlockOf(warp);
  const BlockState& block_state = At(block);
  Live& live = LiveAt(block);
  const WarpState& own = live.warps[warp % warps_per_block_];
  Snapshot snapshot;
  snapshot.warp = warp;
  snapshot.lane = static_cast<std::uint8_t>(lane);
  snapshot.now = block_state.time;
  if (live.has_twins || own.ghosts != 0) {
    auto clock = std::make_shared<Clock>();
    Contribute(*clock, block, warp, 1u << lane);
    snapshot.clock = std::move(clock);
    return snapshot;
  }
  snapshot.clock = ClockOf(own, lane);
  snapshot.base = block_state.base;
  snapshot.own_all = own.own_all;
  return snapshot;
}

bool ThreadOrder::SnapshotKnows(const Snapshot& snapshot, WarpNumber other, int other_lane,
                                Time stamp) const {
  if (stamp == kNever) return false;
  if (!IsAgent(other)) {
    const BlockNumber block = BlockOf(other);
    if (block == BlockOf(snapshot.warp) && stamp <= snapshot.base) return true;
    if (other == snapshot.warp && stamp <= snapshot.own_all) return true;
    if (other == snapshot.warp && other_lane == snapshot.lane && stamp <= snapshot.now) return true;
    if (snapshot.clock != nullptr && stamp <= snapshot.clock->BlockBase(block)) return true;
  }
  return snapshot.clock != nullptr && stamp <= snapshot.clock->LaneTime(other, other_lane);
}

LaneMask ThreadOrder::Alike(WarpNumber warp, int lane) {
  const BlockNumber block = BlockOf(warp);
  const WarpState& own = WarpAt(warp);
  if (LiveAt(block).has_twins || own.ghosts != 0) return 1u << lane;
  if (own.split == nullptr) return kAllLanes;
  const ClockPtr& clock = ClockOf(own, lane);
  LaneMask alike = 0;
  for (int other = 0; other < kWarpSize; ++other)
    alike |= LaneMask{ClockOf(own, other) == clock} << other;
  return alike;
}

ClockPtr ThreadOrder::Export(const Snapshot& snapshot, LaneMask owners) {
  const BlockNumber block = BlockOf(snapshot.warp);
  BlockState& state = At(block);
  state.published = std::max(state.published, snapshot.now);
  auto clock = snapshot.clock != nullptr ? std::make_shared<Clock>(*snapshot.clock)
                                         : std::make_shared<Clock>();
  clock->RaiseBlock(block, snapshot.base);
  if (snapshot.own_all > snapshot.base)
    clock->RaiseLanes(snapshot.warp, kAllLanes, snapshot.own_all);
  clock->RaiseLanes(snapshot.warp, owners, snapshot.now);
  return clock;
}

Clock ThreadOrder::ExportLanes(WarpNumber warp, LaneMask lanes) {
  const BlockNumber block = BlockOf(warp);
  BlockState& state = At(block);
  state.published = std::max(state.published, state.time);
  Clock clock;
  Contribute(clock, block, warp, lanes);
  return clock;
}

ClockPtr ThreadOrder::JoinedLately(const ClockPtr& before, const ClockPtr& clock) {
  for (const Learned& each : learned_) {
    if (each.before == before && each.clock == clock) return each.after;
  }
  Learned& learned = learned_[learned_next_++ % learned_.size()];
  learned = {before, clock, Joined(before, clock)};
  return learned.after;
}

void ThreadOrder::Learn(WarpNumber warp, LaneMask lanes, const ClockPtr& clock) {
  if (clock == nullptr || clock->empty()) return;
  WarpState& state = WarpAt(warp);
  if (state.split == nullptr && (lanes | state.gone) == kAllLanes) {
    ClockPtr after = JoinedLately(state.common, clock);
    if (after == state.common) return;
    ++version_;
    state.common = std::move(after);
    return;
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const ClockPtr& before = ClockOf(state, lane);
    const ClockPtr after = Joined(before, clock);
    if (after == before) continue;
    ++version_;
    SetClock(state, 1u << lane, after);
  }
}

void ThreadOrder::LearnTwin(WarpNumber warp, LaneMask lanes, Time stamp) {
  ++version_;
  Live& live = LiveAt(BlockOf(warp));
  WarpState& state = live.warps[warp % warps_per_block_];
  if (state.twin == nullptr) state.twin = std::make_unique<Twin>();
  live.has_twins = true;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    Time& known = state.twin->known[static_cast<std::size_t>(std::countr_zero(rest))];
    known = std::max(known, stamp);
  }
  state.twin->known_of_all = std::ranges::min(state.twin->known);
}

bool ThreadOrder::NeverKnown(WarpNumber warp, Time stamp) {
  if (IsAgent(warp)) return false;
  const BlockState& state = At(BlockOf(warp));
  return state.ended && stamp > state.published;
}

std::uint64_t ThreadOrder::bytes() const {
  std::uint64_t total = chunks_.capacity() * sizeof(chunks_[0]);
  for (const auto& chunk : chunks_) {
    if (chunk == nullptr) continue;
    total += sizeof(Chunk);
    for (const BlockState& state : *chunk) {
      if (state.live == nullptr) continue;
      for (const WarpState& warp : state.live->warps) {
        total += sizeof(WarpState) + (warp.split != nullptr ? sizeof(LaneClocks) : 0) +
                 (warp.twin != nullptr ? sizeof(Twin) : 0) +
                 (warp.common != nullptr ? warp.common->bytes() : 0);
      }
    }
  }
  return total;
}

}  // namespace assay::emu
