#include "validator/emu/watch/costs.h"

#include <algorithm>
#include <bit>

#include "validator/emu/handlers/fragment_memory.h"
#include "validator/emu/site.h"
#include "validator/emu/work.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

constexpr std::size_t kMostSites = 6;
/// Sectors that are remembered of a run: 256 MiB of them. A sample needs far fewer.
constexpr std::size_t kMostSectors = std::size_t{1} << 23;
constexpr std::uint32_t kRowBytes = 16;
/// PTX instructions that a branch may lead round and become a predicate of.
constexpr std::uint32_t kMostPredicated = 12;

bool IsShared(Space space, std::uint64_t address) {
  return space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster ||
         (space == Space::kGeneric && (address & kWindowMask) == kSharedWindow);
}
bool IsLocal(Space space, std::uint64_t address) {
  return space == Space::kLocal ||
         (space == Space::kGeneric && (address & kWindowMask) == kLocalWindow);
}

LaneMask LanesBelow(std::size_t count) {
  return count >= kWarpSize ? kAllLanes : (LaneMask{1} << count) - 1;
}

/// Calls `each(lane)` for the lanes of a mask.
template <class Each>
void ForLanes(LaneMask lanes, Each each) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) each(std::countr_zero(rest));
}

/// Passes over the banks that a part of a warp takes: of each bank, its different words; of an atomic
/// access, its lanes.
std::uint64_t Passes(const std::uint64_t* words, std::size_t count, bool each_lane) {
  std::uint64_t sorted[4 * kWarpSize];
  std::copy_n(words, count, sorted);
  std::sort(sorted, sorted + count);
  std::uint8_t of_bank[32] = {};
  std::uint8_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!each_lane && i > 0 && sorted[i] == sorted[i - 1]) continue;
    most = std::max(most, ++of_bank[sorted[i] % 32]);
  }
  return most;
}

}  // namespace

CostWatch::CostWatch(Device& device, const CountOptions& options)
    : engine_(device),
      options_(options),
      plans_(device.program.code.size()),
      sites_(device.program.code.size()) {}
CostWatch::~CostWatch() = default;

void CostWatch::BeginLaunch() {
  counts_ = &launches_.emplace_back();
  blocks_.clear();
  last_ = nullptr;
  read_.Clear();
  written_.Clear();
  std::ranges::fill(sites_, SiteCount{});
  buffer_of_.assign(engine_.regions.size(), 0);
  for (std::size_t i = 0; i < engine_.buffers.size(); ++i) {
    const std::size_t allocation = engine_.buffers[i].region.base >> kAllocationBits;
    if (allocation >= buffer_of_.size()) continue;
    counts_->buffers.push_back({.buffer = static_cast<std::uint32_t>(i)});
    buffer_of_[allocation] = static_cast<std::uint32_t>(counts_->buffers.size());
  }
}

void CostWatch::EndLaunch() {
  for (const auto& state : blocks_) Finish(*state);
  blocks_.clear();
  last_ = nullptr;
  std::erase_if(counts_->buffers, [](const BufferTraffic& traffic) {
    return traffic.read == 0 && traffic.written == 0;
  });
  AddSites();
}

void CostWatch::AddSites() {
  std::vector<std::uint32_t> order;
  for (std::uint32_t pc = 0; pc < sites_.size(); ++pc) {
    // A few more than needed is how a last, partial access looks.
    if (4 * sites_[pc].units > 5 * sites_[pc].least) order.push_back(pc);
  }
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::uint32_t pc) { return sites_[pc].units - sites_[pc].least; });
  if (order.size() > kMostSites) order.resize(kMostSites);
  for (const std::uint32_t pc : order) {
    const SiteCount& site = sites_[pc];
    counts_->sites.push_back({.site = SiteOf(engine_, pc),
                              .shared = site.shared,
                              .requests = site.requests,
                              .units = site.units,
                              .least = site.least});
  }
}

bool CostWatch::IsPredicated(const Decoded& op, std::uint32_t pc) const {
  if (op.rules.effect != ptx::Effect::kBranch || op.target <= pc ||
      op.target - pc > kMostPredicated)
    return false;
  for (std::uint32_t at = pc + 1; at < op.target; ++at) {
    const Decoded& within = engine_.program.code[at];
    const bool forward = within.rules.effect == ptx::Effect::kBranch && within.target > at;
    if (within.source != nullptr && !forward && WorkOf(*within.source).ends_region) return false;
  }
  return true;
}

CostWatch::Plan CostWatch::MakePlan(const Decoded& op, std::uint32_t pc) const {
  const ptx::Instruction& in = *op.source;
  Plan plan{.known = true, .work = WorkOf(in)};
  if (IsPredicated(op, pc)) plan.work.ends_region = false;
  const std::uint32_t issues = plan.work.issues;
  plan.latency = issues == 0 && plan.work.special == 0 ? 0 : options_.arithmetic;
  if (issues > 1) plan.latency += 2 * (issues - 1);
  if (plan.work.special != 0 || plan.work.pipe == Pipe::kSpecial) plan.latency += options_.special;
  if (plan.work.pipe == Pipe::kShuffle) plan.latency = options_.shared;
  if (plan.work.pipe == Pipe::kDouble || plan.work.pipe == Pipe::kConvert)
    plan.latency += options_.arithmetic;
  if (plan.work.pipe == Pipe::kMatrix) {
    plan.latency = options_.matrix;
    plan.products = ExtraSteps(in) * kProductsOfStep;
    plan.type = MatrixTypeOf(in);
    plan.group = in.opcode == Opcode::kWgmmaMmaAsync;
  }
  if (plan.work.pipe != Pipe::kMemory) return plan;
  const std::size_t destinations = op.destinations;
  const auto element = static_cast<std::uint32_t>(std::max(8, ptx::BitsOf(in.type()))) / 8;
  plan.cached = (op.flags & kFlagOrderMatters) == 0 && !in.Has(Mod::kCg) && !in.Has(Mod::kCv);
  const auto set = [&](Access access, std::size_t address, std::uint32_t bytes) {
    plan.access = access;
    plan.address = static_cast<std::uint8_t>(address);
    plan.bytes = bytes;
  };
  switch (in.opcode) {
    case Opcode::kLd:
    case Opcode::kLdu:
      set(Access::kLoad, destinations,
          element * static_cast<std::uint32_t>(std::max<std::size_t>(1, destinations)));
      plan.reads = true;
      break;
    case Opcode::kSt:
      set(Access::kStore, 0, element * in.vector_width);
      plan.writes = true;
      break;
    case Opcode::kAtom:
    case Opcode::kRed:
      set(Access::kAtomic, destinations, element * in.vector_width);
      plan.reads = plan.writes = true;
      break;
    case Opcode::kCpAsync:
      set(Access::kCopy, 1, static_cast<std::uint32_t>(op.immediate));
      break;
    case Opcode::kCpAsyncBulk:
      set(Access::kBulk, 0, 0);
      break;
    case Opcode::kLdmatrix:
    case Opcode::kStmatrix:
      set(Access::kRows, in.opcode == Opcode::kLdmatrix ? destinations : 0, kRowBytes);
      break;
    case Opcode::kWmmaLoad:
      set(Access::kFragment, destinations, 0);
      plan.reads = true;
      break;
    case Opcode::kWmmaStore:
      set(Access::kFragment, 0, 0);
      plan.writes = true;
      break;
    default:
      plan.access =
          ptx::MemoryRoles(in).empty() || ptx::FamilyOf(in.opcode) == ptx::Family::kMbarrier
              ? Access::kNone
              : Access::kUnknown;
  }
  constexpr std::uint8_t kGlobal = 1, kShared = 2;
  const bool constant = in.Has(Mod::kNc) || in.space == Space::kConst ||
                        in.space == Space::kParam || in.space == Space::kParamEntry ||
                        in.space == Space::kParamFunc;
  if ((plan.reads || plan.writes) && !constant) {
    const bool shared = in.space == Space::kShared || in.space == Space::kSharedCta;
    plan.order = shared ? kShared : kGlobal;
  }
  return plan;
}

const CostWatch::Plan& CostWatch::PlanOf(const CoreWarp& warp, const Decoded& op) {
  Plan& plan = plans_[warp.PcOf(op)];
  if (!plan.known) plan = MakePlan(op, warp.PcOf(op));
  return plan;
}

CostWatch::BlockState& CostWatch::StateOf(const Block& block) {
  if (last_ != nullptr && last_->block == &block && last_->number == block.number) return *last_;
  BlockState* state = nullptr;
  for (const auto& each : blocks_) {
    if (each->block == &block) state = each.get();
  }
  if (state == nullptr) state = blocks_.emplace_back(std::make_unique<BlockState>()).get();
  if (state->warps.empty() || state->number != block.number) {
    if (!state->warps.empty()) Finish(*state);
    state->block = &block;
    state->number = block.number;
    state->warps.assign(block.warps.size(), WarpState{});
    state->barriers.clear();
    const std::size_t launch = engine_.launch.number;
    state->cache.Reset(launch < options_.l1_bytes.size() ? options_.l1_bytes[launch] : 0);
    state->read.Clear();
    state->written.Clear();
    ++counts_->blocks;
    counts_->warps += block.warps.size();
  }
  last_ = state;
  return *state;
}

void CostWatch::Finish(BlockState& state) {
  std::uint64_t longest = 0;
  for (const WarpState& warp : state.warps)
    longest = std::max({longest, warp.latest, warp.start + warp.issued});
  counts_->path_cycles += longest;
  counts_->longest_path = std::max(counts_->longest_path, longest);
}

std::vector<std::uint64_t>& CostWatch::ReadyOf(WarpState& state, const CoreWarp& warp) {
  if (state.frame != warp.frame) {
    const FunctionCode& code = engine_.program.functions[warp.frame->function];
    state.frame = warp.frame;
    state.ready = &state.frames[warp.frame];
    // A frame is used again for another function of the same depth.
    state.ready->resize(
        std::max<std::size_t>(state.ready->size(), code.slot_count + code.predicate_count), 0);
  }
  return *state.ready;
}

void CostWatch::Observe(CoreWarp& warp, const Decoded& op) {
  const Plan& plan = PlanOf(warp, op);
  const auto lanes = static_cast<std::uint64_t>(std::popcount(warp.exec));
  if (lanes == 0 && plan.work.pipe != Pipe::kControl) return;
  BlockState& block = StateOf(*warp.block);
  WarpState& state = block.warps[warp.index];
  LaunchCounts& counts = *counts_;
  counts.thread_instructions += lanes;
  counts.warp_instructions += plan.work.issues + plan.work.special;
  counts.pipes[static_cast<std::size_t>(plan.work.pipe)] += plan.work.issues;
  counts.pipes[static_cast<std::size_t>(Pipe::kSpecial)] += plan.work.special;
  if (plan.products != 0) {
    (plan.group ? counts.group_products : counts.products)[static_cast<std::size_t>(plan.type)] +=
        plan.products;
  }
  if (state.at_barrier) {
    state.start = std::max(state.start, block.barriers[state.barriers - 1]) + options_.barrier;
    state.at_barrier = false;
  }
  std::vector<std::uint64_t>& ready = ReadyOf(state, warp);
  std::uint64_t start = state.start;
  for (std::size_t i = op.destinations; i < op.operand_count; ++i) {
    const DecodedOperand& operand = op.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSink || operand.kind == DecodedOperand::Kind::kNone)
      continue;
    if (operand.shadow < ready.size()) start = std::max(start, ready[operand.shadow]);
  }
  if (op.guard != kNoSlot) {
    const std::size_t guard = engine_.program.functions[warp.frame->function].slot_count + op.guard;
    if (guard < ready.size()) start = std::max(start, ready[guard]);
  }
  if (plan.order != 0) {
    // Issued in order: what waits for its data keeps a later load waiting, unless it is known to read
    // other memory.
    if (plan.reads) start = std::max(start, state.stored[plan.order]);
    if (plan.writes) state.stored[plan.order] = std::max(state.stored[plan.order], start);
  }
  std::uint64_t latency = plan.latency;
  if (plan.access != Access::kNone) latency = Touch(warp, op, plan, block);
  if (plan.access == Access::kCopy) state.copies = std::max(state.copies, start + latency);
  for (std::size_t i = 0; i < op.destinations; ++i) {
    const DecodedOperand& operand = op.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSink) continue;
    if (operand.shadow < ready.size()) ready[operand.shadow] = start + latency;
  }
  state.latest = std::max(state.latest, start);
  state.issued += plan.work.issues + plan.work.special;
  GroupCopies(op, state);
  if (!plan.work.ends_region) return;
  state.start = std::max(state.latest, state.start + state.issued);
  state.latest = state.start;
  state.issued = 0;
  if (!plan.work.barrier) return;
  ++counts.barriers;
  if (++state.barriers > block.barriers.size()) block.barriers.push_back(0);
  std::uint64_t& met = block.barriers[state.barriers - 1];
  met = std::max(met, state.start);
  state.at_barrier = true;
}

/// Groups of cp.async: whoever waits for all but the last n starts when those are there.
void CostWatch::GroupCopies(const Decoded& op, WarpState& state) {
  switch (op.source->opcode) {
    case Opcode::kCpAsyncCommitGroup:
      state.groups.push_back(state.copies);
      return;
    case Opcode::kCpAsyncWaitAll:
      state.start = std::max(state.start, state.copies);
      break;
    case Opcode::kCpAsyncWaitGroup: {
      const std::uint64_t open = op.source->operands.empty() ? 0 : op.source->operands[0].bits;
      if (state.groups.size() > open)
        state.start = std::max(state.start, state.groups[state.groups.size() - 1 - open]);
      break;
    }
    default:
      return;
  }
  state.latest = std::max(state.latest, state.start);
}

std::uint32_t CostWatch::Touch(CoreWarp& warp, const Decoded& op, const Plan& plan,
                               BlockState& state) {
  const ptx::Instruction& in = *op.source;
  LaneAccess access;
  switch (plan.access) {
    case Access::kLoad:
    case Access::kStore:
    case Access::kAtomic:
      Addresses(warp, op.operands[plan.address], access);
      return TouchLanes(warp, op, plan, in.space, warp.exec, access.address, plan.bytes, state);
    case Access::kRows: {
      const std::size_t rows =
          8 * (in.opcode == Opcode::kLdmatrix ? op.destinations : op.operand_count - 1u);
      Addresses(warp, op.operands[plan.address], access);
      return TouchLanes(warp, op, plan, Space::kShared, warp.exec & LanesBelow(rows),
                        access.address, plan.bytes, state);
    }
    case Access::kFragment: {
      const FragmentInMemory memory(warp, op, plan.address);
      std::uint32_t latency = 0;
      for (int r = 0; r < memory.registers(); ++r) {
        for (int p = 0; p < memory.pieces(); ++p) {
          memory.Place(r, p, access.address);
          latency = std::max(latency, TouchLanes(warp, op, plan, FragmentSpace(in), warp.exec,
                                                 access.address, memory.piece_bytes(), state));
        }
      }
      return latency;
    }
    case Access::kCopy: {
      Plan from = plan;
      from.reads = true;
      Addresses(warp, op.operands[1], access);
      const std::uint32_t latency =
          TouchLanes(warp, op, from, Space::kGlobal, warp.exec, access.address, plan.bytes, state);
      Plan to = plan;
      to.writes = true;
      Addresses(warp, op.operands[0], access);
      TouchShared(warp, op, to, warp.exec, access.address, plan.bytes);
      return latency;
    }
    case Access::kBulk:
      return TouchBulk(warp, op, state);
    case Access::kUnknown: {
      const std::string name(ptx::Mnemonic(in.opcode));
      if (std::ranges::find(counts_->not_counted, name) == counts_->not_counted.end())
        counts_->not_counted.push_back(name);
      return options_.l2;
    }
    case Access::kNone:
      break;
  }
  return 0;
}

std::uint32_t CostWatch::TouchLanes(CoreWarp& warp, const Decoded& op, const Plan& plan,
                                    Space space, LaneMask lanes, const std::uint64_t* addresses,
                                    std::uint32_t bytes, BlockState& state) {
  if (lanes == 0) return 0;
  const std::uint64_t first = addresses[std::countr_zero(lanes)];
  if (IsShared(space, first)) {
    TouchShared(warp, op, plan, lanes, addresses, bytes);
    return options_.shared;
  }
  if (IsLocal(space, first)) {
    TouchLocal(lanes, addresses, bytes);
    return options_.l1;
  }
  return TouchGlobal(warp, op, plan, lanes, addresses, bytes, state);
}

std::uint32_t CostWatch::TouchGlobal(CoreWarp& warp, const Decoded& op, const Plan& plan,
                                     LaneMask lanes, const std::uint64_t* addresses,
                                     std::uint32_t bytes, BlockState& state) {
  const auto count = static_cast<std::uint64_t>(std::popcount(lanes));
  // Of each lane two at most: accesses are aligned to their size, and have 32 bytes at most.
  std::uint64_t sectors[2 * kWarpSize];
  std::size_t found = 0;
  bool ascending = true;
  ForLanes(lanes, [&](int lane) {
    const std::uint64_t last = (addresses[lane] + bytes - 1) / kSectorBytes;
    for (std::uint64_t sector = addresses[lane] / kSectorBytes;
         sector <= last && found < std::size(sectors); ++sector) {
      if (found > 0 && sectors[found - 1] == sector) continue;
      ascending = ascending && (found == 0 || sectors[found - 1] < sector);
      sectors[found++] = sector;
    }
  });
  if (!ascending) {
    std::sort(sectors, sectors + found);
    found = static_cast<std::size_t>(std::unique(sectors, sectors + found) - sectors);
  }
  GlobalTraffic& traffic = plan.access == Access::kAtomic ? counts_->atomics
                           : plan.writes                  ? counts_->stores
                                                          : counts_->loads;
  ++traffic.requests;
  traffic.lanes += count;
  traffic.bytes += count * bytes;
  traffic.sectors += found;
  for (std::size_t i = 0; i < found; ++i) {
    if (i == 0 || sectors[i] / kSectorsOfLine != sectors[i - 1] / kSectorsOfLine) ++traffic.lines;
  }
  SiteCount& site = sites_[warp.PcOf(op)];
  ++site.requests;
  site.units += found;
  site.least += std::min<std::uint64_t>(found, (count * bytes + kSectorBytes - 1) / kSectorBytes);
  std::uint32_t latency = plan.reads ? options_.l1 : 0;
  for (std::size_t i = 0; i < found; ++i) {
    if (plan.reads)
      latency = std::max(
          latency, ReadSector(sectors[i], plan.cached && plan.access != Access::kAtomic, state));
    if (plan.writes) WriteSector(sectors[i], state);
  }
  if (plan.access == Access::kAtomic) {
    std::uint64_t places[kWarpSize];
    std::size_t different = 0;
    ForLanes(lanes, [&](int lane) { places[different++] = addresses[lane]; });
    std::sort(places, places + different);
    different = static_cast<std::size_t>(std::unique(places, places + different) - places);
    counts_->same_place += count - different;
  }
  return latency;
}

BufferTraffic* CostWatch::BufferOf(std::uint64_t sector) {
  const std::size_t allocation = sector * kSectorBytes >> kAllocationBits;
  if (allocation >= buffer_of_.size() || buffer_of_[allocation] == 0) return nullptr;
  return &counts_->buffers[buffer_of_[allocation] - 1];
}

std::uint32_t CostWatch::ReadSector(std::uint64_t sector, bool cached, BlockState& state) {
  if (cached && state.cache.Touch(sector)) return options_.l1;
  ++counts_->missed_sectors;
  BufferTraffic* const buffer = BufferOf(sector);
  // What these blocks wrote themselves lies in L2.
  if (buffer == nullptr || written_.Contains(sector)) return options_.l2;
  if (!state.read.Insert(sector)) return options_.l2;
  ++buffer->read_by_block;
  if (!read_.Insert(sector)) return options_.l2;
  ++buffer->read;
  if (read_.size() > kMostSectors)
    engine_.End(Stop::kResourceLimit, "the blocks that ran read more than can be followed");
  return options_.dram;
}

void CostWatch::WriteSector(std::uint64_t sector, BlockState& state) {
  BufferTraffic* const buffer = BufferOf(sector);
  if (buffer == nullptr || !state.written.Insert(sector)) return;
  ++buffer->written_by_block;
  if (!written_.Insert(sector)) return;
  ++buffer->written;
  if (written_.size() > kMostSectors)
    engine_.End(Stop::kResourceLimit, "the blocks that ran wrote more than can be followed");
}

void CostWatch::TouchShared(const CoreWarp& warp, const Decoded& op, const Plan& plan,
                            LaneMask lanes, const std::uint64_t* addresses, std::uint32_t bytes) {
  const std::vector<SharedVariable>& variables = engine_.program.shared;
  const bool each_lane = plan.access == Access::kAtomic;
  const std::uint32_t words = std::max(1u, bytes / 4);
  const int part = std::max(1, kWarpSize / static_cast<int>(words));
  SiteCount& site = sites_[warp.PcOf(op)];
  std::uint64_t passes = 0;
  std::uint64_t least = 0;
  for (int first = 0; first < kWarpSize; first += part) {
    std::uint64_t touched[4 * kWarpSize];
    std::size_t count = 0;
    ForLanes(lanes & (LanesBelow(static_cast<std::size_t>(part)) << first), [&](int lane) {
      // Where the variable lies in the block's memory, not in the address space of the emulator.
      const std::uint64_t own = addresses[lane] & kSharedOffsetMask;
      const std::uint64_t index = own >> kSharedVariableBits;
      const std::uint64_t at = index >= 1 && index <= variables.size()
                                   ? own - (variables[index - 1].address & kSharedOffsetMask) +
                                         variables[index - 1].storage
                                   : own;
      for (std::uint32_t word = 0; word < words && count < std::size(touched); ++word)
        touched[count++] = at / 4 + word;
    });
    if (count == 0) continue;
    passes += Passes(touched, count, each_lane);
    ++least;
  }
  SharedTraffic& shared = counts_->shared;
  ++shared.requests;
  shared.bytes += static_cast<std::uint64_t>(std::popcount(lanes)) * bytes;
  shared.wavefronts += passes;
  shared.least_wavefronts += least;
  // An asynchronous copy's sectors are what its site is about.
  if (plan.access == Access::kCopy) return;
  ++site.requests;
  site.units += passes;
  site.least += least;
  site.shared = true;
}

/// Words of the lanes of a warp lie side by side: a place that is the same for all is a line.
void CostWatch::TouchLocal(LaneMask lanes, const std::uint64_t* addresses, std::uint32_t bytes) {
  GlobalTraffic& traffic = counts_->local;
  ++traffic.requests;
  const auto count = static_cast<std::uint64_t>(std::popcount(lanes));
  traffic.lanes += count;
  traffic.bytes += count * bytes;
  std::uint64_t places[kWarpSize];
  std::size_t found = 0;
  ForLanes(lanes, [&](int lane) {
    places[found++] = addresses[lane] / 4 * 4 + static_cast<std::uint64_t>(lane) / 8;
  });
  std::sort(places, places + found);
  const auto end = std::unique(places, places + found);
  const std::uint64_t words = std::max(1u, bytes / 4);
  traffic.sectors += words * static_cast<std::uint64_t>(end - places);
  std::uint64_t lines = 0;
  for (const std::uint64_t* place = places; place != end; ++place) {
    if (place == places || *place / 4 != place[-1] / 4) ++lines;
  }
  traffic.lines += words * lines;
}

/// Each lane copies a stretch of its own: as many sectors as it has, all of them whole.
std::uint32_t CostWatch::TouchBulk(CoreWarp& warp, const Decoded& op, BlockState& state) {
  const bool loads = op.source->space2 == Space::kGlobal;
  const DecodedOperand& size = op.operands[2];
  if (size.kind != DecodedOperand::Kind::kSlot) return options_.l2;
  LaneAccess access;
  Addresses(warp, op.operands[loads ? 1 : 0], access);
  const auto* const sizes = warp.Lanes<std::uint32_t>(size.slot);
  GlobalTraffic& traffic = loads ? counts_->loads : counts_->stores;
  std::uint32_t latency = options_.l2;
  ForLanes(warp.exec, [&](int lane) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;  // More is refused when it runs.
    const std::uint64_t bytes = std::min<std::uint64_t>(sizes[lane], kMostBytes);
    if (bytes == 0) return;
    const std::uint64_t last = (access.address[lane] + bytes - 1) / kSectorBytes;
    ++traffic.requests;
    ++traffic.lanes;
    traffic.bytes += bytes;
    for (std::uint64_t sector = access.address[lane] / kSectorBytes; sector <= last; ++sector) {
      ++traffic.sectors;
      if (loads) {
        latency = std::max(latency, ReadSector(sector, false, state));
      } else {
        WriteSector(sector, state);
      }
    }
    traffic.lines += (bytes + 127) / 128;
  });
  return latency;
}

}  // namespace assay::emu
