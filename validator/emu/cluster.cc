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
void ForCluster(Engine& engine, std::uint32_t cluster, Fn fn) {
  for (const auto& block : engine.resident) {
    if (!block->done && block->cluster == cluster) fn(*block);
  }
}

bool AllArrived(Engine& engine, std::uint32_t cluster) {
  bool all = true;
  ForCluster(engine, cluster, [&](Block& block) {
    for (const auto& warp : block.warps) all = all && (warp->alive & ~warp->cluster_arrived) == 0;
  });
  return all;
}

void CompletePhase(Engine& engine, std::uint32_t cluster) {
  ++engine.counters.barriers;
  engine.last_progress = engine.counters.steps;
  struct Waited {
    Block* block;
    CoreWarp* warp;
    LaneMask lanes;
  };
  std::vector<Waited> waited;
  ForCluster(engine, cluster, [&](Block& block) {
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
  if (!engine.race) return;
  engine.race->OnClusterComplete(cluster);
  for (const Waited& wait : waited)
    engine.race->OnClusterWait(wait.block->number, wait.warp->number, wait.lanes);
}

}  // namespace

void ClusterArrive(CoreWarp& warp, LaneMask lanes, bool relaxed) {
  Engine& engine = *warp.engine;
  if ((warp.cluster_arrived & lanes) != 0 && engine.execution.checks.barrier) {
    Report1(warp, FindingKind::kBarrierMisuse, warp.pc, warp.cluster_arrived & lanes,
            "a thread arrives at the cluster barrier again before it completed",
            "arrives at the cluster barrier");
  }
  warp.cluster_arrived |= lanes;
  if (engine.race) engine.race->OnClusterArrive(warp.block->number, warp.number, lanes, relaxed);
  if (AllArrived(engine, warp.block->cluster)) CompletePhase(engine, warp.block->cluster);
}

bool ClusterWaitOver(CoreWarp& warp, LaneMask lanes) {
  if ((lanes & ~warp.cluster_released) != 0) return false;
  warp.cluster_released &= ~lanes;
  if (warp.engine->race) warp.engine->race->OnClusterWait(warp.block->number, warp.number, lanes);
  return true;
}

void RecheckCluster(Block& block) {
  Engine& engine = *block.engine;
  if (engine.launch.blocks_per_cluster == 1) return;
  bool someone = false;
  ForCluster(engine, block.cluster, [&](Block& member) {
    for (const auto& warp : member.warps) someone = someone || warp->cluster_arrived != 0;
  });
  if (someone && AllArrived(engine, block.cluster)) CompletePhase(engine, block.cluster);
}

}  // namespace assay::emu
