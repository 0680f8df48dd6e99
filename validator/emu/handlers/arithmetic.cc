// Handlers of add, sub, mul, mad, div, min, max, abs and neg on integers (PTX ISA 9.7.1).
#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/integer.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

#define ROWS_16_32_64(OPCODE, MODS, FN)                                           \
  {OPCODE, {kU16}, MODS, Map<FN<u16>>}, {OPCODE, {kS16}, MODS, Map<FN<s16>>},     \
      {OPCODE, {kU32}, MODS, Map<FN<u32>>}, {OPCODE, {kS32}, MODS, Map<FN<s32>>}, \
      {OPCODE, {kU64}, MODS, Map<FN<u64>>}, {                                     \
    OPCODE, {kS64}, MODS, Map<FN<s64>>                                            \
  }
/// Where signedness does not matter.
#define ROWS_UNSIGNED(OPCODE, MODS, FN)                                           \
  {OPCODE, {kU16}, MODS, Map<FN<u16>>}, {OPCODE, {kS16}, MODS, Map<FN<u16>>},     \
      {OPCODE, {kU32}, MODS, Map<FN<u32>>}, {OPCODE, {kS32}, MODS, Map<FN<u32>>}, \
      {OPCODE, {kU64}, MODS, Map<FN<u64>>}, {                                     \
    OPCODE, {kS64}, MODS, Map<FN<u64>>                                            \
  }
#define ROWS_SIGNED(OPCODE, MODS, FN)                                           \
  {OPCODE, {kS16}, MODS, Map<FN<s16>>}, {OPCODE, {kS32}, MODS, Map<FN<s32>>}, { \
    OPCODE, {kS64}, MODS, Map<FN<s64>>                                          \
  }
#define ROWS_WIDE(OPCODE, FN)                                                                     \
  {OPCODE, {kU16}, Mods(M::kWide), Map<FN<u16>>}, {OPCODE, {kS16}, Mods(M::kWide), Map<FN<s16>>}, \
      {OPCODE, {kU32}, Mods(M::kWide), Map<FN<u32>>}, {                                           \
    OPCODE, {kS32}, Mods(M::kWide), Map<FN<s32>>                                                  \
  }

constexpr HandlerRow kRows[] = {
    ROWS_UNSIGNED(Opcode::kAdd, {}, Add),
    ROWS_UNSIGNED(Opcode::kSub, {}, Sub),
    {Opcode::kAdd, {kS32}, Mods(M::kSat), Map<AddSat>},
    {Opcode::kSub, {kS32}, Mods(M::kSat), Map<SubSat>},
    ROWS_UNSIGNED(Opcode::kMul, Mods(M::kLo), MulLo),
    ROWS_16_32_64(Opcode::kMul, Mods(M::kHi), MulHi),
    ROWS_WIDE(Opcode::kMul, MulWide),
    ROWS_UNSIGNED(Opcode::kMad, Mods(M::kLo), MadLo),
    ROWS_16_32_64(Opcode::kMad, Mods(M::kHi), MadHi),
    ROWS_WIDE(Opcode::kMad, MadWide),
    {Opcode::kMad, {kS32}, Mods(M::kHi, M::kSat), Map<MadHiSat>},
    ROWS_16_32_64(Opcode::kDiv, {}, Div),
    ROWS_SIGNED(Opcode::kAbs, {}, AbsInt),
    ROWS_SIGNED(Opcode::kNeg, {}, NegInt),
    ROWS_16_32_64(Opcode::kMin, {}, MinInt),
    ROWS_16_32_64(Opcode::kMax, {}, MaxInt),
    {Opcode::kMin, {kS32}, Mods(M::kRelu), Map<MinReluInt<s32>>},
    {Opcode::kMax, {kS32}, Mods(M::kRelu), Map<MaxReluInt<s32>>},

    {Opcode::kAdd, {kU16x2}, {}, Map<Packed16<u16, Add<u16>>>},
    {Opcode::kAdd, {kS16x2}, {}, Map<Packed16<u16, Add<u16>>>},
    {Opcode::kMin, {kU16x2}, {}, Map<Packed16<u16, MinInt<u16>>>},
    {Opcode::kMin, {kS16x2}, {}, Map<Packed16<s16, MinInt<s16>>>},
    {Opcode::kMin, {kS16x2}, Mods(M::kRelu), Map<Packed16<s16, MinReluInt<s16>>>},
    {Opcode::kMax, {kU16x2}, {}, Map<Packed16<u16, MaxInt<u16>>>},
    {Opcode::kMax, {kS16x2}, {}, Map<Packed16<s16, MaxInt<s16>>>},
    {Opcode::kMax, {kS16x2}, Mods(M::kRelu), Map<Packed16<s16, MaxReluInt<s16>>>},
};

}  // namespace

Handler ResolveArithmetic(const ptx::Instruction& instruction, Decoded& decoded) {
  const Signature signature = SignatureOf(instruction);
  if (const Handler handler = FindHandler(kRows, std::size(kRows), signature, instruction, decoded))
    return handler;
  if (const Handler handler = ResolveInteger(instruction, decoded)) return handler;  // .cc
  return ResolveFloatFamily(instruction, decoded);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
