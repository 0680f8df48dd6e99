// cp.async, mbarriers, bulk copies, cluster barriers, each rule
// as a pair: a trace that must be reported and its twin that must not.
#include <gtest/gtest.h>

#include <array>

#include "validator/emu/race/race_driver.h"

namespace assay::emu {
namespace {

constexpr LaneMask kLane0 = 1;
constexpr LaneMask kLane1 = 2;
constexpr RaceDetector::Shape kTwoWarps{.warps_per_block = 2, .blocks = 1};

TEST(RaceAsync, AsyncCopyIsSeenAfterItsWaitByItsIssuer) {
  Driver no_wait(kTwoWarps);
  no_wait.Copy(0, kAllLanes, 9, 0, 0);
  no_wait.ReadRow(0, 0);
  ASSERT_EQ(no_wait.count(), 1u);
  EXPECT_TRUE(no_wait.race.races().front().earlier.async);
  EXPECT_EQ(no_wait.race.races().front().earlier.warp, 0u);

  Driver waited(kTwoWarps);
  const auto token = waited.Copy(0, kAllLanes, 9, 0, 0);
  waited.WaitCopies(0, kAllLanes, token);
  waited.ReadRow(0, 0);
  EXPECT_EQ(waited.count(), 0u);
  waited.Read(0, kLane1, 0);
  EXPECT_EQ(waited.count(), 1u) << "lane 0's copy, lane 1 reads, no barrier";
}

TEST(RaceAsync, ARingOfOwnCopiesIsOrderedByWaitsAlone) {
  Driver ring(kTwoWarps);
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    ring.WaitCopies(0, kAllLanes, ring.Copy(0, kAllLanes, 9, 4096 * turn, 0));
    ring.ReadRow(0, 0);
    if (turn % 2 == 1) ring.WriteRow(0, 0);
  }
  EXPECT_EQ(ring.count(), 0u);

  Driver one_lane_waits_for_less(kTwoWarps);
  const auto first = one_lane_waits_for_less.Copy(0, kAllLanes, 9, 0, 0);
  one_lane_waits_for_less.WaitCopies(0, kAllLanes, first);
  one_lane_waits_for_less.ReadRow(0, 0);
  const auto second = one_lane_waits_for_less.Copy(0, kAllLanes, 9, 4096, 0);
  one_lane_waits_for_less.WaitCopies(0, kAllLanes & ~kLane1, second);
  one_lane_waits_for_less.ReadRow(0, 0);
  EXPECT_EQ(one_lane_waits_for_less.count(), 1u);

  Driver neighbours(kTwoWarps);
  neighbours.WaitCopies(0, kAllLanes, neighbours.Copy(0, kAllLanes, 9, 0, 0));
  neighbours.ReadRow(0, 4);
  EXPECT_GE(neighbours.count(), 1u) << "each lane reads what the next one has copied";
}

TEST(RaceAsync, AsyncCopyNeedsWaitThenBarrierForOthers) {
  Driver good(kTwoWarps);
  good.WaitCopies(0, kAllLanes, good.Copy(0, kAllLanes, 9, 0, 0));
  good.Sync(0);
  good.ReadRow(1, 0);
  EXPECT_EQ(good.count(), 0u);

  Driver no_wait(kTwoWarps);
  no_wait.Copy(0, kAllLanes, 9, 0, 0);
  no_wait.Sync(0);
  no_wait.ReadRow(1, 0);
  EXPECT_EQ(no_wait.count(), 1u);

  Driver wrong_order(kTwoWarps);
  const auto token = wrong_order.Copy(0, kAllLanes, 9, 0, 0);
  wrong_order.Sync(0);
  wrong_order.WaitCopies(0, kAllLanes, token);
  wrong_order.ReadRow(1, 0);
  EXPECT_EQ(wrong_order.count(), 1u);

  Driver warp(kTwoWarps);
  warp.WaitCopies(0, kAllLanes, warp.Copy(0, kAllLanes, 9, 0, 0));
  warp.race.OnWarpBarrier(0, kAllLanes);
  warp.Read(0, kLane1, 0);
  EXPECT_EQ(warp.count(), 0u);
}

TEST(RaceAsync, AsyncCopyReadsItsSourceLate) {
  Driver early(kTwoWarps);
  const auto token = early.Copy(0, kAllLanes, 9, 0, 0);
  early.region = 9;
  early.WriteRow(0, 0);
  EXPECT_EQ(early.count(), 1u);
  Driver late(kTwoWarps);
  late.WaitCopies(0, kAllLanes, late.Copy(0, kAllLanes, 9, 0, 0));
  late.region = 9;
  late.WriteRow(0, 0);
  EXPECT_EQ(late.count(), 0u);
  (void)token;
}

TEST(RaceAsync, AsyncCopyPipelineWaitsForOlderGroupsOnly) {
  Driver d(kTwoWarps);
  const auto first = d.Copy(0, kAllLanes, 9, 0, 0);
  d.Copy(0, kAllLanes, 9, 128, 128);
  d.WaitCopies(0, kAllLanes, first);
  d.Sync(0);
  d.ReadRow(1, 0);
  EXPECT_EQ(d.count(), 0u);
  d.ReadRow(1, 128);
  EXPECT_EQ(d.count(), 1u);
}

TEST(RaceAsync, AsyncCopyIntoABufferStillRead) {
  Driver d(kTwoWarps);
  d.WriteRow(0, 0);
  d.Sync(0);
  d.ReadRow(1, 0);
  d.Copy(0, kAllLanes, 9, 0, 0);
  EXPECT_EQ(d.count(), 1u);
  Driver ordered(kTwoWarps);
  ordered.WriteRow(0, 0);
  ordered.Sync(0);
  ordered.ReadRow(1, 0);
  ordered.Sync(0);
  ordered.Copy(0, kAllLanes, 9, 0, 0);
  EXPECT_EQ(ordered.count(), 0u);
}

constexpr RegionId kShared = 5;

TEST(RaceAsync, MbarrierArriveReleasesAndWaitAcquires) {
  for (const bool relaxed_arrive : {false, true}) {
    for (const bool relaxed_wait : {false, true}) {
      Driver d(kTwoWarps);
      d.race.OnMbarrierInit(kShared, 0);
      d.Sync(0);
      d.WriteRow(0, 0);
      d.race.OnMbarrierArrive(kShared, 0, 0, kAllLanes, Scope::kCta, relaxed_arrive);
      d.race.OnMbarrierPhaseComplete(kShared, 0);
      d.race.OnMbarrierWait(kShared, 0, 1, kAllLanes, Scope::kCta, relaxed_wait);
      d.ReadRow(1, 0);
      EXPECT_EQ(d.count(), relaxed_arrive || relaxed_wait ? 1u : 0u);
    }
  }
}

TEST(RaceAsync, MbarrierHandsOverItsCompletePhaseOnly) {
  Driver d(kTwoWarps);
  d.race.OnMbarrierArrive(kShared, 0, 0, kAllLanes, Scope::kCta, false);
  d.race.OnMbarrierPhaseComplete(kShared, 0);
  d.WriteRow(0, 0);
  d.race.OnMbarrierArrive(kShared, 0, 0, kAllLanes, Scope::kCta, false);
  d.race.OnMbarrierWait(kShared, 0, 1, kAllLanes, Scope::kCta, false);
  d.ReadRow(1, 0);
  EXPECT_EQ(d.count(), 1u);
}

TEST(RaceAsync, MbarrierPublishesAsyncCopies) {
  for (const bool linked : {false, true}) {
    Driver d(kTwoWarps);
    const auto token = d.Copy(0, kAllLanes, 9, 0, 0);
    if (linked) d.race.OnAsyncMbarrierArrive(kShared, 0, 0, kAllLanes, token);
    d.race.OnMbarrierArrive(kShared, 0, 0, kAllLanes, Scope::kCta, false);
    d.race.OnMbarrierPhaseComplete(kShared, 0);
    d.race.OnMbarrierWait(kShared, 0, 1, kAllLanes, Scope::kCta, false);
    d.ReadRow(1, 0);
    EXPECT_EQ(d.count(), linked ? 0u : 1u);
  }
}

TEST(RaceAsync, BulkCopyPublishesItsOwnBytesOnly) {
  Driver d(kTwoWarps);
  d.Write(0, kLane0, 512);
  WarpAccess bulk = d.Make(0, kLane0, 0, 0, 256);
  bulk.kind = AccessKind::kWrite;
  d.race.OnBulkWrite(bulk, kShared, 0);
  d.race.OnMbarrierPhaseComplete(kShared, 0);
  d.race.OnMbarrierWait(kShared, 0, 1, kAllLanes, Scope::kCta, false);
  d.ReadRow(1, 0);
  d.ReadRow(1, 128);
  EXPECT_EQ(d.count(), 0u);
  d.Read(1, kLane0, 512);
  EXPECT_EQ(d.count(), 1u) << "the issuer's own store was not released";
}

TEST(RaceAsync, BulkCopiesOnDifferentMbarriersAreApart) {
  Driver d(kTwoWarps);
  WarpAccess first = d.Make(0, kLane0, 0, 0, 128);
  first.kind = AccessKind::kWrite;
  const auto a = d.race.OnBulkIssue(nullptr, &first);
  WarpAccess second = d.Make(0, kLane0, 128, 0, 128);
  second.kind = AccessKind::kWrite;
  const auto b = d.race.OnBulkIssue(nullptr, &second);
  d.race.OnBulkComplete(b, kShared, 8);
  d.race.OnMbarrierPhaseComplete(kShared, 8);
  d.race.OnMbarrierWait(kShared, 8, 1, kAllLanes, Scope::kCta, false);
  d.ReadRow(1, 128);
  EXPECT_EQ(d.count(), 0u);
  d.ReadRow(1, 0);
  EXPECT_EQ(d.count(), 1u);
  d.race.OnBulkComplete(a, kShared, 0);
}

TEST(RaceAsync, BulkGroupWait) {
  Driver d(kTwoWarps);
  WarpAccess read = d.Make(0, kLane0, 0, 0, 128);
  const std::array<std::uint64_t, kWarpSize> source{};
  read.offsets = source.data();
  WarpAccess write = d.Make(0, kLane0, 1024, 0, 128);
  write.kind = AccessKind::kWrite;
  const auto token = d.race.OnBulkIssue(&read, &write);
  d.race.OnBulkWait(0, 0, token, true);
  d.Write(0, kLane0, 0);
  EXPECT_EQ(d.count(), 0u);
  d.Read(0, kLane0, 1024);
  EXPECT_EQ(d.count(), 1u);
  d.race.OnBulkWait(0, 0, token, false);
  d.Read(0, kLane0, 1028);
  EXPECT_EQ(d.count(), 1u);
}

TEST(RaceAsync, ClusterBarrierOrdersFromTheWaitOn) {
  const RaceDetector::Shape shape{.warps_per_block = 1, .blocks = 2, .blocks_per_cluster = 2};
  for (const bool relaxed : {false, true}) {
    Driver d(shape);
    d.WriteRow(0, 0);
    d.race.OnClusterArrive(0, 0, kAllLanes, relaxed);
    d.race.OnClusterArrive(1, 1, kAllLanes, false);
    d.race.OnClusterComplete(0);
    d.race.OnClusterWait(1, 1, kAllLanes);
    d.ReadRow(1, 0);
    EXPECT_EQ(d.count(), relaxed ? 1u : 0u);
  }
  Driver early(shape);
  early.WriteRow(0, 0);
  early.race.OnClusterArrive(0, 0, kAllLanes, false);
  early.race.OnClusterArrive(1, 1, kAllLanes, false);
  early.race.OnClusterComplete(0);
  early.ReadRow(1, 0);
  EXPECT_EQ(early.count(), 1u);
}

}  // namespace
}  // namespace assay::emu
