// Handlers of f16, f16x2, bf16 and bf16x2 arithmetic (PTX ISA 9.7.4). Packed operands are 64 lanes
// of 16 bits.
#include "validator/emu/semantics/half.h"

#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

/// Runs a function of 16-bit values on both halves of every lane.
template <auto kFn, class Signature = decltype(kFn)>
struct Packed;

template <class Fn>
[[gnu::always_inline]] inline void ForHalves(Warp& warp, Slot destination, Fn fn) {
  u16* const d = LanesOf<u16>(warp, destination);
  const LaneMask exec = warp.exec;
  if (exec == kAllLanes) [[likely]] {
#pragma GCC ivdep
    for (int i = 0; i < 2 * kWarpSize; ++i) d[i] = fn(i);
  } else {
    alignas(64) u16 results[2 * kWarpSize];
    for (int i = 0; i < 2 * kWarpSize; ++i) results[i] = fn(i);
    BlendLanes(reinterpret_cast<u32*>(d), reinterpret_cast<const u32*>(results), exec);
  }
}
template <auto kFn>
struct Packed<kFn, u16 (*)(u16)> {
  static void Run(Warp& warp, const Decoded& op) {
    const u16* const a = LanesOf<u16>(warp, op.a);
    ForHalves(warp, op.d, [=](int i) { return kFn(a[i]); });
  }
};
template <auto kFn>
struct Packed<kFn, u16 (*)(u16, u16)> {
  static void Run(Warp& warp, const Decoded& op) {
    const u16* const a = LanesOf<u16>(warp, op.a);
    const u16* const b = LanesOf<u16>(warp, op.b);
    ForHalves(warp, op.d, [=](int i) { return kFn(a[i], b[i]); });
  }
};
template <auto kFn>
struct Packed<kFn, u16 (*)(u16, u16, u16)> {
  static void Run(Warp& warp, const Decoded& op) {
    const u16* const a = LanesOf<u16>(warp, op.a);
    const u16* const b = LanesOf<u16>(warp, op.b);
    const u16* const c = LanesOf<u16>(warp, op.c);
    ForHalves(warp, op.d, [=](int i) { return kFn(a[i], b[i], c[i]); });
  }
};
template <auto kFn>
inline constexpr LaneHandler Map2x{&Packed<kFn>::Run, kArity<decltype(kFn)>};

#define F16_ROWS(OPCODE, MODS, ...) \
  {OPCODE, {kF16}, MODS, Map<__VA_ARGS__>}, { OPCODE, {kF16x2}, MODS, Map2x<__VA_ARGS__> }
#define BF16_ROWS(OPCODE, MODS, ...) \
  {OPCODE, {kBF16}, MODS, Map<__VA_ARGS__>}, { OPCODE, {kBF16x2}, MODS, Map2x<__VA_ARGS__> }
#define ARITHMETIC_ROWS(OPCODE, FN)                                                           \
  F16_ROWS(OPCODE, {}, FN<Fp16, HalfMode{}>),                                                 \
      F16_ROWS(OPCODE, Mods(M::kFtz), FN<Fp16, HalfMode{.ftz = true}>),                       \
      F16_ROWS(OPCODE, Mods(M::kSat), FN<Fp16, HalfMode{.sat = true}>),                       \
      F16_ROWS(OPCODE, Mods(M::kFtz, M::kSat), FN<Fp16, HalfMode{.ftz = true, .sat = true}>), \
      BF16_ROWS(OPCODE, {}, FN<Bf16, HalfMode{}>)
#define MIN_MAX_ROWS(OPCODE, IS_MAX, MODS, NAN_MODE, XORSIGN)                              \
  F16_ROWS(OPCODE, MODS, MinMaxHalf<Fp16, IS_MAX, MinMax{false, NAN_MODE, XORSIGN}>),      \
      F16_ROWS(OPCODE, MODS | Mods(M::kFtz),                                               \
               MinMaxHalf<Fp16, IS_MAX, MinMax{true, NAN_MODE, XORSIGN}>),                 \
      BF16_ROWS(OPCODE, MODS, MinMaxHalf<Bf16, IS_MAX, MinMax{false, NAN_MODE, XORSIGN}>), \
      F16_ROWS(OPCODE, MODS, MinMax3Half<Fp16, IS_MAX, MinMax{false, NAN_MODE, XORSIGN}>), \
      F16_ROWS(OPCODE, MODS | Mods(M::kFtz),                                               \
               MinMax3Half<Fp16, IS_MAX, MinMax{true, NAN_MODE, XORSIGN}>),                \
      BF16_ROWS(OPCODE, MODS, MinMax3Half<Bf16, IS_MAX, MinMax{false, NAN_MODE, XORSIGN}>)

constexpr HandlerRow kRows[] = {
    ARITHMETIC_ROWS(Opcode::kAdd, AddHalf),
    ARITHMETIC_ROWS(Opcode::kSub, SubHalf),
    ARITHMETIC_ROWS(Opcode::kMul, MulHalf),
    ARITHMETIC_ROWS(Opcode::kFma, FmaHalf),
    F16_ROWS(Opcode::kFma, Mods(M::kRelu), FmaHalf<Fp16, HalfMode{.relu = true}>),
    F16_ROWS(Opcode::kFma, Mods(M::kRelu, M::kFtz),
             FmaHalf<Fp16, HalfMode{.ftz = true, .relu = true}>),
    BF16_ROWS(Opcode::kFma, Mods(M::kRelu), FmaHalf<Bf16, HalfMode{.relu = true}>),
    F16_ROWS(Opcode::kFma, Mods(M::kOob), FmaHalfOutside<Fp16, HalfMode{}>),
    BF16_ROWS(Opcode::kFma, Mods(M::kOob), FmaHalfOutside<Bf16, HalfMode{}>),
    F16_ROWS(Opcode::kFma, Mods(M::kOob, M::kRelu), FmaHalfOutside<Fp16, HalfMode{.relu = true}>),
    BF16_ROWS(Opcode::kFma, Mods(M::kOob, M::kRelu), FmaHalfOutside<Bf16, HalfMode{.relu = true}>),
    F16_ROWS(Opcode::kNeg, {}, NegHalf<Fp16, false>),
    F16_ROWS(Opcode::kNeg, Mods(M::kFtz), NegHalf<Fp16, true>),
    BF16_ROWS(Opcode::kNeg, {}, NegHalf<Bf16, false>),
    F16_ROWS(Opcode::kAbs, {}, AbsHalf<Fp16, false>),
    F16_ROWS(Opcode::kAbs, Mods(M::kFtz), AbsHalf<Fp16, true>),
    BF16_ROWS(Opcode::kAbs, {}, AbsHalf<Bf16, false>),
    MIN_MAX_ROWS(Opcode::kMin, false, ModSet{}, false, false),
    MIN_MAX_ROWS(Opcode::kMax, true, ModSet{}, false, false),
    MIN_MAX_ROWS(Opcode::kMin, false, Mods(M::kNaN), true, false),
    MIN_MAX_ROWS(Opcode::kMax, true, Mods(M::kNaN), true, false),
    MIN_MAX_ROWS(Opcode::kMin, false, Mods(M::kXorsign, M::kAbs), false, true),
    MIN_MAX_ROWS(Opcode::kMax, true, Mods(M::kXorsign, M::kAbs), false, true),
    MIN_MAX_ROWS(Opcode::kMin, false, Mods(M::kNaN, M::kXorsign, M::kAbs), true, true),
    MIN_MAX_ROWS(Opcode::kMax, true, Mods(M::kNaN, M::kXorsign, M::kAbs), true, true),
};

}  // namespace

Handler ResolveHalf(const ptx::Instruction& instruction, Decoded& decoded) {
  return FindHandler(kRows, instruction, decoded);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
