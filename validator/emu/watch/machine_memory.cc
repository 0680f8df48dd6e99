#include "validator/emu/watch/machine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/pointee.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

/// The variable of the lane's frame that holds a local address: start and size, or nothing.
std::optional<std::pair<std::uint64_t, std::uint64_t>> LocalVariableAt(const CoreWarp& warp,
                                                                       int lane,
                                                                       std::uint64_t address) {
  const FunctionCode& code = warp.device->program.functions[warp.frame->function];
  const std::uint64_t base = warp.frame->base[static_cast<std::size_t>(lane)];
  const PlacedVariable* const place =
      address >= base ? code.FrameVariableAt(address - base) : nullptr;
  if (place == nullptr) return std::nullopt;
  return std::pair(base + place->offset, place->bytes);
}

/// Bytes of a region.
struct Stretch {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool operator==(const Stretch&) const = default;
};

/// Where an access of `bytes` at `offset` may have been meant, when the bits `open` of its address
/// may be others. Where that is anywhere: the stretch of kMost bytes around it, so that a chosen
/// place in a buffer of gigabytes costs no more than one in a small one.
Stretch MeantBy(const MemoryRegion& region, std::uint64_t offset, std::uint64_t bytes,
                std::uint64_t open) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 18;
  const std::uint64_t address = region.base + offset;
  std::uint64_t start = offset / kMost * kMost;
  std::uint64_t end = start + kMost;
  if (open < kMost) {
    const std::uint64_t lowest = address & ~open;
    start = lowest > region.base ? lowest - region.base : 0;
    end = (address | open) - region.base + bytes;
  }
  return {start, std::min(std::max(end, offset + bytes), region.size)};
}

}  // namespace

void NoteChosenPlace(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                     LaneMask chosen) {
  const std::uint32_t origin = warp.frame->origin[operand.shadow];
  const auto what = warp.device->choices.find(origin);
  const bool from_address = what == warp.device->choices.end() ||
                            what->second.kind == MachineChoice::Kind::kAddress ||
                            what->second.kind == MachineChoice::Kind::kSharedAddress;
  const std::uint8_t kinds =
      op.source->space == ptx::Space::kLocal ? kAddressLocal : kAddressGeneric | kAddressShared;
  LaneMask places = 0;
  LaneBitsets places_open{};
  for (LaneMask rest = chosen; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t value =
        ReadLane(warp, operand, lane) + static_cast<std::uint64_t>(operand.offset);
    const Pointee pointee = PointeeOf(warp, kinds, lane, value);
    const MemoryRegion* const region = pointee.region;
    // What the system keeps is reached through registers of the machine.
    if (region != nullptr &&
        (region->of_system || region->kind == MemoryRegion::Kind::kGridWorkspace))
      continue;
    const std::uint64_t open = UndefinedBits(*warp.frame, operand, lane);
    if (from_address) {
      // Swizzles by the bits of a shared address are the same wherever the array lies.
      if (region != nullptr && region->kind == MemoryRegion::Kind::kShared &&
          MayBeOfSharedAddress(*warp.device, origin))
        continue;
      const std::uint64_t ones = operand.bits == 64 ? ~std::uint64_t{0} : 0xffffffffu;
      if (open == (OnesAbove(pointee.promised) & ones)) continue;
      // An address that was aligned further keeps its object.
      const bool upper_only = open != 0 && (open | (open - 1)) == ones && (open & ~ones) == 0 &&
                              std::countr_zero(open) > pointee.promised;
      if (upper_only && pointee.object != nullptr && (value & ~open) == 0) continue;
    }
    places |= LaneMask{1} << lane;
    places_open[static_cast<std::size_t>(lane)] = open;
  }
  if (places == 0) return;
  warp.chosen_place = {.lanes = places, .origin = origin, .pc = warp.PcOf(op), .open = places_open};
}

ChosenPlaces TakeChosenPlaces(CoreWarp& warp, const Decoded& op) {
  ChosenPlaces places = warp.chosen_place;
  warp.chosen_place.lanes = 0;
  if (places.pc != warp.PcOf(op)) places.lanes = 0;
  return places;
}

std::uint8_t NumberOf(Device& device, const ChosenPlaces& places) {
  return StoredChoiceNumber(device, {.origin = places.origin});
}

void SpreadChosenStore(CoreWarp& warp, const LaneAccess& access, std::uint32_t bytes,
                       const ChosenPlaces& places) {
  const std::uint8_t number = NumberOf(*warp.device, places);
  const MemoryRegion* last = nullptr;
  Stretch before;
  for (LaneMask rest = places.lanes & access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    MemoryRegion* const region = access.RegionOf(lane);
    if (region == nullptr) {
      const auto variable = LocalVariableAt(warp, lane, access.address[lane] & ~kWindowMask);
      if (!variable) continue;
      std::fill_n(warp.local_defined.data() + static_cast<std::uint64_t>(lane) * warp.local_stride +
                      variable->first,
                  variable->second, number);
      continue;
    }
    // What reaches an output is reported at once.
    if (region->defined == nullptr || region->is_output) continue;
    const Stretch meant =
        MeantBy(*region, static_cast<std::uint64_t>(access.at(lane) - region->data), bytes,
                places.open[static_cast<std::size_t>(lane)]);
    if (region == last && meant == before) continue;
    region->defined->SetChosen(meant.start, meant.end - meant.start, number);
    last = region;
    before = meant;
  }
}

void StoreAtChosenPlace(CoreWarp& warp, std::uint32_t pc, int lane, MemoryRegion& region,
                        std::uint64_t offset, std::uint64_t bytes, std::uint64_t open,
                        std::uint32_t origin) {
  if (region.is_output) {
    ReportChosenOutput(warp, pc, LaneMask{1} << lane, region, offset,
                       static_cast<std::uint32_t>(bytes), origin);
  } else if (region.defined != nullptr) {
    const Stretch meant = MeantBy(region, offset, bytes, open);
    region.defined->SetChosen(meant.start, meant.end - meant.start,
                              StoredChoiceNumber(*warp.device, {.origin = origin}));
  }
}

std::uint8_t StoredChoiceNumber(Device& device, StoredChoice choice) {
  auto& known = device.stored_choices;
  auto found = std::ranges::find(known, choice);
  if (found == known.end()) {
    if (known.size() == kMostStoredChoices) {
      found = std::prev(known.end());
    } else {
      known.push_back(choice);
      found = std::prev(known.end());
    }
  }
  return static_cast<std::uint8_t>(2 + (found - known.begin()));
}

StoredChoice StoredChoiceAt(const Device& device, std::uint8_t number) {
  const std::size_t index = number - std::size_t{2};
  return index < device.stored_choices.size() ? device.stored_choices[index] : StoredChoice{};
}

LoadedChoice ChoiceLoaded(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                          std::uint32_t offset, std::uint32_t bytes, LaneMask lanes) {
  LoadedChoice result;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MemoryRegion* const region = access.RegionOf(lane);
    if (region != nullptr && (region->defined == nullptr || !region->defined->HasChoices()))
      continue;
    bool unset = false;
    std::uint8_t number = 0;
    bool one = true;
    for (std::uint32_t byte = 0; byte < bytes; ++byte) {
      std::uint8_t found = 1;
      if (region == nullptr) {
        found = warp.local_defined[static_cast<std::uint64_t>(access.at(lane) - warp.local.data()) +
                                   offset + byte];
      } else if (region->defined != nullptr) {
        const auto at = static_cast<std::uint64_t>(access.at(lane) - region->data) + offset + byte;
        if (!region->defined->Defined(at, 1)) found = region->defined->Choice(at);
      }
      if (found == 0) unset = true;
      if (found < 2) continue;
      one = one && (number == 0 || number == found);
      number = found;
    }
    if (unset || number == 0) continue;
    const StoredChoice choice = StoredChoiceAt(*warp.device, number);
    result.chosen |= LaneMask{1} << lane;
    if (one && choice.whole_address) result.whole_address |= LaneMask{1} << lane;
    result.origin = choice.origin;
  }
  if (result.chosen != 0 && result.origin == kNoPc) {
    result.origin = warp.PcOf(op);
    NameChoice(warp, result.origin, {MachineChoice::Kind::kAddress, "the address of a buffer"});
  }
  return result;
}

void ReportChosenOutput(CoreWarp& warp, std::uint32_t pc, LaneMask lanes,
                        const MemoryRegion& output, std::uint64_t offset, std::uint32_t bytes,
                        std::uint32_t origin) {
  MemoryPlace place = PlaceIn(output, "global", output.base + offset, bytes);
  const std::string sink = fmt::format("the output {}[{}] depends", place.buffer, place.index);
  if (origin == kNoPc) {
    origin = pc;
    NameChoice(warp, origin, {MachineChoice::Kind::kAddress, "the address of a buffer"});
  }
  ReportChoice(warp, pc, lanes, sink, VerbOf(*warp.At(pc).source), origin, std::move(place));
}
}  // namespace assay::emu
