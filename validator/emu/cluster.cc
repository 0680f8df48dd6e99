// barrier.cluster: one barrier over all blocks of a cluster, in two halves.
//
// Every thread arrives once a phase and may then wait for the phase to complete. A phase completes
// when all threads of the cluster that have not exited have arrived.
#include <algorithm>
#include <bit>

#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

template <class Fn>
void ForCluster(const Block& block, Fn fn) {
  for (std::size_t rank = 0; rank < block.members.size(); ++rank) {
    if (Block* const member = ClusterMember(block, rank)) fn(*member);
  }
}

bool AllArrived(const Block& one) {
  bool all = true;
  ForCluster(one, [&](Block& block) {
    for (const auto& warp : block.warps) all = all && (warp->alive & ~warp->cluster_arrived) == 0;
  });
  return all;
}

void CompletePhase(const Block& one) {
  Device& device = *one.device;
  ++device.counters.barriers;
  device.last_progress = device.counters.steps;
  struct Waited {
    Block* block;
    CoreWarp* warp;
    LaneMask lanes;
  };
  std::vector<Waited> waited;
  ForCluster(one, [&](Block& block) {
    for (const auto& warp : block.warps) {
      warp->cluster_released |= warp->cluster_arrived;
      warp->cluster_arrived = 0;
      for (int i = 0; i < warp->split_count; ++i) {
        Split& split = warp->splits[static_cast<std::size_t>(i)];
        if (split.wait != Wait::kCluster) continue;
        split.wait = Wait::kReady;
        ++split.pc;
        warp->cluster_released &= ~split.mask;
        waited.push_back({&block, warp.get(), split.mask});
      }
    }
  });
  if (!device.race) return;
  device.race->OnClusterComplete(one.cluster);
  for (const Waited& wait : waited)
    device.race->OnClusterWait(wait.block->number, wait.warp->number, wait.lanes);
}

}  // namespace

void ClusterArrive(CoreWarp& warp, LaneMask lanes, bool relaxed) {
  Device& device = *warp.device;
  if ((warp.cluster_arrived & lanes) != 0 && device.execution.checks.barrier) {
    Report1(warp, FindingKind::kBarrierMisuse, warp.pc, warp.cluster_arrived & lanes,
            "a thread arrives at the cluster barrier again before it completed",
            "arrives at the cluster barrier");
  }
  warp.cluster_arrived |= lanes;
  if (device.race) device.race->OnClusterArrive(warp.block->number, warp.number, lanes, relaxed);
  if (AllArrived(*warp.block)) CompletePhase(*warp.block);
}

bool ClusterWaitOver(CoreWarp& warp, LaneMask lanes) {
  if ((lanes & ~warp.cluster_released) != 0) return false;
  warp.cluster_released &= ~lanes;
  if (warp.device->race) warp.device->race->OnClusterWait(warp.block->number, warp.number, lanes);
  return true;
}

void RecheckCluster(Block& block) {
  if (block.device->launch.blocks_per_cluster == 1) return;
  bool someone = false;
  ForCluster(block, [&](Block& member) {
    for (const auto& warp : member.warps) someone = someone || warp->cluster_arrived != 0;
  });
  if (someone && AllArrived(block)) CompletePhase(block);
}

}  // namespace assay::emu
