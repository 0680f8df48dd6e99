#include "validator/emu/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "validator/emu/handlers/address_lanes.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/overflow.h"
#include "validator/emu/watch/writers.h"

namespace assay::emu {
namespace {

using ptx::Space;

/// Generic and global space, seen through the window that an address lies in.
enum class Window : std::uint8_t { kRegion, kShared, kLocal };

Window WindowOf(Space space, std::uint64_t address) {
  switch (space) {
    case Space::kShared:
    case Space::kSharedCta:
    case Space::kSharedCluster:
      return Window::kShared;
    case Space::kLocal:
      return Window::kLocal;
    case Space::kParam:
    case Space::kParamEntry:
    case Space::kParamFunc:
      // Parameters of functions and calls lie in the frame, those of the kernel in a region.
      return address < (std::uint64_t{1} << kAllocationBits) ? Window::kLocal : Window::kRegion;
    case Space::kGeneric:
      if ((address & kWindowMask) == kSharedWindow) return Window::kShared;
      if ((address & kWindowMask) == kLocalWindow) return Window::kLocal;
      return Window::kRegion;
    default:
      return Window::kRegion;
  }
}

MemoryRegion* RegionOf(CoreWarp& warp, Space space, std::uint64_t address) {
  if (WindowOf(space, address) == Window::kShared)
    return SharedRegion(*warp.block, address & 0xffffffffu);
  return GenericRegion(*warp.device, address);
}

std::string_view TypeName(AccessType type) {
  return type == AccessType::kLoad    ? "read"
         : type == AccessType::kStore ? "write"
                                      : "atomic access";
}

std::string CauseOfOutside(const MemoryPlace& place) {
  if (place.buffer.empty() && place.address < 4096)
    return "a null pointer, or a small offset from one";
  if (place.buffer.empty()) return {};
  const auto elements = static_cast<std::int64_t>(place.elements);
  if (place.index < 0) return fmt::format("index {} is negative", place.index);
  if (place.index >= elements) {
    const std::int64_t past = place.index - elements;
    if (past < 32)
      return fmt::format(
          "{} element{} past the end: a guard for the tail is missing, or a length is too "
          "large",
          past + 1, past == 0 ? "" : "s");
  }
  return {};
}

/// Is that in the shared memory of a block of the cluster that has ended?
bool IsOfEndedBlock(const CoreWarp& warp, Space space, std::uint64_t address) {
  if (WindowOf(space, address) != Window::kShared) return false;
  const std::uint64_t rank = (address & ~kWindowMask) >> kSharedBlockBits;
  return rank != 0 && rank <= warp.block->members.size() &&
         ClusterMember(*warp.block, rank - 1) == nullptr;
}

/// Why the first lane that fails does so, and how many fail the same way. The run ends, but for loads
/// out of bounds while races are looked for: the lanes of those are returned, whose registers may hold
/// anything from now on, and keep what they have.
LaneMask Fault(CoreWarp& warp, const Decoded& op, Space space, LaneMask lanes, std::uint32_t bytes,
               std::uint32_t alignment, AccessType type, const LaneAccess& access) {
  Device& device = *warp.device;
  const auto classify = [&](int lane) -> FindingKind {
    const std::uint64_t address = access.address[lane];
    if (WindowOf(space, address) == Window::kLocal) {
      const std::uint64_t local = address & ~kWindowMask;
      if (!InLocalVariable(warp, lane, local, bytes)) return FindingKind::kOutOfBounds;
      return local % alignment != 0 ? FindingKind::kMisaligned : FindingKind::kTrap;
    }
    const MemoryRegion* const region = RegionOf(warp, space, address);
    if (region == nullptr && IsOfEndedBlock(warp, space, address))
      return FindingKind::kUseAfterFree;
    if (region == nullptr) return FindingKind::kOutOfBounds;
    if (region->freed) return FindingKind::kUseAfterFree;
    const std::uint64_t offset =
        (WindowOf(space, address) == Window::kShared ? address & kSharedOffsetMask : address) -
        region->base;
    if (region->size < bytes || offset > region->size - bytes) return FindingKind::kOutOfBounds;
    if (address % alignment != 0) return FindingKind::kMisaligned;
    if (type != AccessType::kLoad && !region->writable) {
      return region->kind == MemoryRegion::Kind::kBuffer ? FindingKind::kWriteToInput
                                                         : FindingKind::kWriteToConstant;
    }
    return FindingKind::kTrap;  // This lane is in order.
  };
  LaneMask failing = 0;
  FindingKind kind = FindingKind::kTrap;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const FindingKind now = classify(lane);
    if (now == FindingKind::kTrap) continue;
    if (failing == 0) kind = now;
    if (now == kind) failing |= LaneMask{1} << lane;
  }
  ASSAY_CHECK(failing != 0, "a lane that failed must fail again");
  const bool goes_on = kind == FindingKind::kOutOfBounds && type == AccessType::kLoad &&
                       op.source->opcode == ptx::Opcode::kLd && device.race != nullptr;
  if (goes_on && device.faulted != 0) return failing;
  const int first = FirstLane(failing);
  MemoryPlace place = PlaceOf(warp, space, access.address[first], first, bytes);
  const std::string what = place.buffer.empty() ? fmt::format("address {:#x}", place.address)
                                                : fmt::format("{}[{}]", place.buffer, place.index);
  std::string message;
  switch (kind) {
    case FindingKind::kOutOfBounds:
      message = place.buffer.empty()
                    ? fmt::format("{} of {} bytes at {}, which belongs to no allocation",
                                  TypeName(type), bytes, what)
                    : fmt::format("{} of {} bytes at {}, outside of '{}', which has {} elements",
                                  TypeName(type), bytes, what, place.buffer, place.elements);
      break;
    case FindingKind::kMisaligned:
      message = fmt::format(
          "{} of {} bytes at {} needs an address that is a multiple of {}, but it is {:#x}",
          TypeName(type), bytes, what, alignment, access.address[first]);
      break;
    case FindingKind::kUseAfterFree:
      message = IsOfEndedBlock(warp, space, access.address[first])
                    ? fmt::format("{} of {} bytes in the shared memory of a block that has ended",
                                  TypeName(type), bytes)
                    : fmt::format("{} of {} after its memory was freed", TypeName(type), what);
      break;
    case FindingKind::kWriteToInput:
      message =
          fmt::format("{} changes {}, but '{}' is an input", TypeName(type), what, place.buffer);
      break;
    default:
      message = fmt::format("{} changes {}, which is constant", TypeName(type), what);
      break;
  }
  std::string cause = kind == FindingKind::kOutOfBounds ? CauseOfOutside(place) : std::string();
  if (kind == FindingKind::kOutOfBounds) {
    if (const auto index = FindWrappedIndex(warp, op, first)) {
      kind = FindingKind::kIndexOverflow;
      message += fmt::format("; the index wrapped: {} does not fit into 32 bits and became {}",
                             index->expression, index->wrapped);
      cause = fmt::format("the index is {} 32 bits at {}{}{}: {}",
                          index->cut ? "cut down to" : "computed in", LineOf(device, index->pc),
                          index->inputs.empty() ? "" : " from ", index->inputs,
                          index->cut ? "keep it in 64 bits" : "widen one factor to 64 bits first");
    }
  }
  if (kind == FindingKind::kMisaligned) {
    cause =
        "a vector access to a row whose length is not a multiple of the vector, or a misaligned "
        "base";
  }
  const bool has_ended =
      kind == FindingKind::kUseAfterFree && IsOfEndedBlock(warp, space, access.address[first]);
  Report1(warp, kind, warp.PcOf(op), failing, std::move(message), VerbOf(*op.source),
          std::move(place), std::string(has_ended ? kMissingLife : ""), std::move(cause));
  if (goes_on) {
    device.faulted = std::max<std::uint64_t>(1, device.counters.steps);
    device.fault = Name(kind);
    device.findings.OnlyRaces();
    return failing;
  }
  device.End(Stop::kFault, std::string(Name(kind)));
  warp.outcome = Outcome::kStop;
  return 0;
}

/// Before lanes access a buffer that is not filled yet. Few are: out of the way of all others.
[[gnu::noinline]] void TouchLanes(const LaneAccess& access, MemoryRegion& region,
                                  std::uint32_t bytes) {
  const auto data = reinterpret_cast<std::uintptr_t>(region.data);
  if (access.dense) {
    region.lazy->Touch(access.pointer[0] - data, std::uint64_t{kWarpSize} * bytes);
    return;
  }
  const PointerSpan span = SpanOfPointersBest(access.pointer, access.lanes);
  const std::uint64_t first = span.least - data;
  const std::uint64_t last = span.greatest - data + bytes - 1;
  // No page between these two that none of the lanes gets to: such a one stays as it is.
  if (last / LazyFill::kPageBytes - first / LazyFill::kPageBytes <= 1)
    return region.lazy->Touch(first, last - first + 1);
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1)
    region.lazy->Touch(access.pointer[std::countr_zero(rest)] - data, bytes);
}

}  // namespace

MemoryRegion* SharedRegion(Block& block, std::uint64_t address) {
  Device& device = *block.device;
  Block* owner = &block;
  if (const std::uint64_t rank = address >> kSharedBlockBits; rank != 0) {
    owner = ClusterMember(block, rank - 1);
    if (owner == nullptr) return nullptr;
    address &= kSharedOffsetMask;
  }
  const std::vector<SharedVariable>& variables = device.program.shared;
  const std::uint64_t index = address >> kSharedVariableBits;
  if (index >= 1 && index <= variables.size()) return &owner->shared[index - 1];
  // The compact layout: variables side by side, below the first variable's own range.
  for (std::size_t i = 0; i < variables.size(); ++i) {
    MemoryRegion& region = owner->shared[i];
    if (variables[i].address < (std::uint64_t{1} << kSharedVariableBits) &&
        address >= region.base && address - region.base < region.size) {
      return &region;
    }
  }
  return nullptr;
}

MemoryRegion* GenericRegion(Device& device, std::uint64_t address) {
  const std::uint64_t number = address >> kAllocationBits;
  if (number == 0 || number >= device.regions.size()) return nullptr;
  MemoryRegion& region = device.regions[number];
  return region.kind == MemoryRegion::Kind::kNone ? nullptr : &region;
}

void TrackRegion(Device& device, MemoryRegion& region, std::uint32_t number, std::uint64_t misalign,
                 bool initially_defined) {
  region.base = (std::uint64_t{number} << kAllocationBits) + kAllocationBase + misalign;
  region.race_region = device.next_race_region++;
  if (device.track_defined) {
    device.maps.push_back(std::make_unique<DefinedMap>(region.size, initially_defined));
    region.defined = device.maps.back().get();
  }
}

std::uint32_t AddRegion(Device& device, MemoryRegion region, std::uint64_t misalign,
                        bool initially_defined) {
  if (device.regions.empty()) device.regions.emplace_back();
  const auto number = static_cast<std::uint32_t>(device.regions.size());
  TrackRegion(device, region, number, misalign, initially_defined);
  device.regions.push_back(std::move(region));
  return number;
}

namespace {

/// A local variable or stack block as one lane sees it, and what makes it another lane's as well.
struct LocalPlace {
  std::uint64_t start = 0, end = 0;
  const Frame* frame = nullptr;  ///< Null where it is this lane's alone.
  std::uint32_t base = 0;        ///< Of `frame` in the lane's local memory.
  std::uint32_t return_pc = 0;   ///< Of the warp's frame, where `frame` is its caller.

  /// Is this the lane's too, and are the bytes in it?
  bool Holds(const CoreWarp& warp, int lane, std::uint64_t address, std::uint32_t bytes) const {
    const auto at = static_cast<std::size_t>(lane);
    return frame != nullptr && frame->base[at] == base && address >= start &&
           address + bytes <= end &&
           (frame == warp.frame || warp.frame->return_pc[at] == return_pc);
  }
};

/// The variable of the lane's frames that holds the bytes.
std::optional<LocalPlace> LocalPlaceOf(const CoreWarp& warp, int lane, std::uint64_t address,
                                       std::uint32_t bytes) {
  // The caller's frames as well: pointers to locals are handed down.
  const auto at = static_cast<std::size_t>(lane);
  const std::uint32_t top = warp.frame->depth;
  std::uint32_t depth = top;
  const Frame* frame = warp.frame;
  while (true) {
    const FunctionCode& code = warp.device->program.functions[frame->function];
    const std::uint64_t base = frame->base[at];
    if (address >= base && address < base + code.frame_bytes + frame->allocated[at]) {
      if (const PlacedVariable* const variable = code.FrameVariableAt(address - base)) {
        const std::uint64_t start = base + variable->offset;
        if (address + bytes > start + variable->bytes) return std::nullopt;
        return LocalPlace{.start = start,
                          .end = start + variable->bytes,
                          .frame = depth + 1 >= top ? frame : nullptr,
                          .base = frame->base[at],
                          .return_pc = warp.frame->return_pc[at]};
      }
      for (const StackBlock& block : frame->blocks) {
        const std::uint64_t end = std::uint64_t{block.start} + block.bytes;
        if (block.lane == static_cast<std::uint32_t>(lane) && address >= block.start &&
            address + bytes <= end)
          return LocalPlace{.start = block.start, .end = end};
      }
      return std::nullopt;
    }
    if (depth == 0) return std::nullopt;
    // The frame that called this one, for this lane: the function that the return address lies in.
    const std::uint32_t caller = warp.device->program.function_of[frame->return_pc[at] - 1];
    --depth;
    const auto found = std::ranges::find_if(warp.frames, [&](const auto& other) {
      return other->depth == depth && other->function == caller;
    });
    if (found == warp.frames.end()) return std::nullopt;
    frame = found->get();
  }
}

}  // namespace

bool InLocalVariable(const CoreWarp& warp, int lane, std::uint64_t address, std::uint32_t bytes) {
  return LocalPlaceOf(warp, lane, address, bytes).has_value();
}

void Addresses(CoreWarp& warp, const DecodedOperand& operand, LaneAccess& access) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (operand.bits == 64) {
    const auto* const base = warp.Lanes<std::uint64_t>(operand.slot);
    for (int i = 0; i < kWarpSize; ++i) access.address[i] = base[i] + offset;
  } else {
    const auto* const base = warp.Lanes<std::uint32_t>(operand.slot);
    // 32-bit addresses wrap at 32 bits.
    for (int i = 0; i < kWarpSize; ++i)
      access.address[i] = static_cast<std::uint32_t>(base[i] + offset);
  }
}

RegionPlace RegionPlaceOf(CoreWarp& warp, Space space, std::uint64_t address, std::uint64_t bytes) {
  const Window window = WindowOf(space, address);
  if (window == Window::kLocal) return {};
  MemoryRegion* const region = RegionOf(warp, space, address);
  if (region == nullptr || region->freed || region->size < bytes) return {};
  const std::uint64_t offset =
      (window == Window::kShared ? address & kSharedOffsetMask : address) - region->base;
  if (offset > region->size - bytes) return {};
  return {region, offset};
}

std::byte* HostAddress(CoreWarp& warp, Space space, std::uint64_t address, int lane,
                       std::uint32_t bytes) {
  if (WindowOf(space, address) == Window::kLocal) {
    const std::uint64_t local = address & ~kWindowMask;
    if (!InLocalVariable(warp, lane, local, bytes)) return nullptr;
    return warp.local.data() + static_cast<std::uint64_t>(lane) * warp.local_stride + local;
  }
  const RegionPlace place = RegionPlaceOf(warp, space, address, bytes);
  return place.region == nullptr ? nullptr : place.region->data + place.offset;
}

bool Resolve(CoreWarp& warp, const Decoded& op, Space space, LaneMask lanes, std::uint32_t bytes,
             AccessType type, LaneAccess& access, std::uint32_t alignment) {
  if (alignment == 0) alignment = bytes;
  access.lanes = lanes;
  access.dense = access.same = false;
  access.local = false;
  access.common = nullptr;
  if (lanes == 0) return true;
  warp.last_access = warp.PcOf(op);
  warp.looked |= op.flags & kFlagOrderMatters;
  const int first = std::countr_zero(lanes);
  const Window window = WindowOf(space, access.address[first]);
  if (window != Window::kLocal) [[likely]] {
    MemoryRegion* const region = RegionOf(warp, space, access.address[first]);
    if (region != nullptr && !region->freed && region->size >= bytes &&
        (type == AccessType::kLoad || region->writable)) [[likely]] {
      // Addresses relative to the region; what lies below it becomes huge. Shared addresses may
      // come with their window.
      const std::uint64_t base = window == Window::kShared
                                     ? (access.address[first] & ~kSharedOffsetMask) + region->base
                                     : region->base;
      const AddressCheck check = CheckAddressesBest(
          access.address, lanes, bytes,
          {base, region->size - bytes, reinterpret_cast<std::uintptr_t>(region->data)},
          access.pointer);
      if (check.inside && (check.low & (alignment - 1)) == 0) [[likely]] {
        access.dense = check.dense;
        access.same = check.same;
        access.common = region;
        access.least = check.least;
        access.greatest = check.greatest;
        if (region->lazy != nullptr && !(warp.device->drop_stores && type == AccessType::kStore))
            [[unlikely]]
          TouchLanes(access, *region, bytes);
        if (type != AccessType::kLoad && warp.device->writers != nullptr) [[unlikely]]
          warp.device->writers->Note(warp, access, bytes);
        return true;
      }
    }
  }
  const auto without_faults = [&] {
    const LaneMask gone = Fault(warp, op, space, lanes, bytes, alignment, type, access);
    return gone != 0 && Resolve(warp, op, space, lanes & ~gone, bytes, type, access, alignment);
  };
  // Lane by lane: lanes in several regions, local memory, or a fault.
  LocalPlace place;  // Of a lane before, which is mostly that of the next as well.
  for (int lane = 0; lane < kWarpSize; ++lane) {
    access.region[lane] = nullptr;
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t address = access.address[lane];
    const Window lane_window = WindowOf(space, address);
    if (lane_window == Window::kLocal) {
      const std::uint64_t local = address & ~kWindowMask;
      if (!place.Holds(warp, lane, local, bytes)) {
        const std::optional<LocalPlace> found = LocalPlaceOf(warp, lane, local, bytes);
        if (!found) return without_faults();
        place = *found;
      }
      if (local % alignment != 0) return without_faults();
      access.pointer[lane] = reinterpret_cast<std::uintptr_t>(
          warp.local.data() + static_cast<std::uint64_t>(lane) * warp.local_stride + local);
      access.local = true;
      continue;
    }
    MemoryRegion* const region = RegionOf(warp, space, address);
    const std::uint64_t plain =
        lane_window == Window::kShared ? address & kSharedOffsetMask : address;
    if (region == nullptr || region->freed || region->size < bytes ||
        plain - region->base > region->size - bytes || address % alignment != 0 ||
        (type != AccessType::kLoad && !region->writable)) {
      return without_faults();
    }
    access.pointer[lane] = reinterpret_cast<std::uintptr_t>(region->data + (plain - region->base));
    access.region[lane] = region;
    if (region->lazy != nullptr) region->lazy->Touch(plain - region->base, bytes);
  }
  if (type != AccessType::kLoad && warp.device->writers != nullptr)
    warp.device->writers->Note(warp, access, bytes);
  return true;
}

}  // namespace assay::emu
