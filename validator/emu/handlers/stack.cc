// alloca, stacksave, stackrestore (PTX ISA 9.7.17): local memory that a function takes while it
// runs. It lies behind the frame's own variables, so that frames of what is called lie behind it,
// and goes when the function returns.
#include <algorithm>

#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Opcode;

constexpr std::uint64_t kDefaultAlignment = 8;

std::uint64_t EndOfVariables(const CoreWarp& warp, std::size_t lane) {
  return warp.frame->base[lane] + warp.device->program.functions[warp.frame->function].frame_bytes;
}

void Overflow(CoreWarp& warp, const Decoded& op, LaneMask lanes) {
  Report1(warp, FindingKind::kTrap, warp.PcOf(op), lanes, "alloca overflows the stack", "alloca");
  warp.device->End(Stop::kFault, "stack overflow");
  warp.outcome = Outcome::kStop;
}

template <class T>
void Allocate(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  T* const d = warp.Lanes<T>(op.d);
  const T* const sizes = warp.Lanes<T>(op.a);
  Frame& frame = *warp.frame;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) == 0) continue;
    const std::uint64_t size = sizes[lane];
    const std::uint64_t end = EndOfVariables(warp, lane);
    const std::uint64_t start =
        (end + frame.allocated[lane] + op.immediate - 1) / op.immediate * op.immediate;
    if (size > kMaxLocalBytes || !ReserveLocal(warp, start + size + kFrameGap))
      return Overflow(warp, op, LaneMask{1} << lane);
    std::fill_n(warp.local_defined.data() + lane * warp.local_stride + start, size + kFrameGap,
                std::uint8_t{0});
    frame.blocks.push_back({static_cast<std::uint32_t>(lane), static_cast<std::uint32_t>(start),
                            static_cast<std::uint32_t>(size)});
    frame.allocated[lane] = static_cast<std::uint32_t>(start + size + kFrameGap - end);
    d[lane] = static_cast<T>(start);
  }
}

template <class T>
void Save(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  T* const d = warp.Lanes<T>(op.d);
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) != 0)
      d[lane] = static_cast<T>(EndOfVariables(warp, lane) + warp.frame->allocated[lane]);
  }
}

/// A value that no stacksave of this frame gave moves nothing but the bound that it names.
template <class T>
void Restore(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const T* const tops = warp.Lanes<T>(op.a == kNoSlot ? op.d : op.a);
  Frame& frame = *warp.frame;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) == 0) continue;
    const std::uint64_t end = EndOfVariables(warp, lane);
    const std::uint64_t top =
        std::clamp<std::uint64_t>(tops[lane], end, end + frame.allocated[lane]);
    frame.allocated[lane] = static_cast<std::uint32_t>(top - end);
    std::erase_if(frame.blocks, [&](const StackBlock& block) {
      return block.lane == lane && block.start >= top;
    });
  }
}

bool IsPowerOfTwo(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

Handler ResolveAlloca(const Instruction& in, Decoded& decoded) {
  decoded.flags |= kFlagMemory;
  decoded.immediate = kDefaultAlignment;
  if (in.operands.size() == 3) decoded.immediate = in.operands[2].bits;
  constexpr std::uint64_t kMostAlignment = 1 << 20;
  if (!IsPowerOfTwo(decoded.immediate) || decoded.immediate > kMostAlignment) return nullptr;
  return decoded.operands[0].bits == 64 ? &Allocate<std::uint64_t> : &Allocate<std::uint32_t>;
}

Handler ResolveSave(const Instruction&, Decoded& decoded) {
  return decoded.operands[0].bits == 64 ? &Save<std::uint64_t> : &Save<std::uint32_t>;
}

Handler ResolveRestore(const Instruction&, Decoded& decoded) {
  return decoded.operands[0].bits == 64 ? &Restore<std::uint64_t> : &Restore<std::uint32_t>;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kAlloca, &ResolveAlloca},
    {Opcode::kStacksave, &ResolveSave},
    {Opcode::kStackrestore, &ResolveRestore},
};

}  // namespace

std::span<const ResolverRow> StackRows() { return kRows; }

}  // namespace assay::emu
