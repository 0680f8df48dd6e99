// Handlers of f32 and f64 arithmetic with directed rounding, and of other forms that kernels rarely
// use (PTX ISA 9.7.3, 9.7.5). Compiled once, for any processor.
#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"

namespace assay::emu {
namespace {

using enum Type;
using M = Mod;

/// Two f32 in a 64-bit register.
template <auto kFn, class Signature = decltype(kFn)>
struct Pair;
template <auto kFn>
struct Pair<kFn, float (*)(float, float)> {
  static u64 Of(u64 a, u64 b) {
    const u32 low = ToBits(kFn(FromBits(static_cast<u32>(a)), FromBits(static_cast<u32>(b))));
    const u32 high =
        ToBits(kFn(FromBits(static_cast<u32>(a >> 32)), FromBits(static_cast<u32>(b >> 32))));
    return u64{high} << 32 | low;
  }
};
template <auto kFn>
struct Pair<kFn, float (*)(float, float, float)> {
  static u64 Of(u64 a, u64 b, u64 c) {
    const u32 low = ToBits(kFn(FromBits(static_cast<u32>(a)), FromBits(static_cast<u32>(b)),
                               FromBits(static_cast<u32>(c))));
    const u32 high =
        ToBits(kFn(FromBits(static_cast<u32>(a >> 32)), FromBits(static_cast<u32>(b >> 32)),
                   FromBits(static_cast<u32>(c >> 32))));
    return u64{high} << 32 | low;
  }
};

/// Mixed precision: f16 or bf16 operands with an f32 addend (9.7.5).
template <class F, Round kMode, bool kSat>
float AddMixed(u16 a, float c) {
  return AddF32<kMode, false, kSat>(F::Widen(a), c);
}
template <class F, Round kMode, bool kSat>
float SubMixed(u16 a, float c) {
  return SubF32<kMode, false, kSat>(F::Widen(a), c);
}
template <class F, Round kMode, bool kSat>
float FmaMixed(u16 a, u16 b, float c) {
  return FmaF32<kMode, false, kSat>(F::Widen(a), F::Widen(b), c);
}

#define F32_ROWS(OPCODE, FN, MOD, MODE)                                                \
  {OPCODE, {kF32}, Mods(MOD), Map<FN<Round::MODE, false, false>>},                     \
      {OPCODE, {kF32}, Mods(MOD, M::kFtz), Map<FN<Round::MODE, true, false>>},         \
      {OPCODE, {kF32}, Mods(MOD, M::kSat), Map<FN<Round::MODE, false, true>>},         \
      {OPCODE, {kF32}, Mods(MOD, M::kFtz, M::kSat), Map<FN<Round::MODE, true, true>>}, \
      {OPCODE, {kF32x2}, Mods(MOD), Map<Pair<FN<Round::MODE, false, false>>::Of>}, {   \
    OPCODE, {kF32x2}, Mods(MOD, M::kFtz), Map<Pair<FN<Round::MODE, true, false>>::Of>  \
  }
#define F32_FTZ_ROWS(OPCODE, FN, MOD, MODE)                        \
  {OPCODE, {kF32}, Mods(MOD), Map<FN<Round::MODE, false>>}, {      \
    OPCODE, {kF32}, Mods(MOD, M::kFtz), Map<FN<Round::MODE, true>> \
  }
#define F64_ROWS(MOD, MODE)                                          \
  {Opcode::kAdd, {kF64}, Mods(MOD), Map<AddF64<Round::MODE>>},       \
      {Opcode::kSub, {kF64}, Mods(MOD), Map<SubF64<Round::MODE>>},   \
      {Opcode::kMul, {kF64}, Mods(MOD), Map<MulF64<Round::MODE>>},   \
      {Opcode::kFma, {kF64}, Mods(MOD), Map<FmaF64<Round::MODE>>},   \
      {Opcode::kMad, {kF64}, Mods(MOD), Map<FmaF64<Round::MODE>>},   \
      {Opcode::kDiv, {kF64}, Mods(MOD), Map<DivF64<Round::MODE>>},   \
      {Opcode::kRcp, {kF64}, Mods(MOD), Map<RcpF64<Round::MODE>>}, { \
    Opcode::kSqrt, {kF64}, Mods(MOD), Map<SqrtF64<Round::MODE>>      \
  }
#define DIRECTED_ROWS(MOD, MODE)                                                                \
  F32_ROWS(Opcode::kAdd, AddF32, MOD, MODE), F32_ROWS(Opcode::kSub, SubF32, MOD, MODE),         \
      F32_ROWS(Opcode::kMul, MulF32, MOD, MODE), F32_ROWS(Opcode::kFma, FmaF32, MOD, MODE),     \
      F32_ROWS(Opcode::kMad, FmaF32, MOD, MODE), F32_FTZ_ROWS(Opcode::kDiv, DivF32, MOD, MODE), \
      F32_FTZ_ROWS(Opcode::kRcp, RcpF32, MOD, MODE),                                            \
      F32_FTZ_ROWS(Opcode::kSqrt, SqrtF32, MOD, MODE), F64_ROWS(MOD, MODE)
#define MIXED_ROWS(MODS, MODE, TYPE, F)                                                          \
  {Opcode::kAdd, {kF32, TYPE}, MODS, Map<AddMixed<F, Round::MODE, false>>},                      \
      {Opcode::kSub, {kF32, TYPE}, MODS, Map<SubMixed<F, Round::MODE, false>>},                  \
      {Opcode::kFma, {kF32, TYPE}, MODS, Map<FmaMixed<F, Round::MODE, false>>},                  \
      {Opcode::kAdd, {kF32, TYPE}, MODS | Mods(M::kSat), Map<AddMixed<F, Round::MODE, true>>},   \
      {Opcode::kSub, {kF32, TYPE}, MODS | Mods(M::kSat), Map<SubMixed<F, Round::MODE, true>>}, { \
    Opcode::kFma, {kF32, TYPE}, MODS | Mods(M::kSat), Map<FmaMixed<F, Round::MODE, true>>        \
  }
#define MIXED_BOTH_ROWS(MODS, MODE) \
  MIXED_ROWS(MODS, MODE, kF16, Fp16), MIXED_ROWS(MODS, MODE, kBF16, Bf16)

constexpr HandlerRow kRows[] = {
    DIRECTED_ROWS(M::kRz, kZero),         DIRECTED_ROWS(M::kRm, kDown),
    DIRECTED_ROWS(M::kRp, kUp),           MIXED_BOTH_ROWS(ModSet{}, kNearest),
    MIXED_BOTH_ROWS(Mods(M::kRz), kZero), MIXED_BOTH_ROWS(Mods(M::kRm), kDown),
    MIXED_BOTH_ROWS(Mods(M::kRp), kUp),
};

}  // namespace

Handler ResolveRounded(const ptx::Instruction& instruction, Decoded& decoded) {
  return FindHandler(kRows, instruction, decoded);
}

}  // namespace assay::emu
