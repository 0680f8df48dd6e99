// The fast paths against the integer engine of soft.h, and that engine against the host.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "base/rng.h"
#include "validator/emu/semantics/approx.h"
#include "validator/emu/semantics/convert.h"
#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/integer.h"
#include "validator/emu/semantics/soft.h"
#include "validator/emu/semantics/soft_convert.h"

namespace assay::emu {
namespace {

constexpr int kRounds = 200000;

/// Random bits, special patterns, and exponents near each other, so that sums cancel and round in
/// every way.
template <Format F>
u64 RandomBits(Rng& rng, u64 near) {
  constexpr int kBitsOf = F.bits();
  const u64 mask = kBitsOf == 64 ? ~u64{0} : (u64{1} << (kBitsOf % 64)) - 1;
  const u64 fraction_mask = (u64{1} << F.fraction) - 1;
  switch (rng.Below(4)) {
    case 0:
      return rng.Next() & mask;
    case 1: {
      const u64 special[] = {0,
                             1,
                             fraction_mask,
                             fraction_mask + 1,
                             kMaxFinite<F>,
                             kInfinityBits<F>,
                             kAllOnesNan<F>,
                             static_cast<u64>(F.bias()) << F.fraction};
      const u64 sign = rng.Below(2) << (kBitsOf - 1);
      return special[rng.Below(std::size(special))] | sign;
    }
    case 2:
      return (near + rng.Below(5) - 2) & mask;
    default: {
      const u64 exponent = near >> F.fraction & ((u64{1} << F.exponent) - 1);
      const u64 top = (u64{1} << F.exponent) - 2;
      const u64 moved = exponent + rng.Below(61) < 30 ? 0 : exponent + rng.Below(61) - 30;
      const u64 sign = rng.Below(2) << (kBitsOf - 1);
      const u64 fraction = rng.Next() & fraction_mask & (rng.Below(2) == 0 ? ~u64{0} : ~u64{0xff});
      return sign | std::min(moved, top) << F.fraction | fraction;
    }
  }
}

u32 Soft32(const SoftValue& value, Round mode) {
  return static_cast<u32>(Encode<kF32>(value, mode));
}
SoftValue From(float value) { return Decode<kF32>(ToBits(value)); }
SoftValue From(double value) { return Decode<kF64>(ToBits(value)); }

/// Bits, with all NaNs alike.
u32 Plain(float value) { return value != value ? kNanF32 : ToBits(value); }
u64 Plain(double value) { return value != value ? kAllOnesNan<kF64> : ToBits(value); }

TEST(Soft, AgreesWithTheHostToNearest) {
  Rng rng(1);
  u64 near = 0;
  for (int i = 0; i < kRounds; ++i) {
    const u64 x = RandomBits<kF64>(rng, near);
    const u64 y = RandomBits<kF64>(rng, x);
    const u64 z = RandomBits<kF64>(rng, y);
    near = z;
    const double a = FromBits(x);
    const double b = FromBits(y);
    const double c = FromBits(z);
    constexpr Round kMode = Round::kNearest;
    ASSERT_EQ(Encode<kF64>(SoftAdd(From(a), From(b), kMode), kMode), Plain(a + b))
        << std::hex << x << " " << y;
    ASSERT_EQ(Encode<kF64>(SoftMul(From(a), From(b)), kMode), Plain(a * b))
        << std::hex << x << " " << y;
    ASSERT_EQ(Encode<kF64>(SoftDiv(From(a), From(b)), kMode), Plain(a / b))
        << std::hex << x << " " << y;
    ASSERT_EQ(Encode<kF64>(SoftFma(From(a), From(b), From(c), kMode), kMode),
              Plain(std::fma(a, b, c)))
        << std::hex << x << " " << y << " " << z;
    ASSERT_EQ(Encode<kF64>(SoftSqrt(From(a)), kMode), Plain(std::sqrt(a))) << std::hex << x;
    ASSERT_EQ(Encode<kF32>(From(a), kMode), Plain(static_cast<float>(a))) << std::hex << x;
  }
}

template <Round kMode>
void CheckDirected(u64 seed) {
  Rng rng(seed);
  u64 near = 0;
  for (int i = 0; i < kRounds; ++i) {
    const float a = FromBits(static_cast<u32>(RandomBits<kF32>(rng, near)));
    const float b = FromBits(static_cast<u32>(RandomBits<kF32>(rng, ToBits(a))));
    const float c = FromBits(static_cast<u32>(RandomBits<kF32>(rng, ToBits(b))));
    near = ToBits(c);
    ASSERT_EQ(ToBits(AddF32<kMode>(a, b)), Soft32(SoftAdd(From(a), From(b), kMode), kMode))
        << a << " " << b;
    ASSERT_EQ(ToBits(MulF32<kMode>(a, b)), Soft32(SoftMul(From(a), From(b)), kMode))
        << a << " " << b;
    ASSERT_EQ(ToBits(DivF32<kMode>(a, b)), Soft32(SoftDiv(From(a), From(b)), kMode))
        << a << " " << b;
    ASSERT_EQ(ToBits(SqrtF32<kMode>(a)), Soft32(SoftSqrt(From(a)), kMode)) << a;
    ASSERT_EQ(ToBits(FmaF32<kMode>(a, b, c)),
              Soft32(SoftFma(From(a), From(b), From(c), kMode), kMode))
        << a << " " << b << " " << c;
  }
}
TEST(Floating, NearestAgreesWithTheIntegerEngine) { CheckDirected<Round::kNearest>(2); }
TEST(Floating, TowardsZeroAgreesWithTheIntegerEngine) { CheckDirected<Round::kZero>(3); }
TEST(Floating, DownAgreesWithTheIntegerEngine) { CheckDirected<Round::kDown>(4); }
TEST(Floating, UpAgreesWithTheIntegerEngine) { CheckDirected<Round::kUp>(5); }

template <class F>
void CheckHalf(u64 seed) {
  constexpr Format kFormat = F::kFormat;
  constexpr Round kMode = Round::kNearest;
  Rng rng(seed);
  u64 near = 0;
  for (int i = 0; i < kRounds; ++i) {
    const u16 a = static_cast<u16>(RandomBits<kFormat>(rng, near));
    const u16 b = static_cast<u16>(RandomBits<kFormat>(rng, a));
    const u16 c = static_cast<u16>(RandomBits<kFormat>(rng, b));
    near = c;
    const SoftValue x = Decode<kFormat>(a);
    const SoftValue y = Decode<kFormat>(b);
    const SoftValue z = Decode<kFormat>(c);
    ASSERT_EQ((AddHalf<F, HalfMode{}>(a, b)), Encode<kFormat>(SoftAdd(x, y, kMode), kMode))
        << std::hex << a << " " << b;
    ASSERT_EQ((MulHalf<F, HalfMode{}>(a, b)), Encode<kFormat>(SoftMul(x, y), kMode))
        << std::hex << a << " " << b;
    ASSERT_EQ((FmaHalf<F, HalfMode{}>(a, b, c)), Encode<kFormat>(SoftFma(x, y, z, kMode), kMode))
        << std::hex << a << " " << b << " " << c;
  }
}
TEST(Half, F16AgreesWithTheIntegerEngine) { CheckHalf<Fp16>(6); }
TEST(Half, Bf16AgreesWithTheIntegerEngine) { CheckHalf<Bf16>(7); }

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    const u16 half = static_cast<u16>(bits);
    const bool f16_nan = (half & 0x7fff) > Fp16::kInfinity;
    const bool bf16_nan = (half & 0x7fff) > Bf16::kInfinity;
    ASSERT_EQ(Fp16::Narrow(Fp16::Widen(half)), f16_nan ? kNanHalf : half);
    ASSERT_EQ(Bf16::Narrow(Bf16::Widen(half)), bf16_nan ? kNanHalf : half);
  }
}

TEST(Convert, FastFormsAgreeWithTheIntegerEngine) {
  using ptx::Type;
  Rng rng(8);
  u64 near = 0;
  for (int i = 0; i < kRounds; ++i) {
    const u32 bits = static_cast<u32>(RandomBits<kF32>(rng, near));
    const u64 wide = RandomBits<kF64>(rng, near << 32);
    near = bits;
    const float a = FromBits(bits);
    const double d = FromBits(wide);
    const auto soft = [](u64 raw, Type from, Type to, Round mode, bool integral) {
      return ConvertScalar(raw,
                           {.source = from, .destination = to, .mode = mode, .integral = integral});
    };
    constexpr Round kNearest = Round::kNearest;
    constexpr Round kZero = Round::kZero;
    ASSERT_EQ(static_cast<u32>((F32ToInteger<s32, kZero, false>(a))),
              static_cast<u32>(soft(bits, Type::kF32, Type::kS32, kZero, true)))
        << a;
    ASSERT_EQ((F32ToInteger<u32, kNearest, false>(a)),
              static_cast<u32>(soft(bits, Type::kF32, Type::kU32, kNearest, true)))
        << a;
    ASSERT_EQ(static_cast<u64>(F32ToInteger<s64, kZero, false>(a)),
              soft(bits, Type::kF32, Type::kS64, kZero, true))
        << a;
    ASSERT_EQ((F32ToInteger<u64, kZero, false>(a)), soft(bits, Type::kF32, Type::kU64, kZero, true))
        << a;
    ASSERT_EQ(static_cast<u64>(F64ToInteger<s64, kZero>(d)),
              soft(wide, Type::kF64, Type::kS64, kZero, true))
        << d;
    ASSERT_EQ((F64ToInteger<u32, kZero>(d)),
              static_cast<u32>(soft(wide, Type::kF64, Type::kU32, kZero, true)))
        << d;
    ASSERT_EQ((F32ToHalf<Fp16, false, false>(a)),
              soft(bits, Type::kF32, Type::kF16, kNearest, false))
        << a;
    ASSERT_EQ((F32ToHalf<Bf16, false, false>(a)),
              soft(bits, Type::kF32, Type::kBF16, kNearest, false))
        << a;
    ASSERT_EQ(ToBits(IntegerToF32<u64>(wide)), soft(wide, Type::kU64, Type::kF32, kNearest, false))
        << wide;
    ASSERT_EQ(ToBits(IntegerToF32<s64>(static_cast<s64>(wide))),
              soft(wide, Type::kS64, Type::kF32, kNearest, false))
        << wide;
    ASSERT_EQ((IntegerToHalf<Bf16, s32>(static_cast<s32>(bits))),
              soft(bits, Type::kS32, Type::kBF16, kNearest, false))
        << bits;
    ASSERT_EQ(ToBits(F32ToIntegral<kNearest, false, false>(a)),
              soft(bits, Type::kF32, Type::kF32, kNearest, true))
        << a;
    ASSERT_EQ(ToBits(F64ToF32<false>(d)), soft(wide, Type::kF64, Type::kF32, kNearest, false)) << d;
  }
}

TEST(Approx, FunctionsAreGoodTo40Bits) {
  Rng rng(9);
  const auto close = [](double got, long double want, const char* what, double x) {
    const long double error = std::fabs(static_cast<long double>(got) - want);
    EXPECT_LE(error, std::fabs(want) * 0x1p-40L) << what << "(" << x << ")";
  };
  for (int i = 0; i < 20000; ++i) {
    const double x = (rng.Unit() - 0.5) * 200.0;
    close(Exp2(x), std::exp2(static_cast<long double>(x)), "exp2", x);
    close(Tanh(x / 10.0), std::tanh(static_cast<long double>(x / 10.0)), "tanh", x / 10.0);
    const double positive = std::exp2(x);
    close(Log2(positive), std::log2(static_cast<long double>(positive)), "log2", positive);
    const long double angle = static_cast<long double>(x);
    EXPECT_NEAR(Sin(x), static_cast<double>(std::sin(angle)), 0x1p-40) << x;
    EXPECT_NEAR(Cos(x), static_cast<double>(std::cos(angle)), 0x1p-40) << x;
    EXPECT_LE(std::fabs(Sin(x * 1e30)), 1.0);
  }
  EXPECT_EQ(Exp2(kInfinity), kInfinity);
  EXPECT_EQ(Exp2(-kInfinity), 0.0);
  EXPECT_EQ(Log2(0.0), -kInfinity);
  EXPECT_TRUE(IsNan(Log2(-1.0)));
  EXPECT_TRUE(IsNan(Sin(kInfinity)));
  EXPECT_EQ(ToBits(Sin(-0.0)), ToBits(-0.0));
  EXPECT_EQ(Cos(0.0), 1.0);
}

TEST(Approx, PerturbedStaysWithinReach) {
  Rng rng(10);
  for (int i = 0; i < 10000; ++i) {
    const double exact = rng.Normal() * 100.0;
    const double moved = Perturbed(exact, {.relative = 0x1p-20, .absolute = 0.0}, rng.Next());
    ASSERT_LE(std::fabs(moved - exact), std::fabs(exact) * 0x1p-20);
  }
  EXPECT_EQ(Perturbed(0.0, {.relative = 1.0, .absolute = 1.0}, 123), 0.0);
}

TEST(Integer, DivisionAgreesWithTheHost) {
  Rng rng(11);
  for (int i = 0; i < kRounds; ++i) {
    const u64 x = rng.Next() >> rng.Below(64);
    const u64 y = rng.Next() >> rng.Below(64);
    const u32 a = static_cast<u32>(x);
    const u32 b = static_cast<u32>(y);
    if (b == 0) continue;
    ASSERT_EQ(Div<u32>(a, b), a / b);
    ASSERT_EQ(Rem<u32>(a, b), a % b);
    const s32 sa = static_cast<s32>(a);
    const s32 sb = static_cast<s32>(b);
    if (sb == -1) continue;
    ASSERT_EQ(Div<s32>(sa, sb), sa / sb);
    ASSERT_EQ(Rem<s32>(sa, sb), sa % sb);
  }
  EXPECT_EQ(Div<s32>(kMin<s32>, -1), kMin<s32>);
  EXPECT_EQ(Rem<s32>(kMin<s32>, -1), 0);
  EXPECT_EQ(Div<u32>(7, 0), 0xffffffffu);
  // Quotients nearest to whole numbers.
  for (u32 b = 0xfffffff0u; b != 0; ++b) {
    for (u32 k = 1; k < 4; ++k) {
      const u64 product = u64{b} * k;
      if (product - 1 > 0xffffffffu) continue;
      ASSERT_EQ(Div<u32>(static_cast<u32>(product - 1), b), k - 1);
    }
  }
}

TEST(Half, AFactorOutsideOfATensorMakesZero) {
  constexpr HalfMode kMode{};
  for (const u16 outside : {u16{0x7ff7}, u16{0xfff7}}) {
    EXPECT_EQ((FmaHalfOutside<Fp16, kMode>(outside, 0x3c00, 0x3c00)), 0);
    EXPECT_EQ((FmaHalfOutside<Bf16, kMode>(0x3f80, outside, 0x7f80)), 0);
    EXPECT_EQ((FmaHalfOutside<Fp16, kMode>(0x3c00, 0x3c00, outside)), 0x7fff);
  }
  EXPECT_EQ((FmaHalfOutside<Fp16, kMode>(0x7fff, 0x3c00, 0x3c00)), 0x7fff);
  EXPECT_EQ((FmaHalfOutside<Fp16, kMode>(0x3c00, 0x4000, 0x3c00)), 0x4200);
}

TEST(Integer, FieldsAtTheirEdges) {
  EXPECT_EQ(Bfe<s32>(0x80, 7, 1), -1);
  EXPECT_EQ(Bfe<u32>(0xffffffffu, 28, 8), 0xfu);
  EXPECT_EQ(Bfe<s32>(kMin<s32>, 40, 4), -1);
  EXPECT_EQ(Bfe<u32>(0xffffffffu, 0, 0), 0u);
  EXPECT_EQ(Bfi<u32>(0xff, 0, 28, 8), 0xf0000000u);
  EXPECT_EQ(Bfi<u32>(0xff, 5, 32, 8), 5u);
  EXPECT_EQ(Fns(0b10110, 0, 2), 2u);
  EXPECT_EQ(Fns(0b10110, 4, -2), 2u);
  EXPECT_EQ(Fns(0, 0, 1), 0xffffffffu);
  EXPECT_EQ(Lop3(0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0x1e), 0x1e1e1e1eu);
}

TEST(Video, AbsoluteDifferencesGoLaneByLane) {
  // |1-3|, |255-0|, |0-255|, |128-127|, and the same bytes with signs.
  constexpr u32 kA = 0x8000ff01u;
  constexpr u32 kB = 0x7fff0003u;
  EXPECT_EQ((AbsoluteDifferences<u8, u8, u8, Video::kWrap>(kA, kB, 9)), 0x01ffff02u);
  EXPECT_EQ((AbsoluteDifferences<u8, u8, u8, Video::kAdd>(kA, kB, 9)), 9 + 1 + 255 + 255 + 2u);
  EXPECT_EQ((AbsoluteDifferences<s8, u8, u8, Video::kSaturate>(kA, kB, 9)), 0x017f7f02u);
  EXPECT_EQ((AbsoluteDifferences<s8, s8, s8, Video::kWrap>(kA, kB, 9)), 0xff010102u);
  EXPECT_EQ((AbsoluteDifferences<s8, s8, s8, Video::kSaturate>(kA, kB, 9)), 0x7f010102u);
  EXPECT_EQ((AbsoluteDifferences<u8, s8, u8, Video::kWrap>(kA, kB, 9)), 0xffff0102u);
  EXPECT_EQ((AbsoluteDifferences<u16, u16, u16, Video::kWrap>(kA, kB, 9)), 0x0001fefeu);
  EXPECT_EQ((AbsoluteDifferences<u16, s16, s16, Video::kAdd>(kA, kB, 1)), 1 + 0xffffu + 258u);
}

}  // namespace
}  // namespace assay::emu
