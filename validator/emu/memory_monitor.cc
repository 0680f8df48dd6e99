// What the monitors see of a resolved access: definedness of its bytes, and its event for the race
// detector.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "validator/emu/memory.h"
#include "validator/emu/site.h"

namespace assay::emu {

void CheckAddressDefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                         LaneMask lanes) {
  if (!warp.engine->track_defined) return;
  const LaneMask undefined = warp.frame->undefined[operand.shadow] & lanes;
  if (undefined == 0) [[likely]]
    return;
  ReportUndefined(warp, warp.PcOf(op), undefined, "an address was computed from undefined bytes",
                  VerbOf(*op.source), warp.frame->origin[operand.shadow]);
}
LaneMask UndefinedLanes(CoreWarp& warp, const LaneAccess& access, std::uint32_t offset,
                        std::uint32_t bytes) {
  LaneMask undefined = 0;
  const MemoryRegion* checked = nullptr;
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MemoryRegion* const region = access.region[lane];
    if (region == nullptr) {
      const auto at = static_cast<std::uint64_t>(access.at(lane) - warp.local.data()) + offset;
      const auto* const flags = warp.local_defined.data() + at;
      if (std::ranges::find(flags, flags + bytes, std::uint8_t{0}) != flags + bytes)
        undefined |= LaneMask{1} << lane;
      continue;
    }
    if (region == checked) continue;  // Found to hold nothing undefined.
    if (region->defined == nullptr || region->defined->AllDefined()) {
      checked = region;
      continue;
    }
    const auto start = static_cast<std::uint64_t>(access.at(lane) - region->data);
    if (access.dense && lane == 0) {
      const auto end =
          static_cast<std::uint64_t>(access.at(kWarpSize - 1) - region->data) + offset + bytes;
      if (region->defined->Defined(start, end - start)) return 0;
    }
    if (!region->defined->Defined(start + offset, bytes)) undefined |= LaneMask{1} << lane;
  }
  return undefined;
}

void MarkStored(CoreWarp& warp, const Decoded& op, const LaneAccess& access, std::uint32_t offset,
                std::uint32_t bytes, LaneMask undefined, std::uint32_t origin) {
  undefined &= access.lanes;
  LaneMask to_output = 0;
  if (undefined == 0 && access.dense && offset == 0) {
    MemoryRegion* const region = access.region[0];
    if (region->defined == nullptr || region->defined->AllDefined()) return;
    const auto start = static_cast<std::uint64_t>(access.at(0) - region->data);
    const auto end = static_cast<std::uint64_t>(access.at(kWarpSize - 1) - region->data) + bytes;
    if (end - start == std::uint64_t{bytes} * kWarpSize) {
      region->defined->Set(start, end - start, true);
      return;
    }
  }
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool defined = (undefined >> lane & 1) == 0;
    MemoryRegion* const region = access.region[lane];
    if (region == nullptr) {
      const auto at = static_cast<std::uint64_t>(access.at(lane) - warp.local.data()) + offset;
      std::fill_n(warp.local_defined.data() + at, bytes, static_cast<std::uint8_t>(defined));
      continue;
    }
    if (!defined && region->is_output) to_output |= LaneMask{1} << lane;
    if (region->defined == nullptr || (defined && region->defined->AllDefined())) continue;
    region->defined->Set(static_cast<std::uint64_t>(access.at(lane) - region->data) + offset, bytes,
                         defined);
  }
  if (to_output != 0) {
    const int first = FirstLane(to_output);
    const MemoryRegion& region = *access.region[first];
    const auto address =
        static_cast<std::uint64_t>(access.at(first) - region.data) + offset + region.base;
    MemoryPlace place = PlaceIn(region, "global", address, bytes);
    std::string message =
        fmt::format("undefined bytes are stored to the output {}[{}]", place.buffer, place.index);
    ReportUndefined(warp, warp.PcOf(op), to_output, std::move(message), VerbOf(*op.source), origin,
                    std::move(place));
  }
}

AccessOrder OrderOf(const ptx::Instruction& in) {
  using ptx::Mod;
  AccessOrder result;
  struct OrderRow {
    Mod mod;
    Order order;
  };
  constexpr OrderRow kOrders[] = {
      {Mod::kVolatile, Order::kVolatile}, {Mod::kRelaxed, Order::kRelaxed},
      {Mod::kAcquire, Order::kAcquire},   {Mod::kRelease, Order::kRelease},
      {Mod::kAcqRel, Order::kAcqRel},     {Mod::kMmio, Order::kRelaxed}};
  for (const OrderRow& row : kOrders) {
    if (in.Has(row.mod)) result.order = row.order;
  }
  struct ScopeRow {
    Mod mod;
    Scope scope;
  };
  constexpr ScopeRow kScopes[] = {{Mod::kCta, Scope::kCta},
                                  {Mod::kCluster, Scope::kCluster},
                                  {Mod::kGpu, Scope::kGpu},
                                  {Mod::kSys, Scope::kSys}};
  const bool atomic = in.opcode == ptx::Opcode::kAtom || in.opcode == ptx::Opcode::kRed;
  if (atomic) {
    if (result.order == Order::kWeak) result.order = Order::kRelaxed;
    result.scope = Scope::kGpu;  // The default of atom and red.
  }
  if (result.order == Order::kVolatile) result.scope = Scope::kSys;
  for (const ScopeRow& row : kScopes) {
    if (in.Has(row.mod)) result.scope = row.scope;
  }
  return result;
}

void ReportAccess(CoreWarp& warp, const Decoded& op, const LaneAccess& access, std::uint32_t bytes,
                  const AccessEvent& what) {
  constexpr std::uint32_t kLongestValue = 64;
  alignas(64) std::uint64_t offsets[kWarpSize] = {};
  alignas(64) std::byte old_values[kWarpSize * kLongestValue];
  const bool values = what.new_values != nullptr && bytes <= kLongestValue;
  LaneMask rest = access.lanes;
  while (rest != 0) {
    const MemoryRegion* const region = access.region[std::countr_zero(rest)];
    LaneMask group = 0;
    for (LaneMask left = rest; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (access.region[lane] != region) continue;
      group |= LaneMask{1} << lane;
      if (region == nullptr) continue;
      offsets[lane] =
          static_cast<std::uint64_t>(access.at(lane) - region->data) + region->race_offset;
      if (values)
        std::memcpy(old_values + static_cast<std::size_t>(lane) * bytes, access.at(lane), bytes);
    }
    rest &= ~group;
    // Local memory is private, constants and parameters cannot change.
    if (region == nullptr || region->kind == MemoryRegion::Kind::kConst ||
        region->kind == MemoryRegion::Kind::kParams)
      continue;
    if (what.kind == AccessKind::kRead && !region->writable) continue;
    WarpAccess event;
    event.warp = warp.number;
    event.lanes = group;
    event.region = region->race_region;
    event.offsets = offsets;
    event.bytes = bytes;
    event.kind = what.kind;
    event.order = what.order.order;
    event.scope = what.order.scope;
    event.atomic = what.atomic;
    event.returns_value = what.returns_value;
    event.read_only_path = op.source->Has(ptx::Mod::kNc);
    event.pc = warp.PcOf(op);
    event.element_bytes = what.element_bytes;
    event.reversed = warp.engine->reverse_lanes;
    if (values) {
      event.new_values = what.new_values;
      event.old_values = old_values;
    }
    warp.engine->race->OnAccess(event);
  }
}

}  // namespace assay::emu
