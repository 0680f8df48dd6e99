#include "validator/findings/error_profile.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

TEST(ErrorProfile, CountsByOctavesOfAllowances) {
  ErrorProfile profile = ErrorProfile::Of("y", 1, 6);
  profile.Add(0, 0);
  profile.Add(1, 0.5);
  profile.Add(2, 1);
  profile.Add(3, 1.99);
  profile.Add(4, INFINITY);
  profile.Add(5, std::nan(""));
  EXPECT_EQ(profile.elements(), 6u);
  EXPECT_EQ(profile.histogram[0], 1u);
  // (1/2, 1] and (1, 2] stand side by side: the line between them is the allowance.
  const std::size_t beyond = 1 - ErrorProfile::kFirstOctave;
  EXPECT_EQ(profile.histogram[beyond - 2], 1u);
  EXPECT_EQ(profile.histogram[beyond - 1], 1u);
  EXPECT_EQ(profile.histogram[beyond], 1u);
  EXPECT_EQ(profile.histogram[ErrorProfile::kBins - 1], 2u);
  EXPECT_EQ(profile.Worst(), ErrorProfile::kBeyond);
}

TEST(ErrorProfile, ALargeOutputIsAMapOfPatchesAndTheWorstElementShows) {
  ErrorProfile profile = ErrorProfile::Of("y", 1000, 5000);
  ASSERT_EQ(profile.map.size(), 24u * 48u);
  profile.Add(999 * 5000 + 4999, 7);
  profile.Add(0, 2);
  EXPECT_EQ(profile.map.back(), 7);
  EXPECT_EQ(profile.map.front(), 2);
  EXPECT_EQ(profile.map[1], 0);
}

TEST(ErrorProfile, MergingAddsCountsAndKeepsTheWorseMap) {
  ErrorProfile total = ErrorProfile::Of("y", 1, 2);
  total.where = "small";
  total.Add(0, 0.5);
  ErrorProfile worse = ErrorProfile::Of("y", 3, 1);
  worse.where = "worse";
  worse.Add(2, 8);
  ErrorProfile harmless = ErrorProfile::Of("y", 100, 1);
  harmless.where = "harmless";
  harmless.Add(0, 0.1);
  total.Merge(worse);
  total.Merge(harmless);
  EXPECT_EQ(total.elements(), 3u);
  EXPECT_EQ(total.where, "worse");
  EXPECT_EQ(total.rows, 3);
}

TEST(ErrorProfile, ComesBackFromJson) {
  ErrorProfile profile = ErrorProfile::Of("y", 3, 4);
  profile.where = "rows=3 columns=4";
  for (std::int64_t i = 0; i < 12; ++i) profile.Add(i, std::ldexp(1, static_cast<int>(i) - 6));
  profile.growth = {{.terms = 2, .error = 1.5, .typical = 2, .elements = 64}};
  const auto read = ErrorProfileFromJson(ToJson(profile), "p");
  ASSERT_TRUE(read) << ToString(read.error());
  EXPECT_EQ(read->histogram, profile.histogram);
  EXPECT_EQ(read->growth, profile.growth);
  EXPECT_EQ(read->map.size(), 12u);
  EXPECT_EQ(read->where, profile.where);
}

TEST(ErrorProfile, RefusesWhatDoesNotFitTogether) {
  const Json good = ToJson(ErrorProfile::Of("y", 3, 4));
  ASSERT_TRUE(ErrorProfileFromJson(good, "p"));
  for (const auto& [key, value] : {std::pair<const char*, Json>{"map", Json::array({1})},
                                   {"histogram", Json::array({1, 2})},
                                   {"map_rows", -3},
                                   {"map_columns", 1'000'000},
                                   {"rows", 1},
                                   {"map", Json::array({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1})},
                                   {"growth", Json::array({Json::array({1, 2})})},
                                   {"more", 1}}) {
    Json bad = good;
    bad[key] = value;
    EXPECT_FALSE(ErrorProfileFromJson(bad, "p")) << key;
  }
}

}  // namespace
}  // namespace assay
