#include "validator/campaign/costs.h"

#include <gtest/gtest.h>

namespace assay::campaign {
namespace {

TEST(CostsTest, GrowByAxesAndHalfAsMuchPastTheSquare) {
  Costs costs;
  EXPECT_FALSE(costs.Estimate({{"m", 4}, {"n", 4}}, 32));
  costs.Learn({{"m", 4}, {"n", 4}}, 16, 1'000);
  EXPECT_NEAR(*costs.Estimate({{"m", 4}, {"n", 4}}, 16), 1'000, 1);
  EXPECT_NEAR(*costs.Estimate({{"m", 4}, {"n", 8}}, 32), 2'000, 2);
  // Elements that do not grow as fast as the product of the axes, as in m + n.
  EXPECT_NEAR(*costs.Estimate({{"m", 8}, {"n", 8}}, 32), 4'000, 4);
  EXPECT_NEAR(*costs.Estimate({{"m", 64}, {"n", 64}}, 32), 32'000, 32);
  EXPECT_NEAR(*costs.EstimateAtMost({{"m", 64}, {"n", 64}}), 256'000, 256);
  EXPECT_NEAR(*costs.EstimateAtMost({{"m", 1}, {"n", 1}}), 1'000, 1);
  // The nearest counts, and of one shape the dearest.
  costs.Learn({{"m", 4}, {"n", 1024}}, 4'096, 50'000);
  costs.Learn({{"m", 4}, {"n", 1024}}, 4'096, 90'000);
  EXPECT_NEAR(*costs.Estimate({{"m", 4}, {"n", 2048}}, 8'192), 180'000, 200);
}

TEST(CostsTest, OfBlocksTheNearestCountsAndWhatMakesNoMoreOfThem) {
  Costs costs;
  EXPECT_FALSE(costs.EstimateEach({{"m", 4}, {"n", 4}}, 4));
  costs.Learn({{"m", 4}, {"n", 4}}, 4, 1'000);
  costs.Learn({{"m", 4}, {"n", 1024}}, 4, 9'000);
  EXPECT_NEAR(*costs.EstimateEach({{"m", 4096}, {"n", 4}}, 4096), 1'000, 1);
  EXPECT_NEAR(*costs.EstimateEach({{"m", 4096}, {"n", 1}}, 4096), 1'000, 1);
  EXPECT_NEAR(*costs.EstimateEach({{"m", 4}, {"n", 512}}, 4), 9'000, 9);
  EXPECT_NEAR(*costs.EstimateEach({{"m", 4}, {"n", 16 * 1024}}, 4), 72'000, 72);
}

}  // namespace
}  // namespace assay::campaign
