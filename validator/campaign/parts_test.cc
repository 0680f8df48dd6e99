#include "validator/campaign/parts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::campaign {
namespace {

TEST(Parts, ChangedElementsAreThoseWhoseBitsDiffer) {
  Tensor before = *Tensor::Create(DType::kF32, {5000});
  for (std::int64_t i = 0; i < before.elements; ++i) before.Set(i, static_cast<double>(i % 7));
  Tensor after = *before.Clone();
  EXPECT_TRUE(ChangedElements(after, before).empty());
  EXPECT_TRUE(EndIsTheSame(after, before));
  for (const std::int64_t i : {0, 1023, 1024, 4999}) after.Set(i, -1);
  EXPECT_EQ(ChangedElements(after, before), (std::vector<std::int64_t>{0, 1023, 1024, 4999}));
  EXPECT_FALSE(EndIsTheSame(after, before));
}

TEST(Parts, WhatWasWrittenDiffersFromThePoisonOrTheEngineNamesIt) {
  constexpr std::int64_t kElements = 8192;  // Eight pages.
  constexpr std::uint8_t kPoison = 0xff;
  Tensor tensor = *Tensor::Create(DType::kI32, {kElements});
  // The first page was never touched; in the second two elements were written, and no zero.
  for (std::int64_t i = 1024; i < 2048; ++i) tensor.Set(i, -1);
  for (const std::int64_t i : {1024, 1500}) tensor.Set(i, 7);
  Report report;
  const auto written = [&] {
    return WrittenElements(tensor.memory, sizeof(std::int32_t), kPoison, report, 1);
  };
  EXPECT_EQ(written(), (std::vector<std::int64_t>{1024, 1500}));
  // A -1 that is meant, and zeros; and what is said of another buffer.
  report.disguised = {{0, 4096, 64}, {1, 8, 8}, {1, 4 * 1499, 4}};
  EXPECT_EQ(written(), (std::vector<std::int64_t>{2, 3, 1024, 1499, 1500}));
}

TEST(Parts, WhatTheEngineSaysOfItsOwnLimitIsTheReason) {
  Report report;
  report.reason = "too much memory";
  report.stop = Stop::kResourceLimit;
  EXPECT_EQ(ReasonOfALimit(report, "too long"), "too much memory");
  report.stop = Stop::kStepLimit;
  EXPECT_EQ(ReasonOfALimit(report, "too long"), "too long");
}

TEST(Parts, EverywhereHoldsBothEndsAndBothSidesOfPowersOfTwo) {
  const std::int64_t elements = (std::int64_t{1} << 24) + 1000;
  const auto some = Everywhere(elements, 3);
  EXPECT_TRUE(std::ranges::is_sorted(some));
  EXPECT_LT(some.size(), 4096u);
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{65535}, std::int64_t{65536},
                               (std::int64_t{1} << 24) - 1, std::int64_t{1} << 24, elements - 1})
    EXPECT_TRUE(std::ranges::binary_search(some, i)) << i;
  EXPECT_EQ(Everywhere(3, 3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(Everywhere(0, 3).empty());
}

}  // namespace
}  // namespace assay::campaign
