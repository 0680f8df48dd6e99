// Each rule of the memory model, as a pair: a trace that must be reported and its twin that must
// not.
#include "validator/emu/monitor/race.h"

#include <gtest/gtest.h>

#include <cstring>

#include "validator/emu/monitor/race_driver.h"

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

TEST(Race, AtomicsDoNotRaceWithEachOther) {
  Driver d(kTwoBlocks);
  d.Atom(0, kAllLanes, 0);
  d.Atom(1, kAllLanes, 0);
  d.Atom(0, kAllLanes, 0, Order::kRelaxed, Scope::kGpu, false);
  EXPECT_EQ(d.count(), 0u);
  d.Read(1, kLane0, 0);
  EXPECT_GE(d.count(), 1u);
}

TEST(Race, ScopeMustIncludeTheOther) {
  Driver d(kTwoBlocks);
  d.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kCta);
  d.Atom(1, kLane0, 0, Order::kRelaxed, Scope::kGpu);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_EQ(d.front_class(), Race::Class::kScopeTooNarrow);

  Driver same_block(kTwoWarps);
  same_block.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kCta);
  same_block.Atom(1, kLane0, 0, Order::kRelaxed, Scope::kCta);
  EXPECT_EQ(same_block.count(), 0u);

  Driver cluster({.warps_per_block = 1, .blocks = 4, .blocks_per_cluster = 2});
  cluster.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kCluster);
  cluster.Atom(1, kLane0, 0, Order::kRelaxed, Scope::kCluster);
  EXPECT_EQ(cluster.count(), 0u);
  cluster.Atom(2, kLane0, 0, Order::kRelaxed, Scope::kCluster);
  EXPECT_GE(cluster.count(), 1u);
  EXPECT_EQ(cluster.front_class(), Race::Class::kScopeTooNarrow);
}

TEST(Race, MixedSizesRace) {
  Driver d(kTwoBlocks);
  d.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kGpu, true, 8);
  d.Atom(1, kLane0, 4, Order::kRelaxed, Scope::kGpu, true, 4);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_EQ(d.front_class(), Race::Class::kMixedSize);

  Driver vector(kTwoBlocks);
  WarpAccess four = vector.Make(0, kLane0, 0, 0, 16);
  four.element_bytes = 4;
  vector.Go(four, AccessKind::kWrite, {Order::kRelaxed, Scope::kGpu});
  vector.Read(1, kLane0, 8, {Order::kRelaxed, Scope::kGpu});
  EXPECT_EQ(vector.count(), 0u);
}

TEST(Race, VolatileIsStrongAtSystemScope) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, 0, kVolatileSys);
  d.Read(1, kLane0, 0, kVolatileSys);
  EXPECT_EQ(d.count(), 0u);
  d.Read(1, kLane0, 0);
  EXPECT_EQ(d.count(), 0u) << "ordered after its own observation";

  Driver weak(kTwoBlocks);
  weak.Write(0, kLane0, 0, kVolatileSys);
  weak.Read(1, kLane0, 0);
  EXPECT_EQ(weak.count(), 1u);
}

constexpr std::uint64_t kData = 0;
constexpr std::uint64_t kFlag = 256;
constexpr Strength kRelaxedGpu{Order::kRelaxed, Scope::kGpu};
constexpr Strength kAcquireGpu{Order::kAcquire, Scope::kGpu};
constexpr Strength kReleaseGpu{Order::kRelease, Scope::kGpu};

TEST(Race, ReleaseAcquireOrders) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, kData);
  d.Write(0, kLane0, kFlag, kReleaseGpu);
  d.Read(1, kLane0, kFlag, kAcquireGpu);
  d.Read(1, kLane0, kData);
  EXPECT_EQ(d.count(), 0u);
  d.Read(1, kLane1, kData);
  EXPECT_EQ(d.count(), 1u) << "a sibling lane acquired nothing";
}

TEST(Race, RelaxedAloneGivesNoEdge) {
  for (const bool write_releases : {false, true}) {
    for (const bool read_acquires : {false, true}) {
      Driver d(kTwoBlocks);
      d.Write(0, kLane0, kData);
      d.Write(0, kLane0, kFlag, write_releases ? kReleaseGpu : kRelaxedGpu);
      d.Read(1, kLane0, kFlag, read_acquires ? kAcquireGpu : kRelaxedGpu);
      d.Read(1, kLane0, kData);
      EXPECT_EQ(d.count(), write_releases && read_acquires ? 0u : 1u);
    }
  }
}

TEST(Race, FencesMakePatterns) {
  for (const bool fence_before : {false, true}) {
    for (const bool fence_after : {false, true}) {
      Driver d(kTwoBlocks);
      d.Write(0, kLane0, kData);
      if (fence_before) d.Fence(0, kLane0);
      d.Atom(0, kLane0, kFlag);
      d.Read(1, kLane0, kFlag, kVolatileSys);
      if (fence_after) d.Fence(1, kLane0);
      d.Read(1, kLane0, kData);
      EXPECT_EQ(d.count(), fence_before && fence_after ? 0u : 1u);
    }
  }
}

TEST(Race, WritesAfterTheFenceAreNotReleased) {
  Driver d(kTwoBlocks);
  d.Fence(0, kLane0);
  d.Write(0, kLane0, kData);
  d.Atom(0, kLane0, kFlag);
  d.Atom(1, kLane0, kFlag);
  d.Fence(1, kLane0);
  d.Read(1, kLane0, kData);
  EXPECT_EQ(d.count(), 1u);
}

TEST(Race, FenceScopeMustReach) {
  for (const Scope release : {Scope::kCta, Scope::kGpu}) {
    for (const Scope acquire : {Scope::kCta, Scope::kGpu}) {
      Driver d(kTwoBlocks);
      d.Write(0, kLane0, kData);
      d.Fence(0, kLane0, release);
      d.Atom(0, kLane0, kFlag);
      d.Atom(1, kLane0, kFlag);
      d.Fence(1, kLane0, acquire);
      d.Read(1, kLane0, kData);
      EXPECT_EQ(d.count(), release == Scope::kGpu && acquire == Scope::kGpu ? 0u : 1u);
    }
  }
}

TEST(Race, WeakFlagGivesNoEdgeAndRacesItself) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, kData);
  d.Fence(0, kLane0);
  d.Write(0, kLane0, kFlag);
  d.Read(1, kLane0, kFlag);
  d.Fence(1, kLane0);
  d.Read(1, kLane0, kData);
  EXPECT_EQ(d.count(), 2u);
}

TEST(Race, ReadModifyWritesContinueAReleaseSequence) {
  const RaceDetector::Shape three{.warps_per_block = 1, .blocks = 3};
  Driver chain(three);
  chain.Write(0, kLane0, kData);
  chain.Write(0, kLane0, kFlag, kReleaseGpu);
  chain.Atom(1, kLane0, kFlag);
  chain.Read(2, kLane0, kFlag, kAcquireGpu);
  chain.Read(2, kLane0, kData);
  EXPECT_EQ(chain.count(), 0u);

  Driver broken(three);
  broken.Write(0, kLane0, kData);
  broken.Write(0, kLane0, kFlag, kReleaseGpu);
  broken.Write(1, kLane0, kFlag, kRelaxedGpu);
  broken.Read(2, kLane0, kFlag, kAcquireGpu);
  broken.Read(2, kLane0, kData);
  EXPECT_EQ(broken.count(), 1u);
}

TEST(Race, RedReleasesButNeverAcquires) {
  Driver releases(kTwoBlocks);
  releases.Write(0, kLane0, kData);
  releases.Atom(0, kLane0, kFlag, Order::kRelease, Scope::kGpu, false);
  releases.Read(1, kLane0, kFlag, kAcquireGpu);
  releases.Read(1, kLane0, kData);
  EXPECT_EQ(releases.count(), 0u);

  Driver acquires(kTwoBlocks);
  acquires.Write(0, kLane0, kData);
  acquires.Atom(0, kLane0, kFlag, Order::kRelease);
  acquires.Atom(1, kLane0, kFlag, Order::kAcqRel, Scope::kGpu, false);
  acquires.Fence(1, kLane0);
  acquires.Read(1, kLane0, kData);
  EXPECT_EQ(acquires.count(), 1u);
}

TEST(Race, CausalityIsCumulativeThroughBarriers) {
  const RaceDetector::Shape shape{.warps_per_block = 2, .blocks = 2};
  // All threads of block 0 write, thread 0 publishes; thread 0 of block 1 sees it, all of its block
  // read.
  Driver d(shape);
  d.WriteRow(0, kData);
  d.WriteRow(1, kData + 128);
  d.Sync(0);
  d.Fence(0, kLane0);
  d.Atom(0, kLane0, 1024);
  d.Atom(2, kLane0, 1024);
  d.Fence(2, kLane0);
  d.Sync(1);
  d.ReadRow(3, kData);
  d.ReadRow(2, kData + 128);
  EXPECT_EQ(d.count(), 0u);

  Driver no_barrier(shape);
  no_barrier.WriteRow(0, kData);
  no_barrier.WriteRow(1, kData + 128);
  no_barrier.Fence(0, kLane0);
  no_barrier.Atom(0, kLane0, 1024);
  no_barrier.Atom(2, kLane0, 1024);
  no_barrier.Fence(2, kLane0);
  no_barrier.Sync(1);
  no_barrier.ReadRow(3, kData + 128);
  EXPECT_EQ(no_barrier.count(), 1u);
}

TEST(Race, LastBlockDone) {
  constexpr BlockNumber kBlocks = 40;
  const auto run = [](bool fence_before, bool fence_after) {
    Driver d({.warps_per_block = 1, .blocks = kBlocks});
    for (BlockNumber b = 0; b < kBlocks; ++b) {
      d.next_pc = 1;
      d.Write(b, kLane0, kData + 4 * b);
      if (fence_before) d.Fence(b, kLane0);
      d.Atom(b, kLane0, 4096);
      if (fence_after) d.Fence(b, kLane0);
      d.Sync(b);
      if (b == kBlocks - 1) {
        d.next_pc = 100;
        d.ReadRow(b, kData);
        d.ReadRow(b, kData + 128, 4, 0xff);
        d.Write(b, kLane0, 4096);  // The counter is reset by a plain store.
      }
      d.race.EndBlock(b, 1000 + b);
    }
    return d.count();
  };
  EXPECT_EQ(run(true, true), 0u);
  EXPECT_EQ(run(false, true), 2u);
  EXPECT_EQ(run(true, false), 2u);
}

TEST(Race, ObservationOrdersTheLocationOnlyNotItsSiblings) {
  // A plain reset of the counter by the lane that incremented last, while its sibling's increment
  // is unordered.
  Driver siblings(kTwoBlocks);
  siblings.Atom(0, kLane0 | kLane1, kFlag);
  siblings.Write(0, kLane1, kFlag);
  EXPECT_EQ(siblings.count(), 1u);

  Driver waits(kTwoBlocks);
  waits.Write(0, kLane0, kFlag, kVolatileSys);
  waits.Read(1, kLane0, kFlag, kVolatileSys);
  waits.Write(1, kLane0, kFlag);
  EXPECT_EQ(waits.count(), 0u);

  Driver unseen(kTwoBlocks);
  unseen.Read(1, kLane0, kFlag, kVolatileSys);
  unseen.Write(0, kLane0, kFlag, kVolatileSys);
  unseen.Write(1, kLane0, kFlag);
  EXPECT_EQ(unseen.count(), 1u);
}

TEST(Race, SiblingLanesOfAnAtomicAcquireOnlyByPattern) {
  const auto run = [](bool before, bool after, LaneMask reader, std::uint64_t data) {
    Driver d(kTwoBlocks);
    WarpAccess write = d.Make(0, kLane0 | kLane1, 0, 4, 4);
    d.Go(write, AccessKind::kWrite, kWeakly);
    if (before) d.Fence(0, kLane0 | kLane1);
    d.Atom(0, kLane0 | kLane1, kFlag);
    if (after) d.Fence(0, kLane0 | kLane1);
    d.Read(0, reader, data);
    return d.count();
  };
  EXPECT_EQ(run(true, true, kLane1, 0), 0u) << "lane 1 read what lane 0 released";
  EXPECT_EQ(run(true, true, kLane0, 4), 1u) << "lane 0 went first";
  EXPECT_EQ(run(false, true, kLane1, 0), 1u);
  EXPECT_EQ(run(true, false, kLane1, 0), 1u);
}

TEST(Race, SpinLockWithFences) {
  const auto run = [](bool acquire_fence, bool release_fence) {
    Driver d({.warps_per_block = 1, .blocks = 3});
    for (WarpNumber w = 0; w < 3; ++w) {
      d.next_pc = 1;
      d.Atom(w, kLane0, kFlag);  // atomicCAS(lock, 0, 1)
      if (acquire_fence) d.Fence(w, kLane0);
      d.Read(w, kLane0, kData);
      d.Write(w, kLane0, kData);
      if (release_fence) d.Fence(w, kLane0);
      d.Atom(w, kLane0, kFlag);  // atomicExch(lock, 0)
    }
    return d.count();
  };
  EXPECT_EQ(run(true, true), 0u);
  EXPECT_GT(run(false, true), 0u);
  EXPECT_GT(run(true, false), 0u);
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

TEST(Race, AsyncCopyIsSeenAfterItsWaitByItsIssuer) {
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

TEST(Race, AsyncCopyNeedsWaitThenBarrierForOthers) {
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

TEST(Race, AsyncCopyReadsItsSourceLate) {
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

TEST(Race, AsyncCopyPipelineWaitsForOlderGroupsOnly) {
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

TEST(Race, AsyncCopyIntoABufferStillRead) {
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

TEST(Race, MbarrierArriveReleasesAndWaitAcquires) {
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

TEST(Race, MbarrierHandsOverItsCompletePhaseOnly) {
  Driver d(kTwoWarps);
  d.race.OnMbarrierArrive(kShared, 0, 0, kAllLanes, Scope::kCta, false);
  d.race.OnMbarrierPhaseComplete(kShared, 0);
  d.WriteRow(0, 0);
  d.race.OnMbarrierArrive(kShared, 0, 0, kAllLanes, Scope::kCta, false);
  d.race.OnMbarrierWait(kShared, 0, 1, kAllLanes, Scope::kCta, false);
  d.ReadRow(1, 0);
  EXPECT_EQ(d.count(), 1u);
}

TEST(Race, MbarrierPublishesAsyncCopies) {
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

TEST(Race, BulkCopyPublishesItsOwnBytesOnly) {
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

TEST(Race, BulkCopiesOnDifferentMbarriersAreApart) {
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

TEST(Race, BulkGroupWait) {
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

TEST(Race, ClusterBarrierOrdersFromTheWaitOn) {
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

TEST(Race, GridBarrierOfAtomicsAndFences) {
  constexpr BlockNumber kBlocks = 6;
  for (const bool fenced : {true, false}) {
    Driver d({.warps_per_block = 2, .blocks = kBlocks});
    for (int round = 0; round < 3; ++round) {
      for (BlockNumber b = 0; b < kBlocks; ++b) {
        d.WriteRow(2 * b, 256 * b);
        d.WriteRow(2 * b + 1, 256 * b + 128);
        d.Sync(b);
        if (fenced) d.Fence(2 * b, kLane0);
        d.Atom(2 * b, kLane0, 8192);
      }
      for (BlockNumber b = 0; b < kBlocks; ++b) {
        d.Read(2 * b, kLane0, 8192, kVolatileSys);
        if (fenced) d.Fence(2 * b, kLane0);
        d.Sync(b);
      }
      for (BlockNumber b = 0; b < kBlocks; ++b) {
        const BlockNumber next = (b + 1) % kBlocks;
        d.ReadRow(2 * b, 256 * next + 128);
        d.ReadRow(2 * b + 1, 256 * next);
      }
      for (BlockNumber b = 0; b < kBlocks; ++b) {
        d.Sync(b);
        if (fenced) d.Fence(2 * b, kLane0);
        d.Atom(2 * b, kLane0, 8196);
      }
      for (BlockNumber b = 0; b < kBlocks; ++b) {
        d.Read(2 * b, kLane0, 8196, kVolatileSys);
        if (fenced) d.Fence(2 * b, kLane0);
        d.Sync(b);
      }
    }
    EXPECT_EQ(d.count() == 0, fenced);
  }
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
      d.Read(b, kLane0, kData);
      if (all_release || b != 17) d.Fence(b, kLane0);
      d.Atom(b, kLane0, 4096);
      d.race.EndBlock(b, 1000 + b);
    }
    d.Atom(kBlocks - 1, kLane0, 4096);
    d.Fence(kBlocks - 1, kLane0);
    d.Write(kBlocks - 1, kLane0, kData);
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
