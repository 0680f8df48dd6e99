#include "validator/emu/handlers/bulk.h"

#include <algorithm>

#include "validator/emu/handlers/mbarrier.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine_memory.h"

namespace assay::emu {

void BulkMisuse(CoreWarp& warp, const Decoded& op, int lane, std::string message) {
  Report1(warp, FindingKind::kBarrierMisuse, warp.PcOf(op), LaneMask{1} << lane, std::move(message),
          std::string(ptx::Mnemonic(op.source->opcode)));
  warp.device->End(Stop::kFault, "misuse of a bulk copy");
  warp.outcome = Outcome::kStop;
}

bool ResolveSide(CoreWarp& warp, const Decoded& op, ptx::Space space, std::uint64_t address,
                 int lane, std::uint32_t bytes, bool writes, Side& side, std::uint32_t alignment) {
  side.access.address[lane] = address;
  const LaneMask bit = LaneMask{1} << lane;
  // The look-up of all lanes reads every address.
  for (int other = 0; other < kWarpSize; ++other) side.access.address[other] = address;
  if (!Resolve(warp, op, space, bit, bytes, writes ? AccessType::kStore : AccessType::kLoad,
               side.access, alignment))
    return false;
  const MemoryRegion* const region = side.access.RegionOf(lane);
  if (region == nullptr) {
    BulkMisuse(warp, op, lane, "a bulk copy to or from local memory");
    return false;
  }
  side.offsets[lane] =
      static_cast<std::uint64_t>(side.access.at(lane) - region->data) + region->race_offset;
  side.event.warp = warp.number;
  side.event.lanes = bit;
  side.event.region = region->race_region;
  side.event.offsets = side.offsets;
  side.event.bytes = bytes;
  side.event.kind = writes ? AccessKind::kWrite : AccessKind::kRead;
  side.event.pc = warp.PcOf(op);
  return true;
}

CopiedBytes BytesTaken(CoreWarp& warp, const ChosenPlaces& from, const Side& side, int lane,
                       std::uint32_t bytes) {
  const MemoryRegion& region = *side.access.RegionOf(lane);
  CopiedBytes taken =
      BytesOf(region, static_cast<std::uint64_t>(side.access.at(lane) - region.data), bytes);
  if (from.Holds(lane)) taken.Choose(bytes, NumberOf(*warp.device, from));
  return taken;
}

void PutCopied(CoreWarp& warp, const Decoded& op, const ChosenPlaces& to, const Side& side,
               int lane, std::uint32_t bytes, const CopiedBytes& copied) {
  MemoryRegion& region = *side.access.RegionOf(lane);
  const auto start = static_cast<std::uint64_t>(side.access.at(lane) - region.data);
  PutBytes(warp, warp.PcOf(op), lane, region, start, bytes, copied);
  if (to.Holds(lane))
    StoreAtChosenPlace(warp, warp.PcOf(op), lane, region, start, bytes,
                       to.open[static_cast<std::size_t>(lane)], to.origin);
}

std::uint64_t BulkAddress(CoreWarp& warp, const DecodedOperand& operand, int lane) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (operand.bits == 64) return warp.Lanes<std::uint64_t>(operand.slot)[lane] + offset;
  return static_cast<std::uint32_t>(warp.Lanes<std::uint32_t>(operand.slot)[lane] + offset);
}

std::uint64_t InBlock(std::uint64_t address, std::uint32_t rank) {
  return (address & kSharedOffsetMask) | (std::uint64_t{rank} + 1) << kSharedBlockBits;
}

bool CompleteTransfer(CoreWarp& warp, const Decoded& op, int lane, std::uint64_t address,
                      std::uint32_t bytes, std::span<const std::uint64_t> tokens) {
  LaneAccess object;
  std::fill(std::begin(object.address), std::end(object.address), address);
  if (!Resolve(warp, op, ptx::Space::kSharedCluster, LaneMask{1} << lane, 8, AccessType::kAtomic,
               object))
    return false;
  const MbarrierPlace place = MbarrierAt(object, lane);
  if (warp.device->race) {
    for (const std::uint64_t token : tokens)
      warp.device->race->OnBulkComplete(token, place.region, place.offset);
  }
  UpdateMbarrier(warp, op, lane, place, {.complete = bytes});
  return warp.outcome != Outcome::kStop;
}

}  // namespace assay::emu
