// Frames: register files and their constants.
#include <algorithm>

#include "validator/emu/scheduler.h"
#include "validator/emu/special.h"

namespace assay::emu {
namespace {

/// Words of one lane, of which the first has the value; bits beyond it are lost.
template <class Word, std::size_t kWords = 1>
void FillLanes(std::byte* slot, const std::uint64_t* lanes, LaneMask mask) {
  Word* const words = reinterpret_cast<Word*>(slot);
  if (kWords == 1 && mask == kAllLanes) {
    for (std::size_t lane = 0; lane < kWarpSize; ++lane)
      words[lane] = static_cast<Word>(lanes[lane]);
    return;
  }
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    words[kWords * lane] = static_cast<Word>(lanes[lane]);
    if constexpr (kWords > 1) words[kWords * lane + 1] = 0;
  }
}

void FillSlot(Frame& frame, const ConstantSlot& constant, const std::uint64_t* lanes,
              LaneMask mask) {
  std::byte* const slot = frame.slots + std::size_t{constant.slot} * kSlotBytes;
  switch (constant.bits) {
    case 16:
      return FillLanes<std::uint16_t>(slot, lanes, mask);
    case 32:
      return FillLanes<std::uint32_t>(slot, lanes, mask);
    case 64:
      return FillLanes<std::uint64_t>(slot, lanes, mask);
    default:
      return FillLanes<std::uint64_t, 2>(slot, lanes, mask);
  }
}

/// What a frame holds already: what is the same in all blocks of a launch, at any time.
enum class Filled : std::uint8_t { kNothing, kOfTheWarp };

void FillConstants(CoreWarp& warp, Frame& frame, Filled filled) {
  const Device& device = *warp.device;
  for (const ConstantSlot& constant : device.program.functions[frame.function].constants) {
    std::uint64_t lanes[kWarpSize];
    if (constant.kind == ConstantSlot::Kind::kSpecial) {
      if (filled == Filled::kOfTheWarp && IsOfTheWarp(constant.special)) continue;
      SpecialValues(warp, constant.special, constant.component, lanes);
      FillSlot(frame, constant, lanes, kAllLanes);
      continue;
    }
    if (filled == Filled::kOfTheWarp) continue;
    std::uint64_t value = constant.value;
    switch (constant.kind) {
      case ConstantSlot::Kind::kModuleSymbol:
        value += device.regions[device.module_regions[constant.index]].base;
        break;
      case ConstantSlot::Kind::kParamSymbol:
        value += device.regions[device.launch.params_region].base;
        break;
      case ConstantSlot::Kind::kFunction:
        value = kCodeWindow + (std::uint64_t{constant.index} + 1) * 16;
        break;
      default:
        break;
    }
    std::fill_n(lanes, kWarpSize, value);
    FillSlot(frame, constant, lanes, kAllLanes);
  }
}

// What registers hold that nothing was moved to: not zero, so that what is stored from them is seen in memory that is.
constexpr std::byte kUnset{0x6b};
// Of register files this large only what may be read before it is written is filled.
constexpr std::size_t kLargeFrame = 32'768;

void MarkRegistersUndefined(const FunctionCode& code, Frame& frame) {
  const std::size_t shadows = std::size_t{code.slot_count} + code.predicate_count;
  std::fill_n(frame.undefined, code.constant_slots, LaneMask{0});
  std::fill(frame.undefined + code.constant_slots, frame.undefined + shadows, kAllLanes);
  // The constant predicates.
  frame.undefined[code.slot_count] = 0;
  frame.undefined[code.slot_count + 1] = 0;
  std::fill_n(frame.partial, shadows, LaneMask{0});
  std::fill_n(frame.machine, shadows, LaneMask{0});
  std::fill_n(frame.origin, shadows, kNoPc);
}

}  // namespace

Frame& FrameOf(CoreWarp& warp, std::uint32_t function, std::uint32_t depth) {
  for (const auto& frame : warp.frames) {
    if (frame->function == function && frame->depth == depth) return *frame;
  }
  const FunctionCode& code = warp.device->program.functions[function];
  auto frame = std::make_unique<Frame>();
  frame->function = function;
  frame->depth = depth;
  const std::size_t slot_bytes = std::size_t{code.slot_count} * kSlotBytes;
  const std::size_t shadows = std::size_t{code.slot_count} + code.predicate_count;
  const std::size_t bytes =
      kSlotBytes + slot_bytes + (code.predicate_count + 4 * shadows) * sizeof(std::uint32_t);
  // For small cases to fill all of it is much of what they take.
  const bool is_large = slot_bytes >= kLargeFrame;
  if (is_large) {
    frame->slots = warp.device->frames.Take(bytes);
  } else {
    frame->storage = std::make_unique_for_overwrite<std::byte[]>(bytes);
    const auto start = reinterpret_cast<std::uintptr_t>(frame->storage.get());
    frame->slots = frame->storage.get() + (kSlotBytes - start % kSlotBytes) % kSlotBytes;
  }
  frame->predicates = reinterpret_cast<LaneMask*>(frame->slots + slot_bytes);
  frame->undefined = frame->predicates + code.predicate_count;
  frame->partial = frame->undefined + shadows;
  frame->machine = frame->partial + shadows;
  frame->origin = frame->machine + shadows;
  if (is_large) {
    for (const Slot slot : code.unset)
      std::fill_n(frame->slots + std::size_t{slot} * kSlotBytes, kSlotBytes, kUnset);
  } else {
    std::fill_n(frame->slots, slot_bytes, kUnset);
  }
  std::fill_n(frame->predicates, code.predicate_count, LaneMask{0});
  frame->predicates[1] = kAllLanes;
  MarkRegistersUndefined(code, *frame);
  FillConstants(warp, *frame, Filled::kNothing);
  warp.device->memory_bytes += bytes;
  if (warp.device->memory_bytes > warp.device->execution.limits.max_memory_bytes) {
    warp.device->End(
        Stop::kResourceLimit,
        "the registers of the blocks that must be resident need more memory than the limit allows");
  }
  warp.frames.push_back(std::move(frame));
  return *warp.frames.back();
}

void RefreshSpecials(CoreWarp& warp, Frame& frame) {
  FillConstants(warp, frame, Filled::kOfTheWarp);
}

void ResetFrames(CoreWarp& warp) {
  for (const auto& frame : warp.frames) {
    MarkRegistersUndefined(warp.device->program.functions[frame->function], *frame);
    FillConstants(warp, *frame, Filled::kOfTheWarp);
    frame->allocated.fill(0);
    frame->blocks.clear();
  }
}

void PlaceFrameLocals(CoreWarp& warp, Frame& frame, LaneMask lanes) {
  for (const ConstantSlot& constant : warp.device->program.functions[frame.function].constants) {
    if (constant.kind != ConstantSlot::Kind::kLocalSymbol) continue;
    std::uint64_t values[kWarpSize];
    for (std::size_t lane = 0; lane < kWarpSize; ++lane)
      values[lane] = frame.base[lane] + constant.value;
    FillSlot(frame, constant, values, lanes);
  }
}

bool ReserveLocal(CoreWarp& warp, std::uint64_t bytes) {
  if (bytes > kMaxLocalBytes) return false;
  if (bytes <= warp.local_stride) return true;
  const std::uint64_t stride = std::max<std::uint64_t>(bytes, 2 * warp.local_stride);
  std::vector<std::byte> local(stride * kWarpSize);
  std::vector<std::uint8_t> defined(stride * kWarpSize);
  for (std::uint64_t lane = 0; lane < kWarpSize; ++lane) {
    std::copy_n(warp.local.begin() + static_cast<std::ptrdiff_t>(lane * warp.local_stride),
                warp.local_stride, local.begin() + static_cast<std::ptrdiff_t>(lane * stride));
    std::copy_n(warp.local_defined.begin() + static_cast<std::ptrdiff_t>(lane * warp.local_stride),
                warp.local_stride, defined.begin() + static_cast<std::ptrdiff_t>(lane * stride));
  }
  warp.device->memory_bytes += 2 * kWarpSize * (stride - warp.local_stride);
  warp.local = std::move(local);
  warp.local_defined = std::move(defined);
  warp.local_stride = stride;
  return true;
}

}  // namespace assay::emu
