#include "validator/gates/testing/share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace assay::gates {
namespace {

TEST(ShareTest, EachMemberIsInOneOfThem) {
  std::vector<int> all(10);
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> seen;
  for (const char* const asked : {"0/3", "1/3", "2/3"}) {
    ASSERT_EQ(setenv("ASSAY_SHARE", asked, 1), 0);
    const std::vector<int> share = Share(all);
    EXPECT_THAT(share.size(), testing::AllOf(testing::Ge(3u), testing::Le(4u)));
    seen.insert(seen.end(), share.begin(), share.end());
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAreArray(all));
  unsetenv("ASSAY_SHARE");
  EXPECT_EQ(Share(all), all);
}

TEST(ShareTest, NoCorpusIsLeftOutWhole) {
  ASSERT_EQ(setenv("ASSAY_SHARE", "19/24", 1), 0);
  EXPECT_THAT(Share(std::vector{1, 2, 3}), testing::ElementsAre(2));
  EXPECT_THAT(Share(std::vector<int>{}), testing::IsEmpty());
  unsetenv("ASSAY_SHARE");
}

TEST(ShareTest, WhatIsNoShareIsAnError) {
  for (const char* const text : {"half", "3/3", "1/0", "-1/3", "1/3 ", "1", "/3", "1/"})
    EXPECT_THROW(ShareIn(text), std::invalid_argument) << text;
}

}  // namespace
}  // namespace assay::gates
