// The state of a running launch: device, blocks, warps, splits, frames. Internal to validator/emu.
//
// A warp has 32 lanes that run independently, as *splits*: sets of lanes that stand at the same
// program counter and call depth. One split runs at a time, the one that is deepest in calls and
// lowest in pc, so that splits meet again where control flow joins; lanes that spin on their
// siblings are put aside after a while (fairness). Lanes at a warp-wide instruction wait for the
// lanes that its mask names; lanes at a barrier wait for the block.
//
// A frame is the register file of one function at one call depth; splits of a warp share it, lane
// by lane.
//
// Not thread-safe: a Device serves one Run on one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "validator/emu/address_space.h"
#include "validator/emu/frame_memory.h"
#include "validator/emu/lazy_fill.h"
#include "validator/emu/program.h"
#include "validator/emu/race/race.h"
#include "validator/emu/watch/defined_map.h"
#include "validator/execution/execution.h"

namespace assay::emu {

struct Device;
struct Block;
class ShadowTracker;
class ChoiceRegions;
class StaleReads;
class Contention;
class MissingBytes;
class Draws;
class Writers;
class CostWatch;

/// A stretch of memory with exact bounds.
struct MemoryRegion {
  enum class Kind : std::uint8_t {
    kNone,
    kBuffer,
    kGlobal,
    kConst,
    kParams,
    kHeap,
    kGridWorkspace,
    kShared
  } kind = Kind::kNone;
  std::byte* data = nullptr;
  std::uint64_t size = 0;
  std::uint64_t base = 0;  ///< Address of its first byte, in the space it is reached through.
  DefinedMap* defined = nullptr;  ///< Null: definedness is not tracked.
  LazyFill* lazy = nullptr;       ///< Null: the memory holds what it should.
  std::uint32_t race_region = 0;
  std::uint64_t race_offset = 0;  ///< Of `data` within the race region.
  bool writable = true;
  bool freed = false;
  bool is_output = false;
  bool of_system = false;          ///< Shared memory that only the toolkit's own headers use.
  std::uint8_t promised_bits = 4;  ///< Low bits of an address that its declared alignment fixes.
  std::uint32_t element_bytes = 1;
  std::string name;
};

/// A buffer of the execution: its region, and the allocation that is, was or will be its place.
struct PlacedBuffer {
  MemoryRegion region;
  std::uint32_t allocation = 0;
  std::vector<std::byte> first;  ///< What a provided buffer holds, where a launch restores it.
};

/// How a control instruction ended, or one that touches memory: those only by the last two.
enum class Outcome : std::uint8_t {
  kNext,        ///< Go on with the following instruction.
  kJump,        ///< Go on at warp.pc.
  kReschedule,  ///< Splits changed: choose again.
  kYield,       ///< Go on with the following instruction, after the others had a turn.
  kStop,        ///< The run is over.
};

enum class Wait : std::uint8_t {
  kReady,
  kWarpSync,  ///< At a warp-wide instruction, for the lanes of its mask.
  kBarrier,   ///< At a block's barrier.
  kCluster,   ///< At barrier.cluster.wait.
  kAside,     ///< For nothing, while other lanes of its warp are followed (watch/polling.cc).
};

/// Local memory that alloca gave one lane; addresses are the lane's.
struct StackBlock {
  std::uint32_t lane = 0;
  std::uint32_t start = 0;
  std::uint32_t bytes = 0;
};

/// A word of bits for each lane.
using LaneBitsets = std::array<std::uint64_t, kWarpSize>;

struct Frame {
  std::uint32_t function = 0;
  std::uint32_t depth = 0;
  std::byte* slots = nullptr;
  LaneMask* predicates = nullptr;
  LaneMask* undefined = nullptr;  ///< By shadow index: lanes whose value is undefined.
  LaneMask* partial = nullptr;    ///< By shadow index: undefined lanes of which `bits` knows more.
  LaneMask* machine = nullptr;    ///< By shadow index: of the undefined lanes, those whose value
                                  ///< the machine chose (machine.h). Others: not initialised.
  std::uint32_t* origin =
      nullptr;  ///< By shadow index: pc that made it undefined; kNoPc: never written.
  std::array<std::uint32_t, kWarpSize> return_pc{};
  std::array<std::uint32_t, kWarpSize> base{};  ///< Start of the frame in each lane's local memory.
  std::array<std::uint32_t, kWarpSize>
      allocated{};  ///< Behind the variables of each lane, in bytes.
  std::vector<StackBlock> blocks;
  std::unique_ptr<std::byte[]> storage;  ///< Null: of Device::frames.
  /// By shadow index, where needed: undefined bits (undefined.h).
  std::vector<std::unique_ptr<LaneBitsets>> bits;
};

inline constexpr std::uint32_t kNoPc = 0xffffffffu;

/// Lanes that follow a branch which the machine decided, up to where its sides meet (choice.h).
struct ChosenPath {
  const Frame* frame = nullptr;
  std::uint32_t branch = 0;
  std::uint32_t join = kNoPc;
  LaneMask lanes = 0;
  std::uint32_t origin = kNoPc;
};

/// Lanes of an access whose place the machine chose (machine.h).
struct ChosenPlaces {
  LaneMask lanes = 0;
  std::uint32_t origin = kNoPc;  ///< The pc of that choice.
  std::uint32_t pc = kNoPc;      ///< The access.
  LaneBitsets open{};            ///< Bits of the address that may be others.

  bool Holds(int lane) const { return (lanes >> lane & 1) != 0; }
};

struct Split {
  std::uint32_t pc = 0;
  LaneMask mask = 0;
  std::uint32_t depth = 0;
  Wait wait = Wait::kReady;
  std::uint8_t barrier = 0;
  bool yielded = false;
  LaneMask need = 0;              ///< kWarpSync: the mask named by the instruction.
  LaneMask passed = 0;            ///< kWarpSync: lanes of `need` that went on without it,
  std::uint32_t passed_at = 0;    ///< and where they were seen.
  std::uint64_t passed_over = 0;  ///< Instructions that others ran while this was ready.
  Frame* frame = nullptr;
};

/// Outstanding cp.async copies of a warp's lanes (handlers/async_copy.cc).
struct AsyncGroups;

struct CoreWarp : Warp {
  Device* device = nullptr;
  Block* block = nullptr;
  Frame* frame = nullptr;
  std::uint32_t pc = 0;
  LaneMask active = 0;
  Outcome outcome = Outcome::kNext;
  bool prefer_fall_through = false;
  int current = -1;  ///< Index of the running split, or -1.
  int split_count = 0;
  LaneMask alive = 0;
  std::uint32_t index = 0;     ///< In the block.
  WarpNumber number = 0;       ///< In the launch.
  std::uint64_t priority = 0;  ///< PCT.
  std::uint64_t idle_rounds = 0;
  std::uint32_t strong_accesses = 0;  ///< So far; counted where somebody asks for orders.
  std::uint64_t executed = 0;         ///< Instructions, ever.
  std::uint32_t turn_start = 0;       ///< Where the running split began its turn.
  std::uint32_t last_access = kNoPc;  ///< pc of the last access to memory.
  std::uint32_t looked = 0;           ///< Not 0: had a strong access in this part of its turn.
  std::array<Split, kWarpSize + 1> splits;
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::byte> local;  ///< Local memory, lane after lane.
  std::vector<std::uint8_t> local_defined;
  std::uint64_t local_stride = 0;
  LaneMask cluster_arrived = 0;   ///< Lanes in the cluster barrier's current phase.
  LaneMask cluster_released = 0;  ///< Lanes whose phase completed before they waited.
  std::unique_ptr<AsyncGroups> async;
  std::vector<ChosenPath> chosen_paths;
  ChosenPlaces chosen_place;  ///< Of the access that runs.
  /// While a store runs whose data may be addresses (machine.h): registers that hold whole ones.
  std::vector<std::pair<std::uint32_t, LaneMask>> whole_addresses;

  CoreWarp();
  ~CoreWarp();
  bool finished() const { return alive == 0; }
  const Decoded& At(std::uint32_t at) const;
  std::uint32_t PcOf(const Decoded& op) const;
};

/// One of the sixteen barriers of a block.
struct NamedBarrier {
  std::uint32_t expected = 0;      ///< Threads named by the instruction; 0: the whole block.
  std::uint32_t arrived = 0;       ///< Threads so far.
  std::vector<LaneMask> lanes;     ///< By warp.
  std::vector<std::uint32_t> pcs;  ///< By warp: where its first lanes arrived.
  bool open = false;               ///< Someone has arrived.
  bool has_reduction = false;
  std::uint32_t first_pc = 0;
  std::uint32_t popc = 0;  ///< bar.red: lanes whose predicate holds.
};

struct Block {
  BlockNumber number = 0;
  Dim3 id{};
  std::uint32_t cluster = 0;
  std::uint32_t cluster_rank = 0;
  /// By rank: where the blocks of its cluster live. Whoever has ended may have left its place to another
  /// cluster's block (ClusterMember).
  std::vector<Block*> members;
  Device* device = nullptr;
  std::vector<std::unique_ptr<CoreWarp>> warps;
  std::vector<std::byte> shared_storage;
  std::byte* shared_data = nullptr;        ///< 256-byte aligned, in shared_storage.
  std::vector<DefinedMap> shared_defined;  ///< By Impl::shared index.
  std::vector<MemoryRegion> shared;        ///< By Impl::shared index.
  std::array<NamedBarrier, 16> barriers;
  RegionId race_region = 0;
  std::uint32_t live_warps = 0;
  std::uint32_t threads = 0;
  std::uint64_t steps = 0;  ///< Since it became resident.
  std::uint32_t next_warp = 0;
  bool done = true;
};

/// The block of that rank in `block`'s cluster, or null once it has ended.
inline Block* ClusterMember(const Block& block, std::uint64_t rank) {
  if (rank >= block.members.size()) return nullptr;
  Block* const member = block.members[rank];
  return !member->done && member->cluster == block.cluster ? member : nullptr;
}

/// The launch that runs.
struct LaunchState {
  const Launch* launch = nullptr;
  std::uint32_t function = 0;
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  Dim3 cluster{1, 1, 1};
  std::uint32_t threads = 1;
  std::uint32_t warps = 1;
  std::uint32_t blocks = 1;
  std::uint32_t blocks_per_cluster = 1;
  std::uint32_t params_region = 0;
  std::uint64_t dynamic_shared = 0;
  std::uint64_t grid_workspace = 0;  ///< Address, for cooperative launches.
  std::uint32_t number = 0;
};

/// Findings, one for each place, with a limit.
class FindingSink {
 public:
  explicit FindingSink(std::uint32_t limit) : limit_(limit) {}
  /// Adds, or counts threads on, the finding of the same kind at the same program counters. False
  /// when it is a repetition.
  bool Add(Finding finding, std::uint32_t pc, std::uint32_t other_pc);
  /// From now on races alone are taken: whatever else comes may come of what was found already.
  void OnlyRaces() { only_races_ = true; }
  std::vector<Finding> Take();
  bool empty() const { return findings_.empty(); }

 private:
  struct Entry {
    FindingKind kind;
    std::uint32_t pc;
    std::uint32_t other_pc;
  };
  std::uint32_t limit_;
  bool only_races_ = false;
  std::vector<Entry> entries_;
  std::vector<Finding> findings_;
};

/// What the machine chose at an instruction.
struct MachineChoice {
  enum class Kind : std::uint8_t {
    kRegister,
    kAddress,
    kSharedAddress,  ///< Of shared memory.
    kApproximation
  } kind = Kind::kRegister;
  std::string what;  ///< For findings.
};

/// Where bytes in memory that the machine chose come from.
struct StoredChoice {
  std::uint32_t origin = kNoPc;
  bool whole_address = false;  ///< Part of an address that was stored as it was.
  bool operator==(const StoredChoice&) const = default;
};
/// As many as a byte of CoreWarp::local_defined can name; what comes later is named as the last.
inline constexpr std::size_t kMostStoredChoices = 250;
/// Schedule::hold at work.
struct HoldState {
  const OrderPair* pair = nullptr;  ///< Null: none, or it is over.
  bool waits = false;               ///< The first warp was passed over in this round.
  bool held = false;                ///< The second access came first.
  std::uint64_t since = 0;          ///< Steps when the first warp began to wait.
};

struct Device {
  Device(const Program::Impl& program_in, const Execution& execution_in)
      : program(program_in),
        execution(execution_in),
        findings(execution_in.limits.max_findings),
        rng(DeriveSeed(execution_in.schedule.seed, "schedule")) {}

  const Program::Impl& program;
  const Execution& execution;
  std::vector<MemoryRegion> regions;  ///< By allocation number; 0 is nobody's.
  std::vector<PlacedBuffer> buffers;  ///< By index into Execution::buffers (buffers.h).
  std::vector<std::unique_ptr<DefinedMap>> maps;
  std::vector<std::unique_ptr<LazyFill>> fills;
  std::vector<std::vector<std::byte>> owned;  ///< Storage of module variables, parameters, heap.
  std::vector<std::uint32_t> module_regions;  ///< By VariableIndex of the module.
  FrameMemory frames;                         ///< Of blocks that are resident.
  std::vector<std::unique_ptr<Block>> resident;
  FindingSink findings;
  std::unique_ptr<RaceDetector> race;
  ShadowTracker* shadow =
      nullptr;                  ///< Follows every instruction, when not null (shadow/tracker.h).
  StaleReads* stale = nullptr;  ///< Lets loads return old values, when not null (stale.h).
  Contention* contention = nullptr;  ///< Notes what depends on who came first, when not null.
  MissingBytes* missing = nullptr;   ///< Notes what is read undefined, when not null.
  Writers* writers = nullptr;        ///< Notes who writes some bytes, when not null.
  Draws* draws = nullptr;            ///< Sees who draws from counters, when not null.
  bool drop_stores = false;          ///< With these: Execution::drop_stores.
  CostWatch* costs = nullptr;        ///< Counts every instruction, when not null (watch/costs.h).
  HoldState hold;
  LaunchState launch;
  Counters counters;
  std::vector<std::uint8_t> branch_sides;  ///< By pc, for coverage.
  std::vector<std::uint64_t>
      numbers;  ///< The same: by kNumbersOfOne times pc (watch/narrow_numbers.h).
  Rng rng;
  std::size_t reported_races = 0;  ///< Of race->races(), already findings.
  std::map<std::uint32_t, std::string>
      undefined_reads;                             ///< By pc: the first place found undefined.
  std::map<std::uint32_t, MachineChoice> choices;  ///< By pc.
  std::unordered_map<std::uint32_t, std::vector<bool>>
      reached_from;                               ///< By pc, where it was asked (passing.cc).
  std::vector<StoredChoice> stored_choices;       ///< By number (StoredChoiceNumber).
  std::shared_ptr<ChoiceRegions> choice_regions;  ///< Made when a branch first asks.
  bool monitored = false;
  bool track_defined = false;
  bool reverse_lanes = false;
  bool stopped = false;
  Stop stop = Stop::kCompleted;
  std::string reason;
  std::uint64_t last_progress = 0;  ///< Steps when memory last changed.
  /// Steps when a read went out of bounds, and what that is called; 0: none did. The run goes on for a
  /// while, so that races behind the read are seen, and ends as a fault.
  std::uint64_t faulted = 0;
  std::string fault;
  std::uint64_t heap_bytes = 0;
  RegionId next_race_region = 1;
  std::uint64_t memory_bytes = 0;

  void End(Stop why, std::string because);
  /// Counters::may_meet, and what follows from it.
  void NoteMeeting();
};

inline const Decoded& CoreWarp::At(std::uint32_t at) const { return device->program.code[at]; }
inline std::uint32_t CoreWarp::PcOf(const Decoded& op) const {
  return static_cast<std::uint32_t>(&op - device->program.code.data());
}
inline CoreWarp& Core(Warp& warp) { return static_cast<CoreWarp&>(warp); }

}  // namespace assay::emu
