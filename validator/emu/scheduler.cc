// Which blocks are resident, and in which order blocks and warps have their turns.
#include "validator/emu/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <unordered_set>

#include "validator/emu/launch_shape.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/costs.h"
#include "validator/emu/watch/endless.h"
#include "validator/emu/watch/polling.h"
#include "validator/emu/watch/race_report.h"
#include "validator/emu/watch/spin_watch.h"
#include "validator/emu/weak/contention.h"
#include "validator/emu/weak/stale.h"

namespace assay::emu {
namespace {

using Policy = Schedule::Policy;

constexpr std::uint64_t kQuantum = 4096;
constexpr std::size_t kResidentAtFirst = 4;
/// Instructions after which a block that has not ended gets company: it may wait for one that has
/// not started.
constexpr std::uint64_t kPatienceWithBlock = 200'000;
/// Blocks that a device can hold at once, as many as any kernel may count on.
constexpr std::uint32_t kMaxResident = 132 * 32;

/// Registers and local memory of blocks that need not be resident.
constexpr std::uint64_t kMemoryOfResidents = std::uint64_t{192} << 20;

class LaunchRunner {
 public:
  explicit LaunchRunner(Device& device)
      : engine_(device),
        policy_(device.execution.schedule.policy),
        spin_watch_(device),
        polling_(device) {
    const std::uint32_t clusters = device.launch.blocks / device.launch.blocks_per_cluster;
    if (const auto& only = device.launch.launch->only; !only.empty()) {
      ListClusters(only);
    } else if (policy_ == Policy::kPermuted || policy_ == Policy::kPriorities) {
      // Only a random order needs to be written down.
      if (std::uint64_t{clusters} * sizeof(std::uint32_t) >
          device.execution.limits.max_memory_bytes) {
        device.End(Stop::kResourceLimit,
                   "a random order of this many blocks needs more memory than the limit allows");
        return;
      }
      order_.resize(clusters);
      std::iota(order_.begin(), order_.end(), 0u);
    }
    count_ = device.launch.launch->only.empty() ? clusters : order_.size();
    if (policy_ == Policy::kPermuted || policy_ == Policy::kPriorities) {
      for (std::size_t i = order_.size(); i > 1; --i)
        std::swap(order_[i - 1], order_[device.rng.Below(i)]);
    }
  }

  void Run() {
    const bool together = engine_.launch.launch->cooperative;
    const std::size_t first = together                         ? count_
                              : policy_ == Policy::kSequential ? kResidentAtFirst
                              : policy_ == Policy::kPermuted   ? FitOnChip()
                                                               : 2 * kResidentAtFirst;
    for (std::size_t i = 0; i < std::min(first, count_) && !engine_.stopped; ++i) {
      Admit();
      // A courtesy ends where memory does.
      if (!together && i >= kResidentAtFirst && engine_.memory_bytes > kMemoryOfResidents) break;
    }
    while (!engine_.stopped && live_ > 0) Round();
  }

 private:
  /// Clusters that a chip holds at once, as far as threads and shared memory say: a kernel can see
  /// how many there are.
  std::size_t FitOnChip() const {
    constexpr std::uint64_t kMultiprocessors = 132, kThreads = 2048, kBlocks = 32;
    constexpr std::uint64_t kShared = 228 * 1024, kSystemShared = 1024;
    const LaunchState& launch = engine_.launch;
    const std::uint64_t shared =
        engine_.program.shared_static_bytes + launch.dynamic_shared + kSystemShared;
    const std::uint64_t each =
        std::min({kBlocks, kThreads / (std::uint64_t{launch.warps} * kWarpSize), kShared / shared});
    return std::max<std::uint64_t>(2 * kResidentAtFirst,
                                   kMultiprocessors * each / launch.blocks_per_cluster);
  }

  /// The clusters that hold the blocks asked for, each once, in the order asked for.
  void ListClusters(const std::vector<BlockRange>& only) {
    std::unordered_set<std::uint32_t> known;
    for (const BlockRange& range : only) {
      for (std::uint64_t i = range.first;
           i < engine_.launch.blocks && i - range.first < range.count; ++i) {
        // The ranges count x fastest, clusters or not.
        const Dim3& grid = engine_.launch.grid;
        const auto block = static_cast<std::uint32_t>(i);
        const std::uint32_t cluster =
            ClusterAt(engine_.launch,
                      {block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]});
        if (known.insert(cluster).second) order_.push_back(cluster);
      }
    }
  }

  /// The i-th cluster to start.
  std::uint32_t Nth(std::size_t i) const {
    const std::size_t at = policy_ == Policy::kReversed ? count_ - 1 - i : i;
    return order_.empty() ? static_cast<std::uint32_t>(at) : order_[at];
  }

  void Admit() {
    if (next_ >= count_) return;
    const std::uint32_t blocks = engine_.launch.blocks_per_cluster;
    const BlockNumber first = Nth(next_++) * blocks;
    std::vector<Block*> members;
    for (std::uint32_t rank = 0; rank < blocks && !engine_.stopped; ++rank)
      members.push_back(AdmitBlock(first + rank));
    for (Block* const member : members) member->members = members;
  }

  Block* AdmitBlock(BlockNumber number) {
    if (free_.empty()) {
      free_.push(engine_.resident.size());
      engine_.resident.push_back(std::make_unique<Block>());
      pollers_.emplace_back(engine_.launch.warps);
    }
    Block* const free = engine_.resident[free_.top()].get();
    free_.pop();
    StartBlock(engine_, *free, number);
    ++live_;
    if (engine_.memory_bytes > engine_.execution.limits.max_memory_bytes) {
      engine_.End(Stop::kResourceLimit,
                  "the blocks that must be resident need more memory than the limit allows");
    }
    return free;
  }

  /// One turn for every resident block.
  void Round() {
    std::uint64_t ran = 0;
    std::uint32_t waiting_for_cluster = 0;
    quiet_rounds_ = engine_.last_progress == progress_ ? quiet_rounds_ + 1 : 0;
    progress_ = engine_.last_progress;
    engine_.hold.waits = false;
    const auto is_over = [this] {
      return engine_.stopped || engine_.counters.steps >= engine_.execution.limits.max_steps;
    };
    for (std::size_t i = 0; i < engine_.resident.size() && !is_over(); ++i) {
      std::size_t at = i;
      if (policy_ == Policy::kReversed) at = engine_.resident.size() - 1 - i;
      if (policy_ == Policy::kPermuted || policy_ == Policy::kPriorities)
        at = engine_.rng.Below(engine_.resident.size());
      Block& block = *engine_.resident[at];
      if (block.done) continue;
      const std::uint64_t now = RunBlock(at);
      ran += now;
      block.steps += now;
      if (engine_.stopped) return;
      if (Finished(block)) {
        End(block);
        free_.push(at);
        Admit();
        ran += 1;
        continue;
      }
      if (now == 0) {
        if (WaitsForCluster(block)) {
          ++waiting_for_cluster;
        } else if (!engine_.hold.waits) {
          ReportStuck(block);
          return;
        }
      }
      if (block.steps > kPatienceWithBlock) {
        block.steps = 0;
        if (HasRoom()) Admit();
      }
    }
    // A round of all blocks that a device holds takes more than many runs may.
    if (is_over()) return CheckLimits();
    if (engine_.hold.waits) ran += Hold(ran);
    // Randomly chosen blocks may all have been idle ones: only a whole round of them proves a
    // deadlock.
    if (ran == 0 && waiting_for_cluster > 0 && ++idle_rounds_ > 64 + 8 * engine_.resident.size()) {
      for (const auto& block : engine_.resident) {
        if (!block->done) {
          ReportStuck(*block);
          return;
        }
      }
    }
    if (ran != 0) idle_rounds_ = 0;
    if (engine_.hold.waits) {
      spin_watch_.Reset();
    } else if (spin_watch_.AllSpin(pollers_)) {
      BreakSpin();
    }
    CheckLimits();
  }

  /// For one more, which nobody is known to wait for.
  bool HasRoom() const {
    return live_ < kMaxResident &&
           engine_.memory_bytes <= engine_.execution.limits.max_memory_bytes / 2;
  }

  /// A warp was held back: whom it waits for may not be there yet. Where nobody else can go on, it
  /// does.
  std::uint64_t Hold(std::uint64_t ran) {
    if (next_ < count_ && HasRoom()) {
      Admit();
      return 1;
    }
    if (ran == 0) {
      engine_.hold.pair = nullptr;
      return 1;
    }
    return 0;
  }

  /// Whoever runs, spins: on what a block will do that has not started, or for ever.
  void BreakSpin() {
    if (next_ < count_ && live_ < kMaxResident) {
      for (std::uint32_t more = std::max(1u, live_); more > 0 && !engine_.stopped; --more) Admit();
      spin_watch_.Reset();
      return;
    }
    ReportSpin(engine_, Ended());
    engine_.End(Stop::kFault, "livelock: the threads that run only spin");
  }

  std::uint32_t Ended() const {
    return static_cast<std::uint32_t>(next_) * engine_.launch.blocks_per_cluster - live_;
  }

  static bool Finished(const Block& block) {
    return std::ranges::all_of(block.warps, [](const auto& warp) { return warp->finished(); });
  }
  static bool WaitsForCluster(const Block& block) {
    for (const auto& warp : block.warps) {
      for (int i = 0; i < warp->split_count; ++i) {
        if (warp->splits[static_cast<std::size_t>(i)].wait == Wait::kCluster) return true;
      }
    }
    return false;
  }

  void End(Block& block) {
    block.done = true;
    --live_;
    engine_.last_progress = engine_.counters.steps;
    if (engine_.race) {
      engine_.race->EndBlock(block.number, block.race_region);
      if (engine_.stale != nullptr) engine_.stale->EndBlock(block.race_region);
      if (engine_.contention != nullptr) engine_.contention->EndBlock(block.race_region);
    }
  }

  std::uint64_t RunBlock(std::size_t at) {
    Block& block = *engine_.resident[at];
    std::vector<Poller>& pollers = pollers_[at];
    switch (policy_) {
      case Policy::kSequential:
      case Policy::kReversed:
        return RunInOrder(block, pollers);
      case Policy::kPermuted:
        return RunRandomly(block, pollers);
      case Policy::kPriorities:
        return RunByPriority(block, pollers);
    }
    return 0;
  }

  /// The turn of a warp that only looks at what has not changed: time goes by, since what happens
  /// next is told from what happened last by the steps so far.
  std::uint64_t Wait() {
    ++engine_.counters.steps;
    return 1;
  }

  /// A turn, in parts: who has done nothing but poll in one of them is put aside.
  std::uint64_t Turn(CoreWarp& warp, Poller& poller, std::uint64_t budget) {
    constexpr std::uint64_t kPart = 128;
    if (engine_.costs != nullptr) return RunWarp(warp, budget);
    std::uint64_t ran = 0;
    if (!poller.words.empty()) {
      if (polling_.Waits(warp, poller)) return Wait();
      if (polling_.LooksAgain(warp, poller, ran)) return ran;
    }
    while (ran < budget && !engine_.stopped) {
      const std::uint64_t part = std::min(kPart, budget - ran);
      const std::uint64_t progress = engine_.last_progress;
      warp.looked = 0;
      const std::uint64_t now = RunWarp(warp, part);
      ran += now;
      if (now == 0) break;
      const bool yields = warp.outcome == Outcome::kYield;
      if (engine_.last_progress == progress && !engine_.stopped &&
          polling_.Suspects(warp, poller) && polling_.Follow(warp, poller, ran))
        break;
      if (now < part || yields) break;
    }
    return ran;
  }

  std::uint64_t RunInOrder(Block& block, std::vector<Poller>& pollers) {
    std::uint64_t ran = 0;
    const std::size_t count = block.warps.size();
    const std::uint64_t turn = engine_.costs != nullptr ? kTurnOfCosts : kQuantum;
    for (std::size_t i = 0; i < count && !engine_.stopped; ++i) {
      const std::size_t at = policy_ == Policy::kReversed ? count - 1 - i : i;
      ran += Turn(*block.warps[at], pollers[at], turn);
    }
    return ran;
  }

  std::uint64_t RunRandomly(Block& block, std::vector<Poller>& pollers) {
    std::uint64_t ran = 0;
    const std::size_t count = block.warps.size();
    const std::size_t start = engine_.rng.Below(count);
    for (std::size_t i = 0; i < count && !engine_.stopped; ++i) {
      const std::size_t at = (start + i) % count;
      ran += RunPatiently(*block.warps[at], pollers[at], 1 + engine_.rng.Below(64));
    }
    return ran;
  }

  /// A turn. Where many blocks are there, who has polled in vain for several turns and could not be
  /// put aside has fewer of them, as long as somebody changes memory: the looking of those who wait
  /// costs more than what they wait for.
  std::uint64_t RunPatiently(CoreWarp& warp, Poller& poller, std::uint64_t budget) {
    constexpr std::uint64_t kTurnsInVain = 3, kFewest = 32;
    constexpr std::uint32_t kMany = 64;
    if (live_ >= kMany && warp.idle_rounds > kTurnsInVain && quiet_rounds_ < kQuietRounds &&
        engine_.rng.Below(std::min(warp.idle_rounds, kFewest)) != 0)
      return Wait();
    const std::uint64_t progress = engine_.last_progress;
    const std::uint64_t ran = Turn(warp, poller, budget);
    const bool looked = ran != 0 && warp.looked != 0;
    warp.idle_rounds = looked && engine_.last_progress == progress ? warp.idle_rounds + 1 : 0;
    return ran;
  }

  /// PCT (Burckhardt and others 2010): the warp of highest priority runs; at random points it falls
  /// behind all others. A warp that runs long without blocking is taken to spin, and falls behind
  /// too.
  std::uint64_t RunByPriority(Block& block, std::vector<Poller>& pollers) {
    bool waits = false;
    std::vector<CoreWarp*> by_priority;
    for (const auto& warp : block.warps) {
      if (!warp->finished()) by_priority.push_back(warp.get());
    }
    std::ranges::sort(by_priority, [](const CoreWarp* a, const CoreWarp* b) {
      return a->priority != b->priority ? a->priority > b->priority : a->index < b->index;
    });
    for (CoreWarp* const warp : by_priority) {
      Poller& poller = pollers[warp->index];
      if (polling_.Waits(*warp, poller)) {
        waits = true;
        continue;
      }
      const std::uint64_t budget = 1 + engine_.rng.Below(512);
      const std::uint64_t ran = Turn(*warp, poller, budget);
      if (ran == 0) continue;
      if (engine_.rng.Below(8) == 0 || ++warp->idle_rounds % 16 == 0) warp->priority = lowest_--;
      return ran;
    }
    return waits ? Wait() : 0;
  }

  void CheckLimits() {
    constexpr std::uint64_t kStepsBehindFault = 1'000'000;
    if (engine_.faulted != 0 && engine_.counters.steps - engine_.faulted > kStepsBehindFault)
      engine_.End(Stop::kFault, engine_.fault);
    const std::uint64_t limit = engine_.execution.limits.max_steps;
    if (engine_.stopped || engine_.counters.steps < std::min(limit, look_for_endless_)) return;
    look_for_endless_ *= kUntilNextLook;
    if (engine_.costs == nullptr && ReportEndless(engine_))
      return engine_.End(Stop::kFault, "a loop never ends");
    if (engine_.stopped || engine_.counters.steps < limit) return;
    engine_.End(
        Stop::kStepLimit,
        fmt::format("{} thread-level instructions without an end; {} of {} blocks have finished",
                    engine_.counters.steps, Ended(), engine_.launch.blocks));
  }

  Device& engine_;
  Policy policy_;
  SpinWatch spin_watch_;
  Polling polling_;
  std::vector<std::vector<Poller>> pollers_;  ///< By resident block, and warp.
  std::vector<std::uint32_t>
      order_;              ///< Clusters to start; empty: all, in the order of their numbers.
  std::size_t count_ = 0;  ///< How many they are.
  /// Places of `resident` whose blocks have ended: the first is taken first.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_;
  std::size_t next_ = 0;
  std::uint32_t live_ = 0;
  std::uint64_t idle_rounds_ = 0;
  /// Rounds since memory changed last. After so many of them everybody has a turn.
  static constexpr std::uint64_t kQuietRounds = 8;
  std::uint64_t quiet_rounds_ = 0;
  std::uint64_t progress_ = 0;
  std::uint64_t lowest_ = std::uint64_t{1} << 32;
  /// Steps after which a thread is followed, to see whether it will ever end: it costs a tenth of them at
  /// most.
  static constexpr std::uint64_t kUntilNextLook = 8;
  std::uint64_t look_for_endless_ = std::uint64_t{1} << 28;
};

}  // namespace

void RunLaunch(Device& device) {
  device.resident.clear();
  if (device.race) {
    device.race->BeginLaunch(
        {.warps_per_block = device.launch.warps,
         .blocks = device.launch.blocks,
         .blocks_per_cluster = device.launch.blocks_per_cluster,
         .threads_per_block = device.launch.threads,
         .narrow_scopes = device.program.narrow_scopes || device.launch.blocks_per_cluster > 1});
  }
  if (device.stale != nullptr) device.stale->BeginLaunch();
  if (device.contention != nullptr) device.contention->BeginLaunch();
  if (device.costs != nullptr) device.costs->BeginLaunch();
  LaunchRunner(device).Run();
  if (device.costs != nullptr) device.costs->EndLaunch();
  if (device.faulted != 0) device.End(Stop::kFault, device.fault);
  if (device.race) ReportRaces(device);
  device.resident.clear();
  device.frames.Clear();
  device.memory_bytes = 0;
}

}  // namespace assay::emu
