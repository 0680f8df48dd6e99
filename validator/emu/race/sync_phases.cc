// Barriers that complete phases: mbarriers, which stand in memory, and those of clusters, which do not.
#include <bit>

#include "validator/emu/race/sync.h"

namespace assay::emu {
namespace {

/// A cluster's barrier is no memory location.
constexpr Location kNowhere{0xffffffffu, ~0ull};

}  // namespace

void SyncObjects::Collect(Phase& phase, BlockNumber block, Reach reach, const Clock& clock) {
  for (Phase::Part& part : phase.parts) {
    if (part.block == block && part.reach == reach) {
      part.clock->Join(clock);
      return;
    }
  }
  phase.parts.push_back({block, reach, std::make_shared<Clock>(clock)});
}

void SyncObjects::CollectAll(Phase& phase, BlockNumber block,
                             const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    if (!message.sequential) Collect(phase, block, message.reach, *message.clock);
  }
}

Published SyncObjects::Completed(Phase& phase) {
  auto messages = std::make_shared<Messages>();
  messages->chain = next_chain_++;
  messages->log = std::make_shared<MessageLog>();
  for (Phase::Part& part : phase.parts) {
    Place(part.clock, nullptr);
    if (part.reach == Reach::kDevice) {
      messages->wide = Joined(messages->wide, part.clock);
    } else {
      messages->narrow = true;
    }
    messages->log->push_back(Message{std::move(part.clock), part.block, part.reach});
  }
  messages->count = messages->log->size();
  phase.parts.clear();
  return messages;
}

void SyncObjects::MbarrierInit(Location at) { mbarriers_[at.region].erase(at.offset); }

void SyncObjects::MbarrierArrive(Location at, WarpNumber warp, LaneMask lanes, bool releases,
                                 Reach reach) {
  Phase& phase = mbarriers_[at.region][at.offset].collecting;
  const BlockNumber block = order_.BlockOf(warp);
  if (releases) Collect(phase, block, reach, order_.ExportLanes(warp, lanes));
  if (lanes_.contains(warp)) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      scratch_.clear();
      MessagesOf(warp, std::countr_zero(rest), at, false, reach, 0, scratch_);
      CollectAll(phase, block, scratch_);
    }
  }
  if (releases) order_.Tick(block);
}

void SyncObjects::MbarrierPublish(Location at, BlockNumber block, const Clock& clock) {
  Collect(mbarriers_[at.region][at.offset].collecting, block, Reach::kCluster, clock);
}

void SyncObjects::MbarrierPhaseComplete(Location at) {
  Mbarrier& barrier = mbarriers_[at.region][at.offset];
  if (barrier.agent != 0) {
    Clock copies;
    copies.RaiseLanes(barrier.agent, kAllLanes, barrier.phase);
    Collect(barrier.collecting, kAnyBlock, Reach::kDevice, copies);
  }
  barrier.completed = Completed(barrier.collecting);
  ++barrier.phase;
}

void SyncObjects::MbarrierWait(Location at, WarpNumber warp, LaneMask lanes, bool acquires,
                               Reach reach) {
  const Published completed = mbarriers_[at.region][at.offset].completed;
  if (completed == nullptr) return;
  if (acquires) {
    Take(warp, lanes, *completed, reach);
    return;
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1)
    AddPending(warp, std::countr_zero(rest), completed, at, RaceDetector::Gap::kNowhere, false);
}

std::pair<WarpNumber, Time> SyncObjects::MbarrierAgent(Location at) {
  Mbarrier& barrier = mbarriers_[at.region][at.offset];
  if (barrier.agent == 0) barrier.agent = NewAgent();
  return {barrier.agent, barrier.phase};
}

void SyncObjects::ClusterArrive(WarpNumber warp, LaneMask lanes, bool releases) {
  const BlockNumber block = order_.BlockOf(warp);
  Phase& phase = clusters_[order_.ClusterOf(block)].collecting;
  if (releases) Collect(phase, block, Reach::kCluster, order_.ExportLanes(warp, lanes));
  if (lanes_.contains(warp)) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      scratch_.clear();
      MessagesOf(warp, std::countr_zero(rest), kNowhere, false, Reach::kCluster, 0, scratch_);
      CollectAll(phase, block, scratch_);
    }
  }
  order_.Tick(block);
}

void SyncObjects::ClusterComplete(std::uint32_t cluster) {
  ClusterBarrier& barrier = clusters_[cluster];
  barrier.completed = Completed(barrier.collecting);
}

void SyncObjects::ClusterWait(WarpNumber warp, LaneMask lanes) {
  const auto at = clusters_.find(order_.ClusterOf(order_.BlockOf(warp)));
  if (at == clusters_.end() || at->second.completed == nullptr) return;
  Take(warp, lanes, *at->second.completed, Reach::kCluster);
}

}  // namespace assay::emu
