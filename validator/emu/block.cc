// Blocks: their start, their barriers, and what it means when none of their warps can run.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "validator/emu/handlers/async_copy.h"
#include "validator/emu/launch_shape.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

constexpr std::uint64_t kSharedAlignment = 1024;

void PrepareShared(Device& device, Block& block) {
  const Program::Impl& program = device.program;
  const std::uint64_t bytes = program.shared_static_bytes + device.launch.dynamic_shared;
  if (block.shared_storage.size() != bytes + kSharedAlignment) {
    block.shared_storage.assign(bytes + kSharedAlignment, std::byte{0});
    device.memory_bytes += bytes;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(block.shared_storage.data());
  block.shared_data = block.shared_storage.data() +
                      (kSharedAlignment - start % kSharedAlignment) % kSharedAlignment;
  // What a block finds in shared memory is whatever was there: a pattern that is unlikely to look
  // right.
  std::fill_n(block.shared_data, bytes, std::byte{0xff});
  block.race_region = device.next_race_region++;
  block.shared.resize(program.shared.size());
  block.shared_defined.resize(program.shared.size());
  for (std::size_t i = 0; i < program.shared.size(); ++i) {
    const SharedVariable& variable = program.shared[i];
    MemoryRegion& region = block.shared[i];
    region.kind = MemoryRegion::Kind::kShared;
    region.name = variable.name;
    region.data = block.shared_data + variable.storage;
    region.size = variable.dynamic ? device.launch.dynamic_shared : variable.bytes;
    region.base = variable.address;
    region.element_bytes = variable.element_bytes;
    region.race_region = block.race_region;
    region.race_offset = variable.storage;
    region.of_system = variable.system;
    region.promised_bits = static_cast<std::uint8_t>(std::countr_zero(variable.align));
    region.defined = nullptr;
    if (variable.system) std::fill_n(region.data, region.size, std::byte{0});
    if (device.track_defined) {
      block.shared_defined[i].Reset(region.size, variable.system);
      region.defined = &block.shared_defined[i];
    }
  }
}

/// Lanes of a warp that have arrived, counted the way barriers count: a warp whose living lanes are
/// all there counts whole.
std::uint32_t CountArrived(const Block& block, const NamedBarrier& barrier) {
  std::uint32_t count = 0;
  for (std::size_t w = 0; w < block.warps.size(); ++w) {
    const LaneMask lanes = barrier.lanes[w];
    if (lanes == 0) continue;
    const LaneMask missing = block.warps[w]->alive & ~lanes;
    count += missing == 0 ? kWarpSize : static_cast<std::uint32_t>(std::popcount(lanes));
  }
  return count;
}

bool IsComplete(const Block& block, const NamedBarrier& barrier) {
  if (barrier.expected != 0) return CountArrived(block, barrier) >= barrier.expected;
  for (std::size_t w = 0; w < block.warps.size(); ++w) {
    if ((block.warps[w]->alive & ~barrier.lanes[w]) != 0) return false;
  }
  return true;
}

void Complete(Block& block, std::uint32_t id) {
  Device& device = *block.device;
  NamedBarrier& barrier = block.barriers[id];
  ++device.counters.barriers;
  device.last_progress = device.counters.steps;
  for (const auto& warp : block.warps) {
    for (int i = 0; i < warp->split_count; ++i) {
      Split& split = warp->splits[static_cast<std::size_t>(i)];
      if (split.wait != Wait::kBarrier || split.barrier != id) continue;
      FinishBarrier(*warp, split, barrier);
      split.wait = Wait::kReady;
      ++split.pc;
    }
  }
  if (device.race) device.race->OnBarrierComplete(block.number, id);
  std::ranges::fill(barrier.lanes, LaneMask{0});
  barrier.open = false;
  barrier.expected = 0;
  barrier.popc = 0;
  barrier.arrived = 0;
}

/// "waits at barrier 0 on line 14", for one split.
std::string WaitText(const CoreWarp& warp, const Split& split) {
  const std::string where = LineOf(*warp.device, split.pc);
  switch (split.wait) {
    case Wait::kBarrier:
      return fmt::format("waits at barrier {} ({})", split.barrier, where);
    case Wait::kWarpSync:
      return fmt::format("waits in {} ({}) for lanes {:#010x}",
                         ptx::Mnemonic(warp.At(split.pc).source->opcode), where, split.need);
    case Wait::kCluster:
      return fmt::format("waits at the cluster barrier ({})", where);
    case Wait::kReady:
    case Wait::kAside:
      break;
  }
  return fmt::format("runs ({})", where);
}

Access AccessOf(const CoreWarp& warp, const Split& split) {
  Access access;
  access.what = WaitText(warp, split);
  access.site = SiteOf(*warp.device, split.pc);
  access.thread = ThreadOf(warp, FirstLane(split.mask));
  access.threads = static_cast<std::uint64_t>(std::popcount(split.mask));
  return access;
}

}  // namespace

namespace {

LaneMask LanesThatRun(const LaunchState& launch, std::uint32_t warp) {
  const std::uint64_t first = std::uint64_t{warp} * kWarpSize;
  const std::uint64_t left = launch.threads - first;
  const LaneMask all = left >= kWarpSize ? kAllLanes : (LaneMask{1} << left) - 1;
  if (launch.launch->threads.empty()) return all;
  LaneMask chosen = 0;
  for (const BlockRange& range : launch.launch->threads) {
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const std::uint64_t thread = first + lane;
      if (thread >= range.first && thread - range.first < range.count)
        chosen |= LaneMask{1} << lane;
    }
  }
  return all & chosen;
}

}  // namespace

void StartBlock(Device& device, Block& block, BlockNumber number) {
  const LaunchState& launch = device.launch;
  block.device = &device;
  block.number = number;
  block.id = BlockId(launch, number);
  block.cluster = number / launch.blocks_per_cluster;
  block.cluster_rank = number % launch.blocks_per_cluster;
  block.threads = launch.threads;
  block.live_warps = launch.warps;
  block.steps = 0;
  block.next_warp = 0;
  block.done = false;
  PrepareShared(device, block);
  if (device.race && block.shared_storage.size() > kSharedAlignment) {
    if (launch.blocks_per_cluster == 1)
      device.race->OnBlockRegion(number, block.race_region);
    else
      device.race->OnClusterRegion(number, block.race_region);
  }
  for (NamedBarrier& barrier : block.barriers) {
    barrier = NamedBarrier{};
    barrier.lanes.assign(launch.warps, 0);
    barrier.pcs.assign(launch.warps, kNoPc);
  }
  const bool fresh = block.warps.empty();
  for (std::uint32_t w = 0; w < launch.warps; ++w) {
    if (fresh) block.warps.push_back(std::make_unique<CoreWarp>());
    CoreWarp& warp = *block.warps[w];
    warp.device = &device;
    warp.block = &block;
    warp.index = w;
    warp.number = number * launch.warps + w;
    warp.perturbation.seed = device.execution.perturbation_seed;
    warp.carry = 0;
    warp.outcome = Outcome::kNext;
    warp.current = -1;
    warp.split_count = 0;
    warp.priority = device.rng.Next();
    warp.idle_rounds = 0;
    warp.strong_accesses = 0;
    warp.last_access = kNoPc;
    warp.async.reset();
    warp.chosen_paths.clear();
    warp.cluster_arrived = 0;
    warp.cluster_released = 0;
    warp.alive = LanesThatRun(launch, w);
    ResetFrames(warp);
    const FunctionCode& code = device.program.functions[launch.function];
    Frame& frame = FrameOf(warp, launch.function, 0);
    frame.base.fill(kLocalBase);
    if (!ReserveLocal(warp, kLocalBase + code.frame_bytes)) {
      device.End(
          Stop::kResourceLimit,
          fmt::format("the kernel needs {} bytes of local memory a thread", code.frame_bytes));
      return;
    }
    std::ranges::fill(warp.local_defined, std::uint8_t{0});
    PlaceFrameLocals(warp, frame, kAllLanes);
    AddSplit(warp, code.first_pc, warp.alive, &frame, Wait::kReady, 0, 0);
  }
}

bool ArriveAtBarrier(CoreWarp& warp, const Decoded& op, std::uint32_t id, LaneMask lanes,
                     std::uint32_t expected, bool waits, LaneMask predicate) {
  Block& block = *warp.block;
  Device& device = *warp.device;
  NamedBarrier& barrier = block.barriers[id];
  const std::uint32_t pc = warp.PcOf(op);
  if (!barrier.open) {
    barrier.open = true;
    barrier.expected = expected;
    barrier.first_pc = pc;
  } else if (barrier.expected != expected && device.execution.checks.barrier) {
    const auto text = [](std::uint32_t count) {
      return count == 0 ? std::string("the whole block") : std::to_string(count);
    };
    Report1(warp, FindingKind::kBarrierMisuse, pc, lanes,
            fmt::format("barrier {} is used with different thread counts: {} here, {} at {}", id,
                        text(expected), text(barrier.expected), LineOf(device, barrier.first_pc)),
            fmt::format("arrives at barrier {}", id));
  }
  if ((barrier.lanes[warp.index] & lanes) != 0 && device.execution.checks.barrier) {
    Report1(warp, FindingKind::kBarrierMisuse, pc, barrier.lanes[warp.index] & lanes,
            fmt::format("a thread arrives at barrier {} again before it completed", id),
            fmt::format("arrives at barrier {}", id));
  }
  // Aligned barriers must be reached by the whole warp at once.
  if (barrier.lanes[warp.index] == 0) {
    barrier.pcs[warp.index] = pc;
  } else if (barrier.pcs[warp.index] != pc && device.execution.checks.barrier &&
             IsAligned(*op.source)) {
    const std::uint32_t other = barrier.pcs[warp.index];
    const auto arrival = [&](std::uint32_t at, LaneMask who) {
      return Access{.what = fmt::format("arrives at barrier {}", id),
                    .site = SiteOf(device, at),
                    .thread = ThreadOf(warp, FirstLane(who)),
                    .threads = static_cast<std::uint64_t>(std::popcount(who)),
                    .value = {}};
    };
    Finding finding;
    finding.kind = FindingKind::kBarrierDivergence;
    finding.message =
        fmt::format("threads of one warp meet at different barriers: some at {}, some at {}",
                    LineOf(device, other), LineOf(device, pc));
    finding.accesses = {arrival(pc, lanes), arrival(other, barrier.lanes[warp.index])};
    finding.missing = "all threads of a warp must reach the same barrier";
    device.findings.Add(std::move(finding), pc, other);
  }
  barrier.lanes[warp.index] |= lanes;
  barrier.arrived += static_cast<std::uint32_t>(std::popcount(lanes));
  barrier.popc += static_cast<std::uint32_t>(std::popcount(predicate & lanes));
  const bool in_order =
      !device.race || device.race->OnBarrierArrive(block.number, id, warp.number, lanes, waits);
  if (!in_order && expected != 0 && device.execution.checks.barrier) {
    Report1(warp, FindingKind::kBarrierMisuse, pc, lanes,
            fmt::format("who meets at barrier {} is left to chance: threads arrive that nothing "
                        "orders after its last completion, and might have counted for that one",
                        id),
            fmt::format("arrives at barrier {}", id), {},
            "a barrier of its own for each group of threads, or an order between its uses");
  }
  if (!IsComplete(block, barrier)) return false;
  if (waits) {
    // The lanes that complete it take their result like those that waited.
    Split last{.pc = pc, .mask = lanes, .frame = warp.frame};
    FinishBarrier(warp, last, barrier);
  }
  Complete(block, id);
  return true;
}

void RecheckBarriers(Block& block) {
  for (std::uint32_t id = 0; id < block.barriers.size(); ++id) {
    NamedBarrier& barrier = block.barriers[id];
    if (!barrier.open || barrier.expected != 0) continue;
    const bool someone =
        std::ranges::any_of(barrier.lanes, [](LaneMask lanes) { return lanes != 0; });
    if (someone && IsComplete(block, barrier)) Complete(block, id);
  }
}

std::vector<Access> WaitsOf(const Block& block) {
  std::vector<Access> waits;
  for (const auto& warp : block.warps) {
    for (int i = 0; i < warp->split_count; ++i) {
      Access access = AccessOf(*warp, warp->splits[static_cast<std::size_t>(i)]);
      const auto same = std::ranges::find_if(waits, [&](const Access& other) {
        return other.site == access.site && other.what == access.what;
      });
      if (same == waits.end()) {
        waits.push_back(std::move(access));
      } else {
        same->threads += access.threads;
      }
    }
  }
  return waits;
}

void ReportStuck(Block& block) {
  Device& device = *block.device;
  std::vector<Access> waits = WaitsOf(block);
  const CoreWarp* first_warp = nullptr;
  const Split* first_split = nullptr;
  bool warp_wait = false;
  bool barrier_wait = false;
  for (const auto& warp : block.warps) {
    for (int i = 0; i < warp->split_count; ++i) {
      const Split& split = warp->splits[static_cast<std::size_t>(i)];
      if (first_warp == nullptr ||
          (split.wait == Wait::kWarpSync && first_split->wait != Wait::kWarpSync)) {
        first_warp = warp.get();
        first_split = &split;
      }
      warp_wait = warp_wait || split.wait == Wait::kWarpSync;
      barrier_wait = barrier_wait || split.wait == Wait::kBarrier;
    }
  }
  Finding finding;
  if (first_split == nullptr) return;
  std::uint32_t exited = 0;
  for (const auto& warp : block.warps)
    exited += kWarpSize - static_cast<std::uint32_t>(std::popcount(warp->alive));
  exited -= static_cast<std::uint32_t>(block.warps.size()) * kWarpSize - block.threads;
  if (warp_wait) {
    const LaneMask missing = first_split->need & first_warp->alive & ~first_split->mask;
    finding.kind = FindingKind::kBarrierMisuse;
    finding.message = fmt::format(
        "{} names lanes {:#010x} in its mask, but lanes {:#010x} never reach it",
        ptx::Mnemonic(first_warp->At(first_split->pc).source->opcode), first_split->need, missing);
    finding.missing = "every lane named in the mask must execute the same instruction";
  } else if (barrier_wait) {
    const NamedBarrier& barrier = block.barriers[first_split->barrier];
    if (barrier.expected != 0) {
      finding.kind = FindingKind::kBarrierMisuse;
      finding.message =
          fmt::format("barrier {} waits for {} threads, but only {} can ever arrive ({} exited)",
                      first_split->barrier, barrier.expected, CountArrived(block, barrier), exited);
    } else {
      finding.kind = FindingKind::kBarrierDivergence;
      finding.message = fmt::format("barrier {} is not reached by all threads of the block",
                                    first_split->barrier);
    }
    finding.missing = "all threads of the block must reach the same barrier";
  } else {
    finding.kind = FindingKind::kDeadlock;
    finding.message = "no thread of the block can proceed";
  }
  std::ranges::stable_sort(waits, {}, [&](const Access& access) {
    return access.site == SiteOf(device, first_split->pc) ? 0 : 1;
  });
  constexpr std::size_t kShown = 4;
  if (waits.size() > kShown) waits.resize(kShown);
  finding.accesses = std::move(waits);
  device.findings.Add(std::move(finding), first_split->pc, kNoPc);
  device.End(Stop::kFault, "deadlock: no thread of a block can proceed");
}

}  // namespace assay::emu
