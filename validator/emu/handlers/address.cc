// Conversions of addresses: cvta, isspacep, mapa, getctarank (PTX ISA 9.7.9).
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/memory.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

// cvta: shared and local addresses get or lose their window; the other spaces' addresses are
// generic already. Null stays null only for spaces without a window, as on hardware.
template <class T, bool kToSpace>
void Convert(Warp& warp, const Decoded& op) {
  T* const d = warp.Lanes<T>(op.d);
  const T* const a = warp.Lanes<T>(op.a);
  const auto window = static_cast<T>(op.immediate);
  const auto offset = static_cast<T>(op.operands[1].offset);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) == 0) continue;
    const auto value = static_cast<T>(a[lane] + offset);
    d[lane] = kToSpace ? static_cast<T>(value - window) : static_cast<T>(value + window);
  }
}

bool IsShared(Space space) {
  return space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster;
}

Handler ResolveCvta(const Instruction& in, Decoded& decoded) {
  if (decoded.operand_count != 2) return nullptr;
  decoded.immediate = IsShared(in.space)          ? kSharedWindow
                      : in.space == Space::kLocal ? kLocalWindow
                                                  : 0;
  const bool to = in.Has(Mod::kTo);
  if (decoded.operands[0].bits == 64 && decoded.operands[1].bits == 64) {
    return to ? &Convert<std::uint64_t, true> : &Convert<std::uint64_t, false>;
  }
  if (decoded.operands[0].bits == 32 && decoded.operands[1].bits == 32) {
    return to ? &Convert<std::uint32_t, true> : &Convert<std::uint32_t, false>;
  }
  return nullptr;
}

void IsSpace(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const auto* const a = warp.Lanes<std::uint64_t>(op.a);
  LaneMask result = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t window = a[lane] & kWindowMask;
    const MemoryRegion* const region = GenericRegion(*warp.device, a[lane]);
    bool is = false;
    switch (op.source->space) {
      case Space::kShared:
      case Space::kSharedCta:
        is = window == kSharedWindow && (a[lane] & 0xffffffffu) >> kSharedBlockBits == 0;
        break;
      case Space::kSharedCluster:
        is = window == kSharedWindow;
        break;
      case Space::kLocal:
        is = window == kLocalWindow;
        break;
      case Space::kConst:
        is = region != nullptr && region->kind == MemoryRegion::Kind::kConst;
        break;
      case Space::kParam:
      case Space::kParamEntry:
        is = region != nullptr && region->kind == MemoryRegion::Kind::kParams;
        break;
      default:
        is = window != kSharedWindow && window != kLocalWindow &&
             (region == nullptr || (region->kind != MemoryRegion::Kind::kConst &&
                                    region->kind != MemoryRegion::Kind::kParams));
        break;
    }
    if (is) result |= LaneMask{1} << lane;
  }
  LaneMask& d = warp.predicates[op.d];
  d = (d & ~warp.exec) | (result & warp.exec);
}

Handler ResolveIsspacep(const Instruction&, Decoded& decoded) {
  const bool fits = decoded.operand_count == 2 &&
                    decoded.operands[0].kind == DecodedOperand::Kind::kPredicate &&
                    decoded.operands[1].bits == 64;
  return fits ? &IsSpace : nullptr;
}

/// mapa: the address of the same variable in another block of the cluster.
template <class T>
void MapAddress(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  T* const d = warp.Lanes<T>(op.operands[0].slot);
  const T* const a = warp.Lanes<T>(op.operands[1].slot);
  const auto* const rank = warp.Lanes<std::uint32_t>(op.operands[2].slot);
  const auto offset = static_cast<T>(op.operands[1].offset);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) == 0) continue;
    const auto mapped = (a[lane] + offset) & ~static_cast<T>(0xffffffffu & ~kSharedOffsetMask);
    d[lane] = static_cast<T>(
        mapped |
        static_cast<T>(((std::uint64_t{rank[lane]} + 1) << kSharedBlockBits) & 0xffffffffu));
  }
}

Handler ResolveMapa(const Instruction&, Decoded& decoded) {
  if (decoded.operand_count != 3 || decoded.operands[2].bits != 32) return nullptr;
  const int bits = decoded.operands[0].bits;
  if (decoded.operands[1].bits != bits) return nullptr;
  return bits == 64   ? &MapAddress<std::uint64_t>
         : bits == 32 ? &MapAddress<std::uint32_t>
                      : nullptr;
}

void GetRank(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  auto* const d = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  const bool wide = op.operands[1].bits == 64;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) == 0) continue;
    const std::uint64_t address = wide ? warp.Lanes<std::uint64_t>(op.operands[1].slot)[lane]
                                       : warp.Lanes<std::uint32_t>(op.operands[1].slot)[lane];
    const auto rank = static_cast<std::uint32_t>((address & 0xffffffffu) >> kSharedBlockBits);
    d[lane] = rank == 0 ? warp.block->cluster_rank : rank - 1;
  }
}

Handler ResolveGetctarank(const Instruction&, Decoded& decoded) {
  return decoded.operand_count == 2 && decoded.operands[0].bits == 32 ? &GetRank : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kCvta, &ResolveCvta},
    {Opcode::kIsspacep, &ResolveIsspacep},
    {Opcode::kMapa, &ResolveMapa},
    {Opcode::kGetctarank, &ResolveGetctarank},
};

}  // namespace

std::span<const ResolverRow> AddressRows() { return kRows; }

}  // namespace assay::emu
