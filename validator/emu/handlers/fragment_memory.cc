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
  /// FragmentInMemory::PlacesInLines, by rows and by columns.
  std::vector<std::uint16_t> in_lines[2];
};

/// Are the elements of a register one piece in memory?
bool AreTogether(const Fragment& fragment, bool column_major) {
  // They follow each other along k (operands) or along n (accumulators).
  const bool along_columns = fragment.role != Role::kB;
  const bool wide = fragment.role == Role::kAccumulator && fragment.transposed;
  return fragment.elements_per_register == 1 || (along_columns != wide) != column_major;
}

std::vector<std::uint16_t> InLines(const Places& places, bool column_major) {
  const Fragment& fragment = places.fragment;
  const int elements = fragment.elements();
  const int step = AreTogether(fragment, column_major) ? fragment.elements_per_register : 1;
  std::vector<std::uint16_t> all;
  for (int element = 0; element < elements; element += step) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const auto at = static_cast<std::size_t>(lane * elements + element);
      const int line = column_major ? places.columns[at] : places.rows[at];
      const int minor = column_major ? places.rows[at] : places.columns[at];
      all.push_back(static_cast<std::uint16_t>(line * static_cast<int>(TileRead::kPitch) +
                                               minor * fragment.element_bits / 8));
    }
  }
  return all;
}

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
  for (const bool column_major : {false, true})
    places.in_lines[column_major] = InLines(places, column_major);
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
      columns_(AllPlaces()[op.aux].columns),
      in_lines_(AllPlaces()[op.aux].in_lines) {
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
  together_ = AreTogether(fragment_, column_major_);
}

std::optional<FragmentLines> FragmentInMemory::Lines() const {
  const auto bits = static_cast<std::uint64_t>(bits_);
  const std::uint64_t address = base_.address[0];
  bool same = true;
  for (int lane = 1; lane < kWarpSize; ++lane)
    same &= base_.address[lane] == address && stride_[lane] == stride_[0];
  const std::uint64_t stride_bits = stride_[0] * bits;
  const auto lines = static_cast<std::uint32_t>(column_major_ ? fragment_.columns : fragment_.rows);
  const auto minor = static_cast<std::uint32_t>(column_major_ ? fragment_.rows : fragment_.columns);
  if (!same || address % piece_bytes() != 0 || stride_bits % (8 * piece_bytes()) != 0)
    return std::nullopt;
  return FragmentLines{address, stride_bits / 8, lines,
                       minor * static_cast<std::uint32_t>(bits_) / 8};
}

std::span<const std::uint16_t> FragmentInMemory::PlacesInLines() const {
  return in_lines_[column_major_ ? 1 : 0];
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
