// Handlers of setp and set (PTX ISA 9.7.6, 9.7.7).
//
// A comparison of 32 lanes is a function from two arrays to a LaneMask; setp and set differ in what
// they make of the mask only.
#include "validator/emu/semantics/compare.h"

#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

using MaskFn = LaneMask (*)(const void* a, const void* b);

template <Comparison kHow, class As>
LaneMask MaskOf(const void* a, const void* b) {
  using Lane = typename As::Lane;
  const Lane* const x = static_cast<const Lane*>(__builtin_assume_aligned(a, 64));
  const Lane* const y = static_cast<const Lane*>(__builtin_assume_aligned(b, 64));
  LaneMask mask = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    mask |= static_cast<LaneMask>(Compare<kHow>(As::Load(x[i]), As::Load(y[i]))) << i;
  }
  return mask;
}

/// The operator between the comparison and the third operand, a predicate.
enum class Combine : u32 { kNone, kAnd, kOr, kXor };

[[gnu::always_inline]] inline LaneMask Combined(LaneMask mask, Combine how, LaneMask c) {
  return how == Combine::kAnd   ? mask & c
         : how == Combine::kOr  ? mask | c
         : how == Combine::kXor ? mask ^ c
                                : mask;
}

/// `setp.cmp p[|q], a, b{, c}`: p = cmp op c, q = !cmp op c. aux: Combine.
template <Comparison kHow, class As>
void SetP(Warp& warp, const Decoded& op) {
  const DecodedOperand* const sources = op.operands + op.destinations;
  const LaneMask mask =
      MaskOf<kHow, As>(LanesOf<char>(warp, sources[0].slot), LanesOf<char>(warp, sources[1].slot));
  if (op.aux == 0 && op.destinations == 1) [[likely]] {
    WritePredicate(warp, op.operands[0], mask);
    return;
  }
  const Combine how = static_cast<Combine>(op.aux);
  const LaneMask c = how == Combine::kNone ? 0 : PredicateOf(warp, sources[2]);
  WritePredicate(warp, op.operands[0], Combined(mask, how, c));
  if (op.destinations == 2) WritePredicate(warp, op.operands[1], Combined(~mask, how, c));
}

struct CompareRow {
  Type type;
  bool ftz;
  Mod how;
  MaskFn mask;
  Handler setp;
};

#define COMPARE_ROW(TYPE, FTZ, MOD, HOW, ...) \
  {TYPE, FTZ, MOD, MaskOf<Comparison::HOW, __VA_ARGS__>, SetP<Comparison::HOW, __VA_ARGS__>}
#define EQUALITY_ROWS(TYPE, ...)                      \
  COMPARE_ROW(TYPE, false, M::kEq, kEq, __VA_ARGS__), \
      COMPARE_ROW(TYPE, false, M::kNe, kNe, __VA_ARGS__)
#define ORDER_ROWS(TYPE, FTZ, ...)                      \
  COMPARE_ROW(TYPE, FTZ, M::kLt, kLt, __VA_ARGS__),     \
      COMPARE_ROW(TYPE, FTZ, M::kLe, kLe, __VA_ARGS__), \
      COMPARE_ROW(TYPE, FTZ, M::kGt, kGt, __VA_ARGS__), \
      COMPARE_ROW(TYPE, FTZ, M::kGe, kGe, __VA_ARGS__)
#define SIGNED_ROWS(TYPE, ...) \
  EQUALITY_ROWS(TYPE, __VA_ARGS__), ORDER_ROWS(TYPE, false, __VA_ARGS__)
#define UNSIGNED_ROWS(TYPE, ...)                                                      \
  SIGNED_ROWS(TYPE, __VA_ARGS__), COMPARE_ROW(TYPE, false, M::kLo, kLt, __VA_ARGS__), \
      COMPARE_ROW(TYPE, false, M::kLs, kLe, __VA_ARGS__),                             \
      COMPARE_ROW(TYPE, false, M::kHi, kGt, __VA_ARGS__),                             \
      COMPARE_ROW(TYPE, false, M::kHs, kGe, __VA_ARGS__)
#define FLOAT_ROWS(TYPE, FTZ, ...)                                                          \
  COMPARE_ROW(TYPE, FTZ, M::kEq, kEq, __VA_ARGS__),                                         \
      COMPARE_ROW(TYPE, FTZ, M::kNe, kNe, __VA_ARGS__), ORDER_ROWS(TYPE, FTZ, __VA_ARGS__), \
      COMPARE_ROW(TYPE, FTZ, M::kEqu, kEqu, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kNeu, kNeu, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kLtu, kLtu, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kLeu, kLeu, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kGtu, kGtu, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kGeu, kGeu, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kNum, kNum, __VA_ARGS__),                                   \
      COMPARE_ROW(TYPE, FTZ, M::kNan, kNan, __VA_ARGS__)

constexpr CompareRow kRows[] = {
    EQUALITY_ROWS(kB16, AsIs<u16>),
    EQUALITY_ROWS(kB32, AsIs<u32>),
    EQUALITY_ROWS(kB64, AsIs<u64>),
    UNSIGNED_ROWS(kU16, AsIs<u16>),
    UNSIGNED_ROWS(kU32, AsIs<u32>),
    UNSIGNED_ROWS(kU64, AsIs<u64>),
    SIGNED_ROWS(kS16, AsIs<s16>),
    SIGNED_ROWS(kS32, AsIs<s32>),
    SIGNED_ROWS(kS64, AsIs<s64>),
    FLOAT_ROWS(kF32, false, AsIs<float>),
    FLOAT_ROWS(kF32, true, AsF32Ftz),
    FLOAT_ROWS(kF64, false, AsIs<double>),
    FLOAT_ROWS(kF16, false, AsHalf<Fp16, false>),
    FLOAT_ROWS(kF16, true, AsHalf<Fp16, true>),
    FLOAT_ROWS(kBF16, false, AsHalf<Bf16, false>),
};

/// Packed types compare their halves as two rows of 32.
void SplitHalves(const u16* packed, u16* low, u16* high) {
  for (int i = 0; i < kWarpSize; ++i) {
    low[i] = packed[2 * i];
    high[i] = packed[2 * i + 1];
  }
}
struct Halves {
  LaneMask low;
  LaneMask high;
};
Halves CompareHalves(Warp& warp, const Decoded& op, const CompareRow& row) {
  const DecodedOperand* const sources = op.operands + op.destinations;
  alignas(64) u16 lanes[4][kWarpSize];
  SplitHalves(LanesOf<u16>(warp, sources[0].slot), lanes[0], lanes[1]);
  SplitHalves(LanesOf<u16>(warp, sources[1].slot), lanes[2], lanes[3]);
  return {row.mask(lanes[0], lanes[2]), row.mask(lanes[1], lanes[3])};
}

/// `setp.cmp.f16x2 p|q, a, b{, c}`: p is of the low halves, q of the high ones.
void SetPPacked(Warp& warp, const Decoded& op) {
  const Halves masks = CompareHalves(warp, op, kRows[op.immediate]);
  const Combine how = static_cast<Combine>(op.aux);
  const LaneMask c =
      how == Combine::kNone ? 0 : PredicateOf(warp, op.operands[op.destinations + 2]);
  WritePredicate(warp, op.operands[0], Combined(masks.low, how, c));
  if (op.destinations == 2) WritePredicate(warp, op.operands[1], Combined(masks.high, how, c));
}

/// What `set` writes for true: all ones in an integer, 1.0 in a floating-point type.
template <class T, T kTrue>
void SetHandler(Warp& warp, const Decoded& op) {
  LaneMask mask = kRows[op.immediate].mask(LanesOf<char>(warp, op.a), LanesOf<char>(warp, op.b));
  const Combine how = static_cast<Combine>(op.aux);
  if (how != Combine::kNone)
    mask = Combined(mask, how, PredicateOf(warp, op.operands[op.destinations + 2]));
  ForLanes<T>(warp, op.d, [=](int i) { return IsActive(mask, i) ? kTrue : T{0}; });
}
template <u16 kTrue>
void SetPacked(Warp& warp, const Decoded& op) {
  Halves masks = CompareHalves(warp, op, kRows[op.immediate]);
  const Combine how = static_cast<Combine>(op.aux);
  if (how != Combine::kNone) {
    const LaneMask c = PredicateOf(warp, op.operands[op.destinations + 2]);
    masks = {Combined(masks.low, how, c), Combined(masks.high, how, c)};
  }
  ForLanes<u32>(warp, op.d, [=](int i) {
    return (IsActive(masks.low, i) ? u32{kTrue} : 0u) |
           (IsActive(masks.high, i) ? u32{kTrue} << 16 : 0u);
  });
}

struct SetRow {
  Type destination;
  bool packed;
  Handler handler;
};
constexpr SetRow kSetRows[] = {
    {kU32, false, SetHandler<u32, 0xffffffffu>},
    {kS32, false, SetHandler<u32, 0xffffffffu>},
    {kB32, false, SetHandler<u32, 0xffffffffu>},
    {kF32, false, SetHandler<u32, 0x3f800000u>},
    {kU16, false, SetHandler<u16, 0xffff>},
    {kS16, false, SetHandler<u16, 0xffff>},
    {kF16, false, SetHandler<u16, 0x3c00>},
    {kBF16, false, SetHandler<u16, 0x3f80>},
    {kF16x2, true, SetPacked<0x3c00>},
    {kBF16x2, true, SetPacked<0x3f80>},
    {kU32, true, SetPacked<0xffff>},
    {kS32, true, SetPacked<0xffff>},
    {kB32, true, SetPacked<0xffff>},
};

/// Splits the modifiers into comparison, combination and .ftz; null when anything else is there.
const CompareRow* FindComparison(const Signature& signature, Type type, Combine& combine) {
  ModSet rest = signature.mods;
  const auto take = [&rest](Mod mod) {
    const ModSet bit = SetOf(mod);
    const bool has = (rest.low & bit.low) != 0 || (rest.high & bit.high) != 0;
    rest.low &= ~bit.low;
    rest.high &= ~bit.high;
    return has;
  };
  combine = take(M::kAnd)   ? Combine::kAnd
            : take(M::kOr)  ? Combine::kOr
            : take(M::kXor) ? Combine::kXor
                            : Combine::kNone;
  const bool ftz = take(M::kFtz);
  for (const CompareRow& row : kRows) {
    if (row.type == type && row.ftz == ftz && rest == SetOf(row.how)) return &row;
  }
  return nullptr;
}

bool IsPacked(Type type) { return type == kF16x2 || type == kBF16x2; }
Type ElementOf(Type type) { return type == kF16x2 ? kF16 : type == kBF16x2 ? kBF16 : type; }

}  // namespace

Handler ResolveCompare(const ptx::Instruction& instruction, Decoded& decoded) {
  const Signature signature = SignatureOf(instruction);
  if (signature.beyond) return nullptr;
  const bool is_set = signature.opcode == Opcode::kSet;
  const Type type = signature.types.type[is_set ? 1 : 0];
  if (signature.types.type[is_set ? 2 : 1] != kNone) return nullptr;
  Combine combine{};
  const CompareRow* const row = FindComparison(signature, ElementOf(type), combine);
  if (row == nullptr) return nullptr;
  const std::size_t sources = combine == Combine::kNone ? 2 : 3;
  const std::size_t operands = OperandCount(instruction);
  if (operands != sources + 1 && (is_set || operands != sources + 2)) return nullptr;
  decoded.aux = static_cast<u32>(combine);
  decoded.immediate = static_cast<u64>(row - kRows);
  if (!is_set) return IsPacked(type) ? SetPPacked : row->setp;
  for (const SetRow& set : kSetRows) {
    if (set.destination == signature.types.type[0] && set.packed == IsPacked(type))
      return set.handler;
  }
  return nullptr;
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
