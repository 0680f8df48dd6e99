// Test support: drives a RaceDetector by hand, one short line an event.
//
//   Driver d({.warps_per_block = 2, .blocks = 2});
//   d.Write(0, 1, 64);            // warp 0, lanes 0b1, offset 64, 4 bytes
//   d.Sync(0);                    // __syncthreads() of block 0
//   d.Read(1, 1, 64);
//   EXPECT_EQ(d.count(), 0u);
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "validator/emu/race/race.h"

namespace assay::emu {

struct Strength {
  Order order = Order::kWeak;
  Scope scope = Scope::kCta;
};
inline constexpr Strength kWeakly{};
inline constexpr Strength kVolatileSys{Order::kVolatile, Scope::kSys};

class Driver {
 public:
  explicit Driver(const RaceDetector::Shape& shape, std::uint64_t limit = 1ull << 30)
      : shape_(shape), race(limit) {
    race.BeginLaunch(shape);
  }

  /// All lanes at one offset when stride is 0.
  WarpAccess Make(WarpNumber warp, LaneMask lanes, std::uint64_t offset, std::uint64_t stride,
                  std::uint32_t bytes) {
    for (std::uint64_t lane = 0; lane < offsets_.size(); ++lane)
      offsets_[lane] = offset + lane * stride;
    WarpAccess access;
    access.warp = warp;
    access.lanes = lanes;
    access.region = region;
    access.offsets = offsets_.data();
    access.bytes = bytes;
    access.pc = next_pc++;
    // As callers may, or may not.
    if (access.pc % 2 == 0 && lanes != 0) {
      access.least = offset + static_cast<std::uint64_t>(std::countr_zero(lanes)) * stride;
      access.greatest = offset + static_cast<std::uint64_t>(31 - std::countl_zero(lanes)) * stride;
    }
    return access;
  }
  std::uint32_t Go(WarpAccess access, AccessKind kind, Strength strength) {
    access.kind = kind;
    access.order = strength.order;
    access.scope = strength.scope;
    race.OnAccess(access);
    return access.pc;
  }
  std::uint32_t Read(WarpNumber warp, LaneMask lanes, std::uint64_t offset, Strength s = kWeakly,
                     std::uint32_t bytes = 4) {
    return Go(Make(warp, lanes, offset, 0, bytes), AccessKind::kRead, s);
  }
  std::uint32_t Write(WarpNumber warp, LaneMask lanes, std::uint64_t offset, Strength s = kWeakly,
                      std::uint32_t bytes = 4) {
    return Go(Make(warp, lanes, offset, 0, bytes), AccessKind::kWrite, s);
  }
  std::uint32_t ReadRow(WarpNumber warp, std::uint64_t offset, std::uint32_t bytes = 4,
                        LaneMask lanes = kAllLanes) {
    return Go(Make(warp, lanes, offset, bytes, bytes), AccessKind::kRead, kWeakly);
  }
  std::uint32_t WriteRow(WarpNumber warp, std::uint64_t offset, std::uint32_t bytes = 4,
                         LaneMask lanes = kAllLanes) {
    return Go(Make(warp, lanes, offset, bytes, bytes), AccessKind::kWrite, kWeakly);
  }
  std::uint32_t Atom(WarpNumber warp, LaneMask lanes, std::uint64_t offset,
                     Order order = Order::kRelaxed, Scope scope = Scope::kGpu, bool returns = true,
                     std::uint32_t bytes = 4) {
    WarpAccess access = Make(warp, lanes, offset, 0, bytes);
    access.atomic = true;
    access.returns_value = returns;
    return Go(access, AccessKind::kReadWrite, {order, scope});
  }
  std::uint32_t ReadOnly(WarpNumber warp, LaneMask lanes, std::uint64_t offset) {
    WarpAccess access = Make(warp, lanes, offset, 0, 4);
    access.read_only_path = true;
    return Go(access, AccessKind::kRead, kWeakly);
  }
  void Fence(WarpNumber warp, LaneMask lanes, Scope scope = Scope::kGpu,
             Order order = Order::kAcqRel) {
    race.OnFence(warp, lanes, order, scope);
  }
  /// A barrier of whole warps [first, first + count) of the block; all of it by default.
  void Sync(BlockNumber block, std::uint32_t barrier = 0, std::uint32_t first = 0,
            std::uint32_t count = 0) {
    if (count == 0) count = shape_.warps_per_block;
    for (std::uint32_t w = first; w < first + count; ++w) {
      race.OnBarrierArrive(block, barrier, block * shape_.warps_per_block + w, kAllLanes, true);
    }
    race.OnBarrierComplete(block, barrier);
  }
  std::uint64_t Copy(WarpNumber warp, LaneMask lanes, RegionId from, std::uint64_t from_offset,
                     std::uint64_t to_offset) {
    std::array<std::uint64_t, kWarpSize> sources{};
    for (std::uint64_t lane = 0; lane < sources.size(); ++lane)
      sources[lane] = from_offset + 4 * lane;
    WarpAccess write = Make(warp, lanes, to_offset, 4, 4);
    write.kind = AccessKind::kWrite;
    WarpAccess read = write;
    read.kind = AccessKind::kRead;
    read.region = from;
    read.offsets = sources.data();
    return race.OnAsyncIssue(warp, lanes, read, write);
  }
  void WaitCopies(WarpNumber warp, LaneMask lanes, std::uint64_t token) {
    race.OnAsyncWait(warp, lanes, token);
  }

  std::size_t count() const { return race.races().size(); }
  Race::Class front_class() const { return race.races().front().race_class; }

 private:
  RaceDetector::Shape shape_;
  std::array<std::uint64_t, kWarpSize> offsets_{};

 public:
  RaceDetector race;
  RegionId region = 1;
  std::uint32_t next_pc = 1;
};

}  // namespace assay::emu
