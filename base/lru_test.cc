#include "base/lru.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Lru, WhatWasUsedLongestAgoGoesFirst) {
  Lru<int> kept(2);
  kept.Keep("a", 1);
  kept.Keep("b", 2);
  ASSERT_NE(kept.Find("a"), nullptr);
  kept.Keep("c", 3);
  EXPECT_EQ(kept.Find("b"), nullptr);
  EXPECT_EQ(*kept.Find("a"), 1);
  EXPECT_EQ(*kept.Find("c"), 3);
}

TEST(Lru, WeightCountsAndAValueOfTheSameKeyReplaces) {
  Lru<int> kept(100, 10);
  kept.Keep("a", 1, 4);
  kept.Keep("b", 2, 4);
  kept.Keep("b", 3, 6);
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_EQ(*kept.Find("b"), 3);
  kept.Keep("c", 4, 1);
  EXPECT_EQ(kept.Find("a"), nullptr);
  EXPECT_NE(kept.Find("b"), nullptr);
  kept.Keep("d", 5, 11);
  EXPECT_EQ(kept.Find("d"), nullptr);
  EXPECT_EQ(kept.size(), 2u);
}

}  // namespace
}  // namespace assay
