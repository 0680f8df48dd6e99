#include "validator/emu/handlers/mma_forms.h"

#include "validator/emu/semantics/matrix_layout.h"

namespace assay::emu {
namespace {

using Type = ptx::Type;

int BitsOf(MmaElements elements) {
  constexpr int kBits[] = {16, 16, 32, 8, 64, 8, 4, 1};
  return kBits[static_cast<int>(elements)];
}

constexpr MmaShape kShapes[] = {
    {MmaFamily::kMma, MmaElements::kF16, 8, 8, 4},
    {MmaFamily::kMma, MmaElements::kF16, 16, 8, 8},
    {MmaFamily::kMma, MmaElements::kF16, 16, 8, 16},
    {MmaFamily::kMma, MmaElements::kBF16, 16, 8, 8},
    {MmaFamily::kMma, MmaElements::kBF16, 16, 8, 16},
    {MmaFamily::kMma, MmaElements::kTF32, 16, 8, 4},
    {MmaFamily::kMma, MmaElements::kTF32, 16, 8, 8},
    {MmaFamily::kMma, MmaElements::kFp8, 16, 8, 16},
    {MmaFamily::kMma, MmaElements::kFp8, 16, 8, 32},
    {MmaFamily::kMma, MmaElements::kF64, 8, 8, 4},
    {MmaFamily::kMma, MmaElements::kF64, 16, 8, 4},
    {MmaFamily::kMma, MmaElements::kF64, 16, 8, 8},
    {MmaFamily::kMma, MmaElements::kF64, 16, 8, 16},
    {MmaFamily::kMma, MmaElements::kByte, 8, 8, 16},
    {MmaFamily::kMma, MmaElements::kByte, 16, 8, 16},
    {MmaFamily::kMma, MmaElements::kByte, 16, 8, 32},
    {MmaFamily::kMma, MmaElements::kNibble, 8, 8, 32},
    {MmaFamily::kMma, MmaElements::kNibble, 16, 8, 32},
    {MmaFamily::kMma, MmaElements::kNibble, 16, 8, 64},
    {MmaFamily::kMma, MmaElements::kBit, 8, 8, 128},
    {MmaFamily::kMma, MmaElements::kBit, 16, 8, 128},
    {MmaFamily::kMma, MmaElements::kBit, 16, 8, 256},
    {MmaFamily::kSparse, MmaElements::kF16, 16, 8, 16},
    {MmaFamily::kSparse, MmaElements::kF16, 16, 8, 32},
    {MmaFamily::kSparse, MmaElements::kBF16, 16, 8, 16},
    {MmaFamily::kSparse, MmaElements::kBF16, 16, 8, 32},
    {MmaFamily::kSparse, MmaElements::kTF32, 16, 8, 8},
    {MmaFamily::kSparse, MmaElements::kTF32, 16, 8, 16},
    {MmaFamily::kSparse, MmaElements::kFp8, 16, 8, 64},
    {MmaFamily::kSparse, MmaElements::kByte, 16, 8, 32},
    {MmaFamily::kSparse, MmaElements::kByte, 16, 8, 64},
    {MmaFamily::kSparse, MmaElements::kNibble, 16, 8, 64},
    {MmaFamily::kSparse, MmaElements::kNibble, 16, 8, 128},
    {MmaFamily::kWmma, MmaElements::kF16, 16, 16, 16},
    {MmaFamily::kWmma, MmaElements::kF16, 32, 8, 16},
    {MmaFamily::kWmma, MmaElements::kF16, 8, 32, 16},
    {MmaFamily::kWmma, MmaElements::kBF16, 16, 16, 16},
    {MmaFamily::kWmma, MmaElements::kBF16, 32, 8, 16},
    {MmaFamily::kWmma, MmaElements::kBF16, 8, 32, 16},
    {MmaFamily::kWmma, MmaElements::kTF32, 16, 16, 8},
    {MmaFamily::kWmma, MmaElements::kF64, 8, 8, 4},
    {MmaFamily::kWmma, MmaElements::kByte, 16, 16, 16},
    {MmaFamily::kWmma, MmaElements::kByte, 32, 8, 16},
    {MmaFamily::kWmma, MmaElements::kByte, 8, 32, 16},
    {MmaFamily::kWmma, MmaElements::kNibble, 8, 8, 32},
    {MmaFamily::kWmma, MmaElements::kBit, 8, 8, 128},
};

MmaPlaces Tabulate(Fragment fragment, bool bit_words) {
  MmaPlaces places;
  if (bit_words) {
    fragment.elements_per_register = 1;
    fragment.element_bits = 32;
    (fragment.role == Role::kA ? fragment.columns : fragment.rows) /= 32;
  }
  places.registers = fragment.registers;
  places.per_register = fragment.elements_per_register;
  places.bits = fragment.element_bits;
  places.size = fragment.rows * fragment.columns;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int e = 0; e < fragment.elements(); ++e) {
      const MatrixPlace at = PlaceOf(fragment, lane, e);
      const int index = at.column * fragment.rows + at.row;
      places.index.push_back(static_cast<std::uint16_t>(index));
    }
  }
  return places;
}

MmaForm MakeForm(const MmaShape& shape) {
  const int bits = BitsOf(shape.elements);
  const bool words = shape.elements == MmaElements::kBit;
  const int stored_k = shape.family == MmaFamily::kSparse ? shape.k / 2 : shape.k;
  const auto fragment = [&](Role role, int k, int width) {
    if (shape.family == MmaFamily::kWmma) {
      return shape.elements == MmaElements::kBF16 ? WmmaBf16Fragment(role, shape.m, shape.n, k)
                                                  : WmmaFragment(role, shape.m, shape.n, k, width);
    }
    return MmaFragment(role, shape.m, shape.n, k, width);
  };
  const auto accumulator = [&](int width) {
    Fragment made = MmaFragment(Role::kAccumulator, shape.m, shape.n, shape.k, width);
    made.transposed = shape.family == MmaFamily::kWmma && shape.m == 8 && shape.n == 32;
    return made;
  };
  return {.shape = shape,
          .a = Tabulate(fragment(Role::kA, stored_k, bits), words),
          .b = Tabulate(fragment(Role::kB, shape.k, bits), words),
          .accumulator = Tabulate(accumulator(bits == 64 ? 64 : 32), false),
          .half_accumulator = Tabulate(accumulator(16), false)};
}

/// The four bits of metadata of group `group` of a row. 16- and 32-bit types: a lane holds four
/// groups of rows g and g + 8, lane `selector` (or the lanes 2 selector and 2 selector + 1) of each
/// four. 8- and 4-bit types: a lane holds eight groups of one row.
u32 MetadataOf(const u32* lanes, bool wide, int groups, int selector, int row, int group) {
  const int four = row % 8 * 4;
  if (wide) {
    const int lane = groups <= 4 ? selector : 2 * selector + group / 4;
    return lanes[four + lane] >> (4 * (group % 4) + 16 * (row / 8)) & 0xf;
  }
  const int lane = groups <= 8 ? 2 * selector + row / 8 : group / 8 * 2 + row / 8;
  return lanes[four + lane] >> (4 * (group % 8)) & 0xf;
}

}  // namespace

const MmaForm& MmaFormAt(std::size_t index) {
  static const std::vector<MmaForm> forms = [] {
    std::vector<MmaForm> made;
    for (const MmaShape& shape : kShapes) made.push_back(MakeForm(shape));
    return made;
  }();
  return forms[index];
}

int FindMmaForm(const MmaShape& shape) {
  for (std::size_t i = 0; i < std::size(kShapes); ++i) {
    if (kShapes[i] == shape) return static_cast<int>(i);
  }
  return -1;
}

u64 Pack(const MmaOptions& options) {
  return static_cast<u64>(options.d) | static_cast<u64>(options.a) << 8 |
         static_cast<u64>(options.b) << 16 | static_cast<u64>(options.c) << 24 |
         static_cast<u64>(options.round) << 32 | u64{options.saturate} << 40 |
         u64{options.exclusive_or} << 41 | u64{options.a_column} << 42 |
         u64{options.b_column} << 43 | u64{options.selector} << 48;
}
MmaOptions UnpackMma(u64 packed) {
  const auto type = [packed](int shift) { return static_cast<Type>(packed >> shift & 0xff); };
  const auto flag = [packed](int shift) { return (packed >> shift & 1) != 0; };
  return {.d = type(0),
          .a = type(8),
          .b = type(16),
          .c = type(24),
          .round = static_cast<Round>(packed >> 32 & 0xff),
          .saturate = flag(40),
          .exclusive_or = flag(41),
          .a_column = flag(42),
          .b_column = flag(43),
          .selector = static_cast<u8>(packed >> 48)};
}

void ExpandSparse(const u32* lanes, const MmaForm& form, int selector, u32 absent,
                  const u32* stored, u32* dense) {
  const int k = form.shape.k;
  const int half = k / 2;
  const MmaElements elements = form.shape.elements;
  const bool one_of_two = elements == MmaElements::kTF32;
  const bool wide = one_of_two || elements == MmaElements::kF16 || elements == MmaElements::kBF16;
  const int unit = elements == MmaElements::kNibble ? 2 : 1;
  const int groups = one_of_two ? half : half / (2 * unit);
  for (int i = 0; i < 16 * k; ++i) dense[i] = absent;
  for (int row = 0; row < 16; ++row) {
    for (int group = 0; group < groups; ++group) {
      const u32 bits = MetadataOf(lanes, wide, groups, selector, row, group);
      if (one_of_two) {
        dense[(2 * group + static_cast<int>(bits >> 1 & 1)) * 16 + row] = stored[group * 16 + row];
        continue;
      }
      for (int i = 0; i < 2; ++i) {
        const int at = static_cast<int>(bits >> (2 * i) & 3);
        for (int u = 0; u < unit; ++u) {
          dense[((4 * group + at) * unit + u) * 16 + row] =
              stored[((2 * group + i) * unit + u) * 16 + row];
        }
      }
    }
  }
}

}  // namespace assay::emu
