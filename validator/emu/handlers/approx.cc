// Handlers of the approximate instructions (PTX ISA 9.7.3.7-9.7.3.22, 9.7.4.9-9.7.4.10).
#include "validator/emu/semantics/approx.h"

#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {
namespace {

using enum Type;
using M = Mod;

/// How a format is stored, read and rounded to.
template <bool kFtz>
struct AsFloat {
  using Lane = float;
  static double Load(float lane) { return static_cast<double>(FlushIf<kFtz>(lane)); }
  static float Store(double value) { return FlushIf<kFtz>(Canonical(static_cast<float>(value))); }
  static u64 Bits(float lane) { return ToBits(lane); }
};
template <class F, bool kFtz>
struct AsHalf {
  using Lane = u16;
  static double Load(u16 lane) { return static_cast<double>(F::Widen(FlushHalf<F, kFtz>(lane))); }
  static u16 Store(double value) { return FlushHalf<F, kFtz>(F::Narrow(NarrowToOdd(value))); }
  static u64 Bits(u16 lane) { return lane; }
};
struct AsDouble {
  using Lane = double;
  static double Load(double lane) { return lane; }
  static double Store(double value) { return IsNan(value) ? FromBits(kNanF64) : value; }
  static u64 Bits(double lane) { return ToBits(lane); }
};

/// The result that the seed asks for; where rounding has carried it out of the bound, the
/// unperturbed one.
template <class As>
typename As::Lane StorePerturbed(double exact, ErrorBound bound, u64 hash) {
  const typename As::Lane moved = As::Store(Perturbed(exact, bound, hash));
  const double reach = Reach(exact, bound);
  const double distance = As::Load(moved) - exact;
  return distance <= reach && -distance <= reach ? moved : As::Store(exact);
}

/// The hardware's reciprocals of powers of two are exact, and quotients by them with them: H200,
/// all that were recorded. Steps that divide by 1 and by 2 rely on it (running means).
inline bool IsPowerOfTwo(double x) {
  return x != 0.0 && x - x == 0.0 && (ToBits(x) & 0x000fffffffffffffull) == 0;
}
constexpr u64 kRcpTag = 1;

/// One source. kTag keeps different instructions' perturbations apart.
template <auto kFn, class As, ErrorBound kBound, int kLanes, u64 kTag>
void Approx1(Warp& warp, const Decoded& op) {
  using Lane = typename As::Lane;
  const Lane* const a = LanesOf<Lane>(warp, op.a);
  alignas(64) Lane results[kLanes * kWarpSize];
  if (warp.perturbation.seed == 0) [[likely]] {
    for (int i = 0; i < kLanes * kWarpSize; ++i) results[i] = As::Store(kFn(As::Load(a[i])));
  } else {
    const u64 seed = MixBits(warp.perturbation.seed ^ kTag << 56);
    for (int i = 0; i < kLanes * kWarpSize; ++i) {
      const u64 hash = MixBits(seed ^ As::Bits(a[i]));
      const double input = As::Load(a[i]);
      // What PTX tabulates for zeros is exact: ex2(0) and cos(0) are 1.
      const bool exact = input == 0.0 || (kTag == kRcpTag && IsPowerOfTwo(input));
      results[i] = exact ? As::Store(kFn(input)) : StorePerturbed<As>(kFn(input), kBound, hash);
    }
  }
  Lane* const d = LanesOf<Lane>(warp, op.d);
  for (int i = 0; i < kLanes * kWarpSize; ++i)
    d[i] = IsActive(warp.exec, i / kLanes) ? results[i] : d[i];
}

template <auto kFn, class As, ErrorBound kBound, u64 kTag>
void Approx2(Warp& warp, const Decoded& op) {
  using Lane = typename As::Lane;
  const Lane* const a = LanesOf<Lane>(warp, op.a);
  const Lane* const b = LanesOf<Lane>(warp, op.b);
  if (warp.perturbation.seed == 0) [[likely]] {
    ForLanes<Lane>(warp, op.d,
                   [=](int i) { return As::Store(kFn(As::Load(a[i]), As::Load(b[i]))); });
    return;
  }
  const u64 seed = MixBits(warp.perturbation.seed ^ kTag << 56);
  ForLanes<Lane>(warp, op.d, [=](int i) {
    const u64 hash = MixBits(seed ^ As::Bits(a[i]) ^ As::Bits(b[i]) << 32);
    const double exact = kFn(As::Load(a[i]), As::Load(b[i]));
    return IsPowerOfTwo(As::Load(b[i])) ? As::Store(exact)
                                        : StorePerturbed<As>(exact, kBound, hash);
  });
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and write the upper 32 bits only.
inline double UpperWord(double a) { return FromBits(ToBits(a) & 0xffffffff00000000ull); }
inline double FlushF64(double a) {
  return (ToBits(a) & 0x7ff0000000000000ull) == 0 ? FromBits(ToBits(a) & 0x8000000000000000ull) : a;
}
inline double RcpUpper(double a) { return UpperWord(FlushF64(1.0 / FlushF64(UpperWord(a)))); }
inline double RsqrtUpper(double a) {
  return UpperWord(1.0 / __builtin_sqrt(FlushF64(UpperWord(a))));
}

constexpr ErrorBound Relative(double bound) { return {.relative = bound}; }
constexpr ErrorBound Absolute(double bound) { return {.absolute = bound}; }
constexpr ErrorBound Ulps(double bound) { return {.ulps = bound}; }

#define F32_ROWS(OPCODE, FN, BOUND, TAG)                                                        \
  {OPCODE, {kF32}, Mods(M::kApprox), {Approx1<FN, AsFloat<false>, BOUND, 1, TAG>, 1}}, {        \
    OPCODE, {kF32}, Mods(M::kApprox, M::kFtz), { Approx1<FN, AsFloat<true>, BOUND, 1, TAG>, 1 } \
  }
#define DIV_ROWS(MOD, FN, BOUND, TAG)                                                       \
  {Opcode::kDiv, {kF32}, Mods(MOD), {Approx2<FN, AsFloat<false>, BOUND, TAG>, 2}}, {        \
    Opcode::kDiv, {kF32}, Mods(MOD, M::kFtz), { Approx2<FN, AsFloat<true>, BOUND, TAG>, 2 } \
  }
#define HALF_ROWS(OPCODE, TYPE, TYPE2, MODS, FN, AS, BOUND, TAG) \
  {OPCODE, {TYPE}, MODS, {Approx1<FN, AS, BOUND, 1, TAG>, 1}}, { \
    OPCODE, {TYPE2}, MODS, { Approx1<FN, AS, BOUND, 2, TAG>, 1 } \
  }

using AsF16 = AsHalf<Fp16, false>;
using AsBf16 = AsHalf<Bf16, false>;
using AsBf16Ftz = AsHalf<Bf16, true>;

/// Bounds as PTX states them. `lg2` is relative except near 1, where it is absolute; f64 forms have
/// no bound and are not perturbed.
constexpr ErrorBound kLg2Bound{.relative = 0x1.5p-23, .absolute = 0x1.5p-23};
constexpr ErrorBound kEx2F16Bound{.relative = 0x1.1p-10, .absolute = 0x1p-24};
constexpr ErrorBound kNoBound{};
constexpr ModSet kApproxMod = Mods(M::kApprox);
constexpr ModSet kApproxFtz = Mods(M::kApprox, M::kFtz);

constexpr HandlerRow kRows[] = {
    F32_ROWS(Opcode::kRcp, Rcp, Ulps(1.0), kRcpTag),
    F32_ROWS(Opcode::kSqrt, Sqrt, Relative(0x1p-23), 2),
    F32_ROWS(Opcode::kRsqrt, Rsqrt, Relative(0x1.1p-23), 3),
    F32_ROWS(Opcode::kEx2, Exp2, Relative(0x1p-22), 4),
    F32_ROWS(Opcode::kLg2, Log2, kLg2Bound, 5),
    F32_ROWS(Opcode::kSin, Sin, Absolute(0x1.6p-21), 6),
    F32_ROWS(Opcode::kCos, Cos, Absolute(0x1.6p-21), 7),
    F32_ROWS(Opcode::kTanh, Tanh, Relative(0x1p-11), 8),
    DIV_ROWS(M::kApprox, DivApprox, Ulps(2.0), 9),
    DIV_ROWS(M::kFull, DivFull, Ulps(2.0), 10),
    {Opcode::kRcp, {kF64}, kApproxFtz, {Approx1<RcpUpper, AsDouble, kNoBound, 1, 11>, 1}},
    {Opcode::kRsqrt, {kF64}, kApproxFtz, {Approx1<RsqrtUpper, AsDouble, kNoBound, 1, 12>, 1}},
    {Opcode::kRsqrt, {kF64}, kApproxMod, {Approx1<Rsqrt, AsDouble, kNoBound, 1, 13>, 1}},
    HALF_ROWS(Opcode::kEx2, kF16, kF16x2, kApproxMod, Exp2, AsF16, kEx2F16Bound, 14),
    HALF_ROWS(Opcode::kEx2, kBF16, kBF16x2, kApproxFtz, Exp2, AsBf16Ftz, Relative(0x1p-7), 15),
    HALF_ROWS(Opcode::kTanh, kF16, kF16x2, kApproxMod, Tanh, AsF16, Absolute(0x1.02p-11), 16),
    HALF_ROWS(Opcode::kTanh, kBF16, kBF16x2, kApproxMod, Tanh, AsBf16, Relative(0x1p-8), 17),
};

}  // namespace

Handler ResolveApprox(const ptx::Instruction& instruction, Decoded& decoded) {
  return FindHandler(kRows, instruction, decoded);
}

Handler ResolveFloatFamily(const ptx::Instruction& instruction, Decoded& decoded) {
  if (const Handler handler = ResolveFloat(instruction, decoded)) return handler;
  if (const Handler handler = ResolveHalf(instruction, decoded)) return handler;
  return ResolveApprox(instruction, decoded);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
