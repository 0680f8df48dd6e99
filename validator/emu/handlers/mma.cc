#include "validator/emu/handlers/mma.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/matrix.h"
#include "validator/emu/semantics/matrix_layout.h"
#include "validator/emu/semantics/soft.h"

namespace assay::emu {
namespace {

using enum Type;
using M = Mod;

/// What kind of elements A and B have; one of these computes.
enum class Elements : u8 { kF16, kBF16, kTF32, kFp8, kF64, kByte, kNibble, kBit };
int BitsOf(Elements elements) {
  constexpr int kBits[] = {16, 16, 32, 8, 64, 8, 4, 1};
  return kBits[static_cast<int>(elements)];
}

enum class Family : u8 { kMma, kSparse, kWmma };

/// A shape that exists for a family and an element type.
struct Shape {
  Family family;
  Elements elements;
  int m;
  int n;
  int k;
};
constexpr Shape kShapes[] = {
    {Family::kMma, Elements::kF16, 8, 8, 4},       {Family::kMma, Elements::kF16, 16, 8, 8},
    {Family::kMma, Elements::kF16, 16, 8, 16},     {Family::kMma, Elements::kBF16, 16, 8, 8},
    {Family::kMma, Elements::kBF16, 16, 8, 16},    {Family::kMma, Elements::kTF32, 16, 8, 4},
    {Family::kMma, Elements::kTF32, 16, 8, 8},     {Family::kMma, Elements::kFp8, 16, 8, 32},
    {Family::kMma, Elements::kF64, 8, 8, 4},       {Family::kMma, Elements::kF64, 16, 8, 4},
    {Family::kMma, Elements::kF64, 16, 8, 8},      {Family::kMma, Elements::kF64, 16, 8, 16},
    {Family::kMma, Elements::kByte, 8, 8, 16},     {Family::kMma, Elements::kByte, 16, 8, 16},
    {Family::kMma, Elements::kByte, 16, 8, 32},    {Family::kMma, Elements::kNibble, 8, 8, 32},
    {Family::kMma, Elements::kNibble, 16, 8, 32},  {Family::kMma, Elements::kNibble, 16, 8, 64},
    {Family::kMma, Elements::kBit, 8, 8, 128},     {Family::kMma, Elements::kBit, 16, 8, 128},
    {Family::kMma, Elements::kBit, 16, 8, 256},
    {Family::kSparse, Elements::kF16, 16, 8, 16},  {Family::kSparse, Elements::kF16, 16, 8, 32},
    {Family::kSparse, Elements::kBF16, 16, 8, 16}, {Family::kSparse, Elements::kBF16, 16, 8, 32},
    {Family::kSparse, Elements::kTF32, 16, 8, 8},  {Family::kSparse, Elements::kTF32, 16, 8, 16},
    {Family::kSparse, Elements::kFp8, 16, 8, 64},  {Family::kSparse, Elements::kByte, 16, 8, 32},
    {Family::kSparse, Elements::kByte, 16, 8, 64}, {Family::kSparse, Elements::kNibble, 16, 8, 64},
    {Family::kSparse, Elements::kNibble, 16, 8, 128},
    {Family::kWmma, Elements::kF16, 16, 16, 16},   {Family::kWmma, Elements::kF16, 32, 8, 16},
    {Family::kWmma, Elements::kF16, 8, 32, 16},    {Family::kWmma, Elements::kBF16, 16, 16, 16},
    {Family::kWmma, Elements::kBF16, 32, 8, 16},   {Family::kWmma, Elements::kBF16, 8, 32, 16},
    {Family::kWmma, Elements::kTF32, 16, 16, 8},   {Family::kWmma, Elements::kF64, 8, 8, 4},
    {Family::kWmma, Elements::kByte, 16, 16, 16},  {Family::kWmma, Elements::kByte, 32, 8, 16},
    {Family::kWmma, Elements::kByte, 8, 32, 16},   {Family::kWmma, Elements::kNibble, 8, 8, 32},
    {Family::kWmma, Elements::kBit, 8, 8, 128},
};

/// A fragment with its places looked up: index[lane * elements + e] is the position in a row-major (A, accumulators) or column-major
/// (B) matrix. Single bits travel in words of 32.
struct Places {
  int registers = 0;
  int per_register = 1;
  int bits = 16;
  int size = 0;  ///< Of the matrix, in elements.
  std::vector<std::uint16_t> index;
};

Places Tabulate(Fragment fragment, bool bit_words) {
  Places places;
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
      const int index = fragment.role == Role::kB ? at.column * fragment.rows + at.row : at.row * fragment.columns + at.column;
      places.index.push_back(static_cast<std::uint16_t>(index));
    }
  }
  return places;
}

/// The fragments of a shape, by role. Accumulators of floating-point shapes have an f16 and an f32 variant.
struct Form {
  Shape shape;
  Places a;
  Places b;
  Places accumulator;
  Places half_accumulator;
};

Form MakeForm(const Shape& shape) {
  const int bits = BitsOf(shape.elements);
  const bool words = shape.elements == Elements::kBit;
  const int stored_k = shape.family == Family::kSparse ? shape.k / 2 : shape.k;
  const auto fragment = [&](Role role, int k, int width) {
    if (shape.family == Family::kWmma) {
      return shape.elements == Elements::kBF16 ? WmmaBf16Fragment(role, shape.m, shape.n, k)
                                               : WmmaFragment(role, shape.m, shape.n, k, width);
    }
    return MmaFragment(role, shape.m, shape.n, k, width);
  };
  const auto accumulator = [&](int width) {
    Fragment made = MmaFragment(Role::kAccumulator, shape.m, shape.n, shape.k, width);
    made.transposed = shape.family == Family::kWmma && shape.m == 8 && shape.n == 32;
    return made;
  };
  return {.shape = shape,
          .a = Tabulate(fragment(Role::kA, stored_k, bits), words),
          .b = Tabulate(fragment(Role::kB, shape.k, bits), words),
          .accumulator = Tabulate(accumulator(bits == 64 ? 64 : 32), false),
          .half_accumulator = Tabulate(accumulator(16), false)};
}

const Form& FormAt(std::size_t index) {
  static const std::vector<Form> forms = [] {
    std::vector<Form> made;
    for (const Shape& shape : kShapes) made.push_back(MakeForm(shape));
    return made;
  }();
  return forms[index];
}

/// What the instruction asks for beyond its shape; packed into Decoded::immediate.
struct Options {
  Type d{};
  Type a{};
  Type b{};
  Type c{};
  Round round = Round::kNearest;
  bool saturate = false;
  bool exclusive_or = false;
  bool a_column = false;
  bool b_column = false;
  u8 selector = 0;
};
static_assert(sizeof(Options) <= 16);
u64 Pack(const Options& options) {
  return static_cast<u64>(options.d) | static_cast<u64>(options.a) << 8 | static_cast<u64>(options.b) << 16 |
         static_cast<u64>(options.c) << 24 | static_cast<u64>(options.round) << 32 | u64{options.saturate} << 40 |
         u64{options.exclusive_or} << 41 | u64{options.a_column} << 42 | u64{options.b_column} << 43 |
         u64{options.selector} << 48;
}
Options Unpack(u64 packed) {
  const auto type = [packed](int shift) { return static_cast<Type>(packed >> shift & 0xff); };
  const auto flag = [packed](int shift) { return (packed >> shift & 1) != 0; };
  return {.d = type(0), .a = type(8), .b = type(16), .c = type(24), .round = static_cast<Round>(packed >> 32 & 0xff),
          .saturate = flag(40), .exclusive_or = flag(41), .a_column = flag(42), .b_column = flag(43),
          .selector = static_cast<u8>(packed >> 48)};
}

// ---------------------------------------------------------------------------------------------------------- registers to matrices
template <class Word>
void Gather(Warp& warp, const DecodedOperand* operands, const Places& places, Word* matrix) {
  const u64 mask = places.bits == 64 ? ~u64{0} : (u64{1} << places.bits) - 1;
  const int elements = places.registers * places.per_register;
  for (int r = places.registers - 1; r >= 0; --r) {
    const Word* const lanes = warp.Lanes<Word>(operands[r].slot);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const u64 word = lanes[lane];
      const std::uint16_t* const index = &places.index[static_cast<std::size_t>(lane * elements + r * places.per_register)];
      for (int e = 0; e < places.per_register; ++e) matrix[index[e]] = static_cast<Word>(word >> (e * places.bits) & mask);
    }
  }
}
template <class Word>
void Scatter(Warp& warp, const DecodedOperand* operands, const Places& places, const Word* matrix) {
  const int elements = places.registers * places.per_register;
  for (int r = 0; r < places.registers; ++r) {
    Word* const lanes = warp.Lanes<Word>(operands[r].slot);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((warp.exec >> lane & 1) == 0) continue;
      const std::uint16_t* const index = &places.index[static_cast<std::size_t>(lane * elements + r * places.per_register)];
      u64 word = 0;
      for (int e = 0; e < places.per_register; ++e) word |= u64{matrix[index[e]]} << (e * places.bits);
      lanes[lane] = static_cast<Word>(word);
    }
  }
}

constexpr int kMaxOperand = 16 * 256;  ///< The largest A or B.
constexpr int kMaxAccumulator = 32 * 32;

void SignExtend(Type type, u32* matrix, int size) {
  const int shift = type == kS8 ? 24 : type == kS4 ? 28 : 0;
  if (shift == 0) return;
  for (int i = 0; i < size; ++i) matrix[i] = static_cast<u32>(static_cast<s32>(matrix[i] << shift) >> shift);
}

// ------------------------------------------------------------------------------------------------------------------- sparsity
TensorType TensorOf(Type type) {
  switch (type) {
    case kBF16: return TensorType::kBF16;
    case kTF32: return TensorType::kTF32;
    case kE4M3: return TensorType::kE4M3;
    case kE5M2: return TensorType::kE5M2;
    default: return TensorType::kF16;
  }
}

/// The four bits of metadata of group `group` of a row. 16- and 32-bit types: a lane holds four groups of rows g and g + 8, lane
/// `selector` (or the lanes 2 selector and 2 selector + 1) of each four. 8- and 4-bit types: a lane holds eight groups of one row.
u32 MetadataOf(const u32* lanes, bool wide, int groups, int selector, int row, int group) {
  const int four = row % 8 * 4;
  if (wide) {
    const int lane = groups <= 4 ? selector : 2 * selector + group / 4;
    return lanes[four + lane] >> (4 * (group % 4) + 16 * (row / 8)) & 0xf;
  }
  const int lane = groups <= 8 ? 2 * selector + row / 8 : group / 8 * 2 + row / 8;
  return lanes[four + lane] >> (4 * (group % 8)) & 0xf;
}

/// Expands the stored half of A (16 by k / 2) to 16 by k with `absent` elsewhere. A group's metadata are the positions, two bits each, of two
/// stored units among four; units are elements, or pairs of 4-bit elements. For tf32 a stored element counts as two neighbouring
/// halves, so that a group is one of two (9.7.14.6.1).
void ExpandSparse(const u32* lanes, const Form& form, int selector, u32 absent, const u32* stored, u32* dense) {
  const int k = form.shape.k;
  const int half = k / 2;
  const Elements elements = form.shape.elements;
  const bool one_of_two = elements == Elements::kTF32;
  const bool wide = one_of_two || elements == Elements::kF16 || elements == Elements::kBF16;
  const int unit = elements == Elements::kNibble ? 2 : 1;
  const int groups = one_of_two ? half : half / (2 * unit);
  for (int i = 0; i < 16 * k; ++i) dense[i] = absent;
  for (int row = 0; row < 16; ++row) {
    for (int group = 0; group < groups; ++group) {
      const u32 bits = MetadataOf(lanes, wide, groups, selector, row, group);
      if (one_of_two) {
        dense[row * k + 2 * group + static_cast<int>(bits >> 1 & 1)] = stored[row * half + group];
        continue;
      }
      for (int i = 0; i < 2; ++i) {
        const int at = static_cast<int>(bits >> (2 * i) & 3);
        for (int u = 0; u < unit; ++u) {
          dense[row * k + (4 * group + at) * unit + u] = stored[row * half + (2 * group + i) * unit + u];
        }
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------------------------- handlers
void RunTensor(Warp& warp, const Decoded& op) {
  const Form& form = FormAt(op.aux);
  const Shape& shape = form.shape;
  const Options options = Unpack(op.immediate);
  const Places& d_places = options.d == kF16 ? form.half_accumulator : form.accumulator;
  const Places& c_places = options.c == kF16 ? form.half_accumulator : form.accumulator;
  const DecodedOperand* const d_operands = op.operands;
  const DecodedOperand* const a_operands = d_operands + d_places.registers;
  const DecodedOperand* const b_operands = a_operands + form.a.registers;
  const DecodedOperand* const c_operands = b_operands + form.b.registers;
  alignas(64) u32 a[kMaxOperand];
  alignas(64) u32 b[kMaxOperand];
  alignas(64) u32 c[kMaxAccumulator];
  alignas(64) u32 d[kMaxAccumulator];
  Gather(warp, b_operands, form.b, b);
  Gather(warp, c_operands, c_places, c);
  if (shape.family == Family::kSparse) {
    alignas(64) u32 stored[kMaxOperand];
    Gather(warp, a_operands, form.a, stored);
    const bool integer = shape.elements == Elements::kByte || shape.elements == Elements::kNibble;
    if (integer) SignExtend(options.a, stored, form.a.size);
    // tf32 ignores these bits; no element may look absent by them.
    if (shape.elements == Elements::kTF32) {
      for (int i = 0; i < form.a.size; ++i) stored[i] &= 0xffffe000u;
    }
    const u32 absent = integer ? 0 : TensorAbsent(TensorOf(options.a));
    ExpandSparse(warp.Lanes<u32>(c_operands[c_places.registers].slot), form, options.selector, absent, stored, a);
  } else {
    Gather(warp, a_operands, form.a, a);
    if (shape.elements == Elements::kByte || shape.elements == Elements::kNibble) SignExtend(options.a, a, form.a.size);
  }
  const auto as_signed = [](u32* words) { return reinterpret_cast<s32*>(words); };
  if (shape.elements == Elements::kBit) {
    TensorMultiplyBits(shape.m, shape.n, shape.k, options.exclusive_or, a, b, as_signed(c), as_signed(d));
  } else if (shape.elements == Elements::kByte || shape.elements == Elements::kNibble) {
    SignExtend(options.b, b, form.b.size);
    TensorMultiplyInteger(shape.m, shape.n, shape.k, options.saturate, as_signed(a), as_signed(b), as_signed(c), as_signed(d));
  } else {
    TensorProduct product{.m = shape.m, .n = shape.n, .k = shape.k, .a = TensorOf(options.a), .b = TensorOf(options.b)};
    product.sparse = shape.family == Family::kSparse;
    product.steps_of_4 = shape.family == Family::kWmma && shape.elements == Elements::kTF32;
    product.half_accumulator = options.c == kF16;
    product.half_result = options.d == kF16;
    TensorMultiply(product, a, b, c, d);
  }
  Scatter(warp, d_operands, d_places, d);
}

void RunF64(Warp& warp, const Decoded& op) {
  const Form& form = FormAt(op.aux);
  const Shape& shape = form.shape;
  const Options options = Unpack(op.immediate);
  const DecodedOperand* const a_operands = op.operands + form.accumulator.registers;
  const DecodedOperand* const b_operands = a_operands + form.a.registers;
  const DecodedOperand* const c_operands = b_operands + form.b.registers;
  u64 a[16 * 16];
  u64 b[8 * 16];
  u64 c[16 * 8];
  u64 d[16 * 8];
  Gather(warp, a_operands, form.a, a);
  Gather(warp, b_operands, form.b, b);
  Gather(warp, c_operands, form.accumulator, c);
  const auto as_double = [](u64* words) { return reinterpret_cast<double*>(words); };
  TensorMultiplyF64(shape.m, shape.n, shape.k, static_cast<int>(options.round), as_double(a), as_double(b), as_double(c),
                    as_double(d));
  Scatter(warp, op.operands, form.accumulator, d);
}

/// mma.m8n8k4 on f16: four products of 8 by 8 by 4, each by a pair of four lanes.
void RunQuadPairs(Warp& warp, const Decoded& op) {
  const Options options = Unpack(op.immediate);
  const Fragment a_fragment = QuadPairFragment(Role::kA, options.a_column, 16);
  const Fragment b_fragment = QuadPairFragment(Role::kB, options.b_column, 16);
  const Fragment c_fragment = QuadPairFragment(Role::kAccumulator, false, options.c == kF16 ? 16 : 32);
  const Fragment d_fragment = QuadPairFragment(Role::kAccumulator, false, options.d == kF16 ? 16 : 32);
  const DecodedOperand* const a_operands = op.operands + d_fragment.registers;
  const DecodedOperand* const b_operands = a_operands + a_fragment.registers;
  const DecodedOperand* const c_operands = b_operands + b_fragment.registers;
  u32 a[4][8 * 4];
  u32 b[4][8 * 4];
  u32 c[4][8 * 8];
  const auto visit = [](const Fragment& fragment, auto body) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < fragment.elements(); ++e) {
        const MatrixPlace at = PlaceOf(fragment, lane, e);
        const int index = fragment.role == Role::kB ? at.column * fragment.rows + at.row : at.row * fragment.columns + at.column;
        body(lane, e / fragment.elements_per_register, e % fragment.elements_per_register * fragment.element_bits,
             QuadPairOf(lane), static_cast<std::size_t>(index));
      }
    }
  };
  const auto gather = [&](const Fragment& fragment, const DecodedOperand* operands, auto& matrices) {
    const u32 mask = fragment.element_bits == 16 ? 0xffffu : ~0u;
    visit(fragment, [&](int lane, int reg, int shift, int pair, std::size_t index) {
      matrices[pair][index] = warp.Lanes<u32>(operands[reg].slot)[lane] >> shift & mask;
    });
  };
  gather(a_fragment, a_operands, a);
  gather(b_fragment, b_operands, b);
  gather(c_fragment, c_operands, c);
  TensorProduct product{.m = 8, .n = 8, .k = 4, .a = TensorType::kF16, .b = TensorType::kF16};
  product.half_accumulator = options.c == kF16;
  product.half_result = options.d == kF16;
  product.chain = true;
  for (int pair = 0; pair < 4; ++pair) TensorMultiply(product, a[pair], b[pair], c[pair], c[pair]);
  visit(d_fragment, [&](int lane, int reg, int shift, int pair, std::size_t index) {
    if ((warp.exec >> lane & 1) == 0) return;
    u32& word = warp.Lanes<u32>(op.operands[reg].slot)[lane];
    const u32 mask = d_fragment.element_bits == 16 ? 0xffffu << shift : ~0u;
    word = (word & ~mask) | (c[pair][index] << shift & mask);
  });
}

// --------------------------------------------------------------------------------------------------------------- resolution
bool ElementsOf(Type type, Elements& elements) {
  switch (type) {
    case kF16: elements = Elements::kF16; return true;
    case kBF16: elements = Elements::kBF16; return true;
    case kTF32: elements = Elements::kTF32; return true;
    case kE4M3:
    case kE5M2: elements = Elements::kFp8; return true;
    case kF64: elements = Elements::kF64; return true;
    case kU8:
    case kS8: elements = Elements::kByte; return true;
    case kU4:
    case kS4: elements = Elements::kNibble; return true;
    case kB1: elements = Elements::kBit; return true;
    default: return false;
  }
}

struct Dimensions {
  int m = 0;
  int n = 0;
  int k = 0;
};
bool ParseDimensions(std::string_view text, Dimensions& dimensions) {
  return std::sscanf(std::string(text).c_str(), "m%dn%dk%d", &dimensions.m, &dimensions.n, &dimensions.k) == 3;
}

/// Accumulator types that go with the elements.
bool AccumulatorFits(Elements elements, Type type) {
  switch (elements) {
    case Elements::kF16: return type == kF16 || type == kF32;
    case Elements::kBF16:
    case Elements::kTF32:
    case Elements::kFp8: return type == kF32;
    case Elements::kF64: return type == kF64;
    default: return type == kS32;
  }
}

}  // namespace

Handler ResolveMma(const ptx::Instruction& instruction, Decoded& decoded) {
  Family family = instruction.opcode == Opcode::kWmmaMma ? Family::kWmma : Family::kMma;
  Dimensions dimensions;
  Options options;
  int layouts = 0;
  bool popc = false;
  bool bit_operation = false;
  for (const Mod mod : instruction.mods) {
    switch (mod) {
      case M::kSync:
      case M::kAligned:
      case M::kMma: break;
      case M::kSp:
      case M::kSpOrderedMetadata: family = Family::kSparse; break;
      case M::kRow:
      case M::kCol:
        (layouts++ == 0 ? options.a_column : options.b_column) = mod == M::kCol;
        break;
      case M::kSatfinite: options.saturate = true; break;
      case M::kRn: options.round = Round::kNearest; break;
      case M::kRz: options.round = Round::kZero; break;
      case M::kRm: options.round = Round::kDown; break;
      case M::kRp: options.round = Round::kUp; break;
      case M::kXor: options.exclusive_or = true; bit_operation = true; break;
      case M::kAnd: bit_operation = true; break;
      case M::kPopc: popc = true; break;
      default:
        if (!ParseDimensions(ptx::Name(mod), dimensions)) return nullptr;
    }
  }
  if (instruction.types.size() == 4) {
    options.d = instruction.type(0);
    options.a = instruction.type(1);
    options.b = instruction.type(2);
    options.c = instruction.type(3);
  } else if (instruction.types.size() == 2 && family == Family::kWmma) {
    options.d = instruction.type(0);
    options.a = options.b = Type::kF16;
    options.c = instruction.type(1);
  } else {
    return nullptr;
  }
  Elements elements{};
  Elements b_elements{};
  if (!ElementsOf(options.a, elements) || !ElementsOf(options.b, b_elements) || elements != b_elements ||
      !AccumulatorFits(elements, options.d) || !AccumulatorFits(elements, options.c) ||
      (elements == Elements::kBit) != (popc && bit_operation) ||
      (options.round != Round::kNearest && elements != Elements::kF64)) {
    return nullptr;
  }
  if (family == Family::kSparse) {
    std::uint64_t selector = 0;
    if (instruction.operands.size() != 6 || instruction.operands[5].kind != ptx::Operand::Kind::kImmediate) return nullptr;
    selector = instruction.operands[5].bits;
    if (selector > 3) return nullptr;
    options.selector = static_cast<u8>(selector);
  } else if (instruction.operands.size() != 4) {
    return nullptr;
  }
  for (std::size_t i = 0; i < std::size(kShapes); ++i) {
    const Shape& shape = kShapes[i];
    if (shape.family != family || shape.elements != elements || shape.m != dimensions.m || shape.n != dimensions.n ||
        shape.k != dimensions.k) {
      continue;
    }
    decoded.aux = static_cast<u32>(i);
    decoded.immediate = Pack(options);
    const bool quad_pairs = family == Family::kMma && elements == Elements::kF16 && shape.k == 4;
    // Registers must be as many as the fragments have; the handlers index operands by them.
    const Form& form = FormAt(i);
    const auto vector = [&](std::size_t operand) { return static_cast<int>(instruction.operands[operand].elements.size()); };
    if (quad_pairs) {
      if (vector(0) != (options.d == Type::kF16 ? 4 : 8) || vector(1) != 2 || vector(2) != 2 ||
          vector(3) != (options.c == Type::kF16 ? 4 : 8)) {
        return nullptr;
      }
      return RunQuadPairs;
    }
    const Places& d = options.d == Type::kF16 ? form.half_accumulator : form.accumulator;
    const Places& c = options.c == Type::kF16 ? form.half_accumulator : form.accumulator;
    if (vector(0) != d.registers || vector(1) != form.a.registers || vector(2) != form.b.registers || vector(3) != c.registers) {
      return nullptr;
    }
    return elements == Elements::kF64 ? RunF64 : RunTensor;
  }
  return nullptr;
}

}  // namespace assay::emu
