// ldmatrix, stmatrix, wmma.load and wmma.store (PTX ISA 9.7.14.4, 9.7.14.5): matrix fragments
// between memory and registers.
//
// Definedness is kept by register, as everywhere: a register is undefined in the lanes for which a
// byte of it was.
#include <bit>
#include <cstdio>
#include <cstring>
#include <vector>

#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/warp_memory.h"
#include "validator/emu/memory.h"
#include "validator/emu/semantics/matrix_layout.h"
#include "validator/emu/undefined.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;
using ptx::Type;

Space SpaceOf(const Instruction& in) {
  return in.space == Space::kReg ? Space::kGeneric : in.space;
}

void SetUndefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& target,
                  const LaneBitsets& undefined) {
  if (!warp.engine->track_defined || target.kind != DecodedOperand::Kind::kSlot) return;
  SetUndefinedBits(*warp.frame, target, warp.exec, undefined, warp.PcOf(op));
}

/// The lanes in which some of the `bits` bits from bit `first` on are undefined.
LaneMask UndefinedOf(const CoreWarp& warp, const DecodedOperand& source, std::uint32_t first,
                     std::uint32_t bits) {
  if (!warp.engine->track_defined) return 0;
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

void LoadMatrices(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::size_t count = op.destinations;
  const bool transposed = op.source->Has(Mod::kTrans);
  const LaneMask lanes = RowLanes(warp, count);
  LaneAccess access;
  const DecodedOperand& address = op.operands[count];
  Addresses(warp, address, access);
  CheckAddressDefined(warp, op, address, lanes);
  if (!Resolve(warp, op, SpaceOf(*op.source), lanes, kRowBytes, AccessType::kLoad, access)) return;
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
    LaneBitsets bad{};
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((warp.exec >> lane & 1) == 0) continue;
      for (int e = 0; e < 2; ++e) {
        const Pair at = ElementAt(j, lane, e, transposed);
        std::memcpy(d + 2 * lane + e, rows + at.lane * kRowBytes + at.byte, 2);
        if ((undefined[at.byte / 2] >> at.lane & 1) != 0)
          AddBits(bad, LaneMask{1} << lane, 16 * static_cast<std::uint32_t>(e), 16);
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
  if (!Resolve(warp, op, SpaceOf(*op.source), lanes, kRowBytes, AccessType::kStore, access)) return;
  std::byte rows[kWarpSize * kRowBytes] = {};
  LaneMask undefined[8] = {};
  std::uint32_t origin = kNoPc;
  for (std::size_t j = 0; j < count; ++j) {
    const DecodedOperand& source = op.operands[1 + j];
    const auto* const s = warp.Lanes<std::uint16_t>(source.slot);
    const LaneMask bad[2] = {UndefinedOf(warp, source, 0, 16), UndefinedOf(warp, source, 16, 16)};
    if ((bad[0] | bad[1]) != 0) origin = warp.frame->origin[source.shadow];
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < 2; ++e) {
        const Pair at = ElementAt(j, lane, e, transposed);
        std::memcpy(rows + at.lane * kRowBytes + at.byte, s + 2 * lane + e, 2);
        if ((bad[e] >> lane & 1) != 0) undefined[at.byte / 2] |= LaneMask{1} << at.lane;
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

// --- wmma.load, wmma.store
enum class Elements : std::uint8_t { kHalf, kBrain, kWord, kDouble, kByte, kNibble, kBit };
constexpr int kElementBits[] = {16, 16, 32, 64, 8, 4, 1};

struct Shape {
  Role role;
  int m;
  int n;
  int k;
  Elements elements;
  bool operator==(const Shape&) const = default;
};

/// A fragment's places, looked up: rows[lane * elements + e].
struct Places {
  Shape shape;
  Fragment fragment;
  std::vector<std::uint8_t> rows;
  std::vector<std::uint8_t> columns;
};

Places PlacesOf(const Shape& shape) {
  Places places;
  places.shape = shape;
  const int bits = kElementBits[static_cast<std::size_t>(shape.elements)];
  places.fragment = shape.elements == Elements::kBrain
                        ? WmmaBf16Fragment(shape.role, shape.m, shape.n, shape.k)
                        : WmmaFragment(shape.role, shape.m, shape.n, shape.k, bits);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int e = 0; e < places.fragment.elements(); ++e) {
      const MatrixPlace at = PlaceOf(places.fragment, lane, e);
      places.rows.push_back(static_cast<std::uint8_t>(at.row));
      places.columns.push_back(static_cast<std::uint8_t>(at.column));
    }
  }
  return places;
}

/// Tabulated once, immutable afterwards.
const std::vector<Places>& AllPlaces() {
  static const std::vector<Places> kAll = [] {
    struct Size {
      int m, n, k;
    };
    constexpr Size kLarge[] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};
    std::vector<Places> all;
    const auto add = [&](Role role, Size size, Elements elements) {
      all.push_back(PlacesOf({role, size.m, size.n, size.k, elements}));
    };
    const auto operands = [&](Size size, Elements elements) {
      add(Role::kA, size, elements);
      add(Role::kB, size, elements);
    };
    for (const Size size : kLarge) {
      for (const Elements elements : {Elements::kHalf, Elements::kBrain, Elements::kByte})
        operands(size, elements);
      add(Role::kAccumulator, size, Elements::kHalf);
      add(Role::kAccumulator, size, Elements::kWord);
    }
    operands({16, 16, 8}, Elements::kWord);
    add(Role::kAccumulator, {16, 16, 8}, Elements::kWord);
    operands({8, 8, 4}, Elements::kDouble);
    add(Role::kAccumulator, {8, 8, 4}, Elements::kDouble);
    operands({8, 8, 32}, Elements::kNibble);
    add(Role::kAccumulator, {8, 8, 32}, Elements::kWord);
    operands({8, 8, 128}, Elements::kBit);
    add(Role::kAccumulator, {8, 8, 128}, Elements::kWord);
    return all;
  }();
  return kAll;
}

/// A fragment in memory: which registers are one piece there, and where each element lies.
class FragmentInMemory {
 public:
  FragmentInMemory(CoreWarp& warp, const Decoded& op, std::size_t address_at, std::size_t after)
      : places_(AllPlaces()[op.aux]) {
    column_major_ = op.source->Has(Mod::kCol);
    Addresses(warp, op.operands[address_at], base_);
    CheckAddressDefined(warp, op, op.operands[address_at], warp.exec);
    const Fragment& fragment = places_.fragment;
    const auto minor = static_cast<std::uint32_t>(column_major_ ? fragment.rows : fragment.columns);
    const auto* const given =
        op.operand_count > after ? warp.Lanes<std::uint32_t>(op.operands[after].slot) : nullptr;
    for (int lane = 0; lane < kWarpSize; ++lane) stride_[lane] = given ? given[lane] : minor;
    bits_ = fragment.element_bits;
    per_register_ = fragment.elements_per_register;
    // Elements of a register follow each other along k (operands) or along n (accumulators).
    const bool along_columns = fragment.role != Role::kB;
    const bool wide = fragment.role == Role::kAccumulator && fragment.transposed;
    together_ = per_register_ == 1 || (along_columns != wide) != column_major_;
  }

  int registers() const { return places_.fragment.registers; }
  /// Accesses that a register takes, and the bytes of each.
  int pieces() const { return together_ ? 1 : per_register_; }
  std::uint32_t piece_bytes() const {
    return static_cast<std::uint32_t>(together_ ? per_register_ * bits_ : bits_) / 8;
  }
  /// Fills in the addresses of one piece of register `reg`, for all lanes.
  void Place(int reg, int piece, std::uint64_t* addresses) const {
    const int elements = places_.fragment.elements();
    const int element = reg * per_register_ + piece;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const auto at = static_cast<std::size_t>(lane * elements + element);
      const std::uint64_t row = places_.rows[at];
      const std::uint64_t column = places_.columns[at];
      const std::uint64_t index =
          column_major_ ? column * stride_[lane] + row : row * stride_[lane] + column;
      addresses[lane] = base_.address[lane] + index * static_cast<std::uint64_t>(bits_) / 8;
    }
  }

 private:
  const Places& places_;
  LaneAccess base_;
  std::uint32_t stride_[kWarpSize];
  int bits_ = 16;
  int per_register_ = 1;
  bool column_major_ = false;
  bool together_ = false;
};

void LoadFragment(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const std::size_t registers = op.destinations;
  const FragmentInMemory memory(warp, op, registers, registers + 1);
  const std::uint32_t bytes = memory.piece_bytes();
  for (std::size_t r = 0; r < registers; ++r) {
    const DecodedOperand& target = op.operands[r];
    const std::size_t width = target.bits / 8u;
    alignas(8) std::byte values[kWarpSize * 8];
    LaneBitsets undefined{};
    for (int p = 0; p < memory.pieces(); ++p) {
      std::uint64_t addresses[kWarpSize];
      std::byte piece[kWarpSize * 8];
      LaneMask bad = 0;
      memory.Place(static_cast<int>(r), p, addresses);
      if (!LoadLanes(warp, op, SpaceOf(*op.source), warp.exec, addresses, bytes, piece, &bad))
        return;
      AddBits(undefined, bad, 8 * bytes * static_cast<std::uint32_t>(p), 8 * bytes);
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
  }
}

void StoreFragment(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const auto registers = static_cast<std::size_t>(AllPlaces()[op.aux].fragment.registers);
  const FragmentInMemory memory(warp, op, 0, registers + 1);
  const std::uint32_t bytes = memory.piece_bytes();
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
      if (!StoreLanes(
              warp, op, SpaceOf(*op.source), warp.exec, addresses, bytes, piece,
              UndefinedOf(warp, source, 8 * bytes * static_cast<std::uint32_t>(p), 8 * bytes)))
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

bool ElementsOf(Type type, Elements& elements) {
  constexpr std::pair<Type, Elements> kRows[] = {
      {Type::kF16, Elements::kHalf},  {Type::kBF16, Elements::kBrain},
      {Type::kF32, Elements::kWord},  {Type::kTF32, Elements::kWord},
      {Type::kS32, Elements::kWord},  {Type::kF64, Elements::kDouble},
      {Type::kU8, Elements::kByte},   {Type::kS8, Elements::kByte},
      {Type::kU4, Elements::kNibble}, {Type::kS4, Elements::kNibble},
      {Type::kB1, Elements::kBit},
  };
  for (const auto& [known, value] : kRows) {
    if (known != type) continue;
    elements = value;
    return true;
  }
  return false;
}

/// Sets decoded.aux to the fragment's row in AllPlaces; false when there is none.
bool FindFragment(const Instruction& in, Role role, Decoded& decoded) {
  Shape shape{.role = role};
  for (const Mod mod : in.mods) {
    Shape sized = shape;
    if (std::sscanf(std::string(ptx::Name(mod)).c_str(), "m%dn%dk%d", &sized.m, &sized.n,
                    &sized.k) == 3)
      shape = sized;
  }
  if (!ElementsOf(in.type(), shape.elements)) return false;
  const std::vector<Places>& all = AllPlaces();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!(all[i].shape == shape)) continue;
    decoded.aux = static_cast<std::uint32_t>(i);
    return true;
  }
  return false;
}

bool FragmentFits(const Decoded& decoded, std::size_t first) {
  const Fragment& fragment = AllPlaces()[decoded.aux].fragment;
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
