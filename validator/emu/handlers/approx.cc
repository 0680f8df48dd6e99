// Handlers of the approximate instructions (PTX ISA 9.7.3.7-9.7.3.22, 9.7.4.9-9.7.4.10).
#include "validator/emu/semantics/approx.h"

#include "validator/emu/handlers/lanes.h"
#include "validator/emu/handlers/levels.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/mufu.h"

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
  using Format = F;
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

/// The hardware's reciprocals of powers of two are exact, and quotients by them with them. Steps
/// that divide by 1 and by 2 rely on it (running means).
inline bool IsPowerOfTwo(double x) {
  return x != 0.0 && x - x == 0.0 && (ToBits(x) & 0x000fffffffffffffull) == 0;
}
constexpr u64 kRcpTag = 1;

// What a form does: the chip's sequence for 32 lanes, and the exact value that perturbed results
// lie around.

/// A unit and what ptxas puts around it.
template <class Unit, class Around, auto kFn, bool kFtz>
struct OnUnit : AsFloat<kFtz> {
  static double Exact(double x) { return kFn(x); }
  static void Run(const float* in, float* out) {
    alignas(64) float lanes[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) lanes[i] = Around::Before(in[i]);
    RunUnit<Unit>(lanes, lanes);
    for (int i = 0; i < kWarpSize; ++i) out[i] = Around::After(in[i], lanes[i]);
  }
};
/// Halves are widened, and the unit's result is cut.
template <class Unit, auto kFn, class As>
struct HalfOnUnit : As {
  static double Exact(double x) { return kFn(x); }
  static void Run(const u16* in, u16* out) {
    alignas(64) float lanes[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) lanes[i] = static_cast<float>(As::Load(in[i]));
    RunUnit<Unit>(lanes, lanes);
    for (int i = 0; i < kWarpSize; ++i) out[i] = Cut<typename As::Format>(lanes[i]);
  }
};
/// A rounded function of double.
template <auto kFn>
struct Rounded : AsDouble {
  static double Exact(double x) { return kFn(x); }
  static void Run(const double* in, double* out) {
    for (int i = 0; i < kWarpSize; ++i) out[i] = AsDouble::Store(kFn(in[i]));
  }
};

struct Nothing {
  static float Before(float x) { return x; }
  static float After(float, float y) { return y; }
};

// Around a unit, without .ftz: arguments that it would flush are scaled up, and results back. rcp
// also scales down those whose reciprocal is subnormal, and ex2 squares the root of such a result.
inline bool IsTiny(float x) { return (ToBits(x) & ~kSignF32) < 0x00800000u; }
inline bool IsHuge(float x) {
  const u32 magnitude = ToBits(x) & ~kSignF32;
  return magnitude > 0x7e800000u && magnitude <= kInfinityF32;
}
struct AroundRcp {
  static float Scale(float x) { return IsTiny(x) ? 0x1p24f : IsHuge(x) ? 0.25f : 1.0f; }
  static float Before(float x) { return x * Scale(x); }
  static float After(float x, float y) { return Canonical(y * Scale(x)); }
};
struct AroundRsqrt {
  static float Before(float x) { return IsTiny(x) ? x * 0x1p24f : x; }
  static float After(float x, float y) { return IsTiny(x) ? y * 0x1p12f : y; }
};
struct AroundSqrt {
  static float Before(float x) { return IsTiny(x) ? x * 0x1p24f : x; }
  static float After(float x, float y) { return IsTiny(x) ? y * 0x1p-12f : y; }
};
struct AroundExp2 {
  static float Before(float x) { return x < -126.0f ? x * 0.5f : x; }
  static float After(float x, float y) { return x < -126.0f ? y * y : y; }
};
struct AroundLog2 {
  static float Before(float x) { return IsTiny(x) ? x * 0x1p24f : x; }
  static float After(float x, float y) { return IsTiny(x) ? y - 24.0f : y; }
};

/// Division: both operands scaled, and one multiplied by the other's reciprocal.
template <bool kFull, bool kFtz, auto kFn>
struct Quotient : AsFloat<kFtz> {
  static double Exact(double a, double b) { return kFn(a, b); }
  static float Scale(float b) {
    const float up = !kFtz && IsTiny(b) ? 0x1p24f : 1.0f;
    return kFull && IsHuge(b) ? 0.25f : up;
  }
  static void Run(const float* a, const float* b, float* out) {
    alignas(64) float lanes[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) lanes[i] = b[i] * Scale(b[i]);
    RunUnit<RcpUnit>(lanes, lanes);
    for (int i = 0; i < kWarpSize; ++i)
      out[i] = MulF32<Round::kNearest, kFtz>(a[i] * Scale(b[i]), lanes[i]);
  }
};

/// Keeps the results of the active lanes; kLanes values a lane.
template <int kLanes, class Lane>
[[gnu::always_inline]] inline void KeepActive(Warp& warp, Lane* d, const Lane* results) {
  for (int i = 0; i < kLanes * kWarpSize; ++i)
    d[i] = IsActive(warp.exec, i / kLanes) ? results[i] : d[i];
}

/// One source. kTag keeps different instructions' perturbations apart.
template <class Form, ErrorBound kBound, int kLanes, u64 kTag>
void Approx1(Warp& warp, const Decoded& op) {
  using Lane = typename Form::Lane;
  const Lane* const a = LanesOf<Lane>(warp, op.a);
  alignas(64) Lane results[kLanes * kWarpSize];
  if (warp.perturbation.seed == 0) [[likely]] {
    for (int i = 0; i < kLanes; ++i) Form::Run(a + i * kWarpSize, results + i * kWarpSize);
  } else {
    const u64 seed = MixBits(warp.perturbation.seed ^ kTag << 56);
    for (int i = 0; i < kLanes * kWarpSize; ++i) {
      const u64 hash = MixBits(seed ^ Form::Bits(a[i]));
      const double input = Form::Load(a[i]);
      // What PTX tabulates for zeros is exact: ex2(0) and cos(0) are 1.
      const bool exact = input == 0.0 || (kTag == kRcpTag && IsPowerOfTwo(input));
      results[i] = exact ? Form::Store(Form::Exact(input))
                         : StorePerturbed<Form>(Form::Exact(input), kBound, hash);
    }
  }
  KeepActive<kLanes>(warp, LanesOf<Lane>(warp, op.d), results);
}

template <class Form, ErrorBound kBound, u64 kTag>
void Approx2(Warp& warp, const Decoded& op) {
  using Lane = typename Form::Lane;
  const Lane* const a = LanesOf<Lane>(warp, op.a);
  const Lane* const b = LanesOf<Lane>(warp, op.b);
  alignas(64) Lane results[kWarpSize];
  if (warp.perturbation.seed == 0) [[likely]] {
    Form::Run(a, b, results);
  } else {
    const u64 seed = MixBits(warp.perturbation.seed ^ kTag << 56);
    for (int i = 0; i < kWarpSize; ++i) {
      const u64 hash = MixBits(seed ^ Form::Bits(a[i]) ^ Form::Bits(b[i]) << 32);
      const double exact = Form::Exact(Form::Load(a[i]), Form::Load(b[i]));
      results[i] = IsPowerOfTwo(Form::Load(b[i])) ? Form::Store(exact)
                                                  : StorePerturbed<Form>(exact, kBound, hash);
    }
  }
  KeepActive<1>(warp, LanesOf<Lane>(warp, op.d), results);
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

#define F32_ROWS(OPCODE, UNIT, AROUND, FN, BOUND, TAG)               \
  {OPCODE,                                                           \
   {kF32},                                                           \
   Mods(M::kApprox),                                                 \
   {Approx1<OnUnit<UNIT, AROUND, FN, false>, BOUND, 1, TAG>, 1}},    \
  {                                                                  \
    OPCODE, {kF32}, Mods(M::kApprox, M::kFtz),                       \
        {Approx1<OnUnit<UNIT, Nothing, FN, true>, BOUND, 1, TAG>, 1} \
  }
#define DIV_ROWS(MOD, FULL, FN, BOUND, TAG)                                                      \
  {Opcode::kDiv, {kF32}, Mods(MOD), {Approx2<Quotient<FULL, false, FN>, BOUND, TAG>, 2}}, {      \
    Opcode::kDiv, {kF32}, Mods(MOD, M::kFtz), {Approx2<Quotient<FULL, true, FN>, BOUND, TAG>, 2} \
  }
#define HALF_ROWS(OPCODE, TYPE, TYPE2, MODS, UNIT, FN, AS, BOUND, TAG)             \
  {OPCODE, {TYPE}, MODS, {Approx1<HalfOnUnit<UNIT, FN, AS>, BOUND, 1, TAG>, 1}}, { \
    OPCODE, {TYPE2}, MODS, {Approx1<HalfOnUnit<UNIT, FN, AS>, BOUND, 2, TAG>, 1}   \
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
    F32_ROWS(Opcode::kRcp, RcpUnit, AroundRcp, Rcp, Ulps(1.0), kRcpTag),
    F32_ROWS(Opcode::kSqrt, SqrtUnit, AroundSqrt, Sqrt, Relative(0x1p-23), 2),
    F32_ROWS(Opcode::kRsqrt, RsqrtUnit, AroundRsqrt, Rsqrt, Relative(0x1.1p-23), 3),
    F32_ROWS(Opcode::kEx2, Exp2Unit, AroundExp2, Exp2, Relative(0x1p-22), 4),
    F32_ROWS(Opcode::kLg2, Log2Unit, AroundLog2, Log2, kLg2Bound, 5),
    F32_ROWS(Opcode::kSin, SinUnit<0>, Nothing, Sin, Absolute(0x1.6p-21), 6),
    F32_ROWS(Opcode::kCos, SinUnit<1>, Nothing, Cos, Absolute(0x1.6p-21), 7),
    F32_ROWS(Opcode::kTanh, TanhUnit, Nothing, Tanh, Relative(0x1p-11), 8),
    DIV_ROWS(M::kApprox, false, DivApprox, Ulps(2.0), 9),
    DIV_ROWS(M::kFull, true, DivFull, Ulps(2.0), 10),
    {Opcode::kRcp, {kF64}, kApproxFtz, {Approx1<Rounded<RcpUpper>, kNoBound, 1, 11>, 1}},
    {Opcode::kRsqrt, {kF64}, kApproxFtz, {Approx1<Rounded<RsqrtUpper>, kNoBound, 1, 12>, 1}},
    {Opcode::kRsqrt, {kF64}, kApproxMod, {Approx1<Rounded<Rsqrt>, kNoBound, 1, 13>, 1}},
    HALF_ROWS(Opcode::kEx2, kF16, kF16x2, kApproxMod, Exp2Unit, Exp2, AsF16, kEx2F16Bound, 14),
    HALF_ROWS(Opcode::kEx2, kBF16, kBF16x2, kApproxFtz, Exp2Unit, Exp2, AsBf16Ftz, Relative(0x1p-7),
              15),
    HALF_ROWS(Opcode::kTanh, kF16, kF16x2, kApproxMod, TanhUnit, Tanh, AsF16, Absolute(0x1.02p-11),
              16),
    HALF_ROWS(Opcode::kTanh, kBF16, kBF16x2, kApproxMod, TanhUnit, Tanh, AsBf16, Relative(0x1p-8),
              17),
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
