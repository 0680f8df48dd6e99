// What accesses do to the machine's memories: sectors of L1, L2 and DRAM, banks of shared memory, and how
// long an instruction waits for them (CostWatch::Touch).
#include <algorithm>
#include <bit>

#include "validator/emu/handlers/fragment_memory.h"
#include "validator/emu/watch/costs.h"
#include "validator/emu/watch/propagation.h"

namespace assay::emu {
namespace {

using ptx::Opcode;
using ptx::Space;

/// Sectors that are remembered of a run: 256 MiB of them. A sample needs far fewer.
constexpr std::size_t kMostSectors = std::size_t{1} << 23;

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
  ForEachLane(lanes, [&](int lane) {
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
    ForEachLane(lanes, [&](int lane) { places[different++] = addresses[lane]; });
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
    ForEachLane(lanes & (LanesBelow(static_cast<std::size_t>(part)) << first), [&](int lane) {
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
  ForEachLane(lanes, [&](int lane) {
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
  ForEachLane(warp.exec, [&](int lane) {
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
