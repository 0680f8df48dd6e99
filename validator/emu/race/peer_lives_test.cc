#include <gtest/gtest.h>

#include "validator/emu/race/race_driver.h"

namespace assay::emu {
namespace {

constexpr RaceDetector::Shape kCluster{.warps_per_block = 2, .blocks = 2, .blocks_per_cluster = 2};
constexpr RegionId kOfFirst = 100, kOfSecond = 101;

/// Two blocks of one cluster, of two warps each: 0 and 1, 2 and 3.
struct Peers : Driver {
  Peers() : Driver(kCluster) {
    race.OnClusterRegion(0, kOfFirst);
    race.OnClusterRegion(1, kOfSecond);
  }
  /// The last warp of the second block reads memory of the first.
  void Reach(LaneMask lanes = kAllLanes) {
    region = kOfFirst;
    Read(3, lanes, 8);
  }
  void Meet(bool relaxed = false) {
    for (WarpNumber warp = 0; warp < 4; ++warp)
      race.OnClusterArrive(warp / 2, warp, kAllLanes, relaxed);
    race.OnClusterComplete(0);
    for (WarpNumber warp = 0; warp < 4; ++warp) race.OnClusterWait(warp / 2, warp, kAllLanes);
  }
  void End(BlockNumber block) {
    for (WarpNumber warp = 2 * block; warp < 2 * block + 2; ++warp)
      race.OnThreadExit(warp, kAllLanes, 77);
    race.EndBlock(block, block == 0 ? kOfFirst : kOfSecond);
  }
};

TEST(PeerLives, WhatNothingOrdersBeforeTheEndOfABlockMayComeTooLate) {
  Peers peers;
  peers.Reach();
  peers.End(0);
  EXPECT_EQ(peers.count(), 0u);  // It is asked when all of the cluster is over.
  peers.End(1);
  ASSERT_EQ(peers.count(), 1u);
  const Race& race = peers.race.races().front();
  EXPECT_EQ(race.race_class, Race::Class::kEnded);
  EXPECT_EQ(race.later.warp, 3u);
  EXPECT_EQ(race.earlier.pc, 77u);
  EXPECT_EQ(race.offset, 8u);
}

TEST(PeerLives, TheOrderOfARunDoesNotMatter) {
  Peers late;
  late.End(0);
  late.Reach();
  late.End(1);
  EXPECT_EQ(late.count(), 1u);
  Peers reversed;
  reversed.Reach();
  reversed.End(1);
  reversed.End(0);
  EXPECT_EQ(reversed.count(), 1u);
}

TEST(PeerLives, ABarrierOfTheClusterBehindItKeepsTheBlock) {
  Peers peers;
  peers.Reach();
  peers.Meet();
  peers.End(0);
  peers.End(1);
  EXPECT_EQ(peers.count(), 0u);
}

TEST(PeerLives, ABarrierBeforeItOrOneThatReleasesNothingDoesNot) {
  Peers before;
  before.Meet();
  before.Reach();
  before.End(0);
  before.End(1);
  EXPECT_EQ(before.count(), 1u);
  Peers relaxed;
  relaxed.Reach();
  relaxed.Meet(/*relaxed=*/true);
  relaxed.End(0);
  relaxed.End(1);
  EXPECT_EQ(relaxed.count(), 1u);
}

TEST(PeerLives, OneThreadThatStaysIsEnough) {
  Peers peers;
  peers.race.OnThreadExit(0, kAllLanes, 70);
  peers.Reach();
  for (const WarpNumber warp : {1u, 2u, 3u})
    peers.race.OnClusterArrive(warp / 2, warp, kAllLanes, false);
  peers.race.OnClusterComplete(0);
  for (const WarpNumber warp : {1u, 2u, 3u}) peers.race.OnClusterWait(warp / 2, warp, kAllLanes);
  peers.race.OnThreadExit(1, kAllLanes, 77);
  peers.race.EndBlock(0, kOfFirst);
  peers.End(1);
  EXPECT_EQ(peers.count(), 0u);
}

TEST(PeerLives, TheLastAccessOfEachLaneCounts) {
  Peers peers;
  peers.Reach();
  peers.Meet();
  peers.Reach(1u << 5);
  peers.End(0);
  peers.End(1);
  ASSERT_EQ(peers.count(), 1u);
  EXPECT_EQ(peers.race.races().front().later.lane, 5u);
}

TEST(PeerLives, ABlockMayAlwaysReachItsOwn) {
  Peers peers;
  peers.region = kOfSecond;
  peers.Read(3, kAllLanes, 8);
  peers.End(0);
  peers.End(1);
  EXPECT_EQ(peers.count(), 0u);
}

}  // namespace
}  // namespace assay::emu
