#include "validator/emu/handlers/mma.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "validator/emu/handlers/mma_forms.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/matrix.h"
#include "validator/emu/semantics/matrix_layout.h"
#include "validator/emu/semantics/soft.h"

namespace assay::emu {
namespace {

using enum Type;
using M = Mod;

// --- registers to matrices
template <class Word, int kPerRegister>
void GatherParts(Warp& warp, const DecodedOperand* operands, const MmaPlaces& places,
                 Word* matrix) {
  constexpr int kPartBits = static_cast<int>(sizeof(Word)) * 8 / kPerRegister;
  constexpr Word kMask =
      static_cast<Word>(~Word{0}) >> (static_cast<int>(sizeof(Word)) * 8 - kPartBits);
  const int elements = places.registers * kPerRegister;
  // wmma holds some elements twice; the hardware reads the first copy, which is written last here.
  for (int r = places.registers - 1; r >= 0; --r) {
    const Word* const lanes = warp.Lanes<Word>(operands[r].slot);
    const std::uint16_t* index = &places.index[static_cast<std::size_t>(r * kPerRegister)];
    for (int lane = 0; lane < kWarpSize; ++lane, index += elements) {
      const Word word = lanes[lane];
      for (int e = 0; e < kPerRegister; ++e) {
        matrix[index[e]] = static_cast<Word>(word >> (e * kPartBits)) & kMask;
      }
    }
  }
}
template <class Word>
void Gather(Warp& warp, const DecodedOperand* operands, const MmaPlaces& places, Word* matrix) {
  switch (places.per_register) {
    case 1:
      return GatherParts<Word, 1>(warp, operands, places, matrix);
    case 2:
      return GatherParts<Word, 2>(warp, operands, places, matrix);
    case 4:
      return GatherParts<Word, 4>(warp, operands, places, matrix);
    default:
      return GatherParts<Word, 8>(warp, operands, places, matrix);
  }
}
template <class Word>
void Scatter(Warp& warp, const DecodedOperand* operands, const MmaPlaces& places,
             const Word* matrix) {
  const int elements = places.registers * places.per_register;
  for (int r = 0; r < places.registers; ++r) {
    Word* const lanes = warp.Lanes<Word>(operands[r].slot);
    const std::uint16_t* index = &places.index[static_cast<std::size_t>(r * places.per_register)];
    for (int lane = 0; lane < kWarpSize; ++lane, index += elements) {
      if ((warp.exec >> lane & 1) == 0) continue;
      Word word = matrix[index[0]];
      if (places.per_register == 2) word = static_cast<Word>(word | matrix[index[1]] << 16);
      lanes[lane] = word;
    }
  }
}

constexpr int kMaxOperand = 16 * 256;  ///< The largest A or B.
constexpr int kMaxAccumulator = 32 * 32;

void SignExtend(Type type, u32* matrix, int size) {
  const int shift = type == kS8 ? 24 : type == kS4 ? 28 : 0;
  if (shift == 0) return;
  for (int i = 0; i < size; ++i)
    matrix[i] = static_cast<u32>(static_cast<s32>(matrix[i] << shift) >> shift);
}

// --- sparsity
TensorType TensorOf(Type type) {
  switch (type) {
    case kBF16:
      return TensorType::kBF16;
    case kTF32:
      return TensorType::kTF32;
    case kE4M3:
      return TensorType::kE4M3;
    case kE5M2:
      return TensorType::kE5M2;
    default:
      return TensorType::kF16;
  }
}

// --- handlers
void RunTensor(Warp& warp, const Decoded& op) {
  const MmaForm& form = MmaFormAt(op.aux);
  const MmaShape& shape = form.shape;
  const MmaOptions options = UnpackMma(op.immediate);
  const MmaPlaces& d_places = options.d == kF16 ? form.half_accumulator : form.accumulator;
  const MmaPlaces& c_places = options.c == kF16 ? form.half_accumulator : form.accumulator;
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
  if (shape.family == MmaFamily::kSparse) {
    alignas(64) u32 stored[kMaxOperand];
    Gather(warp, a_operands, form.a, stored);
    const bool integer =
        shape.elements == MmaElements::kByte || shape.elements == MmaElements::kNibble;
    if (integer) SignExtend(options.a, stored, form.a.size);
    // tf32 ignores these bits; no element may look absent by them.
    if (shape.elements == MmaElements::kTF32) {
      for (int i = 0; i < form.a.size; ++i) stored[i] &= 0xffffe000u;
    }
    const u32 absent = integer ? 0 : TensorAbsent(TensorOf(options.a));
    ExpandSparse(warp.Lanes<u32>(c_operands[c_places.registers].slot), form, options.selector,
                 absent, stored, a);
  } else {
    Gather(warp, a_operands, form.a, a);
    if (shape.elements == MmaElements::kByte || shape.elements == MmaElements::kNibble)
      SignExtend(options.a, a, form.a.size);
  }
  const auto as_signed = [](u32* words) { return reinterpret_cast<s32*>(words); };
  if (shape.elements == MmaElements::kBit) {
    TensorMultiplyBits(shape.m, shape.n, shape.k, options.exclusive_or, a, b, as_signed(c),
                       as_signed(d));
  } else if (shape.elements == MmaElements::kByte || shape.elements == MmaElements::kNibble) {
    SignExtend(options.b, b, form.b.size);
    TensorMultiplyInteger(shape.m, shape.n, shape.k, options.saturate, as_signed(a), as_signed(b),
                          as_signed(c), as_signed(d));
  } else {
    TensorProduct product{.m = shape.m,
                          .n = shape.n,
                          .k = shape.k,
                          .a = TensorOf(options.a),
                          .b = TensorOf(options.b)};
    product.sparse = shape.family == MmaFamily::kSparse;
    product.steps_of_4 = shape.family == MmaFamily::kWmma && shape.elements == MmaElements::kTF32;
    product.half_accumulator = options.c == kF16;
    product.half_result = options.d == kF16;
    TensorMultiply(product, a, b, c, d);
  }
  Scatter(warp, d_operands, d_places, d);
}

void RunF64(Warp& warp, const Decoded& op) {
  const MmaForm& form = MmaFormAt(op.aux);
  const MmaShape& shape = form.shape;
  const MmaOptions options = UnpackMma(op.immediate);
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
  TensorMultiplyF64(shape.m, shape.n, shape.k, static_cast<int>(options.round), as_double(a),
                    as_double(b), as_double(c), as_double(d));
  Scatter(warp, op.operands, form.accumulator, d);
}

/// mma.m8n8k4 on f16: four products of 8 by 8 by 4, each by a pair of four lanes.
void RunQuadPairs(Warp& warp, const Decoded& op) {
  const MmaOptions options = UnpackMma(op.immediate);
  const Fragment a_fragment = QuadPairFragment(Role::kA, options.a_column, 16);
  const Fragment b_fragment = QuadPairFragment(Role::kB, options.b_column, 16);
  const Fragment c_fragment =
      QuadPairFragment(Role::kAccumulator, false, options.c == kF16 ? 16 : 32);
  const Fragment d_fragment =
      QuadPairFragment(Role::kAccumulator, false, options.d == kF16 ? 16 : 32);
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
        const int index = at.column * fragment.rows + at.row;
        body(lane, e / fragment.elements_per_register,
             e % fragment.elements_per_register * fragment.element_bits, QuadPairOf(lane),
             static_cast<std::size_t>(index));
      }
    }
  };
  const auto gather = [&](const Fragment& fragment, const DecodedOperand* operands,
                          auto& matrices) {
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

// --- resolution
bool ElementsOf(Type type, MmaElements& elements) {
  switch (type) {
    case kF16:
      elements = MmaElements::kF16;
      return true;
    case kBF16:
      elements = MmaElements::kBF16;
      return true;
    case kTF32:
      elements = MmaElements::kTF32;
      return true;
    case kE4M3:
    case kE5M2:
      elements = MmaElements::kFp8;
      return true;
    case kF64:
      elements = MmaElements::kF64;
      return true;
    case kU8:
    case kS8:
      elements = MmaElements::kByte;
      return true;
    case kU4:
    case kS4:
      elements = MmaElements::kNibble;
      return true;
    case kB1:
      elements = MmaElements::kBit;
      return true;
    default:
      return false;
  }
}

struct Dimensions {
  int m = 0;
  int n = 0;
  int k = 0;
};
bool ParseDimensions(std::string_view text, Dimensions& dimensions) {
  return std::sscanf(std::string(text).c_str(), "m%dn%dk%d", &dimensions.m, &dimensions.n,
                     &dimensions.k) == 3;
}

/// Accumulator types that go with the elements.
bool AccumulatorFits(MmaElements elements, Type type) {
  switch (elements) {
    case MmaElements::kF16:
    case MmaElements::kFp8:
      return type == kF16 || type == kF32;
    case MmaElements::kBF16:
    case MmaElements::kTF32:
      return type == kF32;
    case MmaElements::kF64:
      return type == kF64;
    default:
      return type == kS32;
  }
}

}  // namespace

Handler ResolveMma(const ptx::Instruction& instruction, Decoded& decoded) {
  MmaFamily family = instruction.opcode == Opcode::kWmmaMma ? MmaFamily::kWmma : MmaFamily::kMma;
  Dimensions dimensions;
  MmaOptions options;
  int layouts = 0;
  bool popc = false;
  bool bit_operation = false;
  for (const Mod mod : instruction.mods) {
    switch (mod) {
      case M::kSync:
      case M::kAligned:
      case M::kMma:
        break;
      case M::kSp:
      case M::kSpOrderedMetadata:
        family = MmaFamily::kSparse;
        break;
      case M::kRow:
      case M::kCol:
        (layouts++ == 0 ? options.a_column : options.b_column) = mod == M::kCol;
        break;
      case M::kSatfinite:
        options.saturate = true;
        break;
      case M::kRn:
        options.round = Round::kNearest;
        break;
      case M::kRz:
        options.round = Round::kZero;
        break;
      case M::kRm:
        options.round = Round::kDown;
        break;
      case M::kRp:
        options.round = Round::kUp;
        break;
      case M::kXor:
        options.exclusive_or = true;
        bit_operation = true;
        break;
      case M::kAnd:
        bit_operation = true;
        break;
      case M::kPopc:
        popc = true;
        break;
      default:
        if (!ParseDimensions(ptx::Name(mod), dimensions)) return nullptr;
    }
  }
  if (instruction.types.size() == 4) {
    options.d = instruction.type(0);
    options.a = instruction.type(1);
    options.b = instruction.type(2);
    options.c = instruction.type(3);
  } else if (instruction.types.size() == 2 && family == MmaFamily::kWmma) {
    options.d = instruction.type(0);
    options.a = options.b = Type::kF16;
    options.c = instruction.type(1);
  } else {
    return nullptr;
  }
  MmaElements elements{};
  MmaElements b_elements{};
  if (!ElementsOf(options.a, elements) || !ElementsOf(options.b, b_elements) ||
      elements != b_elements || !AccumulatorFits(elements, options.d) ||
      !AccumulatorFits(elements, options.c) ||
      (elements == MmaElements::kBit) != (popc && bit_operation) ||
      (options.round != Round::kNearest && elements != MmaElements::kF64)) {
    return nullptr;
  }
  if (family == MmaFamily::kSparse) {
    std::uint64_t selector = 0;
    if (instruction.operands.size() != 6 ||
        instruction.operands[5].kind != ptx::Operand::Kind::kImmediate)
      return nullptr;
    selector = instruction.operands[5].bits;
    if (selector > 3) return nullptr;
    options.selector = static_cast<u8>(selector);
  } else if (instruction.operands.size() != 4) {
    return nullptr;
  }
  const int index = FindMmaForm({family, elements, dimensions.m, dimensions.n, dimensions.k});
  if (index < 0) return nullptr;
  decoded.aux = static_cast<u32>(index);
  decoded.immediate = Pack(options);
  // Registers must be as many as the fragments have: the handlers index operands by them.
  const MmaForm& form = MmaFormAt(static_cast<std::size_t>(index));
  const auto vector = [&](std::size_t operand) {
    return static_cast<int>(instruction.operands[operand].elements.size());
  };
  if (family == MmaFamily::kMma && elements == MmaElements::kF16 && dimensions.k == 4) {
    const int d_registers = options.d == Type::kF16 ? 4 : 8;
    const int c_registers = options.c == Type::kF16 ? 4 : 8;
    const bool fits =
        vector(0) == d_registers && vector(1) == 2 && vector(2) == 2 && vector(3) == c_registers;
    return fits ? RunQuadPairs : nullptr;
  }
  const MmaPlaces& d = options.d == Type::kF16 ? form.half_accumulator : form.accumulator;
  const MmaPlaces& c = options.c == Type::kF16 ? form.half_accumulator : form.accumulator;
  const bool fits = vector(0) == d.registers && vector(1) == form.a.registers &&
                    vector(2) == form.b.registers && vector(3) == c.registers;
  if (!fits) return nullptr;
  return elements == MmaElements::kF64 ? RunF64 : RunTensor;
}

}  // namespace assay::emu
