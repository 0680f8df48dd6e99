// What the monitors see of a resolved access: definedness of its bytes, and its event for the race
// detector.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "validator/emu/memory.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/missing.h"
#include "validator/emu/watch/undefined.h"
#include "validator/emu/weak/contention.h"
#include "validator/emu/weak/stale.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

/// Memory between the lanes of an access that is looked at in one go: sixteen words of definedness.
constexpr std::uint64_t kLookedAtWhole = 1024;

}  // namespace

void CheckAddressDefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                         LaneMask lanes) {
  if (!warp.device->track_defined) return;
  const LaneMask all = warp.frame->undefined[operand.shadow] & lanes;
  if (all == 0) [[likely]]
    return;
  const LaneMask undefined =
      warp.device->execution.follow_undefined ? all : all & UnsetLanes(*warp.frame, operand.shadow);
  if (undefined != all) NoteChosenPlace(warp, op, operand, all & ~undefined);
  if (undefined == 0) return;
  ReportUndefined(warp, warp.PcOf(op), undefined, "an address was computed from undefined bytes",
                  VerbOf(*op.source), warp.frame->origin[operand.shadow]);
}
LaneMask UndefinedLanes(CoreWarp& warp, const LaneAccess& access, std::uint32_t offset,
                        std::uint32_t bytes) {
  LaneMask undefined = 0;
  if (access.common != nullptr) {
    const DefinedMap* const map = access.common->defined;
    if (map == nullptr || map->AllDefined()) return 0;
    const auto data = reinterpret_cast<std::uintptr_t>(access.common->data);
    // Mostly all is defined that lies between them.
    if (access.greatest - access.least < kLookedAtWhole &&
        map->Defined(access.least + offset, access.greatest - access.least + bytes))
      return 0;
    // Neighbours that read the same place need one look.
    std::uint64_t seen = ~std::uint64_t{0};
    bool seen_undefined = false;
    for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t at = access.pointer[lane] - data + offset;
      if (at != seen) {
        seen = at;
        seen_undefined = !map->Defined(at, bytes);
      }
      undefined |= LaneMask{seen_undefined} << lane;
      if (seen_undefined && warp.device->missing != nullptr)
        warp.device->missing->Note(*access.common, at, bytes);
    }
    return undefined;
  }
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MemoryRegion* const region = access.region[lane];
    if (region == nullptr) {
      const auto at = static_cast<std::uint64_t>(access.at(lane) - warp.local.data()) + offset;
      const auto* const flags = warp.local_defined.data() + at;
      if (std::any_of(flags, flags + bytes, [](std::uint8_t flag) { return flag != 1; }))
        undefined |= LaneMask{1} << lane;
      continue;
    }
    if (region->defined == nullptr || region->defined->AllDefined()) continue;
    const auto start = static_cast<std::uint64_t>(access.at(lane) - region->data);
    if (region->defined->Defined(start + offset, bytes)) continue;
    undefined |= LaneMask{1} << lane;
    if (warp.device->missing != nullptr) warp.device->missing->Note(*region, start + offset, bytes);
  }
  return undefined;
}

std::uint64_t UndefinedBitsAt(const CoreWarp& warp, const LaneAccess& access, int lane,
                              std::uint32_t offset, std::uint32_t bytes) {
  const MemoryRegion* const region = access.RegionOf(lane);
  std::uint32_t defined = 0;
  if (region == nullptr) {
    const auto at = static_cast<std::uint64_t>(access.at(lane) - warp.local.data()) + offset;
    for (std::uint32_t i = 0; i < bytes; ++i)
      defined |= std::uint32_t{warp.local_defined[at + i] == 1} << i;
  } else {
    if (region->defined == nullptr || region->defined->AllDefined()) return 0;
    const auto at = static_cast<std::uint64_t>(access.at(lane) - region->data) + offset;
    defined = region->defined->Bits(at, bytes);
  }
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if ((defined >> i & 1) == 0) bits |= std::uint64_t{0xff} << 8 * i;
  }
  return bits;
}

namespace {

/// The output bytes of the first of `lanes`.
void ReportChosenStore(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                       std::uint32_t offset, std::uint32_t bytes, LaneMask lanes,
                       std::uint32_t origin) {
  const int first = FirstLane(lanes);
  const MemoryRegion& region = *access.RegionOf(first);
  ReportChosenOutput(warp, warp.PcOf(op), lanes, region,
                     static_cast<std::uint64_t>(access.at(first) - region.data) + offset, bytes,
                     origin);
}

/// Stores a register some of whose lanes the machine chose: byte by byte, and by class.
void MarkStoredChoice(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                      std::uint32_t offset, std::uint32_t bytes, const DecodedOperand& source) {
  const Frame& frame = *warp.frame;
  const LaneMask undefined = frame.undefined[source.shadow] & access.lanes;
  const LaneMask chosen = ChosenLanes(frame, source.shadow) & access.lanes;
  LaneMask whole = 0;
  for (const auto& [shadow, lanes] : warp.whole_addresses) {
    if (shadow == source.shadow) whole |= lanes;
  }
  for (std::uint32_t byte = 0; byte < bytes; ++byte) {
    LaneMask bad = 0;
    for (LaneMask rest = undefined; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if ((UndefinedBits(frame, source, lane) >> 8 * (byte % 8) & 0xff) != 0)
        bad |= LaneMask{1} << lane;
    }
    const std::uint32_t origin = frame.origin[source.shadow];
    LaneAccess part = access;
    for (const bool address : {false, true}) {
      part.lanes = access.lanes & (address ? whole : ~whole);
      if (part.lanes == 0) continue;
      part.dense = false;
      MarkStored(warp, op, part, offset + byte, 1, bad, origin, chosen, address);
    }
  }
}

}  // namespace

void MarkStored(CoreWarp& warp, const Decoded& op, const LaneAccess& access, std::uint32_t offset,
                std::uint32_t bytes, LaneMask undefined, std::uint32_t origin, LaneMask chosen,
                bool whole_address) {
  undefined &= access.lanes;
  chosen &= undefined;
  if (undefined == 0 && access.common != nullptr) {
    DefinedMap* const map = access.common->defined;
    if (map == nullptr || map->AllDefined()) return;
    const auto data = reinterpret_cast<std::uintptr_t>(access.common->data);
    const std::uint64_t start = access.pointer[0] - data;
    if (access.dense && offset == 0 &&
        access.pointer[kWarpSize - 1] - access.pointer[0] == std::uint64_t{kWarpSize - 1} * bytes) {
      map->Set(start, std::uint64_t{kWarpSize} * bytes, true);
      return;
    }
    for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1)
      map->SetDefined(access.pointer[std::countr_zero(rest)] - data + offset, bytes);
    return;
  }
  LaneMask to_output = 0;
  const std::uint8_t number =
      chosen == 0
          ? std::uint8_t{0}
          : StoredChoiceNumber(*warp.device, {.origin = origin, .whole_address = whole_address});
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool defined = (undefined >> lane & 1) == 0;
    MemoryRegion* const region = access.RegionOf(lane);
    if (region == nullptr) {
      const auto at = static_cast<std::uint64_t>(access.at(lane) - warp.local.data()) + offset;
      const bool by_machine = (chosen >> lane & 1) != 0;
      std::fill_n(warp.local_defined.data() + at, bytes,
                  by_machine ? number : static_cast<std::uint8_t>(defined));
      continue;
    }
    if (!defined && region->is_output) to_output |= LaneMask{1} << lane;
    if (region->defined == nullptr || (defined && region->defined->AllDefined())) continue;
    const auto at = static_cast<std::uint64_t>(access.at(lane) - region->data) + offset;
    if ((chosen >> lane & 1) != 0 && !region->is_output) {
      region->defined->SetChosen(at, bytes, number);
      continue;
    }
    // What reaches an output is reported here, once: an output of the machine's choice is written.
    region->defined->Set(at, bytes, defined || (chosen >> lane & 1) != 0);
  }
  if (const LaneMask by_machine = to_output & chosen; by_machine != 0)
    ReportChosenStore(warp, op, access, offset, bytes, by_machine, origin);
  to_output &= ~chosen;
  if (to_output != 0) {
    const int first = FirstLane(to_output);
    const MemoryRegion& region = *access.RegionOf(first);
    const auto address =
        static_cast<std::uint64_t>(access.at(first) - region.data) + offset + region.base;
    MemoryPlace place = PlaceIn(region, "global", address, bytes);
    std::string message =
        fmt::format("undefined bytes are stored to the output {}[{}]", place.buffer, place.index);
    ReportUndefined(warp, warp.PcOf(op), to_output, std::move(message), VerbOf(*op.source), origin,
                    std::move(place));
  }
}

void MarkStoredRegister(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                        std::uint32_t offset, std::uint32_t bytes, const DecodedOperand& source) {
  const Frame& frame = *warp.frame;
  const LaneMask undefined = frame.undefined[source.shadow];
  const std::uint32_t origin = frame.origin[source.shadow];
  if ((undefined & ChosenLanes(frame, source.shadow) & access.lanes) != 0) [[unlikely]]
    return MarkStoredChoice(warp, op, access, offset, bytes, source);
  if ((undefined & frame.partial[source.shadow] & access.lanes) == 0) [[likely]]
    return MarkStored(warp, op, access, offset, bytes, undefined, origin);
  for (std::uint32_t byte = 0; byte < bytes; ++byte) {
    LaneMask bad = 0;
    for (LaneMask rest = undefined & access.lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if ((UndefinedBits(frame, source, lane) >> 8 * byte & 0xff) != 0) bad |= LaneMask{1} << lane;
    }
    MarkStored(warp, op, access, offset + byte, 1, bad, origin);
  }
}

void StoreAtChosenPlaces(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                         std::uint32_t bytes, const ChosenPlaces& places) {
  LaneMask to_output = 0;
  for (LaneMask rest = places.lanes & access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MemoryRegion* const region = access.RegionOf(lane);
    if (region != nullptr && region->is_output) to_output |= LaneMask{1} << lane;
  }
  if (to_output != 0) ReportChosenStore(warp, op, access, 0, bytes, to_output, places.origin);
  SpreadChosenStore(warp, access, bytes, places);
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
  const bool atomic = ptx::FormOf(in).rules.shadow == ptx::Shadow::kAtomic;
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

std::uint32_t PackOrder(const ptx::Instruction& in) {
  const AccessOrder order = OrderOf(in);
  return static_cast<std::uint32_t>(order.order) << 16 | static_cast<std::uint32_t>(order.scope)
                                                             << 24;
}

namespace {

/// One more strong access of the warp: where an order is asked for, the first warp stops before its
/// own, and the second one's ends the wait.
void CountStrong(CoreWarp& warp) {
  HoldState& hold = warp.device->hold;
  ++warp.strong_accesses;
  if (hold.pair == nullptr || hold.pair->launch != warp.device->launch.number) return;
  if (warp.number == hold.pair->first_warp) {
    if (warp.strong_accesses + 1 == hold.pair->first_access) warp.outcome = Outcome::kYield;
    if (warp.strong_accesses == hold.pair->first_access) hold.pair = nullptr;
  } else if (warp.number == hold.pair->second_warp &&
             warp.strong_accesses == hold.pair->second_access) {
    hold.held = true;
    hold.pair = nullptr;
  }
}

/// Nothing that the race detector should hear of. `weak`: no atomic, and no order asked for.
bool IsUnwatched(const MemoryRegion* region, bool reads, bool weak) {
  // Local memory is private, constants and parameters cannot change.
  return region == nullptr || region->kind == MemoryRegion::Kind::kConst ||
         region->kind == MemoryRegion::Kind::kParams || (reads && !region->writable) ||
         // Cooperative groups hands its data there from one lane's acquire to its warp by a
         // shuffle, which orders nothing by the manual: its business. What its barriers order is
         // seen.
         (region->of_system && weak);
}

}  // namespace

bool ReportTileRead(CoreWarp& warp, const Decoded& op, const MemoryRegion& region, TileRead tile) {
  if (IsUnwatched(&region, true, true)) return true;
  tile.warp = warp.number;
  tile.region = region.race_region;
  tile.offset += region.race_offset;
  tile.pc = warp.PcOf(op);
  return warp.device->race->OnTileRead(tile);
}

void ReportAccess(CoreWarp& warp, const Decoded& op, const LaneAccess& access, std::uint32_t bytes,
                  const AccessEvent& what) {
  const bool strong = what.atomic || what.order.order != Order::kWeak;
  const auto unwatched = [&](const MemoryRegion* region) {
    return IsUnwatched(region, what.kind == AccessKind::kRead, !strong);
  };
  if (access.common != nullptr && unwatched(access.common)) return;
  Device& device = *warp.device;
  if (strong && device.stale != nullptr && device.stale->TakesTurns())
    warp.outcome = Outcome::kYield;
  if (strong && (device.contention != nullptr || device.hold.pair != nullptr)) CountStrong(warp);
  alignas(64) std::uint64_t offsets[kWarpSize];
  WriteValues values;
  values.registers = what.registers;
  values.register_bytes = what.register_bytes;
  values.memory = access.pointer;
  WarpAccess event;
  event.warp = warp.number;
  event.offsets = offsets;
  event.bytes = bytes;
  event.kind = what.kind;
  event.order = what.order.order;
  event.scope = what.order.scope;
  event.atomic = what.atomic;
  event.returns_value = what.returns_value;
  event.read_only_path = what.read_only_path;
  event.pc = warp.PcOf(op);
  event.element_bytes = what.element_bytes;
  event.reversed = warp.device->reverse_lanes;
  event.read_from = what.read_from;
  event.aside = what.aside;
  if (what.registers != nullptr) event.values = &values;
  const auto report = [&](const MemoryRegion& region, LaneMask lanes) {
    const std::uint64_t shift = region.race_offset - reinterpret_cast<std::uintptr_t>(region.data);
    for (int lane = 0; lane < kWarpSize; ++lane) offsets[lane] = access.pointer[lane] + shift;
    event.lanes = lanes;
    event.region = region.race_region;
    event.siblings_may_agree = region.kind == MemoryRegion::Kind::kShared;
    if (device.stale != nullptr && what.kind != AccessKind::kRead && what.aside == nullptr)
      device.stale->OnWrite(event, access.pointer, region);
    if (strong && device.contention != nullptr && what.aside == nullptr) {
      const bool matters = !what.atomic || (op.flags & kFlagOrderMatters) != 0;
      device.contention->OnStrong(event, warp.strong_accesses, region, matters);
    }
    device.race->OnAccess(event);
  };
  if (access.common != nullptr) {
    event.is_row = access.dense;
    event.least = access.least + access.common->race_offset;
    event.greatest = access.greatest + access.common->race_offset;
    report(*access.common, access.lanes);
    return;
  }
  LaneMask rest = access.lanes;
  while (rest != 0) {
    const MemoryRegion* const region = access.region[std::countr_zero(rest)];
    LaneMask group = 0;
    for (LaneMask left = rest; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (access.region[lane] == region) group |= LaneMask{1} << lane;
    }
    rest &= ~group;
    if (!unwatched(region)) report(*region, group);
  }
}

}  // namespace assay::emu
