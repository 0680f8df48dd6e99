#include "validator/emu/handlers/fragment_memory.h"

#include <cstdio>
#include <string>
#include <utility>

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Space;
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

}  // namespace

Space FragmentSpace(const Instruction& in) {
  return in.space == Space::kReg ? Space::kGeneric : in.space;
}

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

const Fragment& FragmentAt(std::size_t index) { return AllPlaces()[index].fragment; }

FragmentInMemory::FragmentInMemory(CoreWarp& warp, const Decoded& op, std::size_t address_at)
    : fragment_(AllPlaces()[op.aux].fragment),
      rows_(AllPlaces()[op.aux].rows),
      columns_(AllPlaces()[op.aux].columns) {
  column_major_ = op.source->Has(Mod::kCol);
  Addresses(warp, op.operands[address_at], base_);
  const auto stride_at = static_cast<std::size_t>(fragment_.registers) + 1;
  const auto minor = static_cast<std::uint32_t>(column_major_ ? fragment_.rows : fragment_.columns);
  const auto* const given = op.operand_count > stride_at
                                ? warp.Lanes<std::uint32_t>(op.operands[stride_at].slot)
                                : nullptr;
  for (int lane = 0; lane < kWarpSize; ++lane) stride_[lane] = given ? given[lane] : minor;
  bits_ = fragment_.element_bits;
  per_register_ = fragment_.elements_per_register;
  // Elements of a register follow each other along k (operands) or along n (accumulators).
  const bool along_columns = fragment_.role != Role::kB;
  const bool wide = fragment_.role == Role::kAccumulator && fragment_.transposed;
  together_ = per_register_ == 1 || (along_columns != wide) != column_major_;
}

void FragmentInMemory::Place(int reg, int piece, std::uint64_t* addresses) const {
  const int elements = fragment_.elements();
  const int element = reg * per_register_ + piece;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto at = static_cast<std::size_t>(lane * elements + element);
    const std::uint64_t row = rows_[at];
    const std::uint64_t column = columns_[at];
    const std::uint64_t index =
        column_major_ ? column * stride_[lane] + row : row * stride_[lane] + column;
    addresses[lane] = base_.address[lane] + index * static_cast<std::uint64_t>(bits_) / 8;
  }
}

}  // namespace assay::emu
