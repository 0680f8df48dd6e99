#include "validator/oracle/randomness.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"

namespace assay::oracle {
namespace {

Randomness Of(DType type, const Shape& shape,
              const std::function<double(std::int64_t, Rng&)>& value) {
  TensorMap inputs;
  Tensor tensor = *Tensor::Create(type, shape);
  Rng rng(3);
  for (std::int64_t i = 0; i < tensor.elements; ++i) tensor.Set(i, value(i, rng));
  inputs.emplace("x", std::move(tensor));
  return RandomnessOf(inputs);
}

TEST(Randomness, NormalsAreRandomInEveryDType) {
  for (const DType type : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (const Shape& shape : {Shape{40, 128}, Shape{4096}, Shape{5000, 1}}) {
      const Randomness randomness =
          Of(type, shape, [](std::int64_t, Rng& rng) { return rng.Normal(); });
      EXPECT_TRUE(randomness.independent) << Name(type);
      EXPECT_TRUE(randomness.exchangeable) << Name(type);
    }
  }
}

TEST(Randomness, ValuesThatComeAHundredTimesInARowAreRoundedAlikeEachTime) {
  const auto row = [](DType type, std::int64_t columns) {
    return Of(type, {1, columns}, [](std::int64_t, Rng& rng) { return rng.Normal(); });
  };
  EXPECT_FALSE(row(DType::kBF16, 60'906).independent);
  EXPECT_TRUE(row(DType::kBF16, 8'192).independent);
  EXPECT_TRUE(row(DType::kF16, 60'906).independent);
  EXPECT_TRUE(row(DType::kF32, 60'906).independent);
  // The same values in rows that are short.
  EXPECT_TRUE(Of(DType::kBF16, {600, 128}, [](std::int64_t, Rng& rng) {
                return rng.Normal();
              }).independent);
}

TEST(Randomness, ManyZerosAreRepeatedValuesFewAreNot) {
  const auto one_in = [](std::uint64_t often) {
    return Of(DType::kF32, {64, 64}, [often](std::int64_t, Rng& rng) {
      return rng.Below(often) == 0 ? 0.0 : rng.Normal();
    });
  };
  EXPECT_FALSE(one_in(2).independent);
  EXPECT_TRUE(one_in(10).independent);
}

TEST(Randomness, MinuteValuesMakeFunctionsOfThemAlike) {
  const auto scaled = [](DType type, double scale) {
    return Of(type, {64, 64}, [scale](std::int64_t, Rng& rng) { return scale * rng.Normal(); });
  };
  for (const DType type : {DType::kBF16, DType::kF16, DType::kF32}) {
    EXPECT_FALSE(scaled(type, 0x1p-10).independent) << Name(type);
    EXPECT_TRUE(scaled(type, 0x1p-6).independent) << Name(type);
  }
  // Some minute ones among others are none of it.
  EXPECT_TRUE(Of(DType::kF32, {64, 64}, [](std::int64_t i, Rng& rng) {
                return rng.Normal() * (i % 2 == 0 ? 1 : 0x1p-10);
              }).independent);
}

TEST(Randomness, ConstantRowsAndColumnsAreNot) {
  EXPECT_FALSE(Of(DType::kF32, {64, 64}, [](std::int64_t, Rng&) { return 0.1; }).independent);
  EXPECT_FALSE(Of(DType::kF32, {64, 64}, [](std::int64_t i, Rng&) {
                 return 0.1 + static_cast<double>(i / 64) * 0.37;
               }).independent);
  EXPECT_FALSE(Of(DType::kF32, {64, 64}, [](std::int64_t i, Rng&) {
                 return 0.1 + static_cast<double>(i % 64) * 0.37;
               }).independent);
  EXPECT_FALSE(Of(DType::kF32, {64, 64}, [](std::int64_t i, Rng&) {
                 return i % 2 == 0 ? 0.1 : 0.3;
               }).independent);
}

TEST(Randomness, SortedAndAlternatingDataAreNotExchangeable) {
  const auto sorted = Of(DType::kF32, {4096},
                         [](std::int64_t i, Rng&) { return static_cast<double>(i) * 0.001 - 2; });
  EXPECT_FALSE(sorted.independent);
  EXPECT_FALSE(sorted.exchangeable);
  const auto alternating = Of(DType::kF32, {4096}, [](std::int64_t i, Rng& rng) {
    return (i % 2 == 0 ? 1 : -1) * (1 + rng.Unit());
  });
  EXPECT_TRUE(alternating.independent);
  EXPECT_FALSE(alternating.exchangeable);
}

TEST(Randomness, SmallInputsAndIntegersDoNotCount) {
  EXPECT_TRUE(Of(DType::kF32, {4}, [](std::int64_t, Rng&) { return 0.1; }).independent);
  EXPECT_TRUE(Of(DType::kI64, {4096}, [](std::int64_t, Rng&) { return 7.0; }).independent);
}

}  // namespace
}  // namespace assay::oracle
