// Barriers, program order, classes of races and what is remembered of readers, each rule
// as a pair: a trace that must be reported and its twin that must not.
#include <gtest/gtest.h>

#include <array>

#include "validator/emu/race/race_driver.h"

namespace assay::emu {
namespace {

constexpr LaneMask kLane0 = 1;
constexpr LaneMask kLane1 = 2;
constexpr RaceDetector::Shape kTwoWarps{.warps_per_block = 2, .blocks = 1};
constexpr RaceDetector::Shape kTwoBlocks{.warps_per_block = 1, .blocks = 2};

TEST(Race, WritesOfTwoWarpsRace) {
  Driver d(kTwoWarps);
  const auto a = d.Write(0, kLane0, 64);
  const auto b = d.Write(1, kLane1, 64);
  ASSERT_EQ(d.count(), 1u);
  const Race& race = d.race.races().front();
  EXPECT_EQ(race.race_class, Race::Class::kRace);
  EXPECT_EQ(race.earlier.pc, a);
  EXPECT_EQ(race.later.pc, b);
  EXPECT_EQ(race.earlier.warp, 0u);
  EXPECT_EQ(race.earlier.lane, 0);
  EXPECT_EQ(race.later.warp, 1u);
  EXPECT_EQ(race.later.lane, 1);
  EXPECT_EQ(race.offset, 64u);
  EXPECT_EQ(race.bytes, 4u);
  EXPECT_FALSE(race.same_warp);
}

TEST(Race, NeighboursDoNot) {
  Driver d(kTwoWarps);
  d.Write(0, kLane0, 64);
  d.Write(1, kLane0, 68);
  d.Write(0, kLane0, 80, kWeakly, 1);
  d.Write(1, kLane0, 81, kWeakly, 1);
  d.Write(0, kLane1, 82, kWeakly, 2);
  EXPECT_EQ(d.count(), 0u);
}

TEST(Race, ReadsDoNotRaceAndReadThenWriteDoes) {
  Driver d(kTwoWarps);
  d.Read(0, kLane0, 0);
  d.Read(1, kLane0, 0);
  EXPECT_EQ(d.count(), 0u);
  d.Write(1, kLane0, 0);
  EXPECT_EQ(d.count(), 1u);
}

TEST(Race, ProgramOrderIsOrder) {
  Driver d(kTwoWarps);
  d.Write(0, kLane0, 0);
  d.Read(0, kLane0, 0);
  d.Write(0, kLane0, 0);
  d.WriteRow(1, 128);
  d.ReadRow(1, 128);
  d.WriteRow(1, 128);
  EXPECT_EQ(d.count(), 0u);
}

TEST(Race, LanesOfOneWarpAreUnordered) {
  Driver d(kTwoWarps);
  d.Write(0, kLane0, 0);
  d.Read(0, kLane1, 0);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_TRUE(d.race.races().front().same_warp);
}

TEST(Race, WarpBarrierOrdersItsMembersOnly) {
  Driver ordered(kTwoWarps);
  ordered.Write(0, kLane0, 0);
  ordered.race.OnWarpBarrier(0, kLane0 | kLane1);
  ordered.Read(0, kLane1, 0);
  EXPECT_EQ(ordered.count(), 0u);

  Driver full(kTwoWarps);
  full.WriteRow(0, 0);
  full.race.OnWarpBarrier(0, kAllLanes);
  full.Read(0, kLane1, 0);
  EXPECT_EQ(full.count(), 0u);

  Driver outsider(kTwoWarps);
  outsider.Write(0, kLane0, 0);
  outsider.race.OnWarpBarrier(0, kLane0 | kLane1);
  outsider.Read(0, 4, 0);
  EXPECT_EQ(outsider.count(), 1u);

  Driver other_warp(kTwoWarps);
  other_warp.Write(0, kLane0, 0);
  other_warp.race.OnWarpBarrier(0, kAllLanes);
  other_warp.Read(1, kLane0, 0);
  EXPECT_EQ(other_warp.count(), 1u);
}

TEST(Race, BlockBarrierOrders) {
  Driver ordered(kTwoWarps);
  ordered.WriteRow(0, 0);
  ordered.Sync(0);
  ordered.ReadRow(1, 0);
  ordered.Sync(0);
  ordered.WriteRow(1, 0);
  EXPECT_EQ(ordered.count(), 0u);

  Driver late(kTwoWarps);
  late.Sync(0);
  late.WriteRow(0, 0);
  late.ReadRow(1, 0);
  EXPECT_EQ(late.count(), 1u);
}

TEST(Race, MissingSecondBarrierBeforeReuse) {
  Driver d(kTwoWarps);
  d.WriteRow(0, 0);
  d.Sync(0);
  const auto read = d.ReadRow(1, 0);
  const auto write = d.WriteRow(0, 0);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_EQ(d.race.races().front().earlier.pc, read);
  EXPECT_EQ(d.race.races().front().later.pc, write);
}

TEST(Race, BlocksAreNotOrderedByEachOthersBarriers) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, 0);
  d.Sync(0);
  d.Sync(1);
  d.Read(1, kLane0, 0);
  EXPECT_EQ(d.count(), 1u);
}

TEST(Race, LaunchesAreOrdered) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, 0);
  d.race.BeginLaunch(kTwoBlocks);
  d.Read(1, kLane0, 0);
  EXPECT_EQ(d.count(), 0u);
}

TEST(Race, ArriveGivesButDoesNotGain) {
  // Producer arrives, consumer waits: bar.arrive 1, 64 and bar.sync 1, 64.
  Driver ordered(kTwoWarps);
  ordered.WriteRow(0, 0);
  ordered.race.OnBarrierArrive(0, 1, 0, kAllLanes, false);
  ordered.race.OnBarrierArrive(0, 1, 1, kAllLanes, true);
  ordered.race.OnBarrierComplete(0, 1);
  ordered.ReadRow(1, 0);
  EXPECT_EQ(ordered.count(), 0u);

  Driver after(kTwoWarps);
  after.race.OnBarrierArrive(0, 1, 0, kAllLanes, false);
  after.WriteRow(0, 0);
  after.race.OnBarrierArrive(0, 1, 1, kAllLanes, true);
  after.race.OnBarrierComplete(0, 1);
  after.ReadRow(1, 0);
  EXPECT_EQ(after.count(), 1u);

  Driver gain(kTwoWarps);
  gain.WriteRow(1, 0);
  gain.race.OnBarrierArrive(0, 1, 0, kAllLanes, false);
  gain.race.OnBarrierArrive(0, 1, 1, kAllLanes, true);
  gain.race.OnBarrierComplete(0, 1);
  gain.ReadRow(0, 0);
  EXPECT_EQ(gain.count(), 1u);
}

TEST(Race, NamedBarriersOrderTheirOwnThreads) {
  const RaceDetector::Shape shape{.warps_per_block = 3, .blocks = 1};
  Driver inside(shape);
  inside.WriteRow(0, 0);
  inside.Sync(0, 2, 0, 2);
  inside.ReadRow(1, 0);
  EXPECT_EQ(inside.count(), 0u);
  inside.ReadRow(2, 0);
  EXPECT_EQ(inside.count(), 1u);

  Driver then_all(shape);
  then_all.WriteRow(0, 0);
  then_all.Sync(0, 2, 0, 2);
  then_all.ReadRow(1, 0);
  then_all.Sync(0);
  then_all.WriteRow(2, 0);
  then_all.Sync(0, 3, 1, 2);
  then_all.ReadRow(1, 0);
  EXPECT_EQ(then_all.count(), 0u);
  then_all.ReadRow(0, 0);
  EXPECT_EQ(then_all.count(), 1u);
}

TEST(Race, ExitedThreadsDoNotHoldABarrierUpButAreNotOrderedByIt) {
  Driver harmless(kTwoWarps);
  harmless.race.OnThreadExit(0, 0xffff0000u);
  harmless.Write(0, kLane0, 0);
  harmless.race.OnBarrierArrive(0, 0, 0, 0xffffu, true);
  harmless.race.OnBarrierArrive(0, 0, 1, kAllLanes, true);
  harmless.race.OnBarrierComplete(0, 0);
  harmless.Read(1, kLane0, 0);
  EXPECT_EQ(harmless.count(), 0u);

  Driver ghost(kTwoWarps);
  ghost.Write(0, 1u << 31, 0);
  ghost.race.OnThreadExit(0, 1u << 31);
  ghost.race.OnBarrierArrive(0, 0, 0, 0x7fffffffu, true);
  ghost.race.OnBarrierArrive(0, 0, 1, kAllLanes, true);
  ghost.race.OnBarrierComplete(0, 0);
  ghost.Write(1, kLane0, 64);
  ghost.Sync(0);
  ghost.Read(1, kLane1, 64);
  EXPECT_EQ(ghost.count(), 0u);
  ghost.Read(1, kLane0, 0);
  EXPECT_EQ(ghost.count(), 1u);

  Driver after_barrier(kTwoWarps);
  after_barrier.Write(0, 1u << 31, 0);
  after_barrier.Sync(0);
  after_barrier.race.OnThreadExit(0, 1u << 31);
  after_barrier.Read(1, kLane0, 0);
  EXPECT_EQ(after_barrier.count(), 0u);
}

TEST(Race, LanesThatDoNotExistDoNotMatter) {
  Driver d({.warps_per_block = 2, .blocks = 1, .blocks_per_cluster = 1, .threads_per_block = 48});
  d.Write(0, kLane0, 0);
  d.race.OnBarrierArrive(0, 0, 0, kAllLanes, true);
  d.race.OnBarrierArrive(0, 0, 1, 0xffffu, true);
  d.race.OnBarrierComplete(0, 0);
  d.Read(1, kLane0, 0);
  EXPECT_EQ(d.count(), 0u);
}

TEST(Race, SameValueWritesAreTheirOwnClass) {
  const std::array<std::uint32_t, 32> ones = [] {
    std::array<std::uint32_t, 32> a;
    a.fill(1);
    return a;
  }();
  std::array<std::uint32_t, 32> values = ones;
  const auto run = [&](std::uint32_t before, std::uint32_t now) {
    Driver d(kTwoWarps);
    d.Write(0, kLane0, 0);
    WarpAccess write = d.Make(1, kLane0, 0, 0, 4);
    std::array<std::uint32_t, 32> old{};
    old[0] = before;
    values[0] = now;
    write.new_values = reinterpret_cast<const std::byte*>(values.data());
    write.old_values = reinterpret_cast<const std::byte*>(old.data());
    d.Go(write, AccessKind::kWrite, kWeakly);
    EXPECT_EQ(d.count(), 1u);
    return d.front_class();
  };
  EXPECT_EQ(run(1, 1), Race::Class::kSameValue);
  EXPECT_EQ(run(1, 2), Race::Class::kRace);
  EXPECT_EQ(run(0, 1), Race::Class::kRace);

  for (const std::uint32_t lane5 : {1u, 7u}) {
    Driver siblings(kTwoWarps);
    values = ones;
    values[5] = lane5;
    WarpAccess write = siblings.Make(0, kAllLanes, 0, 0, 4);
    write.new_values = reinterpret_cast<const std::byte*>(values.data());
    siblings.Go(write, AccessKind::kWrite, kWeakly);
    ASSERT_EQ(siblings.count(), 1u);
    EXPECT_EQ(siblings.front_class(), lane5 == 1 ? Race::Class::kSameValue : Race::Class::kRace);
    EXPECT_TRUE(siblings.race.races().front().same_warp);

    Driver agreeing(kTwoWarps);
    write = agreeing.Make(0, kAllLanes, 0, 0, 4);
    write.new_values = reinterpret_cast<const std::byte*>(values.data());
    write.siblings_may_agree = true;
    agreeing.Go(write, AccessKind::kWrite, kWeakly);
    EXPECT_EQ(agreeing.count(), lane5 == 1 ? 0u : 1u);
  }
}

TEST(Race, OfOnePairTheGraverClassStands) {
  const std::array<std::uint32_t, 32> ones = [] {
    std::array<std::uint32_t, 32> a;
    a.fill(1);
    return a;
  }();
  for (const bool same_first : {true, false}) {
    Driver d(kTwoWarps);
    for (const bool same : {same_first, !same_first}) {
      const std::uint64_t at = same ? 0 : 64;
      std::array<std::uint32_t, 32> old{};
      old[0] = same ? 1 : 0;
      d.next_pc = 1;
      d.Write(0, kLane0, at);
      WarpAccess write = d.Make(1, kLane0, at, 0, 4);
      write.new_values = reinterpret_cast<const std::byte*>(ones.data());
      write.old_values = reinterpret_cast<const std::byte*>(old.data());
      d.Go(write, AccessKind::kWrite, kWeakly);
    }
    ASSERT_EQ(d.count(), 1u);
    EXPECT_EQ(d.front_class(), Race::Class::kRace);
    EXPECT_EQ(d.race.races().front().occurrences, 2u);
  }
}

TEST(Race, ReadOnlyPathMustNotMeetAWrite) {
  Driver before(kTwoWarps);
  before.ReadOnly(0, kLane0, 0);
  before.Sync(0);
  before.Write(1, kLane0, 0);
  ASSERT_EQ(before.count(), 1u);
  EXPECT_EQ(before.front_class(), Race::Class::kReadOnlyCache);

  Driver own(kTwoWarps);
  own.Write(0, kLane0, 0);
  own.ReadOnly(0, kLane0, 0);
  EXPECT_EQ(own.count(), 1u);

  Driver clean(kTwoWarps);
  clean.ReadOnly(0, kAllLanes, 0);
  clean.ReadOnly(1, kAllLanes, 0);
  clean.Write(0, kLane0, 4);
  EXPECT_EQ(clean.count(), 0u);
}

TEST(Race, ManyReadersNoneIsForgotten) {
  // Blocks 0..63 read, end and are never heard of again; block 64 writes what block 0 alone read.
  Driver d({.warps_per_block = 1, .blocks = 65});
  d.Read(0, kLane0, 4);
  for (WarpNumber b = 0; b < 64; ++b) {
    d.Read(b, kLane0, 0);
    d.race.EndBlock(b, 1000 + b);
  }
  d.Write(64, kLane0, 4);
  EXPECT_EQ(d.count(), 1u);
  d.Write(64, kLane0, 0);
  EXPECT_GE(d.count(), 2u);
}

TEST(Race, TheOneUnorderedReaderAmongManyIsFound) {
  constexpr BlockNumber kBlocks = 33;
  for (const bool all_release : {true, false}) {
    Driver d({.warps_per_block = 1, .blocks = kBlocks});
    for (BlockNumber b = 0; b + 1 < kBlocks; ++b) {
      d.next_pc = 1;
      d.Read(b, kLane0, 0);
      if (all_release || b != 17) d.Fence(b, kLane0);
      d.Atom(b, kLane0, 4096);
      d.race.EndBlock(b, 1000 + b);
    }
    d.Atom(kBlocks - 1, kLane0, 4096);
    d.Fence(kBlocks - 1, kLane0);
    d.Write(kBlocks - 1, kLane0, 0);
    EXPECT_EQ(d.count(), all_release ? 0u : 1u);
    if (!all_release) {
      EXPECT_EQ(d.race.races().front().earlier.warp, 17u);
    }
  }
}

TEST(Race, OccurrencesAreCountedByPair) {
  Driver d(kTwoWarps);
  d.next_pc = 1;
  d.WriteRow(0, 0);
  d.WriteRow(1, 0);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_EQ(d.race.races().front().occurrences, 32u);
}

TEST(Race, RecordsThatAreInUseSurviveCollection) {
  Driver d(kTwoWarps);
  const auto first = d.Write(0, kLane0, 0);
  for (int i = 0; i < 300000; ++i) d.Write(1, kLane0, 64);
  EXPECT_EQ(d.count(), 0u);
  EXPECT_LT(d.race.shadow_bytes(), 8u << 20);
  d.Read(1, kLane0, 0);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_EQ(d.race.races().front().earlier.pc, first);
  EXPECT_EQ(d.race.races().front().earlier.warp, 0u);
}

TEST(Race, ReadOnlyRegionsAreNotRemembered) {
  Driver d(kTwoWarps);
  d.race.SetReadOnly(d.region);
  for (std::uint64_t i = 0; i < 1000; ++i) d.ReadRow(0, 128 * i);
  EXPECT_LT(d.race.shadow_bytes(), 1u << 20);
  EXPECT_EQ(d.count(), 0u);
}

TEST(Race, TheLimitIsSaid) {
  Driver d(kTwoWarps, 1 << 14);
  for (std::uint64_t i = 0; i < 200; ++i) d.WriteRow(0, i * 4096);
  EXPECT_TRUE(d.race.exhausted());
  Driver large({.warps_per_block = 32, .blocks = 0x7fffffffu});
  EXPECT_TRUE(large.race.exhausted());
  Driver fine(kTwoWarps);
  fine.WriteRow(0, 0);
  EXPECT_FALSE(fine.race.exhausted());
}

}  // namespace
}  // namespace assay::emu
