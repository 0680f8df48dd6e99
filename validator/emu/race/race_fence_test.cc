// Sequentially consistent fences beside barriers, proxy fences before copies, and barriers whose uses
// nothing orders.
#include <gtest/gtest.h>

#include "validator/emu/race/race_driver.h"

namespace assay::emu {
namespace {

constexpr LaneMask kLane0 = 1;
constexpr std::uint64_t kData = 0;
constexpr std::uint64_t kTicket = 4096;
constexpr RaceDetector::Shape kTwoBlocks{.warps_per_block = 2, .blocks = 2};
constexpr RaceDetector::Shape kOneBlock{.warps_per_block = 2, .blocks = 1};

/// All threads of block 0 write, and fence before (`writer`) a barrier; thread 0 takes the ticket.
/// Thread 0 of block 1 takes it, and all of its block fence after a barrier, and read.
std::size_t LastBlock(Order writer, Order reader, bool barrier_before = true,
                      bool barrier_after = true) {
  Driver d(kTwoBlocks);
  d.WriteRow(0, kData);
  d.WriteRow(1, kData + 128);
  for (WarpNumber warp : {0u, 1u}) d.Fence(warp, kAllLanes, Scope::kGpu, writer);
  if (barrier_before) d.Sync(0);
  d.Atom(0, kLane0, kTicket);
  d.Atom(2, kLane0, kTicket);
  if (barrier_after) d.Sync(1);
  for (WarpNumber warp : {2u, 3u}) d.Fence(warp, kAllLanes, Scope::kGpu, reader);
  d.ReadRow(3, kData);
  d.ReadRow(2, kData + 128);
  return d.count();
}

TEST(RaceFence, SequentialFencesOfOthersReachThroughBarriers) {
  EXPECT_EQ(LastBlock(Order::kSeqCst, Order::kSeqCst), 0u);
}

TEST(RaceFence, OtherFencesDoNot) {
  EXPECT_NE(LastBlock(Order::kAcqRel, Order::kSeqCst), 0u);
  EXPECT_NE(LastBlock(Order::kSeqCst, Order::kAcqRel), 0u);
}

TEST(RaceFence, NorWithoutTheBarriers) {
  EXPECT_NE(LastBlock(Order::kSeqCst, Order::kSeqCst, false, true), 0u);
  EXPECT_NE(LastBlock(Order::kSeqCst, Order::kSeqCst, true, false), 0u);
}

TEST(RaceFence, SequentialFencesWithoutATicketOrderNothing) {
  Driver d(kTwoBlocks);
  d.WriteRow(0, kData);
  d.Fence(0, kAllLanes, Scope::kGpu, Order::kSeqCst);
  d.Sync(0);
  d.Sync(1);
  d.Fence(2, kAllLanes, Scope::kGpu, Order::kSeqCst);
  d.ReadRow(2, kData);
  EXPECT_EQ(d.count(), 1u);
}

TEST(RaceFence, WritesAfterTheFenceAreNotCovered) {
  Driver d(kTwoBlocks);
  d.Fence(1, kAllLanes, Scope::kGpu, Order::kSeqCst);
  d.WriteRow(1, kData);
  d.Sync(0);
  d.Atom(0, kLane0, kTicket);
  d.Atom(2, kLane0, kTicket);
  d.Sync(1);
  d.Fence(3, kAllLanes, Scope::kGpu, Order::kSeqCst);
  d.ReadRow(3, kData);
  EXPECT_EQ(d.count(), 1u);
}

/// Warp 1 writes, lane 0 of warp 0 starts a bulk copy of it after a barrier.
Driver& CopyOut(Driver& d) {
  WarpAccess read = d.Make(0, kLane0, kData, 0, 128);
  read.kind = AccessKind::kRead;
  d.race.OnBulkIssue(&read, nullptr);
  return d;
}

TEST(RaceFence, CopiesNeedAProxyFenceOnTheWay) {
  Driver none(kOneBlock);
  none.WriteRow(1, kData);
  none.Sync(0);
  ASSERT_EQ(CopyOut(none).count(), 1u);
  EXPECT_EQ(none.front_class(), Race::Class::kProxy);

  Driver by_writers(kOneBlock);
  by_writers.WriteRow(1, kData);
  by_writers.race.OnProxyFence(1, kAllLanes);
  by_writers.Sync(0);
  EXPECT_EQ(CopyOut(by_writers).count(), 0u);

  Driver by_issuer(kOneBlock);
  by_issuer.WriteRow(1, kData);
  by_issuer.Sync(0);
  by_issuer.race.OnProxyFence(0, kLane0);
  EXPECT_EQ(CopyOut(by_issuer).count(), 0u);

  Driver before_the_write(kOneBlock);
  before_the_write.race.OnProxyFence(1, kAllLanes);
  before_the_write.WriteRow(1, kData);
  before_the_write.Sync(0);
  EXPECT_EQ(CopyOut(before_the_write).count(), 1u);

  Driver by_a_stranger(kOneBlock);  // Who did not know of the write yet.
  by_a_stranger.WriteRow(1, kData);
  by_a_stranger.race.OnProxyFence(0, kLane0);
  by_a_stranger.Sync(0);
  EXPECT_EQ(CopyOut(by_a_stranger).count(), 1u);
}

TEST(RaceFence, UsesOfABarrierMustBeInOrder) {
  Driver d({.warps_per_block = 4, .blocks = 1});
  const auto arrive = [&](WarpNumber warp) {
    return d.race.OnBarrierArrive(0, 1, warp, kAllLanes, true);
  };
  EXPECT_TRUE(arrive(0));
  EXPECT_TRUE(arrive(1));
  d.race.OnBarrierComplete(0, 1);
  EXPECT_TRUE(arrive(0));   // Was there.
  EXPECT_FALSE(arrive(2));  // Might as well have come before.
  d.race.OnBarrierComplete(0, 1);
  d.Sync(0);
  EXPECT_TRUE(arrive(3));  // Was told.
}

}  // namespace
}  // namespace assay::emu
