// What generators of inputs are made of (assay/generators.cuh): each word does what its name says, for
// every seed.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ops/reference_on_host.h"
// Behind what stands in for CUDA.
#include "assay/generators.cuh"

namespace assay {
namespace {

TEST(Generators, PermutedGivesEachNumberOnce) {
  std::set<std::vector<int64>> orders;
  for (uint64 seed = 0; seed < 40; ++seed) {
    for (const int64 n : {1, 2, 3, 7, 16, 33, 100}) {
      std::set<int64> seen;
      std::vector<int64> order;
      for (int64 i = 0; i < n; ++i) {
        const int64 at = permuted(i, n, scrambled(seed));
        EXPECT_GE(at, 0);
        EXPECT_LT(at, n);
        seen.insert(at);
        order.push_back(at);
      }
      EXPECT_EQ(static_cast<int64>(seen.size()), n);
      if (n == 16) orders.insert(order);
    }
  }
  EXPECT_GT(orders.size(), 25u) << "seeds give orders of their own";
}

TEST(Generators, OffsetsNeverFallAndCoverAll) {
  bool empty = false, full = false;
  for (uint64 seed = 0; seed < 60; ++seed) {
    for (const int64 rows : {1, 2, 5, 16}) {
      for (const int64 total : {1, 3, 40}) {
        EXPECT_EQ(offset_of(0, rows, total, scrambled(seed)), 0);
        EXPECT_EQ(offset_of(rows, rows, total, scrambled(seed)), total);
        for (int64 i = 0; i < rows; ++i) {
          const int64 begin = offset_of(i, rows, total, scrambled(seed));
          const int64 end = offset_of(i + 1, rows, total, scrambled(seed));
          ASSERT_LE(begin, end) << i << " of " << rows << ", " << total;
          empty = empty || begin == end;
          full = full || (rows > 1 && end - begin == total);
        }
      }
    }
  }
  EXPECT_TRUE(empty && full) << "rows without an element, and one that has all";
}

TEST(Generators, OthersStayWithinTheirBounds) {
  for (uint64 seed = 0; seed < 30; ++seed) {
    std::set<int64> pages;
    for (int64 sequence = 0; sequence < 3; ++sequence) {
      for (int64 block = 0; block < 4; ++block) pages.insert(page_of(sequence, block, 4, 12, seed));
    }
    EXPECT_EQ(pages.size(), 12u) << "there are pages enough";
    EXPECT_LT(page_of(2, 3, 4, 5, seed), 5);
    double before = -2;
    for (int64 i = 0; i < 9; ++i) {
      EXPECT_LT(class_of(i, 7, seed), 7);
      const double number = ascending(i, 9, -2, 2, seed);
      EXPECT_GE(number, before);
      EXPECT_LE(number, 2);
      before = number;
    }
  }
  EXPECT_TRUE(causal(0, 2, 3, 5));
  EXPECT_FALSE(causal(0, 3, 3, 5));
  EXPECT_TRUE(causal(2, 4, 3, 5));
  EXPECT_EQ(rope_angle(6, 0, 8, 10000), 6);
}

TEST(Generators, SeedsFollowFromWhatATensorHolds) {
  std::vector<float> x(100, 1.0f), y = x;
  y[0] = 2;
  EXPECT_EQ(seed_of(x.data(), 100), seed_of(x.data(), 100));
  EXPECT_NE(seed_of(x.data(), 100), seed_of(y.data(), 100));
  EXPECT_NE(seed_of(x.data(), 100), seed_of(x.data(), 99));
}

}  // namespace
}  // namespace assay
