// cp.async with groups (PTX ISA 9.7.9.25).
//
// The destination is written when the issuing thread waits, so that a read before the wait sees the
// old bytes; under the default schedule as under any other. What is copied is read at issue.
#include "validator/emu/handlers/async_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/watch/copied_bytes.h"
#include "validator/emu/watch/machine_memory.h"

namespace assay::emu {

CoreWarp::CoreWarp() = default;
CoreWarp::~CoreWarp() = default;

bool IsInFlight(const CoreWarp& warp, std::uint32_t pc) {
  return warp.async != nullptr &&
         std::ranges::find(warp.async->in_flight, pc, &AsyncGroups::Product::pc) !=
             warp.async->in_flight.end();
}

namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

/// The bytes take their place; returns the newest token.
std::uint64_t Deliver(CoreWarp& warp, int lane, const std::vector<AsyncGroups::Copy>& copies) {
  std::uint64_t token = 0;
  for (const AsyncGroups::Copy& copy : copies) {
    std::memcpy(copy.destination, copy.data.data(), copy.bytes);
    PutBytes(warp, copy.pc, lane, *copy.region, copy.offset, copy.bytes, copy.known);
    if (copy.open != 0)
      StoreAtChosenPlace(warp, copy.pc, lane, *copy.region, copy.offset, copy.bytes, copy.open,
                         copy.choice);
    token = std::max(token, copy.token);
  }
  return token;
}

void Arrive(CoreWarp& warp, int lane, const std::vector<AsyncGroups::Copy>& copies) {
  const std::uint64_t token = Deliver(warp, lane, copies);
  if (warp.device->race && !copies.empty())
    warp.device->race->OnAsyncWait(warp.number, static_cast<std::uint8_t>(lane), token);
}

WarpAccess EventOf(const CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                   std::uint32_t bytes, AccessKind kind, std::uint64_t* offsets) {
  WarpAccess event;
  const MemoryRegion* region = nullptr;
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    region = access.RegionOf(lane);
    offsets[lane] =
        static_cast<std::uint64_t>(access.at(lane) - region->data) + region->race_offset;
  }
  event.warp = warp.number;
  event.lanes = access.lanes;
  event.region = region == nullptr ? 0 : region->race_region;
  event.offsets = offsets;
  event.bytes = bytes;
  event.kind = kind;
  event.pc = warp.PcOf(op);
  return event;
}

/// operands: destination address, source address, size, optional source size (or predicate
/// ignore-src).
void CopyAsync(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  Device& device = *warp.device;
  const auto bytes = static_cast<std::uint32_t>(op.immediate);
  LaneAccess to;
  LaneAccess from;
  Addresses(warp, op.operands[0], to);
  Addresses(warp, op.operands[1], from);
  const ChosenPlaces put = CheckCopyAddress(warp, op, op.operands[0], warp.exec);
  if (!Resolve(warp, op, Space::kShared, warp.exec, bytes, AccessType::kStore, to)) return;
  // A source size below the copy size reads less and fills up with zeros; of zero it reads nothing.
  std::uint32_t sizes[kWarpSize];
  std::fill_n(sizes, kWarpSize, bytes);
  LaneMask reading = warp.exec;
  ChosenPlaces sized;
  if (op.operand_count > 3) {
    sized = CheckCopyNumber(warp, op, op.operands[3], warp.exec);
    const DecodedOperand& size = op.operands[3];
    if (size.kind == DecodedOperand::Kind::kPredicate) {
      LaneMask ignored = warp.predicates[size.slot];
      if (size.negated) ignored = ~ignored;
      reading &= ~ignored;
    } else if (size.kind == DecodedOperand::Kind::kSlot) {
      const auto* const values = warp.Lanes<std::uint32_t>(size.slot);
      for (int lane = 0; lane < kWarpSize; ++lane) sizes[lane] = std::min(bytes, values[lane]);
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((reading >> lane & 1) == 0) sizes[lane] = 0;
    if (sizes[lane] == 0) reading &= ~(LaneMask{1} << lane);
  }
  const ChosenPlaces taken = Either(CheckCopyAddress(warp, op, op.operands[1], reading), sized);
  // Lanes with the same source size are checked together; the address must be aligned to the whole
  // copy.
  LaneAccess checked = from;
  std::fill(std::begin(checked.region), std::end(checked.region), nullptr);
  LaneMask rest = reading;
  while (rest != 0) {
    const std::uint32_t size = sizes[std::countr_zero(rest)];
    LaneMask group = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((rest >> lane & 1) != 0 && sizes[lane] == size) group |= LaneMask{1} << lane;
    }
    rest &= ~group;
    LaneAccess part = from;
    if (!Resolve(warp, op, Space::kGlobal, group, size, AccessType::kLoad, part, bytes)) return;
    for (LaneMask left = group; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      checked.pointer[lane] = part.pointer[lane];
      checked.region[lane] = part.RegionOf(lane);
    }
  }
  checked.lanes = reading;
  std::uint64_t token = 0;
  if (device.race) {
    alignas(64) std::uint64_t read_offsets[kWarpSize] = {};
    alignas(64) std::uint64_t write_offsets[kWarpSize] = {};
    WarpAccess read = EventOf(warp, op, checked, bytes, AccessKind::kRead, read_offsets);
    if (reading != 0 && !checked.RegionOf(std::countr_zero(reading))->writable) read.lanes = 0;
    const WarpAccess write = EventOf(warp, op, to, bytes, AccessKind::kWrite, write_offsets);
    token = device.race->OnAsyncIssue(warp.number, warp.exec, read, write);
  }
  AsyncGroups& groups = GroupsOf(warp);
  device.last_progress = device.counters.steps;
  for (LaneMask left = warp.exec; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    AsyncGroups::Copy copy;
    copy.destination = to.at(lane);
    copy.bytes = bytes;
    copy.pc = warp.PcOf(op);
    copy.token = token;
    copy.region = to.RegionOf(lane);
    copy.offset = static_cast<std::uint64_t>(to.at(lane) - to.RegionOf(lane)->data);
    if (sizes[lane] > 0) {
      std::memcpy(copy.data.data(), checked.at(lane), sizes[lane]);
      device.counters.bytes_read += sizes[lane];
      const MemoryRegion& source = *checked.RegionOf(lane);
      copy.known =
          BytesOf(source, static_cast<std::uint64_t>(checked.at(lane) - source.data), sizes[lane]);
      // What is filled up is zero.
      if (!copy.known.AllDefined()) copy.known.states.resize(bytes, 1);
    }
    if (taken.Holds(lane)) copy.known.Choose(bytes, NumberOf(device, taken));
    if (put.Holds(lane)) {
      copy.open = put.open[static_cast<std::size_t>(lane)];
      copy.choice = put.origin;
    }
    // Until it arrives, nobody may rely on what the destination holds.
    if (copy.region->defined != nullptr) copy.region->defined->Set(copy.offset, bytes, false);
    groups.lanes[static_cast<std::size_t>(lane)].open.copies.push_back(std::move(copy));
  }
}

void Commit(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  AsyncGroups& groups = GroupsOf(warp);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    AsyncGroups::Lane& lane = groups.lanes[static_cast<std::size_t>(std::countr_zero(rest))];
    lane.committed.push_back(std::move(lane.open));
    lane.open.copies.clear();
  }
}

void WaitAll(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1)
    CompleteCopies(warp, std::countr_zero(rest), -1);
}

void WaitGroup(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const auto* const counts = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    CompleteCopies(warp, lane, static_cast<int>(std::min<std::uint32_t>(counts[lane], 1u << 20)));
  }
}

Handler ResolveCopy(const Instruction& in, Decoded& decoded) {
  if (in.Has(Mod::kL2CacheHint) && decoded.operand_count > 3) --decoded.operand_count;
  if (decoded.operand_count < 3 || decoded.operand_count > 4 || in.operands.size() < 3)
    return nullptr;
  if (in.operands[2].kind != ptx::Operand::Kind::kImmediate) return nullptr;
  const std::uint64_t bytes = in.operands[2].bits;
  if (bytes != 4 && bytes != 8 && bytes != 16) return nullptr;
  decoded.immediate = bytes;
  decoded.flags |= kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return &CopyAsync;
}

template <Handler kHandler, std::size_t kOperands>
Handler Fixed(const Instruction&, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  return decoded.operand_count == kOperands ? kHandler : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kCpAsync, &ResolveCopy},
    {Opcode::kCpAsyncCommitGroup, &Fixed<&Commit, 0>},
    {Opcode::kCpAsyncWaitAll, &Fixed<&WaitAll, 0>},
    {Opcode::kCpAsyncWaitGroup, &Fixed<&WaitGroup, 1>},
};

}  // namespace

AsyncGroups& GroupsOf(CoreWarp& warp) {
  if (!warp.async) warp.async = std::make_unique<AsyncGroups>();
  return *warp.async;
}

std::uint64_t DeliverCopies(CoreWarp& warp, int index) {
  AsyncGroups::Lane& lane = GroupsOf(warp).lanes[static_cast<std::size_t>(index)];
  std::uint64_t token = Deliver(warp, index, lane.open.copies);
  for (const AsyncGroups::Group& group : lane.committed)
    token = std::max(token, Deliver(warp, index, group.copies));
  lane.open.copies.clear();
  // Groups stay countable, empty.
  for (AsyncGroups::Group& group : lane.committed) group.copies.clear();
  lane.delivered = std::max(lane.delivered, token);
  return token;
}

void CompleteCopies(CoreWarp& warp, int index, int keep) {
  if (!warp.async) return;
  AsyncGroups::Lane& lane = warp.async->lanes[static_cast<std::size_t>(index)];
  const std::size_t kept = keep < 0 ? 0 : static_cast<std::size_t>(keep);
  std::vector<AsyncGroups::Copy> done;
  if (lane.committed.size() == kept + 1) {
    done = std::move(lane.committed.front().copies);
    lane.committed.erase(lane.committed.begin());
  } else if (lane.committed.size() > kept) {
    const auto end = lane.committed.end() - static_cast<std::ptrdiff_t>(kept);
    for (auto group = lane.committed.begin(); group != end; ++group) {
      done.insert(done.end(), group->copies.begin(), group->copies.end());
    }
    lane.committed.erase(lane.committed.begin(), end);
  }
  if (keep < 0) {
    done.insert(done.end(), lane.open.copies.begin(), lane.open.copies.end());
    lane.open.copies.clear();
  }
  Arrive(warp, index, done);
  // Its room serves the next group.
  done.clear();
  if (lane.open.copies.capacity() == 0) lane.open.copies = std::move(done);
  if (kept == 0 && lane.delivered != 0) {
    if (warp.device->race)
      warp.device->race->OnAsyncWait(warp.number, static_cast<std::uint8_t>(index), lane.delivered);
    lane.delivered = 0;
  }
}

std::span<const ResolverRow> AsyncCopyRows() {
  static const std::vector<ResolverRow> rows = [] {
    std::vector<ResolverRow> all(std::begin(kRows), std::end(kRows));
    for (const std::span<const ResolverRow> part :
         {BulkRows(), AsyncStoreRows(), TensorRows(), TensorMapRows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

}  // namespace assay::emu
