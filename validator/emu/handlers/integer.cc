// Handlers of carry chains, bit fields, logic, shifts, permutes, dot products and packed video
// instructions (PTX ISA 9.7.1, 9.7.2, 9.7.8, 9.7.18.2).
#include "validator/emu/semantics/integer.h"

#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

// --- carry chains (9.7.2)
enum class CarryOp { kAdd, kSub };

/// d = a + b (+ CC.CF) or a - b (- borrow), writing CC.CF when the instruction says so. As in the
/// hardware, a subtraction is a + ~b + 1: CC.CF is the carry out, so that "no borrow" is 1. That
/// shows only where add.cc and subc, or sub.cc and addc, are mixed.
template <class T, CarryOp kOp, bool kReads, bool kWrites>
void CarryHandler(Warp& warp, const Decoded& op) {
  const T* const a = LanesOf<T>(warp, op.a);
  const T* const b = LanesOf<T>(warp, op.b);
  const LaneMask carry_in = kReads ? warp.carry : 0;
  LaneMask carry_out = 0;
  T results[kWarpSize];
  for (int i = 0; i < kWarpSize; ++i) {
    const T x = a[i];
    const T y = kOp == CarryOp::kAdd ? b[i] : static_cast<T>(~b[i]);
    const T in = kReads ? carry_in >> i & 1 : kOp == CarryOp::kAdd ? 0 : 1;
    const T partial = x + y;
    const T result = partial + in;
    const bool out = partial < x || result < partial;
    results[i] = result;
    carry_out |= static_cast<LaneMask>(out) << i;
  }
  ForLanes<T>(warp, op.d, [&](int i) { return results[i]; });
  if constexpr (kWrites) warp.carry = (warp.carry & ~warp.exec) | (carry_out & warp.exec);
}

template <class T, bool kHigh, bool kReads, bool kWrites>
void MadCarryHandler(Warp& warp, const Decoded& op) {
  const T* const a = LanesOf<T>(warp, op.a);
  const T* const b = LanesOf<T>(warp, op.b);
  const T* const c = LanesOf<T>(warp, op.c);
  using U = Unsigned<T>;
  const LaneMask carry_in = kReads ? warp.carry : 0;
  LaneMask carry_out = 0;
  U results[kWarpSize];
  for (int i = 0; i < kWarpSize; ++i) {
    const U product = Cast<U>(kHigh ? MulHi<T>(a[i], b[i]) : MulLo<T>(a[i], b[i]));
    const U in = carry_in >> i & 1;
    const U partial = product + Cast<U>(c[i]);
    results[i] = partial + in;
    carry_out |= static_cast<LaneMask>(partial < product || results[i] < partial) << i;
  }
  ForLanes<U>(warp, op.d, [&](int i) { return results[i]; });
  if constexpr (kWrites) warp.carry = (warp.carry & ~warp.exec) | (carry_out & warp.exec);
}

// --- predicate logic (9.7.8)
enum class Logic { kAnd, kOr, kXor, kNot };

template <Logic kOp>
void PredicateLogic(Warp& warp, const Decoded& op) {
  const LaneMask a = PredicateOf(warp, op.operands[1]);
  LaneMask result = ~a;
  if constexpr (kOp != Logic::kNot) {
    const LaneMask b = PredicateOf(warp, op.operands[2]);
    result = kOp == Logic::kAnd ? a & b : kOp == Logic::kOr ? a | b : a ^ b;
  }
  WritePredicate(warp, op.operands[0], result);
}

// --- lop3 (9.7.8.6)
/// The table is the fourth source; it arrives as an immediate.
bool PrepareLop3(const ptx::Instruction& instruction, Decoded& decoded) {
  const bool predicated = OperandCount(instruction) == 7;
  const std::size_t table = predicated ? 5u : 4u;
  if (!predicated && OperandCount(instruction) != 5) return false;
  return ImmediateOperand(instruction, table, decoded.immediate) && decoded.immediate < 256;
}

void Lop3Handler(Warp& warp, const Decoded& op) {
  const u32* const a = LanesOf<u32>(warp, op.a);
  const u32* const b = LanesOf<u32>(warp, op.b);
  const u32* const c = LanesOf<u32>(warp, op.c);
  const u32 table = static_cast<u32>(op.immediate);
  ForLanes<u32>(warp, op.d, [=](int i) { return Lop3(a[i], b[i], c[i], table); });
}
template <u32 kTable>
void Lop3Constant(Warp& warp, const Decoded& op) {
  const u32* const a = LanesOf<u32>(warp, op.a);
  const u32* const b = LanesOf<u32>(warp, op.b);
  const u32* const c = LanesOf<u32>(warp, op.c);
  ForLanes<u32>(warp, op.d, [=](int i) { return Lop3(a[i], b[i], c[i], kTable); });
}

/// lop3.BoolOp d|p, a, b, c, table, q: p = (d != 0) BoolOp q.
template <Logic kOp>
void Lop3Predicate(Warp& warp, const Decoded& op) {
  const u32* const a = LanesOf<u32>(warp, op.operands[2].slot);
  const u32* const b = LanesOf<u32>(warp, op.operands[3].slot);
  const u32* const c = LanesOf<u32>(warp, op.operands[4].slot);
  const u32 table = static_cast<u32>(op.immediate);
  u32 results[kWarpSize];
  LaneMask nonzero = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    results[i] = Lop3(a[i], b[i], c[i], table);
    nonzero |= static_cast<LaneMask>(results[i] != 0) << i;
  }
  const LaneMask q = PredicateOf(warp, op.operands[6]);
  if (op.operands[0].kind == DecodedOperand::Kind::kSlot) {
    ForLanes<u32>(warp, op.operands[0].slot, [&](int i) { return results[i]; });
  }
  WritePredicate(warp, op.operands[1], kOp == Logic::kAnd ? nonzero & q : nonzero | q);
}

#define CARRY_ROWS(TYPE, T)                                                              \
  {Opcode::kAdd, {TYPE}, Mods(M::kCc), CarryHandler<T, CarryOp::kAdd, false, true>},     \
      {Opcode::kAddc, {TYPE}, {}, CarryHandler<T, CarryOp::kAdd, true, false>},          \
      {Opcode::kAddc, {TYPE}, Mods(M::kCc), CarryHandler<T, CarryOp::kAdd, true, true>}, \
      {Opcode::kSub, {TYPE}, Mods(M::kCc), CarryHandler<T, CarryOp::kSub, false, true>}, \
      {Opcode::kSubc, {TYPE}, {}, CarryHandler<T, CarryOp::kSub, true, false>}, {        \
    Opcode::kSubc, {TYPE}, Mods(M::kCc), CarryHandler<T, CarryOp::kSub, true, true>      \
  }
#define MAD_CARRY_ROWS(TYPE, T)                                                               \
  {Opcode::kMad, {TYPE}, Mods(M::kLo, M::kCc), MadCarryHandler<T, false, false, true>},       \
      {Opcode::kMad, {TYPE}, Mods(M::kHi, M::kCc), MadCarryHandler<T, true, false, true>},    \
      {Opcode::kMadc, {TYPE}, Mods(M::kLo), MadCarryHandler<T, false, true, false>},          \
      {Opcode::kMadc, {TYPE}, Mods(M::kHi), MadCarryHandler<T, true, true, false>},           \
      {Opcode::kMadc, {TYPE}, Mods(M::kLo, M::kCc), MadCarryHandler<T, false, true, true>}, { \
    Opcode::kMadc, {TYPE}, Mods(M::kHi, M::kCc), MadCarryHandler<T, true, true, true>         \
  }
#define VIDEO_ROWS(OPCODE, FN, D, A, B, DT, AT, BT)                                \
  {OPCODE, {DT, AT, BT}, {}, Map<FN<D, A, B, Video::kWrap>>},                      \
      {OPCODE, {DT, AT, BT}, Mods(M::kSat), Map<FN<D, A, B, Video::kSaturate>>}, { \
    OPCODE, {DT, AT, BT}, Mods(M::kAdd), Map<FN<D, A, B, Video::kAdd>>             \
  }
/// All signs of destination and sources; U and S are the types of a lane.
#define VIDEO_SIGN_ROWS(OPCODE, FN, U, S)                \
  VIDEO_ROWS(OPCODE, FN, U, U, U, kU32, kU32, kU32),     \
      VIDEO_ROWS(OPCODE, FN, U, U, S, kU32, kU32, kS32), \
      VIDEO_ROWS(OPCODE, FN, U, S, U, kU32, kS32, kU32), \
      VIDEO_ROWS(OPCODE, FN, U, S, S, kU32, kS32, kS32), \
      VIDEO_ROWS(OPCODE, FN, S, U, U, kS32, kU32, kU32), \
      VIDEO_ROWS(OPCODE, FN, S, U, S, kS32, kU32, kS32), \
      VIDEO_ROWS(OPCODE, FN, S, S, U, kS32, kS32, kU32), \
      VIDEO_ROWS(OPCODE, FN, S, S, S, kS32, kS32, kS32)
#define LOGIC_ROWS(OPCODE, FN)                                              \
  {OPCODE, {kB16}, {}, Map<FN<u16>>}, {OPCODE, {kB32}, {}, Map<FN<u32>>}, { \
    OPCODE, {kB64}, {}, Map<FN<u64>>                                        \
  }
#define FIELD_ROWS(OPCODE, MODS, FN)                                          \
  {OPCODE, {kU32}, MODS, Map<FN<u32>>}, {OPCODE, {kS32}, MODS, Map<FN<s32>>}, \
      {OPCODE, {kU64}, MODS, Map<FN<u64>>}, {                                 \
    OPCODE, {kS64}, MODS, Map<FN<s64>>                                        \
  }
#define EACH_INT_ROWS(OPCODE, FN) \
  {OPCODE, {kU16}, {}, Map<FN<u16>>}, {OPCODE, {kS16}, {}, Map<FN<s16>>}, FIELD_ROWS(OPCODE, {}, FN)
constexpr HandlerRow kRows[] = {
    CARRY_ROWS(kU32, u32),
    CARRY_ROWS(kS32, u32),
    CARRY_ROWS(kU64, u64),
    CARRY_ROWS(kS64, u64),
    CARRY_ROWS(kB32, u32),
    CARRY_ROWS(kB64, u64),
    MAD_CARRY_ROWS(kU32, u32),
    MAD_CARRY_ROWS(kS32, s32),
    MAD_CARRY_ROWS(kU64, u64),
    MAD_CARRY_ROWS(kS64, s64),

    {Opcode::kMul24, {kU32}, Mods(M::kLo), Map<Mul24Lo<u32>>},
    {Opcode::kMul24, {kS32}, Mods(M::kLo), Map<Mul24Lo<s32>>},
    {Opcode::kMul24, {kU32}, Mods(M::kHi), Map<Mul24Hi<u32>>},
    {Opcode::kMul24, {kS32}, Mods(M::kHi), Map<Mul24Hi<s32>>},
    {Opcode::kMad24, {kU32}, Mods(M::kLo), Map<Mad24Lo<u32>>},
    {Opcode::kMad24, {kS32}, Mods(M::kLo), Map<Mad24Lo<s32>>},
    {Opcode::kMad24, {kU32}, Mods(M::kHi), Map<Mad24Hi<u32>>},
    {Opcode::kMad24, {kS32}, Mods(M::kHi), Map<Mad24Hi<s32>>},
    {Opcode::kMad24, {kS32}, Mods(M::kHi, M::kSat), Map<Mad24HiSat>},

    EACH_INT_ROWS(Opcode::kSad, Sad),
    EACH_INT_ROWS(Opcode::kRem, Rem),

    {Opcode::kPopc, {kB32}, {}, Map<Popc<u32>>},
    {Opcode::kPopc, {kB64}, {}, Map<Popc<u64>>},
    {Opcode::kClz, {kB32}, {}, Map<Clz<u32>>},
    {Opcode::kClz, {kB64}, {}, Map<Clz<u64>>},
    {Opcode::kBrev, {kB32}, {}, Map<Brev<u32>>},
    {Opcode::kBrev, {kB64}, {}, Map<Brev<u64>>},
    {Opcode::kFns, {kB32}, {}, Map<Fns>},
    FIELD_ROWS(Opcode::kBfind, {}, Bfind),
    FIELD_ROWS(Opcode::kBfind, Mods(M::kShiftamt), BfindShift),
    FIELD_ROWS(Opcode::kBfe, {}, Bfe),
    {Opcode::kBfi, {kB32}, {}, Map<Bfi<u32>>},
    {Opcode::kBfi, {kB64}, {}, Map<Bfi<u64>>},
    {Opcode::kSzext, {kU32}, Mods(M::kClamp), Map<Szext<true, u32>>},
    {Opcode::kSzext, {kS32}, Mods(M::kClamp), Map<Szext<true, s32>>},
    {Opcode::kSzext, {kU32}, Mods(M::kWrap), Map<Szext<false, u32>>},
    {Opcode::kSzext, {kS32}, Mods(M::kWrap), Map<Szext<false, s32>>},
    {Opcode::kBmsk, {kB32}, Mods(M::kClamp), Map<Bmsk<true>>},
    {Opcode::kBmsk, {kB32}, Mods(M::kWrap), Map<Bmsk<false>>},

    {Opcode::kDp4a, {kU32, kU32}, {}, Map<Dp4a<u8, u8>>},
    {Opcode::kDp4a, {kU32, kS32}, {}, Map<Dp4a<u8, s8>>},
    {Opcode::kDp4a, {kS32, kU32}, {}, Map<Dp4a<s8, u8>>},
    {Opcode::kDp4a, {kS32, kS32}, {}, Map<Dp4a<s8, s8>>},
    {Opcode::kDp2a, {kU32, kU32}, Mods(M::kLo), Map<Dp2a<u16, u8, 0>>},
    {Opcode::kDp2a, {kU32, kS32}, Mods(M::kLo), Map<Dp2a<u16, s8, 0>>},
    {Opcode::kDp2a, {kS32, kU32}, Mods(M::kLo), Map<Dp2a<s16, u8, 0>>},
    {Opcode::kDp2a, {kS32, kS32}, Mods(M::kLo), Map<Dp2a<s16, s8, 0>>},
    {Opcode::kDp2a, {kU32, kU32}, Mods(M::kHi), Map<Dp2a<u16, u8, 2>>},
    {Opcode::kDp2a, {kU32, kS32}, Mods(M::kHi), Map<Dp2a<u16, s8, 2>>},
    {Opcode::kDp2a, {kS32, kU32}, Mods(M::kHi), Map<Dp2a<s16, u8, 2>>},
    {Opcode::kDp2a, {kS32, kS32}, Mods(M::kHi), Map<Dp2a<s16, s8, 2>>},

    VIDEO_SIGN_ROWS(Opcode::kVabsdiff2, AbsoluteDifferences, u16, s16),
    VIDEO_SIGN_ROWS(Opcode::kVabsdiff4, AbsoluteDifferences, u8, s8),

    {Opcode::kAnd, {kPred}, {}, PredicateLogic<Logic::kAnd>},
    {Opcode::kOr, {kPred}, {}, PredicateLogic<Logic::kOr>},
    {Opcode::kXor, {kPred}, {}, PredicateLogic<Logic::kXor>},
    {Opcode::kNot, {kPred}, {}, PredicateLogic<Logic::kNot>},
    LOGIC_ROWS(Opcode::kAnd, And),
    LOGIC_ROWS(Opcode::kOr, Or),
    LOGIC_ROWS(Opcode::kXor, Xor),
    LOGIC_ROWS(Opcode::kNot, Not),
    LOGIC_ROWS(Opcode::kCnot, Cnot),
    LOGIC_ROWS(Opcode::kShl, Shl),
    LOGIC_ROWS(Opcode::kShr, Shr),
    EACH_INT_ROWS(Opcode::kShr, Shr),
    {Opcode::kLop3, {kB32}, {}, Lop3Handler, PrepareLop3},
    {Opcode::kLop3, {kB32}, Mods(M::kAnd), Lop3Predicate<Logic::kAnd>, PrepareLop3},
    {Opcode::kLop3, {kB32}, Mods(M::kOr), Lop3Predicate<Logic::kOr>, PrepareLop3},
    {Opcode::kShf, {kB32}, Mods(M::kL, M::kClamp), Map<ShfL<true>>},
    {Opcode::kShf, {kB32}, Mods(M::kL, M::kWrap), Map<ShfL<false>>},
    {Opcode::kShf, {kB32}, Mods(M::kR, M::kClamp), Map<ShfR<true>>},
    {Opcode::kShf, {kB32}, Mods(M::kR, M::kWrap), Map<ShfR<false>>},
    {Opcode::kPrmt, {kB32}, {}, Map<Prmt>},
    {Opcode::kPrmt, {kB32}, Mods(M::kF4e), Map<PrmtBy<PrmtMode::kF4e>>},
    {Opcode::kPrmt, {kB32}, Mods(M::kB4e), Map<PrmtBy<PrmtMode::kB4e>>},
    {Opcode::kPrmt, {kB32}, Mods(M::kRc8), Map<PrmtBy<PrmtMode::kRc8>>},
    {Opcode::kPrmt, {kB32}, Mods(M::kEcl), Map<PrmtBy<PrmtMode::kEcl>>},
    {Opcode::kPrmt, {kB32}, Mods(M::kEcr), Map<PrmtBy<PrmtMode::kEcr>>},
    {Opcode::kPrmt, {kB32}, Mods(M::kRc16), Map<PrmtBy<PrmtMode::kRc16>>},
};

/// Tables that kernels use most get a handler in which the compiler knows the table: and, or,
/// exclusive or of three, (a&b)|c, (a|b)&c, (a^b)&c, select by a, by c, the majority.
struct Lop3Row {
  u32 table;
  Handler handler;
};
constexpr Lop3Row kLop3Rows[] = {
    {0x80, Lop3Constant<0x80>}, {0xfe, Lop3Constant<0xfe>}, {0x96, Lop3Constant<0x96>},
    {0xea, Lop3Constant<0xea>}, {0xa8, Lop3Constant<0xa8>}, {0x28, Lop3Constant<0x28>},
    {0xca, Lop3Constant<0xca>}, {0xd8, Lop3Constant<0xd8>}, {0xe8, Lop3Constant<0xe8>},
    {0xf8, Lop3Constant<0xf8>}, {0x6a, Lop3Constant<0x6a>}, {0x78, Lop3Constant<0x78>},
};

}  // namespace

Handler ResolveInteger(const ptx::Instruction& instruction, Decoded& decoded) {
  const Handler handler = FindHandler(kRows, instruction, decoded);
  if (handler == Lop3Handler) {
    for (const Lop3Row& row : kLop3Rows) {
      if (row.table == decoded.immediate) return row.handler;
    }
  }
  return handler;
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
