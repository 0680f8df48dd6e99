#include "validator/campaign/corners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::campaign {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::SizeIs;

std::vector<std::uint64_t> Corners(std::uint64_t count,
                                   const std::function<std::int64_t(std::uint64_t)>& place) {
  const auto corners =
      CornersOf(count, [&](std::uint64_t number) -> Result<std::optional<std::int64_t>> {
        EXPECT_LT(number, count);
        return std::optional(place(number));
      });
  EXPECT_TRUE(corners);
  return corners ? *corners : std::vector<std::uint64_t>();
}

TEST(Corners, OfOneAxisAreItsEnds) {
  EXPECT_THAT(Corners(1000, [](std::uint64_t i) { return 64 * static_cast<std::int64_t>(i); }),
              ElementsAre(0, 999));
  EXPECT_THAT(Corners(1, [](std::uint64_t) { return 0; }), ElementsAre(0));
  EXPECT_THAT(Corners(2, [](std::uint64_t i) { return 7 * static_cast<std::int64_t>(i); }),
              ElementsAre(0, 1));
}

TEST(Corners, OfTilesThatGoBackwardsWithinHeadsTheLastPlaceIsOne) {
  // 128 heads first, then tiles of 64 rows from the last one on.
  constexpr std::int64_t kHeads = 128, kTiles = 5;
  const auto place = [](std::uint64_t i) {
    const auto item = static_cast<std::int64_t>(i);
    return (item % kHeads) * kTiles * 64 + (kTiles - 1 - item / kHeads) * 64;
  };
  const auto corners = Corners(kHeads * kTiles, place);
  EXPECT_THAT(corners, AllOf(SizeIs(4), Contains(127), Contains(512), Contains(0), Contains(639)));
  EXPECT_EQ(place(127), (kHeads * kTiles - 1) * 64);
}

TEST(Corners, OfThreeAxesAreEight) {
  const auto place = [](std::uint64_t i) {
    const auto item = static_cast<std::int64_t>(i);
    return item % 3 + (11 - item / 3 % 12) * 1000 + item / 36 * 100;
  };
  EXPECT_THAT(Corners(3 * 12 * 9, place), AllOf(SizeIs(8), Contains(2 + 8 * 36)));
}

TEST(Corners, WhatIsNotKnownEndsTheSearch) {
  const auto unknown = [](std::uint64_t) -> Result<std::optional<std::int64_t>> {
    return std::nullopt;
  };
  const auto corners = CornersOf(100, unknown);
  ASSERT_TRUE(corners);
  EXPECT_THAT(*corners, ElementsAre(0));
}

}  // namespace
}  // namespace assay::campaign
