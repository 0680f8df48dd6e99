// ldmatrix, stmatrix, wmma.load and wmma.store (PTX ISA 9.7.14.4, 9.7.14.5): matrix fragments
// between memory and registers.
//
// Definedness is kept by register, as everywhere: a register is undefined in the lanes for which a
// byte of it was.
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "validator/emu/handlers/fragment_memory.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/warp_memory.h"
#include "validator/emu/memory.h"
#include "validator/emu/semantics/matrix_layout.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

void SetUndefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& target,
                  const LaneBitsets& undefined) {
  if (!warp.device->track_defined || target.kind != DecodedOperand::Kind::kSlot) return;
  SetUndefinedBits(*warp.frame, target, warp.exec, undefined, warp.PcOf(op));
}

/// Of what was set undefined: all that is in no lane of `unset` is what the machine chose.
void SetClass(CoreWarp& warp, const DecodedOperand& target, LaneMask unset, std::uint32_t choice) {
  Frame& frame = *warp.frame;
  if (!warp.device->track_defined) return;
  const LaneMask undefined = frame.undefined[target.shadow] & warp.exec;
  frame.machine[target.shadow] |= undefined & ~unset;
  if (undefined != 0 && (undefined & unset) == 0) frame.origin[target.shadow] = choice;
}

/// The lanes in which some of the `bits` bits from bit `first` on are undefined.
LaneMask UndefinedOf(const CoreWarp& warp, const DecodedOperand& source, std::uint32_t first,
                     std::uint32_t bits) {
  if (!warp.device->track_defined) return 0;
  const LaneMask whole = warp.frame->undefined[source.shadow];
  if ((whole & warp.frame->partial[source.shadow]) == 0) return whole;
  LaneMask lanes = 0;
  for (LaneMask rest = whole; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t word = UndefinedBits(*warp.frame, source, lane) >> first;
    if (bits >= 64 ? word != 0 : (word & ((std::uint64_t{1} << bits) - 1)) != 0)
      lanes |= LaneMask{1} << lane;
  }
  return lanes;
}

/// Adds to `undefined`, in `lanes`, the `bits` bits from bit `first` on.
void AddBits(LaneBitsets& undefined, LaneMask lanes, std::uint32_t first, std::uint32_t bits) {
  const std::uint64_t ones = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1)
    undefined[static_cast<std::size_t>(std::countr_zero(rest))] |= ones << first;
}

// --- ldmatrix, stmatrix: lane 8 j + i gives the address of row i of matrix j, 16 bytes.
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

/// Of a matrix whose rows follow each other: the halves that the lanes take, two each.
std::array<std::uint8_t, 2 * kWarpSize> HalvesTaken(bool transposed) {
  std::array<std::uint8_t, 2 * kWarpSize> halves{};
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const Pair at = ElementAt(0, static_cast<int>(i / 2), static_cast<int>(i % 2), transposed);
    halves[i] = static_cast<std::uint8_t>((at.lane * kRowBytes + at.byte) / 2);
  }
  return halves;
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
  alignas(64) std::byte rows[kWarpSize * kRowBytes] = {};
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(rows + static_cast<std::size_t>(lane) * kRowBytes, access.at(lane), kRowBytes);
  }
  // By element of the row: the lanes in whose row it is undefined, and those in which the machine
  // chose it.
  LaneMask undefined[8] = {};
  LaneMask chosen[8] = {};
  const ChosenPlaces places = TakeChosenPlaces(warp, op);
  std::uint32_t choice = places.origin;
  if (warp.device->track_defined &&
      (places.lanes | UndefinedLanes(warp, access, 0, kRowBytes)) != 0) {
    for (std::uint32_t e = 0; e < 8; ++e) {
      undefined[e] = UndefinedLanes(warp, access, 2 * e, 2);
      const LoadedChoice loaded = ChoiceLoaded(warp, op, access, 2 * e, 2, undefined[e]);
      if (loaded.chosen != 0) choice = loaded.origin;
      chosen[e] = loaded.chosen | (places.lanes & lanes & ~undefined[e]);
      undefined[e] |= chosen[e];
    }
  }
  if (warp.device->race) ReportAccess(warp, op, access, kRowBytes, {.element_bytes = 2});
  const bool plain = warp.exec == kAllLanes &&
                     std::ranges::all_of(undefined, [](LaneMask mask) { return mask == 0; });
  static const std::array kTaken = {HalvesTaken(false), HalvesTaken(true)};
  for (std::size_t j = 0; j < count; ++j) {
    const DecodedOperand& target = op.operands[j];
    if (target.kind != DecodedOperand::Kind::kSlot) continue;
    auto* const d = warp.Lanes<std::uint16_t>(target.slot);
    if (plain) {
      std::uint16_t matrix[2 * kWarpSize];
      std::memcpy(matrix, rows + j * sizeof(matrix), sizeof(matrix));
      for (std::size_t i = 0; i < std::size(matrix); ++i) d[i] = matrix[kTaken[transposed][i]];
      if (warp.device->track_defined)
        emu::SetUndefined(*warp.frame, target.shadow, warp.exec, 0, kNoPc);
      continue;
    }
    LaneBitsets bad{};
    LaneMask unset = 0;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((warp.exec >> lane & 1) == 0) continue;
      for (int e = 0; e < 2; ++e) {
        const Pair at = ElementAt(j, lane, e, transposed);
        std::memcpy(d + 2 * lane + e, rows + at.lane * kRowBytes + at.byte, 2);
        if ((undefined[at.byte / 2] >> at.lane & 1) == 0) continue;
        AddBits(bad, LaneMask{1} << lane, 16 * static_cast<std::uint32_t>(e), 16);
        if ((chosen[at.byte / 2] >> at.lane & 1) == 0) unset |= LaneMask{1} << lane;
      }
    }
    SetUndefined(warp, op, target, bad);
    if (choice != kNoPc) SetClass(warp, target, unset, choice);
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
  LaneMask chosen[8] = {};
  std::uint32_t origin = kNoPc;
  for (std::size_t j = 0; j < count; ++j) {
    const DecodedOperand& source = op.operands[1 + j];
    const auto* const s = warp.Lanes<std::uint16_t>(source.slot);
    const LaneMask bad[2] = {UndefinedOf(warp, source, 0, 16), UndefinedOf(warp, source, 16, 16)};
    if ((bad[0] | bad[1]) != 0) origin = warp.frame->origin[source.shadow];
    const LaneMask by_machine = ChosenLanes(*warp.frame, source.shadow);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < 2; ++e) {
        const Pair at = ElementAt(j, lane, e, transposed);
        std::memcpy(rows + at.lane * kRowBytes + at.byte, s + 2 * lane + e, 2);
        if ((bad[e] >> lane & 1) == 0) continue;
        undefined[at.byte / 2] |= LaneMask{1} << at.lane;
        if ((by_machine >> lane & 1) != 0) chosen[at.byte / 2] |= LaneMask{1} << at.lane;
      }
    }
  }
  if (warp.device->race) {
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
  if (warp.device->track_defined) {
    for (std::uint32_t e = 0; e < 8; ++e)
      MarkStored(warp, op, access, 2 * e, 2, undefined[e], origin, chosen[e]);
    StoreAtChosenPlaces(warp, op, access, kRowBytes, TakeChosenPlaces(warp, op));
  }
  warp.device->last_progress = warp.device->counters.steps;
}

// --- wmma.load, wmma.store

/// The most lines of a fragment.
constexpr std::size_t kMostLines = 32;

/// Pieces from a tile, TileRead::kPitch bytes a line, to a register.
template <class Piece>
void FillRegister(const std::byte* tile, const std::uint16_t* places, std::size_t pieces,
                  std::byte* to) {
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    for (std::size_t p = 0; p < pieces; ++p, to += sizeof(Piece))
      std::memcpy(to, tile + places[p * kWarpSize + lane], sizeof(Piece));
  }
}

/// Where all of a fragment lies in one region and is defined, it is looked at line by line, which is
/// far cheaper than piece by piece. False: nothing was done or reported, and what is wrong is to be
/// found, and named, piece by piece.
bool LoadWholeFragment(CoreWarp& warp, const Decoded& op, const FragmentInMemory& memory) {
  if (warp.exec != kAllLanes) return false;
  const std::optional<FragmentLines> lines = memory.Lines();
  if (!lines) return false;
  const auto [region, offset] =
      RegionPlaceOf(warp, FragmentSpace(*op.source), lines->address, lines->bytes());
  if (region == nullptr) return false;
  const DefinedMap* const map = region->defined;
  if (warp.device->track_defined && map != nullptr && !map->AllDefined()) {
    for (std::uint32_t l = 0; l < lines->lines; ++l) {
      if (!map->Defined(offset + l * lines->stride, lines->line_bytes)) return false;
    }
  }
  const std::span<const std::uint16_t> places = memory.PlacesInLines();
  if (warp.device->race && !ReportTileRead(warp, op, *region,
                                           {.offset = offset,
                                            .stride = lines->stride,
                                            .lines = lines->lines,
                                            .line_bytes = lines->line_bytes,
                                            .bytes = memory.piece_bytes(),
                                            .places = places}))
    return false;
  warp.last_access = warp.PcOf(op);
  alignas(64) std::byte tile[kMostLines * TileRead::kPitch];
  for (std::uint32_t l = 0; l < lines->lines; ++l) {
    const std::uint64_t at = offset + l * lines->stride;
    if (region->lazy != nullptr) region->lazy->Touch(at, lines->line_bytes);
    std::memcpy(tile + l * TileRead::kPitch, region->data + at, lines->line_bytes);
  }
  const auto pieces = static_cast<std::size_t>(memory.pieces());
  for (std::size_t r = 0; r < op.destinations; ++r) {
    const DecodedOperand& target = op.operands[r];
    if (target.kind != DecodedOperand::Kind::kSlot) continue;
    const std::uint16_t* const from = places.data() + r * pieces * kWarpSize;
    auto* const to = warp.Lanes<std::byte>(target.slot);
    switch (memory.piece_bytes()) {
      case 1:
        FillRegister<std::uint8_t>(tile, from, pieces, to);
        break;
      case 2:
        FillRegister<std::uint16_t>(tile, from, pieces, to);
        break;
      case 4:
        FillRegister<std::uint32_t>(tile, from, pieces, to);
        break;
      default:
        FillRegister<std::uint64_t>(tile, from, pieces, to);
        break;
    }
    if (warp.device->track_defined) warp.frame->undefined[target.shadow] = 0;
  }
  return true;
}

void LoadFragment(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::size_t registers = op.destinations;
  const FragmentInMemory memory(warp, op, registers);
  CheckAddressDefined(warp, op, op.operands[registers], warp.exec);
  const std::uint32_t bytes = memory.piece_bytes();
  const ChosenPlaces places = TakeChosenPlaces(warp, op);
  if (places.lanes == 0 && LoadWholeFragment(warp, op, memory)) return;
  for (std::size_t r = 0; r < registers; ++r) {
    const DecodedOperand& target = op.operands[r];
    const std::size_t width = target.bits / 8u;
    alignas(8) std::byte values[kWarpSize * 8];
    LaneBitsets undefined{};
    LaneMask unset = 0;
    std::uint32_t choice = places.origin;
    for (int p = 0; p < memory.pieces(); ++p) {
      std::uint64_t addresses[kWarpSize];
      std::byte piece[kWarpSize * 8];
      LoadedLanes loaded;
      memory.Place(static_cast<int>(r), p, addresses);
      if (!LoadLanes(warp, op, FragmentSpace(*op.source), warp.exec, addresses, bytes, piece,
                     loaded))
        return;
      if (loaded.chosen != 0) choice = loaded.choice;
      unset |= loaded.undefined & ~loaded.chosen;
      AddBits(undefined, loaded.undefined | (places.lanes & warp.exec),
              8 * bytes * static_cast<std::uint32_t>(p), 8 * bytes);
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        std::memcpy(values + lane * width + static_cast<std::size_t>(p) * bytes,
                    piece + lane * bytes, bytes);
      }
    }
    if (target.kind != DecodedOperand::Kind::kSlot) continue;
    auto* const d = warp.Lanes<std::byte>(target.slot);
    for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
      if ((warp.exec >> lane & 1) != 0) std::memcpy(d + lane * width, values + lane * width, width);
    }
    SetUndefined(warp, op, target, undefined);
    if (choice != kNoPc) SetClass(warp, target, unset, choice);
  }
}

void StoreFragment(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const FragmentInMemory memory(warp, op, 0);
  CheckAddressDefined(warp, op, op.operands[0], warp.exec);
  const auto registers = static_cast<std::size_t>(memory.registers());
  const std::uint32_t bytes = memory.piece_bytes();
  const ChosenPlaces places = TakeChosenPlaces(warp, op);
  for (std::size_t r = 0; r < registers; ++r) {
    const DecodedOperand& source = op.operands[1 + r];
    const std::size_t width = source.bits / 8u;
    const auto* const s = warp.Lanes<std::byte>(source.slot);
    for (int p = 0; p < memory.pieces(); ++p) {
      std::uint64_t addresses[kWarpSize];
      std::byte piece[kWarpSize * 8];
      memory.Place(static_cast<int>(r), p, addresses);
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        std::memcpy(piece + lane * bytes, s + lane * width + static_cast<std::size_t>(p) * bytes,
                    bytes);
      }
      const LaneMask bad =
          UndefinedOf(warp, source, 8 * bytes * static_cast<std::uint32_t>(p), 8 * bytes);
      const StoredLanes what{.undefined = bad,
                             .chosen = bad & ChosenLanes(*warp.frame, source.shadow),
                             .origin = warp.frame->origin[source.shadow],
                             .places = &places};
      if (!StoreLanes(warp, op, FragmentSpace(*op.source), warp.exec, addresses, bytes, piece,
                      what))
        return;
    }
  }
}

// --- resolution
Handler WarpWide(Decoded& decoded, Handler handler) {
  decoded.flags |= kFlagControl | kFlagWarpWide | kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return handler;
}

/// Registers [first, first + count) exist and have `bits`; where a sink may stand, it may.
bool AreRegisters(const Decoded& decoded, std::size_t first, std::size_t count, int bits) {
  if (decoded.operand_count < first + count) return false;
  for (std::size_t i = first; i < first + count; ++i) {
    const DecodedOperand& operand = decoded.operands[i];
    if (operand.kind != DecodedOperand::Kind::kSlot || operand.bits != bits) return false;
  }
  return true;
}

bool IsMatrixRow(const Instruction& in) { return in.Has(Mod::kM8n8) && in.type() == Type::kB16; }

Handler ResolveLdmatrix(const Instruction& in, Decoded& decoded) {
  const std::size_t count = decoded.destinations;
  const bool fits = IsMatrixRow(in) && count >= 1 && count <= 4 &&
                    decoded.operand_count == count + 1 && AreRegisters(decoded, 0, count, 32);
  return fits ? WarpWide(decoded, &LoadMatrices) : nullptr;
}

Handler ResolveStmatrix(const Instruction& in, Decoded& decoded) {
  if (decoded.operand_count < 2) return nullptr;
  const std::size_t count = decoded.operand_count - 1u;
  const bool fits = IsMatrixRow(in) && count <= 4 && AreRegisters(decoded, 1, count, 32);
  return fits ? WarpWide(decoded, &StoreMatrices) : nullptr;
}

bool FragmentFits(const Decoded& decoded, std::size_t first) {
  const Fragment& fragment = FragmentAt(decoded.aux);
  const auto registers = static_cast<std::size_t>(fragment.registers);
  const std::size_t operands = registers + 1;
  return AreRegisters(decoded, first, registers, fragment.element_bits == 64 ? 64 : 32) &&
         (decoded.operand_count == operands ||
          (decoded.operand_count == operands + 1 && AreRegisters(decoded, operands, 1, 32)));
}

Handler ResolveWmmaLoad(const Instruction& in, Decoded& decoded) {
  const Role role = in.Has(Mod::kA) ? Role::kA : in.Has(Mod::kB) ? Role::kB : Role::kAccumulator;
  if (!FindFragment(in, role, decoded) || !FragmentFits(decoded, 0)) return nullptr;
  return WarpWide(decoded, &LoadFragment);
}

Handler ResolveWmmaStore(const Instruction& in, Decoded& decoded) {
  if (!FindFragment(in, Role::kAccumulator, decoded) || !FragmentFits(decoded, 1)) return nullptr;
  return WarpWide(decoded, &StoreFragment);
}

constexpr ResolverRow kRows[] = {
    {Opcode::kLdmatrix, &ResolveLdmatrix},
    {Opcode::kStmatrix, &ResolveStmatrix},
    {Opcode::kWmmaLoad, &ResolveWmmaLoad},
    {Opcode::kWmmaStore, &ResolveWmmaStore},
};

}  // namespace

std::span<const ResolverRow> FragmentRows() {
  static const std::vector<ResolverRow> rows = [] {
    std::vector<ResolverRow> all(std::begin(kRows), std::end(kRows));
    const std::span<const ResolverRow> warpgroup = WarpgroupRows();
    all.insert(all.end(), warpgroup.begin(), warpgroup.end());
    return all;
  }();
  return rows;
}

}  // namespace assay::emu
