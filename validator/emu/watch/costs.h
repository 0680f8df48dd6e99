// Counts what a run does to the machine: instructions by unit, sectors, bank conflicts, and how long a
// block waits for itself (execution/launch_counts.h).
//
// Model. Every instruction of a warp is looked at before it runs. A global access touches 32-byte
// sectors; loads pass a cache of the block's share of L1; what all blocks together touched is kept
// by buffer. Shared memory has 32 banks of four bytes; a warp's access takes as many passes as its
// worst bank holds different words, in parts of a half warp for 8 bytes a lane and of a quarter for
// 16. Time is that of one block alone on its multiprocessor: an instruction starts when its operands
// are there, whatever its place in its basic block (the assembler moves loads forward), and no basic
// block, barrier or fence starts before all of the one before has. So a loop whose body loads and
// adds waits for memory once a round; one that loads four times at once waits as often for four.
//
// Blocks run with small turns of their warps, so that the cache sees them side by side. Nothing else
// watches: no monitor, no shadow. Where it is off it costs nothing; where it is on, five times the
// plain interpreter. emu::Count (count.h) is how it is run.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "validator/emu/core.h"
#include "validator/emu/memory.h"
#include "validator/emu/watch/machine_work.h"
#include "validator/emu/watch/sectors.h"
#include "validator/execution/launch_counts.h"

namespace assay::emu {

/// Instructions of a warp's turn while costs are counted.
inline constexpr std::uint64_t kTurnOfCosts = 32;

class CostWatch {
 public:
  CostWatch(Device& device, const CountOptions& options);
  ~CostWatch();

  void BeginLaunch();
  void EndLaunch();
  /// Counts `op` for warp.exec, and runs it.
  void Execute(CoreWarp& warp, const Decoded& op) {
    Observe(warp, op);
    op.run(warp, op);
  }
  std::vector<LaunchCounts> Take() { return std::move(launches_); }

 private:
  enum class Access : std::uint8_t {
    kNone,
    kLoad,
    kStore,
    kAtomic,
    kRows,      ///< ldmatrix, stmatrix
    kFragment,  ///< wmma.load, wmma.store
    kCopy,      ///< cp.async
    kBulk,      ///< cp.async.bulk
    kUnknown,
  };
  /// What is known of an instruction beforehand.
  struct Plan {
    bool known = false;
    MachineWork work;
    std::uint32_t latency = 0;
    std::uint64_t products = 0;  ///< Of one warp.
    MatrixType type{};
    bool group = false;  ///< wgmma
    Access access = Access::kNone;
    std::uint8_t address = 0;  ///< Index of the address among the decoded operands.
    std::uint32_t bytes = 0;   ///< A lane.
    bool cached = true;        ///< Through L1.
    bool reads = false;
    bool writes = false;
    /// Stores and loads that may be of the same memory, for all that the assembler knows: those of one
    /// group keep their order. 0: of neither.
    std::uint8_t order = 0;
  };
  struct WarpState {
    std::uint64_t start = 0;       ///< Of the basic block, in cycles.
    std::uint64_t latest = 0;      ///< Start of the last of its instructions to start,
    std::uint64_t issued = 0;      ///< and how many they are.
    std::uint64_t stored[3] = {};  ///< Start of the last store so far, by Plan::order.
    std::uint64_t barriers = 0;
    bool at_barrier = false;
    std::uint64_t copies = 0;                     ///< When the last cp.async so far is there.
    std::vector<std::uint64_t> groups;            ///< The same, by closed group.
    const Frame* frame = nullptr;                 ///< Of `ready`,
    std::vector<std::uint64_t>* ready = nullptr;  ///< by shadow index.
    std::unordered_map<const Frame*, std::vector<std::uint64_t>> frames;
  };
  struct BlockState {
    const Block* block = nullptr;
    BlockNumber number = 0;
    std::vector<WarpState> warps;
    std::vector<std::uint64_t> barriers;  ///< When the last warp came to the n-th one.
    FirstLevel cache;
    SectorSet read;
    SectorSet written;
  };
  struct SiteCount {
    std::uint64_t requests = 0;
    std::uint64_t units = 0;
    std::uint64_t least = 0;
    bool shared = false;
  };

  void Observe(CoreWarp& warp, const Decoded& op);
  const Plan& PlanOf(const CoreWarp& warp, const Decoded& op);
  Plan MakePlan(const Decoded& op, std::uint32_t pc) const;
  /// A way round a few instructions, which the assembler makes predicates of.
  bool IsPredicated(const Decoded& op, std::uint32_t pc) const;
  BlockState& StateOf(const Block& block);
  void Finish(BlockState& state);
  std::vector<std::uint64_t>& ReadyOf(WarpState& state, const CoreWarp& warp);
  /// Cycles until the result is there.
  std::uint32_t Touch(CoreWarp& warp, const Decoded& op, const Plan& plan, BlockState& state);
  std::uint32_t TouchLanes(CoreWarp& warp, const Decoded& op, const Plan& plan, ptx::Space space,
                           LaneMask lanes, const std::uint64_t* addresses, std::uint32_t bytes,
                           BlockState& state);
  std::uint32_t TouchGlobal(CoreWarp& warp, const Decoded& op, const Plan& plan, LaneMask lanes,
                            const std::uint64_t* addresses, std::uint32_t bytes, BlockState& state);
  void TouchShared(const CoreWarp& warp, const Decoded& op, const Plan& plan, LaneMask lanes,
                   const std::uint64_t* addresses, std::uint32_t bytes);
  void TouchLocal(LaneMask lanes, const std::uint64_t* addresses, std::uint32_t bytes);
  std::uint32_t TouchBulk(CoreWarp& warp, const Decoded& op, BlockState& state);
  std::uint32_t ReadSector(std::uint64_t sector, bool cached, BlockState& state);
  void WriteSector(std::uint64_t sector, BlockState& state);
  BufferTraffic* BufferOf(std::uint64_t sector);
  void GroupCopies(const Decoded& op, WarpState& state);
  void AddSites();

  Device& engine_;
  const CountOptions& options_;
  std::vector<Plan> plans_;  ///< By pc.
  std::vector<LaunchCounts> launches_;
  LaunchCounts* counts_ = nullptr;  ///< Of the launch that runs.
  std::vector<std::unique_ptr<BlockState>> blocks_;
  BlockState* last_ = nullptr;
  std::vector<SiteCount> sites_;          ///< By pc.
  std::vector<std::uint32_t> buffer_of_;  ///< By allocation: one more than the index, or 0.
  SectorSet read_;
  SectorSet written_;
};

}  // namespace assay::emu
