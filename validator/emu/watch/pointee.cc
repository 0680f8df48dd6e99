#include "validator/emu/watch/pointee.h"

#include <algorithm>
#include <bit>

#include "validator/emu/memory.h"

namespace assay::emu {
namespace {

/// cudaMalloc and module variables: 256 bytes.
constexpr std::uint8_t kPromisedGlobal = 8;

Pointee InRegion(const MemoryRegion* region, std::uint64_t address) {
  if (region == nullptr) return {};
  const bool global =
      region->kind == MemoryRegion::Kind::kBuffer || region->kind == MemoryRegion::Kind::kGlobal;
  return {.object = region,
          .region = region,
          .promised = global ? kPromisedGlobal : region->promised_bits,
          .inside = address - region->base < region->size,
          .narrow = region->kind == MemoryRegion::Kind::kShared};
}

/// Local memory is one object to its thread: where variables lie in a frame is PTX's business. An
/// address keeps the alignment of what it points into.
Pointee InLocal(CoreWarp& warp, int lane, std::uint64_t address) {
  Pointee pointee{
      .object = &warp.local, .promised = kPromisedLocal, .inside = true, .narrow = true};
  const FunctionCode& code = warp.device->program.functions[warp.frame->function];
  const std::uint64_t base = warp.frame->base[static_cast<std::size_t>(lane)];
  const auto promise = [&](std::uint64_t alignment) {
    constexpr int kMost = 8;  // Frames begin at multiples of 256 bytes.
    pointee.promised = static_cast<std::uint8_t>(
        std::clamp<int>(std::countr_zero(alignment), kPromisedLocal, kMost));
  };
  for (std::size_t i = 0; i < code.variables.size(); ++i) {
    const PlacedVariable& place = code.variables[i];
    if (place.where == PlacedVariable::Where::kFrame &&
        address - base - place.offset <= place.bytes)
      promise(code.function->variables[i].align);
  }
  for (const StackBlock& block : warp.frame->blocks) {
    if (block.lane == static_cast<std::uint32_t>(lane) && address - block.start <= block.bytes)
      promise(block.start);
  }
  return pointee;
}

}  // namespace

Pointee PointeeOf(CoreWarp& warp, std::uint8_t kinds, int lane, std::uint64_t value) {
  if ((kinds & kAddressGeneric) != 0 && value >> kAllocationBits != 0) {
    const std::uint64_t window = value & kWindowMask;
    if (window == kSharedWindow)
      return InRegion(SharedRegion(*warp.block, value & 0xffffffffu), value & kSharedOffsetMask);
    if (window == kLocalWindow) return InLocal(warp, lane, value & ~kWindowMask);
    if (window == kCodeWindow) return {.object = &warp.device->program, .inside = true};
    return InRegion(GenericRegion(*warp.device, value), value);
  }
  if (value >> 32 != 0) return {};
  if ((kinds & kAddressShared) != 0) {
    const Pointee shared = InRegion(SharedRegion(*warp.block, value), value & kSharedOffsetMask);
    if (shared.object != nullptr) return shared;
  }
  if ((kinds & kAddressLocal) != 0 && value >= kLocalBase) return InLocal(warp, lane, value);
  return {};
}

}  // namespace assay::emu
