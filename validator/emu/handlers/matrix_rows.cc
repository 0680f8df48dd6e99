// ldmatrix and stmatrix (PTX ISA 9.7.14.5.15, 9.7.14.5.16): 8 by 8 matrices between shared memory
// and registers. Lane 8 j + i gives the address of row i of matrix j, 16 bytes.
#include <bit>
#include <cstring>

#include "validator/emu/handlers/fragment_memory.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/semantics/matrix_layout.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

constexpr std::size_t kRowBytes = 16;

/// The lanes whose addresses `count` matrices take.
LaneMask RowLanes(const CoreWarp& warp, std::size_t count) {
  return warp.exec & (count >= 4 ? kAllLanes : (LaneMask{1} << 8 * count) - 1);
}

struct Pair {
  std::size_t lane;  ///< That gave the row.
  std::size_t byte;  ///< Of the element in the row.
};
Pair ElementAt(std::size_t matrix, int lane, int element, bool transposed) {
  const MatrixPlace place = LdmatrixPlace(lane, element, transposed);
  return {8 * matrix + static_cast<std::size_t>(place.row),
          2 * static_cast<std::size_t>(place.column)};
}

void LoadMatrices(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::size_t count = op.destinations;
  const bool transposed = op.source->Has(Mod::kTrans);
  const LaneMask lanes = RowLanes(warp, count);
  LaneAccess access;
  const DecodedOperand& address = op.operands[count];
  Addresses(warp, address, access);
  CheckAddressDefined(warp, op, address, lanes);
  if (!Resolve(warp, op, FragmentSpace(*op.source), lanes, kRowBytes, AccessType::kLoad, access))
    return;
  std::byte rows[kWarpSize * kRowBytes] = {};
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(rows + static_cast<std::size_t>(lane) * kRowBytes, access.at(lane), kRowBytes);
  }
  // By element of the row: the lanes in whose row it is undefined.
  LaneMask undefined[8] = {};
  if (warp.engine->track_defined && UndefinedLanes(warp, access, 0, kRowBytes) != 0) {
    for (std::uint32_t e = 0; e < 8; ++e) undefined[e] = UndefinedLanes(warp, access, 2 * e, 2);
  }
  if (warp.engine->race) ReportAccess(warp, op, access, kRowBytes, {.element_bytes = 2});
  for (std::size_t j = 0; j < count; ++j) {
    const DecodedOperand& target = op.operands[j];
    if (target.kind != DecodedOperand::Kind::kSlot) continue;
    auto* const d = warp.Lanes<std::uint16_t>(target.slot);
    LaneMask bad = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((warp.exec >> lane & 1) == 0) continue;
      for (int e = 0; e < 2; ++e) {
        const Pair at = ElementAt(j, lane, e, transposed);
        std::memcpy(d + 2 * lane + e, rows + at.lane * kRowBytes + at.byte, 2);
        if ((undefined[at.byte / 2] >> at.lane & 1) != 0) bad |= LaneMask{1} << lane;
      }
    }
    SetUndefined(warp, op, target, bad);
  }
}

void StoreMatrices(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::size_t count = op.operand_count - 1u;
  const bool transposed = op.source->Has(Mod::kTrans);
  const LaneMask lanes = RowLanes(warp, count);
  LaneAccess access;
  Addresses(warp, op.operands[0], access);
  CheckAddressDefined(warp, op, op.operands[0], lanes);
  if (!Resolve(warp, op, FragmentSpace(*op.source), lanes, kRowBytes, AccessType::kStore, access))
    return;
  std::byte rows[kWarpSize * kRowBytes] = {};
  LaneMask undefined[8] = {};
  std::uint32_t origin = kNoPc;
  for (std::size_t j = 0; j < count; ++j) {
    const DecodedOperand& source = op.operands[1 + j];
    const auto* const s = warp.Lanes<std::uint16_t>(source.slot);
    const LaneMask bad = UndefinedOf(warp, source);
    if (bad != 0) origin = warp.frame->origin[source.shadow];
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < 2; ++e) {
        const Pair at = ElementAt(j, lane, e, transposed);
        std::memcpy(rows + at.lane * kRowBytes + at.byte, s + 2 * lane + e, 2);
        if ((bad >> lane & 1) != 0) undefined[at.byte / 2] |= LaneMask{1} << at.lane;
      }
    }
  }
  if (warp.engine->race) {
    const std::byte* values[kRowBytes / 2];
    for (std::size_t e = 0; e < std::size(values); ++e) values[e] = rows + 2 * e;
    ReportAccess(warp, op, access, kRowBytes,
                 {.kind = AccessKind::kWrite,
                  .element_bytes = 2,
                  .registers = values,
                  .register_bytes = kRowBytes});
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(access.at(lane), rows + static_cast<std::size_t>(lane) * kRowBytes, kRowBytes);
  }
  if (warp.engine->track_defined) {
    for (std::uint32_t e = 0; e < 8; ++e)
      MarkStored(warp, op, access, 2 * e, 2, undefined[e], origin);
  }
  warp.engine->last_progress = warp.engine->counters.steps;
}

bool IsMatrixRow(const Instruction& in) { return in.Has(Mod::kM8n8) && in.type() == Type::kB16; }

Handler ResolveLdmatrix(const Instruction& in, Decoded& decoded) {
  const std::size_t count = decoded.destinations;
  const bool fits = IsMatrixRow(in) && count >= 1 && count <= 4 &&
                    decoded.operand_count == count + 1 && AreRegisters(decoded, 0, count, 32);
  return fits ? AsFragmentHandler(decoded, &LoadMatrices) : nullptr;
}

Handler ResolveStmatrix(const Instruction& in, Decoded& decoded) {
  if (decoded.operand_count < 2) return nullptr;
  const std::size_t count = decoded.operand_count - 1u;
  const bool fits = IsMatrixRow(in) && count <= 4 && AreRegisters(decoded, 1, count, 32);
  return fits ? AsFragmentHandler(decoded, &StoreMatrices) : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kLdmatrix, &ResolveLdmatrix},
    {Opcode::kStmatrix, &ResolveStmatrix},
};

}  // namespace

std::span<const ResolverRow> MatrixRowRows() { return kRows; }

}  // namespace assay::emu
