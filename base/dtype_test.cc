#include "base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace assay {
namespace {

TEST(DType, NamesRoundTrip) {
  for (const DType type : AllDTypes()) EXPECT_EQ(ParseDType(Name(type)), type);
  EXPECT_EQ(ParseDType("bfloat16"), DType::kBF16);
  EXPECT_FALSE(ParseDType("bf17").has_value());
}

TEST(DType, EverySmallFloatRoundTripsThroughDouble) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    const unsigned count = SizeOf(type) == 1 ? 256 : 65536;
    for (unsigned bits = 0; bits < count; ++bits) {
      std::byte in[2] = {static_cast<std::byte>(bits), static_cast<std::byte>(bits >> 8)};
      std::byte out[2] = {};
      const double value = LoadAsDouble(type, in);
      if (std::isnan(value)) continue;
      StoreFromDouble(type, value, out);
      ASSERT_EQ(in[0], out[0]) << Name(type) << " " << bits;
      ASSERT_EQ(in[1], SizeOf(type) == 2 ? out[1] : in[1]) << Name(type) << " " << bits;
    }
  }
}

TEST(DType, RoundsToNearestEvenOnce) {
  EXPECT_EQ(DoubleToBf16(1.0 + 0x1p-8), 0x3f80);  // tie, to even
  EXPECT_EQ(DoubleToBf16(1.0 + 0x1p-8 + 0x1p-40),
            0x3f81);  // rounding through float first would lose the tail
  EXPECT_EQ(DoubleToBf16(1.0 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(DoubleToF16(65520.0), 0x7c00);  // overflow threshold
  EXPECT_EQ(DoubleToF16(65519.0), 0x7bff);
  EXPECT_EQ(DoubleToF16(0x1p-25), 0x0000);
  EXPECT_EQ(DoubleToF16(0x1.8p-25), 0x0001);
  EXPECT_EQ(DoubleToF16(-0.0), 0x8000);
}

TEST(DType, UlpAndRoundoff) {
  EXPECT_EQ(UlpAt(DType::kF32, 1.0), 0x1p-23);
  EXPECT_EQ(UlpAt(DType::kBF16, 1.5), 0x1p-7);
  EXPECT_EQ(UlpAt(DType::kF16, 0.0), 0x1p-24);
  EXPECT_EQ(UnitRoundoff(DType::kBF16), 0x1p-8);
  EXPECT_EQ(MaxFinite(DType::kF16), 65504.0);
  EXPECT_EQ(MaxFinite(DType::kF32), static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(MaxFinite(DType::kF8E4M3), 448.0);
}

TEST(DType, IntegersSaturate) {
  std::byte out[8];
  StoreFromDouble(DType::kI8, 1000, out);
  EXPECT_EQ(LoadAsDouble(DType::kI8, out), 127);
  StoreFromDouble(DType::kU16, -5, out);
  EXPECT_EQ(LoadAsDouble(DType::kU16, out), 0);
}

}  // namespace
}  // namespace assay
