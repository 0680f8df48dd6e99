// Handlers of f32 and f64 arithmetic with rounding to nearest (PTX ISA 9.7.3). Directed rounding is
// in rounded.cc.
#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/floating.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;
constexpr Round kRn = Round::kNearest;

/// Two f32 in a 64-bit register (f32x2).
template <auto kFn, class Signature = decltype(kFn)>
struct Pairwise;
template <auto kFn>
struct Pairwise<kFn, float (*)(float, float)> {
  static void Run(Warp& warp, const Decoded& op) {
    const float* const a = LanesOf<float>(warp, op.a);
    const float* const b = LanesOf<float>(warp, op.b);
    float* const d = LanesOf<float>(warp, op.d);
    for (int i = 0; i < 2 * kWarpSize; ++i) {
      const float result = kFn(a[i], b[i]);
      d[i] = IsActive(warp.exec, i / 2) ? result : d[i];
    }
  }
};
template <auto kFn>
struct Pairwise<kFn, float (*)(float, float, float)> {
  static void Run(Warp& warp, const Decoded& op) {
    const float* const a = LanesOf<float>(warp, op.a);
    const float* const b = LanesOf<float>(warp, op.b);
    const float* const c = LanesOf<float>(warp, op.c);
    float* const d = LanesOf<float>(warp, op.d);
    for (int i = 0; i < 2 * kWarpSize; ++i) {
      const float result = kFn(a[i], b[i], c[i]);
      d[i] = IsActive(warp.exec, i / 2) ? result : d[i];
    }
  }
};

#define F32_ROWS(OPCODE, FN)                                              \
  {OPCODE, {kF32}, {}, Map<FN<kRn, false, false>>},                       \
      {OPCODE, {kF32}, Mods(M::kFtz), Map<FN<kRn, true, false>>},         \
      {OPCODE, {kF32}, Mods(M::kSat), Map<FN<kRn, false, true>>},         \
      {OPCODE, {kF32}, Mods(M::kFtz, M::kSat), Map<FN<kRn, true, true>>}, \
      {OPCODE, {kF32x2}, {}, Pairwise<FN<kRn, false, false>>::Run}, {     \
    OPCODE, {kF32x2}, Mods(M::kFtz), Pairwise<FN<kRn, true, false>>::Run  \
  }
#define F32_FTZ_ROWS(OPCODE, MODS, FN)                       \
  {OPCODE, {kF32}, MODS, Map<FN<kRn, false>>}, {             \
    OPCODE, {kF32}, MODS | Mods(M::kFtz), Map<FN<kRn, true>> \
  }
/// Of two sources, or of three from sm_100 on.
#define MIN_MAX_ROWS(OPCODE, IS_MAX, MODS, NAN_MODE, XORSIGN)                                      \
  {OPCODE, {kF32}, MODS, Map<MinMaxF32<IS_MAX, MinMax{false, NAN_MODE, XORSIGN}>>},                \
      {OPCODE, {kF32}, MODS, Map<MinMax3F32<IS_MAX, MinMax{false, NAN_MODE, XORSIGN}>>},           \
      {OPCODE,                                                                                     \
       {kF32},                                                                                     \
       MODS | Mods(M::kFtz),                                                                       \
       Map<MinMaxF32<IS_MAX, MinMax{true, NAN_MODE, XORSIGN}>>},                                   \
  {                                                                                                \
    OPCODE, {kF32}, MODS | Mods(M::kFtz), Map<MinMax3F32<IS_MAX, MinMax{true, NAN_MODE, XORSIGN}>> \
  }
#define TEST_ROWS(MOD, CLASS)                                                    \
  {Opcode::kTestp, {kF32}, Mods(MOD), Map<TestP<FloatClass::CLASS, u32, 23>>}, { \
    Opcode::kTestp, {kF64}, Mods(MOD), Map<TestP<FloatClass::CLASS, u64, 52>>    \
  }

constexpr HandlerRow kRows[] = {
    F32_ROWS(Opcode::kAdd, AddF32),
    F32_ROWS(Opcode::kSub, SubF32),
    F32_ROWS(Opcode::kMul, MulF32),
    F32_ROWS(Opcode::kFma, FmaF32),
    F32_ROWS(Opcode::kMad, FmaF32),
    F32_FTZ_ROWS(Opcode::kDiv, ModSet{}, DivF32),
    F32_FTZ_ROWS(Opcode::kRcp, ModSet{}, RcpF32),
    F32_FTZ_ROWS(Opcode::kSqrt, ModSet{}, SqrtF32),
    {Opcode::kAbs, {kF32}, {}, Map<AbsF32<false>>},
    {Opcode::kAbs, {kF32}, Mods(M::kFtz), Map<AbsF32<true>>},
    {Opcode::kNeg, {kF32}, {}, Map<NegF32<false>>},
    {Opcode::kNeg, {kF32}, Mods(M::kFtz), Map<NegF32<true>>},
    {Opcode::kAbs, {kF64}, {}, Map<AbsF64>},
    {Opcode::kNeg, {kF64}, {}, Map<NegF64>},
    {Opcode::kAdd, {kF64}, {}, Map<AddF64<kRn>>},
    {Opcode::kSub, {kF64}, {}, Map<SubF64<kRn>>},
    {Opcode::kMul, {kF64}, {}, Map<MulF64<kRn>>},
    {Opcode::kFma, {kF64}, {}, Map<FmaF64<kRn>>},
    {Opcode::kMad, {kF64}, {}, Map<FmaF64<kRn>>},
    {Opcode::kDiv, {kF64}, {}, Map<DivF64<kRn>>},
    {Opcode::kRcp, {kF64}, {}, Map<RcpF64<kRn>>},
    {Opcode::kSqrt, {kF64}, {}, Map<SqrtF64<kRn>>},
    MIN_MAX_ROWS(Opcode::kMin, false, ModSet{}, false, false),
    MIN_MAX_ROWS(Opcode::kMax, true, ModSet{}, false, false),
    MIN_MAX_ROWS(Opcode::kMin, false, Mods(M::kNaN), true, false),
    MIN_MAX_ROWS(Opcode::kMax, true, Mods(M::kNaN), true, false),
    MIN_MAX_ROWS(Opcode::kMin, false, Mods(M::kXorsign, M::kAbs), false, true),
    MIN_MAX_ROWS(Opcode::kMax, true, Mods(M::kXorsign, M::kAbs), false, true),
    MIN_MAX_ROWS(Opcode::kMin, false, Mods(M::kNaN, M::kXorsign, M::kAbs), true, true),
    MIN_MAX_ROWS(Opcode::kMax, true, Mods(M::kNaN, M::kXorsign, M::kAbs), true, true),
    {Opcode::kMin, {kF64}, {}, Map<MinMaxF64<false>>},
    {Opcode::kMax, {kF64}, {}, Map<MinMaxF64<true>>},
    {Opcode::kCopysign, {kF32}, {}, Map<CopySign32>},
    {Opcode::kCopysign, {kF64}, {}, Map<CopySign64>},
    TEST_ROWS(M::kFinite, kFinite),
    TEST_ROWS(M::kInfinite, kInfinite),
    TEST_ROWS(M::kNumber, kNumber),
    TEST_ROWS(M::kNotanumber, kNotANumber),
    TEST_ROWS(M::kNormal, kNormal),
    TEST_ROWS(M::kSubnormal, kSubnormal),
};

}  // namespace

Handler ResolveFloat(const ptx::Instruction& instruction, Decoded& decoded) {
  if (const Handler handler = FindHandler(kRows, instruction, decoded)) return handler;
  return ResolveRounded(instruction, decoded);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
