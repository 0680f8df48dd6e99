// cp.async.bulk with mbarriers and with bulk groups, st.async, and cp.async.mbarrier.arrive (PTX
// ISA 9.7.9.25.4, 9.7.13.15.15).
//
// A bulk copy is done when it is issued, which is one of its legal times; the race detector is told
// what really orders it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "validator/emu/handlers/async_copy.h"
#include "validator/emu/handlers/bulk.h"
#include "validator/emu/handlers/mbarrier.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

/// Where a copy's sides lie by the machine's choice.
struct ChosenSides {
  ChosenPlaces to, from;
  ChosenSides(CoreWarp& warp, const Decoded& op)
      : to(CheckCopyAddress(warp, op, op.operands[0], warp.exec)),
        from(Either(CheckCopyAddress(warp, op, op.operands[1], warp.exec),
                    CheckCopyNumber(warp, op, op.operands[2], warp.exec))) {}
};

void MoveBytes(CoreWarp& warp, const Decoded& op, const ChosenSides& chosen, const Side& to,
               const Side& from, int lane, std::uint32_t bytes) {
  MemoryRegion* const target = to.access.RegionOf(lane);
  const MemoryRegion* const source = from.access.RegionOf(lane);
  std::memmove(to.access.at(lane), from.access.at(lane), bytes);
  warp.device->last_progress = warp.device->counters.steps;
  if (source->kind != MemoryRegion::Kind::kShared) warp.device->counters.bytes_read += bytes;
  if (target->kind != MemoryRegion::Kind::kShared) warp.device->counters.bytes_written += bytes;
  PutCopied(warp, op, chosen.to, to, lane, bytes, BytesTaken(warp, chosen.from, from, lane, bytes));
}

std::uint64_t IssueToDetector(CoreWarp& warp, const Side& from, const Side& to, int lane) {
  if (!warp.device->race) return 0;
  const bool reads_mutable = from.access.RegionOf(lane)->writable;
  return warp.device->race->OnBulkIssue(reads_mutable ? &from.event : nullptr, &to.event);
}

/// operands: destination, source, size, mbarrier, optional block mask.
void CopyToShared(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const Instruction& in = *op.source;
  const bool multicast = in.Has(Mod::kMulticastCluster);
  const ChosenSides chosen(warp, op);
  const auto* const sizes = warp.Lanes<std::uint32_t>(op.operands[2].slot);
  for (LaneMask rest = warp.exec; rest != 0 && warp.outcome != Outcome::kStop; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t bytes = sizes[lane];
    if (bytes % 16 != 0)
      return BulkMisuse(
          warp, op, lane,
          fmt::format("a bulk copy of {} bytes: the size must be a multiple of 16", bytes));
    if (bytes == 0) continue;
    const std::uint64_t to_address = BulkAddress(warp, op.operands[0], lane);
    const std::uint64_t barrier_address = BulkAddress(warp, op.operands[3], lane);
    std::uint32_t ranks = multicast ? warp.Lanes<std::uint16_t>(op.operands[4].slot)[lane] : 1;
    for (; ranks != 0; ranks &= ranks - 1) {
      const auto rank = static_cast<std::uint32_t>(std::countr_zero(ranks));
      Side from, to, barrier;
      if (!ResolveSide(warp, op, in.space2, BulkAddress(warp, op.operands[1], lane), lane, bytes,
                       false, from))
        return;
      if (!ResolveSide(warp, op, Space::kSharedCluster,
                       multicast ? InBlock(to_address, rank) : to_address, lane, bytes, true, to))
        return;
      const std::uint64_t token = IssueToDetector(warp, from, to, lane);
      MoveBytes(warp, op, chosen, to, from, lane, bytes);
      if (!CompleteTransfer(warp, op, lane,
                            multicast ? InBlock(barrier_address, rank) : barrier_address, bytes,
                            {&token, 1}))
        return;
      if (warp.outcome == Outcome::kStop) return;
    }
  }
}

/// operands: destination, source, size.
void CopyToGlobal(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const ChosenSides chosen(warp, op);
  const auto* const sizes = warp.Lanes<std::uint32_t>(op.operands[2].slot);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t bytes = sizes[lane];
    if (bytes % 16 != 0)
      return BulkMisuse(
          warp, op, lane,
          fmt::format("a bulk copy of {} bytes: the size must be a multiple of 16", bytes));
    if (bytes == 0) continue;
    Side from, to;
    if (!ResolveSide(warp, op, Space::kShared, BulkAddress(warp, op.operands[1], lane), lane, bytes,
                     false, from))
      return;
    if (!ResolveSide(warp, op, Space::kGlobal, BulkAddress(warp, op.operands[0], lane), lane, bytes,
                     true, to))
      return;
    const std::uint64_t token = IssueToDetector(warp, from, to, lane);
    MoveBytes(warp, op, chosen, to, from, lane, bytes);
    GroupsOf(warp).lanes[static_cast<std::size_t>(lane)].bulk_open.push_back(token);
  }
}

void CommitBulk(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    AsyncGroups::Lane& lane =
        GroupsOf(warp).lanes[static_cast<std::size_t>(std::countr_zero(rest))];
    lane.bulk_committed.push_back(std::move(lane.bulk_open));
    lane.bulk_open.clear();
  }
}

void WaitBulk(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const auto* const counts = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  const bool reads_only = op.source->Has(Mod::kRead);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int index = std::countr_zero(rest);
    AsyncGroups::Lane& lane = GroupsOf(warp).lanes[static_cast<std::size_t>(index)];
    const std::size_t groups = lane.bulk_committed.size();
    const std::size_t done = groups > counts[index] ? groups - counts[index] : 0;
    for (std::size_t g = 0; g < done; ++g) {
      for (const std::uint64_t token : lane.bulk_committed[g]) {
        if (warp.device->race)
          warp.device->race->OnBulkWait(warp.number, static_cast<std::uint8_t>(index), token,
                                        reads_only);
      }
    }
    // What was only read may still be waited for in full.
    if (!reads_only)
      lane.bulk_committed.erase(lane.bulk_committed.begin(),
                                lane.bulk_committed.begin() + static_cast<std::ptrdiff_t>(done));
  }
}

void ArriveWhenCopied(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  Addresses(warp, op.operands[0], access);
  const Space space = op.source->space == Space::kReg ? Space::kGeneric : op.source->space;
  if (!Resolve(warp, op, space, warp.exec, 8, AccessType::kAtomic, access)) return;
  ReportMbarrierAccess(warp, op, access, false);
  const bool counted = op.source->Has(Mod::kNoinc);
  for (LaneMask rest = warp.exec; rest != 0 && warp.outcome != Outcome::kStop; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MbarrierPlace place = MbarrierAt(access, lane);
    const std::uint64_t token = DeliverCopies(warp, lane);
    if (warp.device->race) {
      warp.device->race->OnAsyncMbarrierArrive(place.region, place.offset, warp.number,
                                               LaneMask{1} << lane, token);
      warp.device->race->OnMbarrierArrive(place.region, place.offset, warp.number,
                                          LaneMask{1} << lane, Scope::kCta, true);
    }
    // Without .noinc the pending count goes up by one at issue and down again on arrival.
    if (counted) UpdateMbarrier(warp, op, lane, place, {.arrivals = 1});
  }
}

void Nothing(Warp&, const Decoded&) {}

Handler AsMemory(Decoded& decoded, Handler handler) {
  decoded.flags |= kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return handler;
}

bool IsSlot(const Decoded& decoded, std::size_t index, int bits) {
  return index < decoded.operand_count &&
         decoded.operands[index].kind == DecodedOperand::Kind::kSlot &&
         decoded.operands[index].bits == bits;
}

Handler ResolveBulk(const Instruction& in, Decoded& decoded) {
  if (in.Has(Mod::kL2CacheHint)) --decoded.operand_count;
  if (!IsSlot(decoded, 2, 32) || in.Has(Mod::kCpMask)) return nullptr;
  if (in.Has(Mod::kBulkGroup))
    return decoded.operand_count == 3 ? AsMemory(decoded, &CopyToGlobal) : nullptr;
  const std::size_t operands = in.Has(Mod::kMulticastCluster) ? 5 : 4;
  if (decoded.operand_count != operands) return nullptr;
  if (operands == 5 && !IsSlot(decoded, 4, 16)) return nullptr;
  return AsMemory(decoded, &CopyToShared);
}

template <Handler kHandler, std::size_t kOperands>
Handler Fixed(const Instruction&, Decoded& decoded) {
  return decoded.operand_count == kOperands ? AsMemory(decoded, kHandler) : nullptr;
}

Handler NoEffect(const Instruction&, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  return &Nothing;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kCpAsyncBulk, &ResolveBulk},
    {Opcode::kCpAsyncBulkCommitGroup, &Fixed<&CommitBulk, 0>},
    {Opcode::kCpAsyncBulkWaitGroup, &Fixed<&WaitBulk, 1>},
    {Opcode::kCpAsyncMbarrierArrive, &Fixed<&ArriveWhenCopied, 1>},
    {Opcode::kCpAsyncBulkPrefetch, &NoEffect},
};

}  // namespace

std::span<const ResolverRow> BulkRows() { return kRows; }

}  // namespace assay::emu
