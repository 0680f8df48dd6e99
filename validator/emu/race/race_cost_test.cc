// What is left out to save time must not be left out of the verdict: reads that wait for a barrier
// (waiting_reads.h), readers in great numbers (record_table.h, RecordTable::Append), stores that
// other blocks' stores cover (CellRules::InsertWrite), and clocks that go by their places (clock.h).
// Each as a pair.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "validator/emu/race/clock.h"
#include "validator/emu/race/race_driver.h"

namespace assay::emu {
namespace {

constexpr LaneMask kLane0 = 1;
constexpr RegionId kOwn = 7;

/// A block of `warps` warps whose memory is region kOwn.
Driver OwnMemory(std::uint32_t warps) { return Driver({.warps_per_block = warps, .blocks = 1}); }

void UseOwn(Driver& d) {
  d.race.OnBlockRegion(0, kOwn);
  d.region = kOwn;
}

TEST(RaceCost, AReadThatWaitsRacesWithAWriteBeforeTheBarrier) {
  for (const bool barrier : {false, true}) {
    Driver d = OwnMemory(2);
    UseOwn(d);
    d.WriteRow(0, 0);
    d.Sync(0);
    const auto read = d.ReadRow(1, 0);
    if (barrier) d.Sync(0);
    const auto write = d.WriteRow(0, 0);
    ASSERT_EQ(d.count(), barrier ? 0u : 1u);
    if (barrier) continue;
    EXPECT_EQ(d.race.races().front().earlier.pc, read);
    EXPECT_EQ(d.race.races().front().later.pc, write);
    EXPECT_EQ(d.race.races().front().earlier.warp, 1u);
  }
}

/// A tile of 8 lines of 16 elements of 2 bytes, read as wmma.load reads them.
std::vector<std::uint16_t> PlacesOfATile() {
  std::vector<std::uint16_t> places;
  for (std::uint32_t read = 0; read < 4; ++read) {
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
      places.push_back(static_cast<std::uint16_t>(lane / 4 * TileRead::kPitch +
                                                  2 * (4 * read + (lane + read) % 4)));
  }
  return places;
}

TEST(RaceCost, ReadsOfATileRaceAsIfTheyWereMadeOneByOne) {
  constexpr std::uint64_t kFirst = 64;
  constexpr std::uint64_t kStride = 300;  // Over two granules.
  const std::vector<std::uint16_t> places = PlacesOfATile();
  // What is written: the middle of a line, its last element, and what lies between two lines.
  for (const std::uint64_t written :
       {kFirst + 3 * kStride + 8, kFirst + 7 * kStride + 30, kFirst + 2 * kStride + 32}) {
    // Before the tile is read, after it, and after a barrier.
    for (const int when : {0, 1, 2}) {
      std::vector<Race> found[2];
      for (const bool together : {false, true}) {
        Driver d = OwnMemory(2);
        UseOwn(d);
        if (when == 0) d.Write(0, LaneMask{1} << 9, written, kWeakly, 2);
        TileRead tile{.warp = 1,
                      .region = kOwn,
                      .offset = kFirst,
                      .stride = kStride,
                      .lines = 8,
                      .line_bytes = 32,
                      .bytes = 2,
                      .pc = 1000,
                      .places = places};
        const bool waits = together && d.race.OnTileRead(tile);
        EXPECT_EQ(waits, together && when != 0);
        for (std::size_t i = 0; i < places.size() && !waits; i += kWarpSize) {
          std::array<std::uint64_t, kWarpSize> offsets;
          for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
            const std::uint32_t place = places[i + lane];
            offsets[lane] = kFirst + place / TileRead::kPitch * kStride + place % TileRead::kPitch;
          }
          WarpAccess read = d.Make(1, kAllLanes, 0, 0, 2);
          read.offsets = offsets.data();
          read.pc = tile.pc;
          d.Go(read, AccessKind::kRead, kWeakly);
        }
        if (when == 2) d.Sync(0);
        if (when != 0) {
          d.next_pc = 2000;
          d.Write(0, LaneMask{1} << 9, written, kWeakly, 2);
        }
        found[together ? 1 : 0] = d.race.races();
      }
      const bool in_tile = written != kFirst + 2 * kStride + 32;
      ASSERT_EQ(found[0].size(), in_tile && when != 2 ? 1u : 0u) << written << " " << when;
      ASSERT_EQ(found[1].size(), found[0].size()) << written << " " << when;
      if (found[0].empty()) continue;
      const Race& one = found[0].front();
      const Race& other = found[1].front();
      for (const auto& side : {&Race::earlier, &Race::later}) {
        EXPECT_EQ((one.*side).warp, (other.*side).warp);
        EXPECT_EQ((one.*side).lane, (other.*side).lane);
        EXPECT_EQ((one.*side).pc, (other.*side).pc);
        EXPECT_EQ((one.*side).kind, (other.*side).kind);
      }
      EXPECT_EQ(one.race_class, other.race_class);
      EXPECT_EQ(one.offset, other.offset);
      EXPECT_EQ(one.bytes, other.bytes);
      EXPECT_EQ(one.occurrences, other.occurrences);
    }
  }
}

TEST(RaceCost, AReadOfWhatWasWrittenSinceTheBarrierDoesNotWait) {
  for (const bool barrier : {false, true}) {
    Driver d = OwnMemory(2);
    UseOwn(d);
    d.Sync(0);
    d.Write(0, kLane0, 64);
    if (barrier) d.Sync(0);
    d.Read(1, kLane0, 64);
    EXPECT_EQ(d.count(), barrier ? 0u : 1u);
  }
}

TEST(RaceCost, WhatAWarpLearnsAfterItsReadIsNotWhatItKnewThere) {
  // Warp 0 reads; warp 1 reads, and learns of warp 0's read only then. A write that comes after
  // warp 1's read alone races with warp 0's.
  for (const bool ordered : {false, true}) {
    Driver d = OwnMemory(3);
    UseOwn(d);
    d.Read(0, kLane0, 0);
    if (!ordered) d.Read(1, kLane0, 0);
    if (ordered) d.Sync(0, 1, 0, 2);
    if (ordered) d.Read(1, kLane0, 0);
    d.race.OnBarrierArrive(0, 2, 1, kAllLanes, false);  // What warp 1 has done and knows so far.
    if (!ordered) d.Sync(0, 1, 0, 2);
    d.race.OnBarrierArrive(0, 2, 2, kAllLanes, true);
    d.race.OnBarrierComplete(0, 2);
    d.Write(2, kLane0, 0);
    EXPECT_EQ(d.count(), ordered ? 0u : 1u);
  }
}

TEST(RaceCost, ReadsOfThreadsThatLeftBeforeTheBarrierAreKept) {
  for (const bool leaves : {true, false}) {
    Driver d = OwnMemory(2);
    UseOwn(d);
    d.ReadRow(0, 0);
    if (leaves) {
      d.race.OnThreadExit(0, kAllLanes);
      d.race.OnBarrierArrive(0, 0, 1, kAllLanes, true);
      d.race.OnBarrierComplete(0, 0);
    } else {
      d.Sync(0);
    }
    d.WriteRow(1, 0);
    EXPECT_EQ(d.count(), leaves ? 1u : 0u);
  }
}

TEST(RaceCost, ACopyUnderWayIsSeenByReadsUntilAllWereTold) {
  for (const bool waited : {false, true}) {
    Driver d = OwnMemory(2);
    UseOwn(d);
    const std::uint64_t token = d.Copy(0, kAllLanes, 1, 0, 0);
    if (waited) d.WaitCopies(0, kAllLanes, token);
    d.Sync(0);
    d.ReadRow(1, 0);
    EXPECT_EQ(d.count(), waited ? 0u : 1u);
  }
}

TEST(RaceCost, ACopyIntoWhatIsStillReadRaces) {
  for (const bool barrier : {false, true}) {
    Driver d = OwnMemory(2);
    UseOwn(d);
    d.ReadRow(1, 0);
    if (barrier) d.Sync(0);
    d.Copy(0, kAllLanes, 1, 0, 0);
    EXPECT_EQ(d.count(), barrier ? 0u : 1u);
  }
}

TEST(RaceCost, AnAtomicOfWhatIsStillReadRaces) {
  for (const bool barrier : {false, true}) {
    Driver d = OwnMemory(2);
    UseOwn(d);
    d.Read(1, kLane0, 0);
    if (barrier) d.Sync(0);
    d.Atom(0, kLane0, 0, Order::kRelaxed, Scope::kCta);
    EXPECT_EQ(d.count(), barrier ? 0u : 1u);
  }
}

TEST(RaceCost, OfThousandsOfReadersTheUnorderedOneIsFound) {
  // All warps read a word and tell the last one by a ticket; one of them only reads.
  constexpr std::uint32_t kBlocks = 3000;
  for (const std::uint32_t silent : {kBlocks, 0u, 31u, 1717u}) {
    Driver d({.warps_per_block = 1, .blocks = kBlocks});
    for (WarpNumber w = 0; w + 1 < kBlocks; ++w) {
      d.next_pc = 1;
      d.Read(w, kLane0, 0);
      if (w == silent) continue;
      d.Fence(w, kLane0);
      d.next_pc = 2;
      d.Atom(w, kLane0, 64);
    }
    d.next_pc = 3;
    d.Atom(kBlocks - 1, kLane0, 64);
    d.Fence(kBlocks - 1, kLane0);
    d.Write(kBlocks - 1, kLane0, 0);
    ASSERT_EQ(d.count(), silent < kBlocks ? 1u : 0u);
    if (silent == kBlocks) continue;
    EXPECT_EQ(d.race.races().front().earlier.warp, silent);
  }
}

// A grid barrier: all add to a word and look at it, again and again; whoever sets it to zero must come
// after each of them.
TEST(RaceCost, OfThousandsWhoPolledTheUnorderedOneIsFound) {
  constexpr std::uint32_t kBlocks = 300;
  for (const std::uint32_t silent : {0u, 150u, 298u, kBlocks}) {
    Driver d({.warps_per_block = 1, .blocks = kBlocks});
    for (int look = 0; look < 8; ++look) {
      for (WarpNumber w = 0; w + 1 < kBlocks; ++w) {
        d.next_pc = 1;
        if (look == 0) d.Atom(w, kLane0, 0);
        d.next_pc = 2;
        d.Read(w, kLane0, 0, kVolatileSys);
      }
    }
    ASSERT_EQ(d.count(), 0u);
    for (WarpNumber w = 0; w + 1 < kBlocks; ++w) {
      if (w == silent) continue;
      d.Fence(w, kLane0);
      d.next_pc = 3;
      d.Atom(w, kLane0, 64);
    }
    d.next_pc = 4;
    d.Atom(kBlocks - 1, kLane0, 64);
    d.Fence(kBlocks - 1, kLane0);
    d.Write(kBlocks - 1, kLane0, 0);
    ASSERT_EQ(d.count() > 0, silent < kBlocks) << silent;
    for (const Race& race : d.race.races()) EXPECT_EQ(race.earlier.warp, silent);
  }
}

// Of another size, or of a scope that does not reach the others, it races with one of them.
TEST(RaceCost, WhoPollsOtherwiseThanThousandsDidIsFound) {
  constexpr std::uint32_t kBlocks = 100;
  struct Last {
    std::uint32_t bytes;
    Strength strength;
    bool races;
  };
  for (const Last& last : {Last{4, kVolatileSys, false}, Last{2, kVolatileSys, true},
                           Last{4, {Order::kRelaxed, Scope::kCta}, true}, Last{4, kWeakly, true}}) {
    Driver d({.warps_per_block = 1, .blocks = kBlocks});
    for (WarpNumber w = 0; w + 1 < kBlocks; ++w) {
      d.Atom(w, kLane0, 0);
      d.Read(w, kLane0, 0, kVolatileSys);
    }
    ASSERT_EQ(d.count(), 0u);
    d.Write(kBlocks - 1, kLane0, 0, last.strength, last.bytes);
    EXPECT_EQ(d.count() > 0, last.races) << last.bytes;
  }
}

/// Each of the warps takes a lock and hands it on, with scopes that reach all of them.
void HandOn(Driver& d, WarpNumber first, WarpNumber end, std::uint32_t warps_per_block) {
  for (WarpNumber w = first; w < end; w += warps_per_block) {
    d.Atom(w, kLane0, 0, Order::kAcquire);
    d.Write(w, kLane0, 0, {Order::kRelease, Scope::kGpu});
  }
}

TEST(RaceCost, OfALockThatManyBlocksHandOnFewAccessesAreKept) {
  constexpr std::uint32_t kBlocks = 500;
  Driver d({.warps_per_block = 1, .blocks = kBlocks});
  HandOn(d, 0, kBlocks - 1, 1);
  ASSERT_EQ(d.count(), 0u);
  // Nobody told the last one anything: it races with all that is still known of the lock.
  d.Write(kBlocks - 1, kLane0, 0);
  EXPECT_GE(d.count(), 1u);
  EXPECT_LE(d.count(), 4u);
}

TEST(RaceCost, ANarrowAccessMeetsALockThatOtherBlocksHadBefore) {
  for (const BlockNumber last : {1u, 2u, 7u}) {
    for (const bool told : {false, true}) {
      Driver d({.warps_per_block = 2, .blocks = 8});
      HandOn(d, 0, 2 * (last + 1), 2);
      if (told) d.Sync(last);
      // The other warp of the block that has the lock: with its own block's accesses it is as it
      // should be, but others came before.
      d.Read(2 * last + 1, kLane0, 0, {Order::kRelaxed, Scope::kCta});
      EXPECT_EQ(d.count() == 0, told) << last;
      if (!told) {
        EXPECT_EQ(d.front_class(), Race::Class::kScopeTooNarrow);
      }
    }
  }
}

TEST(RaceCost, ANarrowAccessMeetsAStoreThatNobodyHandedOn) {
  // Block 0 stores beside the lock's order; those who hand it on later do not come after that store.
  for (const bool beside : {false, true}) {
    Driver d({.warps_per_block = 2, .blocks = 8});
    HandOn(d, 0, 2, 2);
    if (beside) d.Write(1, kLane0, 0, {Order::kRelaxed, Scope::kGpu});
    HandOn(d, 2, 16, 2);
    // Knows of the lock's order, by acquiring it, and no more.
    d.Read(15, kLane0, 0, {Order::kAcquire, Scope::kGpu});
    d.next_pc = 1000;
    d.Read(15, kLane0, 0, {Order::kRelaxed, Scope::kCta});
    EXPECT_EQ(d.count() == 0, !beside);
  }
}

/// Takes a lock and gives it back, relaxed, with a fence behind and before.
void Round(Driver& d, WarpNumber warp, Scope scope) {
  d.Atom(warp, kLane0, 0, Order::kRelaxed, scope);
  d.Fence(warp, kLane0, scope);
  d.Fence(warp, kLane0, scope);
  d.Atom(warp, kLane0, 0, Order::kRelaxed, scope);
}

TEST(RaceCost, OfALockThatAThreadTakesAgainAndAgainFewAccessesAreKept) {
  for (const bool told : {false, true}) {
    Driver d({.warps_per_block = 2, .blocks = 2});
    d.Atom(0, kLane0, 0);
    for (int i = 0; i < 500; ++i) Round(d, 2, Scope::kGpu);
    ASSERT_EQ(d.count(), 0u);
    if (told) d.Sync(1);
    // The other warp of that block comes after the first block's access as the one that saw it does.
    d.Write(3, kLane0, 0);
    EXPECT_EQ(d.count() == 0, told);
    EXPECT_LE(d.count(), 4u);
  }
}

TEST(RaceCost, WhoSawTheFirstRoundsOfALockHasNotSeenWhatCameAfterThem) {
  for (const bool after : {false, true}) {
    Driver d({.warps_per_block = 2, .blocks = 2});
    if (!after) d.Atom(0, kLane0, 0);
    for (int i = 0; i < 20; ++i) Round(d, 2, Scope::kGpu);
    d.Sync(1);
    // The access of another block, between two rounds; of the second one nobody is told.
    if (after) d.Atom(0, kLane0, 0);
    for (int i = 0; i < 20; ++i) d.Atom(2, kLane0, 0);
    d.Read(3, kLane0, 0, {Order::kRelaxed, Scope::kCta});
    EXPECT_EQ(d.count() == 0, !after);
    for (const Race& race : d.race.races()) EXPECT_EQ(race.earlier.warp, 0u);
  }
}

TEST(RaceCost, ALockOfABlockHandsOnAsManyRoundsAsThereAreInThatBlockAlone) {
  // Releases and acquires of block scope; the last one takes the lock in its block or another one.
  for (const WarpNumber last : {1u, 3u, 5u}) {
    for (const std::uint32_t cluster : {1u, 2u}) {
      for (const Scope scope : {Scope::kCta, Scope::kCluster, Scope::kGpu}) {
        Driver d({.warps_per_block = 2, .blocks = 4, .blocks_per_cluster = cluster});
        for (std::uint64_t i = 0; i < 150; ++i) {
          const WarpNumber warp = i % 3 == 0 ? 1 : 0;
          d.Atom(warp, kLane0, 0, Order::kAcqRel, scope);
          d.Write(warp, kLane0, 64);
          d.Write(warp, kLane0, 128 + 4 * i);
          d.Atom(warp, kLane0, 0, Order::kAcqRel, scope);
        }
        ASSERT_EQ(d.count(), 0u);
        d.Atom(last, kLane0, 0, Order::kAcquire, Scope::kGpu);
        const std::size_t before = d.count();
        for (const std::uint64_t offset : {64u, 128u, 128u + 4 * 70, 128u + 4 * 149})
          d.Read(last, kLane0, offset);
        const Scope needed = last < 2                   ? Scope::kCta
                             : last < 4 && cluster == 2 ? Scope::kCluster
                                                        : Scope::kGpu;
        EXPECT_EQ(d.count() == before, scope >= needed) << last << " " << cluster;
      }
    }
  }
}

TEST(RaceCost, ReadersOfBlocksThatEndedAreKeptOncePerInstruction) {
  constexpr std::uint32_t kBlocks = 3000;
  Driver d({.warps_per_block = 1, .blocks = kBlocks});
  for (WarpNumber w = 0; w + 1 < kBlocks; ++w) {
    d.next_pc = 1 + w % 2;
    d.Read(w, kLane0, 0);
    d.race.EndBlock(w, 1000 + w);
  }
  d.next_pc = 3;
  d.Write(kBlocks - 1, kLane0, 0);
  ASSERT_EQ(d.count(), 2u);
  EXPECT_NE(d.race.races()[0].earlier.pc, d.race.races()[1].earlier.pc);
}

TEST(Clock, ByItsPlaceKnowsWhatStandsBeforeIt) {
  Clock first;
  first.RaiseBlock(3, 5);
  first.SetPlace({1, 1});
  Clock second(first);
  second.RaiseLanes(40, 1u << 5, 9);
  EXPECT_TRUE(second.CoversByPlace(first));
  EXPECT_FALSE(first.CoversByPlace(second));
  second.SetPlace({1, 2});
  Clock beside(first);
  beside.RaiseBlock(4, 1);
  EXPECT_FALSE(beside.CoversByPlace(second));
  EXPECT_FALSE(beside.Covers(second));
  beside.Join(second);
  EXPECT_TRUE(beside.Covers(second));
  EXPECT_EQ(beside.LaneTime(40, 5), 9u);
  EXPECT_EQ(beside.BlockBase(3), 5u);
}

TEST(Clock, ItsLayersAnswerAsOne) {
  // The same raises into one clock, and into one that is copied again and again.
  Clock flat;
  Clock layered;
  for (std::uint32_t i = 0; i < 500; ++i) {
    const WarpNumber warp = i * 37 % 101;
    const LaneMask lanes = i % 3 == 0 ? kAllLanes : 1u << i % 32 | 1u << (i * 7 % 32);
    flat.RaiseLanes(warp, lanes, i + 1);
    flat.RaiseBlock(i % 13, i);
    Clock copy(layered);
    copy.RaiseLanes(warp, lanes, i + 1);
    copy.RaiseBlock(i % 13, i);
    layered = copy;
  }
  for (WarpNumber warp = 0; warp < 102; ++warp) {
    EXPECT_EQ(flat.AnyLaneTime(warp), layered.AnyLaneTime(warp));
    EXPECT_EQ(flat.LanesTime(warp, kAllLanes), layered.LanesTime(warp, kAllLanes));
    for (int lane = 0; lane < kWarpSize; ++lane)
      ASSERT_EQ(flat.LaneTime(warp, lane), layered.LaneTime(warp, lane));
  }
  for (BlockNumber block = 0; block < 14; ++block)
    EXPECT_EQ(flat.BlockBase(block), layered.BlockBase(block));
  EXPECT_TRUE(flat.Covers(layered));
  EXPECT_TRUE(layered.Covers(flat));
  layered.RaiseLanes(7, 1u << 3, 10000);
  EXPECT_FALSE(flat.Covers(layered));
}

}  // namespace
}  // namespace assay::emu
