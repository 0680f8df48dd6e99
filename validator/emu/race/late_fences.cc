// The order of sequentially consistent fences in runs that follow it (RaceDetector::FollowFenceOrder).
//
// A fence need not have its place when it runs. As long as it is open, fences of other blocks come
// before it, though they run later, and do not know what it knew: so a reader that fences, and to
// whom nothing orders the writer, misses what was written before the writer's fence.
//
// What lies behind an open fence must not contradict its place. A load there may have missed what a
// fence that comes before had published: loads settle first. A store or atomic there is *witnessed*
// by whoever reads or overwrites it while the fence is open; a fence that a witness precedes by
// causality comes after (or else what was witnessed would come before the witness), and settles it
// first. So does a witness that acquires, because what it acquires includes what the open fence has
// yet to learn; the others learn that when the fence gets its place, and so do the locations. All
// this orders more than the model does, and allows less.
#include <algorithm>
#include <bit>

#include "validator/emu/race/sync.h"

namespace assay::emu {
namespace {

constexpr std::uint64_t kCell = 4;  // Bytes.
// Where there are more, fences settle.
constexpr std::size_t kBlocksKept = 16;
constexpr std::size_t kPlacesKept = 1024;
constexpr std::size_t kWitnessesKept = 64;  // Of a block.

}  // namespace

void SyncObjects::FollowFenceOrder(std::uint64_t seed) {
  follow_fences_.emplace(seed);
  late_fences_ = follow_fences_->Below(2) == 0;
}

/// Two fences whose scopes include each other are ordered, one way or the other: here as they get
/// their places. Fences of one instruction are taken to be in both orders, which says more than the
/// model and so allows less.
void SyncObjects::JoinFenceOrder(const OpenFence& fence) {
  ClockPtr* const orders[] = {&block_fences_[fence.block],
                              &cluster_fences_[order_.ClusterOf(fence.block)], &device_fences_};
  const WarpNumber first = fence.block * order_.warps_per_block();
  const auto late = late_.find(fence.block);
  const bool ended = late != late_.end() && late->second.ended;
  for (std::size_t r = 0; r <= static_cast<std::size_t>(fence.reach); ++r) {
    *orders[r] = Joined(*orders[r], fence.knew);
    if (late != late_.end()) TellLate(fence.block, late->second, *orders[r], static_cast<Reach>(r));
    if (ended) continue;
    // What the lanes write behind the fence publishes what the fence has learned.
    for (LaneMask rest = fence.lanes; rest != 0; rest &= rest - 1) {
      LaneState& state = Lane(fence.warp, std::countr_zero(rest));
      for (std::size_t of = 0; of < kReaches; ++of) {
        if (state.fence[of].now == 0) continue;
        state.fence[of].clock = Joined(state.fence[of].clock, *orders[r]);
        state.exported[of].reset();
        state.told = 0;
      }
    }
    if (!fence.met) {
      order_.Learn(fence.warp, fence.lanes, *orders[r]);
      continue;
    }
    for (std::uint32_t w = 0; w < order_.warps_per_block(); ++w)
      order_.Learn(first + w, kAllLanes, *orders[r]);
  }
}

void SyncObjects::SettleOpen(BlockNumber block) {
  for (const OpenFence& fence : open_fences_) {
    if (fence.block == block) JoinFenceOrder(fence);
  }
  std::erase_if(open_fences_, [&](const OpenFence& fence) { return fence.block == block; });
  ForgetLate(block);
}

void SyncObjects::MeetOpen(BlockNumber block) {
  for (OpenFence& fence : open_fences_) fence.met = fence.met || fence.block == block;
}

void SyncObjects::BeginLate(BlockNumber block) {
  late_.try_emplace(block);
  if (late_.size() > kBlocksKept) SettleOpen(open_fences_.front().block);
}

void SyncObjects::ForgetLate(BlockNumber block) {
  const auto late = late_.find(block);
  if (late == late_.end()) return;
  for (const Late::Place& place : late->second.places) {
    const auto at = late_places_.find({place.cell.region, place.cell.offset});
    if (at == late_places_.end()) continue;
    std::erase(at->second, block);
    if (at->second.empty()) late_places_.erase(at);
  }
  late_.erase(late);
}

/// The block's fences have got their places, and know `order` as far as `reach`: so does what they
/// were followed by.
void SyncObjects::TellLate(BlockNumber block, const Late& late, const ClockPtr& order,
                           Reach reach) {
  for (const Witness& witness : late.witnesses) {
    if (!witness.ended && Includes(reach, block, order_.BlockOf(witness.warp)))
      order_.Learn(witness.warp, 1u << witness.lane, order);
  }
  for (const Late::Place& place : late.places) {
    const std::uint64_t start = place.cell.offset * kCell;
    // Values that stood there in between would be read with what had been published then.
    if (place.again && watch_ != nullptr) watch_->OnAsyncWrite(place.cell.region, start, kCell);
    const auto region = regions_.find(place.cell.region);
    if (region == regions_.end()) continue;
    auto& chains = region->second;
    for (auto at = chains.lower_bound(start); at != chains.end() && at->first < start + kCell; ++at)
      Append(at->second, {Message{order, block, reach}});
  }
}

void SyncObjects::EndLate(BlockNumber block) {
  const auto own = late_.find(block);
  if (own != late_.end() && !own->second.places.empty()) {
    own->second.ended = true;
  } else {
    // Nobody was there to see where they belong: they come last.
    std::erase_if(open_fences_, [&](const OpenFence& fence) { return fence.block == block; });
    ForgetLate(block);
  }
  for (auto& [other, late] : late_) {
    for (Witness& witness : late.witnesses)
      witness.ended = witness.ended || order_.BlockOf(witness.warp) == block;
  }
}

bool SyncObjects::IsWitness(const Late& late, WarpNumber warp, LaneMask lanes) const {
  return std::ranges::any_of(late.witnesses, [&](const Witness& witness) {
    return witness.warp == warp && (lanes >> witness.lane & 1u) != 0;
  });
}

/// Do these lanes know of the block's open fences, or of what came behind them?
bool SyncObjects::MustFollow(BlockNumber block, const Late& late, WarpNumber warp, LaneMask lanes) {
  if (IsWitness(late, warp, lanes)) return true;
  const auto knows = [&](WarpNumber other, int other_lane, Time time) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      if (order_.LaneKnows(warp, std::countr_zero(rest), other, other_lane, time)) return true;
    }
    return false;
  };
  if (std::ranges::any_of(late.witnesses, [&](const Witness& witness) {
        return knows(witness.warp, witness.lane, witness.time);
      }))
    return true;
  for (const OpenFence& fence : open_fences_) {
    if (fence.block != block) continue;
    for (LaneMask rest = fence.lanes; rest != 0; rest &= rest - 1) {
      if (knows(fence.warp, std::countr_zero(rest), fence.time)) return true;
    }
  }
  return false;
}

bool SyncObjects::Includes(Reach reach, BlockNumber from, BlockNumber to) const {
  if (from == to) return true;
  return reach >=
         (order_.ClusterOf(from) == order_.ClusterOf(to) ? Reach::kCluster : Reach::kDevice);
}

void SyncObjects::SettleBeforeFence(WarpNumber warp, LaneMask lanes, bool acquires, bool sequential,
                                    Reach reach) {
  if (open_fences_.empty()) return;
  const BlockNumber own = order_.BlockOf(warp);
  if (!late_fences_ || !sequential) SettleOpen(own);
  std::vector<BlockNumber> first;
  for (const auto& [block, late] : late_) {
    // A fence for its own block neither has an order with those of others nor acquires from them.
    if (!Includes(reach, own, block)) continue;
    if (block == own ? acquires && IsWitness(late, warp, lanes)
                     : MustFollow(block, late, warp, lanes))
      first.push_back(block);
  }
  for (const BlockNumber block : first) SettleOpen(block);
}

void SyncObjects::SettleBeforeRead(WarpNumber warp, int lane) {
  if (open_fences_.empty()) return;
  if (!late_fences_ || std::ranges::any_of(open_fences_, [&](const OpenFence& fence) {
        return Covers(fence, warp, lane);
      }))
    SettleOpen(order_.BlockOf(warp));
}

void SyncObjects::Overwrite(Late& late, Location cell) {
  for (Late::Place& place : late.places) place.again = place.again || place.cell == cell;
}

/// The lane is a witness from now on; false: there are too many.
bool SyncObjects::Witnesses(Late& late, WarpNumber warp, int lane) {
  if (IsWitness(late, warp, 1u << lane)) return true;
  if (late.witnesses.size() == kWitnessesKept) return false;
  late.witnesses.push_back({.warp = warp, .lane = lane, .time = order_.NowOf(warp)});
  return true;
}

void SyncObjects::SettleBefore(const WarpAccess& access, bool acquires) {
  if (open_fences_.empty()) return;
  const BlockNumber own = order_.BlockOf(access.warp);
  if (!late_fences_) return SettleOpen(own);
  if (late_places_.size() > kPlacesKept) {
    while (!open_fences_.empty()) SettleOpen(open_fences_.front().block);
    return;
  }
  std::vector<BlockNumber> settled;
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool writes = access.kind != AccessKind::kRead;
    if (!writes) SettleBeforeRead(access.warp, lane);
    const bool behind = std::ranges::any_of(
        open_fences_, [&](const OpenFence& fence) { return Covers(fence, access.warp, lane); });
    const std::uint64_t last = (access.offsets[lane] + access.bytes - 1) / kCell;
    for (std::uint64_t cell = access.offsets[lane] / kCell; cell <= last; ++cell) {
      const std::pair place(access.region, cell);
      if (const auto at = late_places_.find(place); at != late_places_.end()) {
        for (const BlockNumber block : at->second) {
          if (writes) Overwrite(late_[block], {access.region, cell});
          if (block == own && behind) continue;
          if (!Witnesses(late_[block], access.warp, lane)) settled.push_back(block);
        }
      }
      if (!behind || !writes) continue;
      std::vector<BlockNumber>& blocks = late_places_[place];
      if (std::ranges::find(blocks, own) != blocks.end()) continue;
      blocks.push_back(own);
      late_[own].places.push_back({.cell = {access.region, cell}});
    }
  }
  if (acquires) {
    for (const auto& [block, late] : late_) {
      if (IsWitness(late, access.warp, access.lanes)) settled.push_back(block);
    }
  }
  for (const BlockNumber block : settled) SettleOpen(block);
}

}  // namespace assay::emu
