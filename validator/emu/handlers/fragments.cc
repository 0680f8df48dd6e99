// wmma.load and wmma.store (PTX ISA 9.7.14.4): matrix fragments between memory and registers.
#include <cstdio>
#include <cstring>
#include <vector>

#include "validator/emu/handlers/fragment_memory.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/warp_memory.h"
#include "validator/emu/semantics/matrix_layout.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

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
    LaneMask undefined = 0;
    for (int p = 0; p < memory.pieces(); ++p) {
      std::uint64_t addresses[kWarpSize];
      std::byte piece[kWarpSize * 8];
      LaneMask bad = 0;
      memory.Place(static_cast<int>(r), p, addresses);
      if (!LoadLanes(warp, op, FragmentSpace(*op.source), warp.exec, addresses, bytes, piece, &bad))
        return;
      undefined |= bad;
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
      if (!StoreLanes(warp, op, FragmentSpace(*op.source), warp.exec, addresses, bytes, piece,
                      UndefinedOf(warp, source)))
        return;
    }
  }
}

// --- resolution
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
  return AsFragmentHandler(decoded, &LoadFragment);
}

Handler ResolveWmmaStore(const Instruction& in, Decoded& decoded) {
  if (!FindFragment(in, Role::kAccumulator, decoded) || !FragmentFits(decoded, 1)) return nullptr;
  return AsFragmentHandler(decoded, &StoreFragment);
}

constexpr ResolverRow kRows[] = {
    {Opcode::kWmmaLoad, &ResolveWmmaLoad},
    {Opcode::kWmmaStore, &ResolveWmmaStore},
};

}  // namespace

std::span<const ResolverRow> FragmentRows() {
  static const std::vector<ResolverRow> rows = [] {
    std::vector<ResolverRow> all(std::begin(kRows), std::end(kRows));
    for (const std::span<const ResolverRow> part : {MatrixRowRows(), WarpgroupRows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

}  // namespace assay::emu
