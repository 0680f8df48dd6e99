// Products of bf16 and tf32 go one way where all of them lie well within f32, and another where not:
// the same numbers, all scaled by a power of two, must come out with the same bits but for it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "validator/emu/semantics/matrix.h"

namespace assay::emu {
namespace {

/// Numbers of either sign with exponents up to `spread` from 0, some of them zero.
std::vector<float> Numbers(Rng& rng, int count, int spread) {
  std::vector<float> all;
  for (int i = 0; i < count; ++i) {
    const double sign = rng.Below(2) == 0 ? 1.0 : -1.0;
    const double value = sign * (1.0 + rng.Unit());
    all.push_back(rng.Below(8) == 0 ? 0.0f
                                    : static_cast<float>(std::ldexp(
                                          value, static_cast<int>(rng.Between(-spread, spread)))));
  }
  return all;
}

/// A times 2^shift.
std::vector<std::uint32_t> Bits(TensorType type, std::vector<float> values, int shift) {
  std::vector<std::uint32_t> all;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(std::ldexp(value, shift));
    all.push_back(type == TensorType::kBF16 ? bits >> 16 : bits & 0xffffe000u);
  }
  return all;
}
std::vector<std::uint32_t> F32Bits(const std::vector<float>& values, int shift) {
  std::vector<std::uint32_t> all;
  for (const float value : values)
    all.push_back(std::bit_cast<std::uint32_t>(std::ldexp(value, shift)));
  return all;
}

TEST(TensorProducts, ScaledFactorsGiveTheSameBitsScaled) {
  Rng rng(DeriveSeed(5, "tensor products"));
  for (int round = 0; round < 400; ++round) {
    const TensorType type = round % 2 == 0 ? TensorType::kBF16 : TensorType::kTF32;
    const TensorProduct product{.m = round % 3 == 0 ? 8 : 32,
                                .n = 8,
                                .k = type == TensorType::kBF16 ? 16 : 8,
                                .a = type,
                                .b = type,
                                .sparse = false,
                                .warpgroup = false,
                                .steps_of_4 = round % 4 == 1};
    std::vector<float> a = Numbers(rng, product.m * product.k, 10);
    std::vector<float> b = Numbers(rng, product.n * product.k, 5);
    const std::vector<float> c = Numbers(rng, product.m * product.n, 12);
    // The limits are at exponents of 90 and -90.
    a[0] = 1024.0f;
    a[1] = 0x1p-10f;
    b[0] = -32.0f;
    b[1] = 0x1p-5f;
    const auto outputs = static_cast<std::size_t>(product.m * product.n);
    std::vector<std::uint32_t> plain(outputs);
    TensorMultiply(product, Bits(type, a, 0).data(), Bits(type, b, 0).data(), F32Bits(c, 0).data(),
                   plain.data());
    for (const int shift : {-80, -75, 75, 82}) {
      std::vector<std::uint32_t> scaled(outputs);
      TensorMultiply(product, Bits(type, a, shift).data(), Bits(type, b, 0).data(),
                     F32Bits(c, shift).data(), scaled.data());
      for (std::size_t i = 0; i < outputs; ++i) {
        const float expected = std::ldexp(std::bit_cast<float>(plain[i]), shift);
        ASSERT_EQ(scaled[i], std::bit_cast<std::uint32_t>(expected))
            << round << " " << shift << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace assay::emu
