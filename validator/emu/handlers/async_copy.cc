// cp.async with groups (PTX ISA 9.7.9.25).
//
// The destination is written when the issuing thread waits, so that a read before the wait sees the
// old bytes; under the default schedule as under any other. What is copied is read at issue.
#include "validator/emu/handlers/async_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

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

/// By region and place, the lanes' bytes as a few stretches: neighbours that follow each other are one. Calls
/// `each(region, offset, bytes)`.
template <class Each>
void InStretches(const AsyncGroups::Copies& copies, LaneMask lanes, const Each& each) {
  while (lanes != 0) {
    const auto first = static_cast<std::size_t>(std::countr_zero(lanes));
    std::size_t end = first + 1;
    while (end < kWarpSize && (lanes >> end & 1) != 0 &&
           copies.region[end] == copies.region[first] &&
           copies.offset[end] == copies.offset[end - 1] + copies.bytes)
      ++end;
    each(*copies.region[first], copies.offset[first], (end - first) * copies.bytes);
    lanes = end == kWarpSize ? 0 : lanes & (~LaneMask{0} << end);
  }
}

/// The bytes of these lanes take their place.
void Deliver(CoreWarp& warp, AsyncGroups::Copies& copies, LaneMask lanes) {
  copies.waiting &= ~lanes;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    std::byte* const to = copies.region[lane]->data + copies.offset[lane];
    if (copies.bytes == 16) {
      std::memcpy(to, copies.data[lane].data(), 16);
    } else {
      std::memcpy(to, copies.data[lane].data(), copies.bytes);
    }
  }
  LaneMask plain = lanes;
  for (const AsyncGroups::Rare& rare : copies.rare) {
    if (!rare.known.AllDefined()) plain &= ~(LaneMask{1} << rare.lane);
  }
  InStretches(copies, plain, [](MemoryRegion& region, std::uint64_t offset, std::uint64_t bytes) {
    if (region.defined != nullptr) region.defined->Set(offset, bytes, true);
  });
  for (const AsyncGroups::Rare& rare : copies.rare) {
    if ((lanes >> rare.lane & 1) == 0) continue;
    const auto lane = static_cast<std::size_t>(rare.lane);
    MemoryRegion& region = *copies.region[lane];
    if (!rare.known.AllDefined())
      PutBytes(warp, copies.pc, rare.lane, region, copies.offset[lane], copies.bytes, rare.known);
    if (rare.open != 0)
      StoreAtChosenPlace(warp, copies.pc, rare.lane, region, copies.offset[lane], copies.bytes,
                         rare.open, rare.choice);
  }
}

/// Those that have all arrived make room.
void DropArrived(AsyncGroups& groups) {
  const auto arrived = std::stable_partition(groups.copies.begin(), groups.copies.end(),
                                             [](const auto& each) { return each->waiting != 0; });
  std::move(arrived, groups.copies.end(), std::back_inserter(groups.spare));
  groups.copies.erase(arrived, groups.copies.end());
}

AsyncGroups::Copies& AddCopies(AsyncGroups& groups) {
  if (groups.spare.empty()) groups.spare.push_back(std::make_unique<AsyncGroups::Copies>());
  groups.copies.push_back(std::move(groups.spare.back()));
  groups.spare.pop_back();
  AsyncGroups::Copies& copies = *groups.copies.back();
  copies.rare.clear();
  return copies;
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
  AsyncGroups::Copies& copies = AddCopies(groups);
  copies.waiting = warp.exec;
  copies.pc = warp.PcOf(op);
  copies.bytes = bytes;
  copies.token = token;
  copies.first_group = ~std::uint32_t{0};
  copies.last_group = 0;
  for (LaneMask left = warp.exec; left != 0; left &= left - 1) {
    const int number = std::countr_zero(left);
    const auto lane = static_cast<std::size_t>(number);
    copies.region[lane] = to.RegionOf(number);
    copies.offset[lane] = static_cast<std::uint64_t>(to.at(number) - copies.region[lane]->data);
    copies.group[lane] = groups.committed[lane];
    copies.first_group = std::min(copies.first_group, copies.group[lane]);
    copies.last_group = std::max(copies.last_group, copies.group[lane]);
    AsyncGroups::Rare rare{.lane = number, .known = {}};
    if (sizes[lane] == 16) {
      std::memcpy(copies.data[lane].data(), checked.at(number), 16);
    } else {
      copies.data[lane] = {};
      if (sizes[lane] > 0) std::memcpy(copies.data[lane].data(), checked.at(number), sizes[lane]);
    }
    if (sizes[lane] > 0) {
      device.counters.bytes_read += sizes[lane];
      const MemoryRegion& source = *checked.RegionOf(number);
      rare.known = BytesOf(source, static_cast<std::uint64_t>(checked.at(number) - source.data),
                           sizes[lane]);
      // What is filled up is zero.
      if (!rare.known.AllDefined()) rare.known.states.resize(bytes, 1);
    }
    if (taken.Holds(number)) rare.known.Choose(bytes, NumberOf(device, taken));
    if (put.Holds(number)) {
      rare.open = put.open[lane];
      rare.choice = put.origin;
    }
    if (!rare.known.AllDefined() || rare.open != 0) copies.rare.push_back(std::move(rare));
  }
  // Until they arrive, nobody may rely on what the destination holds.
  InStretches(copies, warp.exec,
              [](MemoryRegion& region, std::uint64_t offset, std::uint64_t count) {
                if (region.defined != nullptr) region.defined->Set(offset, count, false);
              });
}

void Commit(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  AsyncGroups& groups = GroupsOf(warp);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1)
    ++groups.committed[static_cast<std::size_t>(std::countr_zero(rest))];
}

/// By lane, of how many groups the copies arrive.
using GroupNumbers = std::array<std::uint32_t, kWarpSize>;

/// Lets the copies of all groups below those numbers arrive. `all`: the lanes of which nothing is kept.
void Arrive(CoreWarp& warp, LaneMask lanes, const GroupNumbers& until, LaneMask all) {
  AsyncGroups& groups = *warp.async;
  std::uint32_t least = ~std::uint32_t{0}, most = 0;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const std::uint32_t number = until[static_cast<std::size_t>(std::countr_zero(rest))];
    least = std::min(least, number);
    most = std::max(most, number);
  }
  std::array<std::uint64_t, kWarpSize> tokens{};
  LaneMask told = 0;
  bool some_done = false;
  for (const auto& each : groups.copies) {
    LaneMask due = each->waiting & lanes;
    if (due == 0 || each->first_group >= most) continue;
    if (each->last_group >= least) {
      for (LaneMask rest = due; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
        if (each->group[lane] >= until[lane]) due &= ~(LaneMask{1} << lane);
      }
    }
    if (due == 0) continue;
    Deliver(warp, *each, due);
    some_done = some_done || each->waiting == 0;
    told |= due;
    for (LaneMask rest = due; rest != 0; rest &= rest - 1) {
      std::uint64_t& token = tokens[static_cast<std::size_t>(std::countr_zero(rest))];
      token = std::max(token, each->token);
    }
  }
  if (some_done) DropArrived(groups);
  // What arrived for an mbarrier is waited for by the lane itself as well.
  for (LaneMask rest = all; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint64_t delivered = std::exchange(groups.lanes[lane].delivered, 0);
    if (delivered == 0) continue;
    tokens[lane] = std::max(tokens[lane], delivered);
    told |= LaneMask{1} << lane;
  }
  if (!warp.device->race) return;
  while (told != 0) {
    const std::uint64_t token = tokens[static_cast<std::size_t>(std::countr_zero(told))];
    LaneMask alike = 0;
    for (LaneMask rest = told; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (tokens[static_cast<std::size_t>(lane)] == token) alike |= LaneMask{1} << lane;
    }
    warp.device->race->OnAsyncWait(warp.number, alike, token);
    told &= ~alike;
  }
}

void WaitAll(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  if (!warp.async) return;
  GroupNumbers until;
  until.fill(~std::uint32_t{0});
  Arrive(warp, warp.exec, until, warp.exec);
}

void WaitGroup(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (!warp.async) return;
  const auto* const kept = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  GroupNumbers until{};
  LaneMask all = 0;
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint32_t committed = warp.async->committed[lane];
    until[lane] = committed - std::min(kept[lane], committed);
    if (kept[lane] == 0) all |= LaneMask{1} << lane;
  }
  Arrive(warp, warp.exec, until, all);
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
  AsyncGroups& groups = GroupsOf(warp);
  const LaneMask lane = LaneMask{1} << index;
  std::uint64_t token = 0;
  for (const auto& each : groups.copies) {
    if ((each->waiting & lane) == 0) continue;
    Deliver(warp, *each, lane);
    token = std::max(token, each->token);
  }
  DropArrived(groups);
  std::uint64_t& delivered = groups.lanes[static_cast<std::size_t>(index)].delivered;
  delivered = std::max(delivered, token);
  return token;
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
