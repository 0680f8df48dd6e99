#include "ops/prelude.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/rng.h"
#include "ops/reference_on_host.h"

namespace assay::ops {
namespace {

template <class T>
void CheckF8(DType type) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const auto raw = static_cast<unsigned char>(bits);
    const double expected = LoadAsDouble(type, reinterpret_cast<const std::byte*>(&raw));
    const double got = to_double(T{raw});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected)) << bits;
    if (std::isfinite(expected)) {
      ASSERT_EQ(T::format::nearest(expected), expected) << bits;
    }
  }
}

TEST(Prelude, EightBitFloatsAgreeWithBaseAndSaturate) {
  CheckF8<f8e4m3>(DType::kF8E4M3);
  CheckF8<f8e5m2>(DType::kF8E5M2);
  EXPECT_EQ(F8E4M3Format::nearest(470), 448);
  EXPECT_EQ(F8E4M3Format::nearest(-1e9), -448);
  EXPECT_EQ(F8E5M2Format::nearest(1e9), 57344);
  EXPECT_EQ(F8E4M3Format::nearest(1.0625), 1.0) << "ties to even";
}

TEST(Prelude, FusedProductsAreRoundedOnce) {
  using Separate = Rounded<F32Format>;
  using Fused = Rounded<F32Format, Rounding::kNearest, 0, true>;
  Rng rng(5);
  int differ = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto x = static_cast<float>(rng.Normal()), y = static_cast<float>(rng.Normal());
    const auto z = static_cast<float>(rng.Normal() * std::exp2(rng.Between(-30, 30)));
    const Separate s = Separate(z) + Separate(x) * Separate(y);
    const Fused f = Fused(z) + Fused(x) * Fused(y);
    const float product = x * y;
    ASSERT_EQ(s.v, static_cast<double>(z + product));
    ASSERT_EQ(f.v, static_cast<double>(std::fma(x, y, z)));
    differ += s.v != f.v ? 1 : 0;
  }
  EXPECT_GT(differ, 100);
}

TEST(Prelude, StorageAgreesWithBase) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto raw = static_cast<unsigned short>(bits);
    for (const bool brain : {false, true}) {
      const double expected = LoadAsDouble(brain ? DType::kBF16 : DType::kF16,
                                           reinterpret_cast<const std::byte*>(&raw));
      const double got = brain ? to_double(bf16{raw}) : to_double(f16{raw});
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(got)) << bits;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected))
            << bits;
      }
    }
  }
}

template <class F>
double Store(DType type, double value) {
  std::byte out[8] = {};
  StoreFromDouble(type, value, out);
  return LoadAsDouble(type, out);
}

TEST(Prelude, RoundingAgreesWithBase) {
  Rng rng(5);
  for (int i = 0; i < 200000; ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(rng.Between(-160, 140)));
    double x = rng.Normal() * scale;
    if (i % 3 == 0)
      x = std::ldexp(std::floor(rng.Unit() * 4096) / 2,
                     static_cast<int>(rng.Between(-30, 6)));  // ties
    ASSERT_EQ(Bf16Format::nearest(x), Store<Bf16Format>(DType::kBF16, x)) << x;
    ASSERT_EQ(F16Format::nearest(x), Store<F16Format>(DType::kF16, x)) << x;
    ASSERT_EQ(F32Format::nearest(x), static_cast<double>(static_cast<float>(x))) << x;
    const double truncated = Bf16Format::toward_zero(x);
    ASSERT_LE(std::fabs(truncated), std::fabs(x));
    const double reach = std::fabs(x) < MaxFinite(DType::kBF16)
                             ? std::fabs(truncated) + Bf16Format::ulp(x)
                             : INFINITY;
    ASSERT_GT(reach, std::fabs(x));
  }
}

TEST(Prelude, Granularity) {
  EXPECT_EQ(granularity_of(0), 0);
  EXPECT_EQ(granularity_of(12), 4);
  EXPECT_EQ(granularity_of(-0.75), 0.25);
  EXPECT_EQ(granularity_of(1.0 / 3), 0x1p-54);
  EXPECT_EQ(granularity_of(std::numeric_limits<double>::infinity()), -1);
}

TEST(Prelude, GranularityOfElementsIsThatOfTheirNumbers) {
  const auto check = [](float x) {
    ASSERT_EQ(granularity_of_element(x), granularity_of(static_cast<double>(x))) << x;
  };
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    check(to_float(bf16{static_cast<unsigned short>(bits)}));
    check(to_float(f16{static_cast<unsigned short>(bits)}));
  }
  Rng rng(18);
  for (int i = 0; i < 200000; ++i) check(float_of(static_cast<unsigned>(rng.Next() >> 32)));
}

TEST(Rounded, IsCorrectlyRoundedFloat) {
  Rng rng(16);
  using Float = Rounded<F32Format>;
  for (int i = 0; i < 20000; ++i) {
    const auto a = static_cast<float>(rng.Normal()), b = static_cast<float>(rng.Normal());
    ASSERT_EQ((Float(f32{a}) + Float(f32{b})).v, static_cast<double>(a + b));
    ASSERT_EQ((Float(f32{a}) * Float(f32{b})).v, static_cast<double>(a * b));
    ASSERT_EQ((Float(f32{a}) / Float(f32{b})).v, static_cast<double>(a / b));
  }
}

TEST(Rounded, StochasticRoundingIsUnbiased) {
  using Random = Rounded<Bf16Format, Rounding::kStochastic, 7>;
  Rng rng(17);
  double sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = 1 + rng.Unit();
    sum += (Random(x).v - x) / 0x1p-7;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.02);
}

TEST(Prelude, WordsAreWhatTheOracleReserves) {
  EXPECT_EQ(sizeof(Bounded<F32Contract>), 10 * sizeof(double));
  EXPECT_EQ(sizeof(BoundedCell<F32Contract, bf16>), 6 * sizeof(double));
}

TEST(Prelude, TextIsEmbedded) {
  EXPECT_TRUE(PreludeHeaders().contains("assay/reference.cuh"));
  EXPECT_NE(PreludeHeaders().at("assay/bounded.cuh").find("struct Bounded"), std::string::npos);
  Instance instance;
  instance.binding["T"] = DType::kBF16;
  EXPECT_EQ(CandidateDefines(instance), std::vector<std::string>{"ASSAY_T=__nv_bfloat16"});
  EXPECT_EQ(ReferenceDefines(instance), std::vector<std::string>{"ASSAY_T=assay::bf16"});
  instance.binding["T"] = DType::kF8E4M3;
  EXPECT_EQ(ReferenceDefines(instance), std::vector<std::string>{"ASSAY_T=assay::f8e4m3"});
}

}  // namespace
}  // namespace assay::ops
