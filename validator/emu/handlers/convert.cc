// Handlers of the common forms of cvt (PTX ISA 9.7.9.21). convert_rare.cc has all others.
//
// cvt takes registers wider than its types: a source is truncated, a result is extended (by its own
// signedness). Handlers look at the widths when they run; where they are not the types' own, the
// slow handler of convert_rare.cc does the work.
#include "validator/emu/semantics/convert.h"

#include "validator/emu/handlers/convert_rare.h"
#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

/// Natural widths: straight to the lanes.
template <auto kFn, class Signature = decltype(kFn)>
struct Cvt;
template <auto kFn, class R, class A>
struct Cvt<kFn, R (*)(A)> {
  static void Run(Warp& warp, const Decoded& op) {
    if (op.operands[0].bits != kBits<R> || op.operands[1].bits != kBits<A>) [[unlikely]] {
      ConvertRare(warp, op);
      return;
    }
    Lanewise<kFn>::Run(warp, op);
  }
};
template <auto kFn, class R, class A, class B>
struct Cvt<kFn, R (*)(A, B)> {
  static void Run(Warp& warp, const Decoded& op) {
    if (op.operands[0].bits != kBits<R> || op.operands[1].bits != kBits<A> ||
        op.operands[2].bits != kBits<B>) [[unlikely]] {
      ConvertRare(warp, op);
      return;
    }
    Lanewise<kFn>::Run(warp, op);
  }
};
template <auto kFn>
inline constexpr LaneHandler MapCvt{&Cvt<kFn>::Run, kArity<decltype(kFn)>};

template <class D, class S>
inline D Extend(S a) {
  return static_cast<D>(a);
}

/// One lane of an integer conversion, as 64 bits.
using LoadFn = void (*)(const void* lanes, s64* values);
template <class Lane, class T>
void LoadLanes(const void* lanes, s64* values) {
  const Lane* const from = static_cast<const Lane*>(lanes);
  for (int i = 0; i < kWarpSize; ++i) values[i] = static_cast<s64>(static_cast<T>(from[i]));
}
using StoreFn = void (*)(Warp& warp, Slot slot, const s64* values);
template <class Lane, class T>
void StoreLanes(Warp& warp, Slot slot, const s64* values) {
  ForLanes<Lane>(warp, slot, [=](int i) { return static_cast<Lane>(static_cast<T>(values[i])); });
}

struct IntegerAccess {
  Type type;
  int register_bits;
  LoadFn load;
  StoreFn store;
};
#define ACCESS(TYPE, T, BITS, LANE) {TYPE, BITS, LoadLanes<LANE, T>, StoreLanes<LANE, T>}
#define ACCESS_ROWS(TYPE, T) ACCESS(TYPE, T, 32, u32), ACCESS(TYPE, T, 64, u64)
constexpr IntegerAccess kAccess[] = {
    ACCESS(kU8, u8, 16, u16),   ACCESS_ROWS(kU8, u8),       ACCESS(kS8, s8, 16, u16),
    ACCESS_ROWS(kS8, s8),       ACCESS(kU16, u16, 16, u16), ACCESS_ROWS(kU16, u16),
    ACCESS(kS16, s16, 16, u16), ACCESS_ROWS(kS16, s16),     ACCESS_ROWS(kU32, u32),
    ACCESS_ROWS(kS32, s32),     ACCESS(kU64, u64, 64, u64), ACCESS(kS64, s64, 64, u64),
};
const IntegerAccess* FindAccess(Type type, int bits) {
  for (const IntegerAccess& access : kAccess) {
    if (access.type == type && access.register_bits == bits) return &access;
  }
  return nullptr;
}

/// Integer to integer of any widths, without .sat: truncation and extension.
void ConvertIntegers(Warp& warp, const Decoded& op) {
  const Conversion how = UnpackConversion(op.immediate);
  const IntegerAccess* const from = FindAccess(how.source, op.operands[1].bits);
  const IntegerAccess* const to = FindAccess(how.destination, op.operands[0].bits);
  if (from == nullptr || to == nullptr) {
    ConvertRare(warp, op);
    return;
  }
  alignas(64) s64 values[kWarpSize];
  from->load(LanesOf<char>(warp, op.a), values);
  to->store(warp, op.d, values);
}

#define EXTEND_ROWS(D_TYPE, D, S_TYPE, S) {Opcode::kCvt, {D_TYPE, S_TYPE}, {}, MapCvt<Extend<D, S>>}
#define TO_INTEGER_ROWS(TYPE, T, MOD, MODE)                                             \
  {Opcode::kCvt, {TYPE, kF32}, Mods(MOD), MapCvt<F32ToInteger<T, Round::MODE, false>>}, \
      {Opcode::kCvt,                                                                    \
       {TYPE, kF32},                                                                    \
       Mods(MOD, M::kFtz),                                                              \
       MapCvt<F32ToInteger<T, Round::MODE, true>>},                                     \
  {                                                                                     \
    Opcode::kCvt, {TYPE, kF64}, Mods(MOD), MapCvt<F64ToInteger<T, Round::MODE>>         \
  }
#define FROM_INTEGER_ROWS(TYPE, T)                             \
  {Opcode::kCvt, {kF32, TYPE}, {}, MapCvt<IntegerToF32<T>>}, { \
    Opcode::kCvt, {kF64, TYPE}, {}, MapCvt<IntegerToF64<T>>    \
  }
#define INTEGRAL_ROWS(MOD, MODE)                                                               \
  {Opcode::kCvt, {kF32, kF32}, Mods(MOD), MapCvt<F32ToIntegral<Round::MODE, false, false>>}, { \
    Opcode::kCvt, {kF32, kF32}, Mods(MOD, M::kFtz),                                            \
        MapCvt<F32ToIntegral<Round::MODE, true, false>>                                        \
  }
#define HALF_ROWS(TYPE, TYPE2, F)                                                                 \
  {Opcode::kCvt, {kF32, TYPE}, {}, MapCvt<HalfToF32<F, false>>},                                  \
      {Opcode::kCvt, {kF32, TYPE}, Mods(M::kFtz), MapCvt<HalfToF32<F, true>>},                    \
      {Opcode::kCvt, {TYPE, kF32}, {}, MapCvt<F32ToHalf<F, false, false>>},                       \
      {Opcode::kCvt, {TYPE, kF32}, Mods(M::kFtz), MapCvt<F32ToHalf<F, true, false>>},             \
      {Opcode::kCvt, {TYPE, kF32}, Mods(M::kRelu), MapCvt<F32ToHalf<F, false, true>>},            \
      {Opcode::kCvt, {TYPE2, kF32}, {}, MapCvt<F32PairToHalves<F, false, false>>},                \
      {Opcode::kCvt, {TYPE2, kF32}, Mods(M::kRelu), MapCvt<F32PairToHalves<F, false, true>>},     \
      {Opcode::kCvt, {TYPE, kS32}, {}, MapCvt<IntegerToHalf<F, s32>>},                            \
      {Opcode::kCvt, {TYPE, kU32}, {}, MapCvt<IntegerToHalf<F, u32>>},                            \
      {Opcode::kCvt, {kS32, TYPE}, Mods(M::kRzi), MapCvt<HalfToInteger<s32, F, Round::kZero>>}, { \
    Opcode::kCvt, {kU32, TYPE}, Mods(M::kRzi), MapCvt<HalfToInteger<u32, F, Round::kZero>>        \
  }

constexpr HandlerRow kRows[] = {
    EXTEND_ROWS(kU64, u64, kU32, u32),
    EXTEND_ROWS(kS64, u64, kU32, u32),
    EXTEND_ROWS(kS64, s64, kS32, s32),
    EXTEND_ROWS(kU64, s64, kS32, s32),
    EXTEND_ROWS(kU32, u32, kU64, u64),
    EXTEND_ROWS(kS32, u32, kU64, u64),
    EXTEND_ROWS(kU32, u32, kS64, u64),
    EXTEND_ROWS(kS32, u32, kS64, u64),
    EXTEND_ROWS(kU32, u32, kU16, u16),
    EXTEND_ROWS(kS32, u32, kU16, u16),
    EXTEND_ROWS(kS32, s32, kS16, s16),
    EXTEND_ROWS(kU32, s32, kS16, s16),
    EXTEND_ROWS(kU16, u16, kU32, u32),
    EXTEND_ROWS(kS16, u16, kU32, u32),
    EXTEND_ROWS(kU16, u16, kS32, u32),
    EXTEND_ROWS(kS16, u16, kS32, u32),
    FROM_INTEGER_ROWS(kS32, s32),
    FROM_INTEGER_ROWS(kU32, u32),
    FROM_INTEGER_ROWS(kS64, s64),
    FROM_INTEGER_ROWS(kU64, u64),
    FROM_INTEGER_ROWS(kU16, u16),
    FROM_INTEGER_ROWS(kS16, s16),
    TO_INTEGER_ROWS(kS32, s32, M::kRzi, kZero),
    TO_INTEGER_ROWS(kU32, u32, M::kRzi, kZero),
    TO_INTEGER_ROWS(kS64, s64, M::kRzi, kZero),
    TO_INTEGER_ROWS(kU64, u64, M::kRzi, kZero),
    TO_INTEGER_ROWS(kS32, s32, M::kRni, kNearest),
    TO_INTEGER_ROWS(kU32, u32, M::kRni, kNearest),
    TO_INTEGER_ROWS(kS32, s32, M::kRmi, kDown),
    TO_INTEGER_ROWS(kS32, s32, M::kRpi, kUp),
    INTEGRAL_ROWS(M::kRni, kNearest),
    INTEGRAL_ROWS(M::kRzi, kZero),
    INTEGRAL_ROWS(M::kRmi, kDown),
    INTEGRAL_ROWS(M::kRpi, kUp),
    {Opcode::kCvt, {kF32, kF32}, {}, MapCvt<F32ToF32<false, false>>},
    {Opcode::kCvt, {kF32, kF32}, Mods(M::kFtz), MapCvt<F32ToF32<true, false>>},
    {Opcode::kCvt, {kF32, kF32}, Mods(M::kSat), MapCvt<F32ToF32<false, true>>},
    {Opcode::kCvt, {kF32, kF32}, Mods(M::kFtz, M::kSat), MapCvt<F32ToF32<true, true>>},
    {Opcode::kCvt, {kF64, kF32}, {}, MapCvt<F32ToF64<false>>},
    {Opcode::kCvt, {kF64, kF32}, Mods(M::kFtz), MapCvt<F32ToF64<true>>},
    {Opcode::kCvt, {kF32, kF64}, {}, MapCvt<F64ToF32<false>>},
    {Opcode::kCvt, {kF32, kF64}, Mods(M::kFtz), MapCvt<F64ToF32<true>>},
    HALF_ROWS(kF16, kF16x2, Fp16),
    HALF_ROWS(kBF16, kBF16x2, Bf16),
};

bool IsIntegral(Type type) { return type >= kU8 && type <= kS64; }

}  // namespace

Handler ResolveConvert(const ptx::Instruction& instruction, Decoded& decoded) {
  // Also fills `immediate`, which the slow handler needs wherever registers are wider than their
  // types.
  const Handler rare = ResolveConvertRare(instruction, decoded);
  if (rare != ConvertRare) return rare;
  if (const Handler handler = FindHandler(kRows, instruction, decoded)) return handler;
  const Conversion how = UnpackConversion(decoded.immediate);
  if (IsIntegral(how.source) && IsIntegral(how.destination) && !how.sat) return ConvertIntegers;
  return rare;
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
