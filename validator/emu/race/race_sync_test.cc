// Atomics, scopes, fences, release and acquire, each rule of the memory model
// as a pair: a trace that must be reported and its twin that must not.
#include <gtest/gtest.h>

#include "validator/emu/race/race_driver.h"

namespace assay::emu {
namespace {

constexpr LaneMask kLane0 = 1;
constexpr LaneMask kLane1 = 2;
constexpr RaceDetector::Shape kTwoWarps{.warps_per_block = 2, .blocks = 1};
constexpr RaceDetector::Shape kTwoBlocks{.warps_per_block = 1, .blocks = 2};

TEST(RaceSync, AtomicsDoNotRaceWithEachOther) {
  Driver d(kTwoBlocks);
  d.Atom(0, kAllLanes, 0);
  d.Atom(1, kAllLanes, 0);
  d.Atom(0, kAllLanes, 0, Order::kRelaxed, Scope::kGpu, false);
  EXPECT_EQ(d.count(), 0u);
  d.Read(1, kLane0, 0);
  EXPECT_GE(d.count(), 1u);
}

TEST(RaceSync, ScopeMustIncludeTheOther) {
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

TEST(RaceSync, MixedSizesRace) {
  Driver d(kTwoBlocks);
  d.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kGpu, true, 8);
  d.Atom(1, kLane0, 4, Order::kRelaxed, Scope::kGpu, true, 4);
  ASSERT_EQ(d.count(), 1u);
  EXPECT_EQ(d.front_class(), Race::Class::kMixedSize);

  // An atomic on half a word, made of one on the word; and an atomic on a word of which another
  // one stores a half without.
  Driver halves(kTwoBlocks);
  halves.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kGpu, true, 4);
  WarpAccess part = halves.Make(1, kLane0, 2, 0, 2);
  halves.Go(part, AccessKind::kRead, {Order::kRelaxed, Scope::kGpu});
  EXPECT_EQ(halves.count(), 0u);
  Driver weak(kTwoBlocks);
  weak.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kGpu, true, 4);
  part = weak.Make(1, kLane0, 2, 0, 2);
  weak.Go(part, AccessKind::kWrite, kWeakly);
  EXPECT_EQ(weak.count(), 1u);

  Driver vector(kTwoBlocks);
  WarpAccess four = vector.Make(0, kLane0, 0, 0, 16);
  four.element_bytes = 4;
  vector.Go(four, AccessKind::kWrite, {Order::kRelaxed, Scope::kGpu});
  vector.Read(1, kLane0, 8, {Order::kRelaxed, Scope::kGpu});
  EXPECT_EQ(vector.count(), 0u);
}

TEST(RaceSync, VolatileIsStrongAtSystemScope) {
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

TEST(RaceSync, ReleaseAcquireOrders) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, kData);
  d.Write(0, kLane0, kFlag, kReleaseGpu);
  d.Read(1, kLane0, kFlag, kAcquireGpu);
  d.Read(1, kLane0, kData);
  EXPECT_EQ(d.count(), 0u);
  d.Read(1, kLane1, kData);
  EXPECT_EQ(d.count(), 1u) << "a sibling lane acquired nothing";
}

TEST(RaceSync, RelaxedAloneGivesNoEdge) {
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

TEST(RaceSync, FencesMakePatterns) {
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

TEST(RaceSync, WritesAfterTheFenceAreNotReleased) {
  Driver d(kTwoBlocks);
  d.Fence(0, kLane0);
  d.Write(0, kLane0, kData);
  d.Atom(0, kLane0, kFlag);
  d.Atom(1, kLane0, kFlag);
  d.Fence(1, kLane0);
  d.Read(1, kLane0, kData);
  EXPECT_EQ(d.count(), 1u);
}

TEST(RaceSync, FenceScopeMustReach) {
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

TEST(RaceSync, WeakFlagGivesNoEdgeAndRacesItself) {
  Driver d(kTwoBlocks);
  d.Write(0, kLane0, kData);
  d.Fence(0, kLane0);
  d.Write(0, kLane0, kFlag);
  d.Read(1, kLane0, kFlag);
  d.Fence(1, kLane0);
  d.Read(1, kLane0, kData);
  EXPECT_EQ(d.count(), 2u);
}

TEST(RaceSync, ReadModifyWritesContinueAReleaseSequence) {
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

TEST(RaceSync, RedReleasesButNeverAcquires) {
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

TEST(RaceSync, CausalityIsCumulativeThroughBarriers) {
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

TEST(RaceSync, LastBlockDone) {
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

TEST(RaceSync, ObservationOrdersTheLocationOnlyNotItsSiblings) {
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

TEST(RaceSync, SiblingLanesOfAnAtomicAcquireOnlyByPattern) {
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

TEST(RaceSync, SpinLockWithFences) {
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

TEST(RaceSync, GridBarrierOfAtomicsAndFences) {
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

}  // namespace
}  // namespace assay::emu
