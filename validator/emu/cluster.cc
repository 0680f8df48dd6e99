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
void ForCluster(Device& device, std::uint32_t cluster, Fn fn) {
  for (const auto& block : device.resident) {
    if (!block->done && block->cluster == cluster) fn(*block);
  }
}

bool AllArrived(Device& device, std::uint32_t cluster) {
  bool all = true;
  ForCluster(device, cluster, [&](Block& block) {
    for (const auto& warp : block.warps) all = all && (warp->alive & ~warp->cluster_arrived) == 0;
  });
  return all;
}

void CompletePhase(Device& device, std::uint32_t cluster) {
  ++device.counters.barriers;
  device.last_progress = device.counters.steps;
  struct Waited {
    Block* block;
    CoreWarp* warp;
    LaneMask lanes;
  };
  std::vector<Waited> waited;
  ForCluster(device, cluster, [&](Block& block) {
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
  device.race->OnClusterComplete(cluster);
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
  if (AllArrived(device, warp.block->cluster)) CompletePhase(device, warp.block->cluster);
}

bool ClusterWaitOver(CoreWarp& warp, LaneMask lanes) {
  if ((lanes & ~warp.cluster_released) != 0) return false;
  warp.cluster_released &= ~lanes;
  if (warp.device->race) warp.device->race->OnClusterWait(warp.block->number, warp.number, lanes);
  return true;
}

void RecheckCluster(Block& block) {
  Device& device = *block.device;
  if (device.launch.blocks_per_cluster == 1) return;
  bool someone = false;
  ForCluster(device, block.cluster, [&](Block& member) {
    for (const auto& warp : member.warps) someone = someone || warp->cluster_arrived != 0;
  });
  if (someone && AllArrived(device, block.cluster)) CompletePhase(device, block.cluster);
}

}  // namespace assay::emu
