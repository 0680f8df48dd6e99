// Test support: seeded random traces, played to a RaceDetector and to the reference alike
// (race_random_test.cc).
//
// Traces keep to what an emulator can do: threads that wait at a barrier do nothing else, threads
// that exited never return, copies are waited for by the threads that started them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "validator/emu/race/race.h"
#include "validator/emu/race/race_reference.h"

namespace assay::emu {

/// What a family of traces consists of; the numbers after `events` are weights.
struct Mix {
  const char* name = "";
  std::uint64_t events = 30;  ///< At most.
  int weak = 1, strong = 0, atomic = 0, fence = 0;
  int block_barrier = 0, named_barrier = 0, warp_barrier = 0, exit = 0;
  int copy = 0, copy_wait = 0, mbarrier = 0, cluster = 0, read_only = 0;
  bool whole_warps = false;    ///< Accesses are warp-wide.
  bool scattered = false;      ///< In shapes other than rows as well: strides, repeats, at random.
  bool own_memory = false;     ///< Mostly the block's own.
  bool device_scopes = false;  ///< No strong access is of less than device scope.
  bool stays = false;          ///< Mostly the threads of the last event go on.

  int weights() const {
    return weak + strong + atomic + fence + block_barrier + named_barrier + warp_barrier + exit +
           copy + copy_wait + mbarrier + cluster + read_only;
  }
};

inline void PrintTo(const Mix& mix, std::ostream* out) { *out << mix.name; }

class Trace {
 public:
  Trace(const Mix& mix, std::uint64_t seed)
      : mix_(mix), rng_(seed), shape_(MakeShape()), fast_(1ull << 30), slow_(shape_) {
    fast_.BeginLaunch(shape_);
    for (BlockNumber b = 0; b < shape_.blocks; ++b) {
      if (rng_.Below(4) != 0) fast_.OnBlockRegion(b, 100 + b);
    }
    lanes_ = mix.whole_warps ? kAllLanes : 0xfu;
    places_ = 1 + rng_.Below(mix.events < 20 ? 2 : 6);
    live_.assign(shape_.blocks * shape_.warps_per_block, lanes_);
    blocked_.assign(live_.size(), 0);
    tokens_.resize(live_.size());
    if (lanes_ != kAllLanes && rng_.Below(3) != 0) {
      for (WarpNumber w = 0; w < live_.size(); ++w) fast_.OnThreadExit(w, ~lanes_);
    }
  }

  void Run() {
    const std::uint64_t events = 2 + rng_.Below(mix_.events);
    for (std::uint64_t i = 0; i < events; ++i) Step();
  }

  /// What is wrong, or nothing.
  std::string Compare() {
    std::set<ReferenceDetector::Found> ours;
    for (const Race& race : fast_.races()) {
      const auto [low, high] = std::minmax(race.earlier.pc, race.later.pc);
      ours.insert({low, high, race.race_class});
    }
    for (const Race& race : fast_.races()) {
      bool racy_place = false;
      for (std::uint64_t b = race.offset; b < race.offset + race.bytes; ++b) {
        racy_place = racy_place || slow_.by_byte.contains(std::uint64_t{race.region} << 40 | b);
      }
      const auto [low, high] = std::minmax(race.earlier.pc, race.later.pc);
      if (!racy_place) {
        return "false alarm: events " + std::to_string(low) + " and " + std::to_string(high) +
               Log();
      }
      if (!slow_.found.contains({low, high, race.race_class})) ++wrong_pairs;
    }
    for (const auto& [byte, races] : slow_.by_byte) {
      const bool reported =
          std::any_of(races.begin(), races.end(), [&](const auto& f) { return ours.contains(f); });
      if (!reported && slow_.must_find.contains(byte)) {
        return "missed: events " + std::to_string(races.begin()->first_pc) + " and " +
               std::to_string(races.begin()->second_pc) + " at byte " +
               std::to_string(byte & 0xffffffffffu) + Log();
      }
    }
    return "";
  }
  /// Reports about memory that has a race, but another one: where a cell mixes scopes, the witness
  /// of an order may be forgotten.
  std::uint64_t wrong_pairs = 0;
  bool racy() const { return !slow_.found.empty(); }

 private:
  RaceDetector::Shape MakeShape() {
    RaceDetector::Shape shape;
    shape.warps_per_block = 1 + static_cast<std::uint32_t>(rng_.Below(3));
    shape.blocks = 1 + static_cast<std::uint32_t>(rng_.Below(4));
    if (shape.blocks % 2 == 0 && rng_.Below(2) == 0) shape.blocks_per_cluster = 2;
    shape.narrow_scopes = !mix_.device_scopes;
    return shape;
  }
  std::string Log() const {
    std::string text = "\n";
    for (const std::string& line : log_) text += line + "\n";
    return text;
  }
  void Note(std::string line) { log_.push_back(std::move(line)); }
  static std::string At(WarpNumber warp, LaneMask lanes) {
    return " w" + std::to_string(warp) + " lanes " + std::to_string(lanes);
  }

  LaneMask Ready(WarpNumber warp) const { return live_[warp] & ~blocked_[warp]; }
  LaneMask SomeLanes(WarpNumber warp) {
    const LaneMask ready = Ready(warp);
    if (mix_.whole_warps)
      return rng_.Below(8) == 0 ? ready & static_cast<LaneMask>(rng_.Next()) : ready;
    return ready & static_cast<LaneMask>(rng_.Below(3) == 0 ? lanes_ : 1u << rng_.Below(4));
  }
  Scope SomeScope() {
    if (mix_.device_scopes) return rng_.Below(4) == 0 ? Scope::kSys : Scope::kGpu;
    constexpr Scope kScopes[] = {Scope::kCta, Scope::kCluster, Scope::kGpu, Scope::kGpu,
                                 Scope::kSys};
    return kScopes[rng_.Below(5)];
  }
  BlockNumber BlockOf(WarpNumber warp) const { return warp / shape_.warps_per_block; }

  WarpAccess Make(WarpNumber warp, LaneMask lanes, std::array<std::uint64_t, kWarpSize>& offsets) {
    WarpAccess access;
    access.warp = warp;
    access.lanes = lanes;
    access.pc = ++pc_;
    access.region = rng_.Below(mix_.own_memory ? 2 : 4) == 0 ? 100 + BlockOf(warp) : 1;
    if (mix_.own_memory && rng_.Below(4) != 0) access.region = 100 + BlockOf(warp);
    access.bytes = rng_.Below(6) == 0 ? 1u << rng_.Below(4) : 4;
    std::uint64_t base = 8 * rng_.Below(places_) / access.bytes * access.bytes;
    std::uint64_t stride = rng_.Below(2) == 0 ? 0 : access.bytes;
    if (mix_.whole_warps) {
      access.bytes = rng_.Below(4) == 0 ? 1u << rng_.Below(5) : 4;
      stride = rng_.Below(6) == 0 ? 0 : access.bytes;
      base = rng_.Below(3) * (rng_.Below(4) == 0 ? 32 : 128) / access.bytes * access.bytes;
    }
    const bool folded = mix_.whole_warps && rng_.Below(8) == 0;
    for (std::uint64_t lane = 0; lane < offsets.size(); ++lane) {
      offsets[lane] = base + stride * (folded ? lane % 16 : lane);
    }
    if (mix_.scattered && rng_.Below(4) != 0) Scatter(access.bytes, offsets);
    access.offsets = offsets.data();
    return access;
  }
  /// The shapes of a tiled product (a column of a few rows, every fourth word twice), a scalar, a
  /// histogram.
  void Scatter(std::uint32_t bytes, std::array<std::uint64_t, kWarpSize>& offsets) {
    const std::uint64_t shape = rng_.Below(4);
    const std::uint64_t base = bytes * rng_.Below(4);
    for (std::uint64_t lane = 0; lane < offsets.size(); ++lane) {
      const std::uint64_t place = shape == 0   ? lane / 16
                                  : shape == 1 ? 4 * (lane % 16)
                                  : shape == 2 ? 0
                                               : rng_.Below(8);
      offsets[lane] = base + place * bytes;
    }
  }
  void Do(const WarpAccess& access, const char* what) {
    Note(std::to_string(access.pc) + ": " + what + At(access.warp, access.lanes) + " region " +
         std::to_string(access.region) + " at " +
         std::to_string(access.offsets[std::countr_zero(access.lanes)]) + "+" +
         std::to_string(access.offsets[1] - access.offsets[0]) + " x" +
         std::to_string(access.bytes) + " kind " + std::to_string(static_cast<int>(access.kind)) +
         " order " + std::to_string(static_cast<int>(access.order)) + " scope " +
         std::to_string(static_cast<int>(access.scope)));
    fast_.OnAccess(access);
    slow_.Access(access);
  }

  void Step() {
    const bool same = mix_.stays && rng_.Below(4) != 0;
    if (!same) last_warp_ = static_cast<WarpNumber>(rng_.Below(live_.size()));
    const WarpNumber warp = last_warp_;
    int pick = static_cast<int>(rng_.Below(static_cast<std::uint64_t>(mix_.weights())));
    const auto chosen = [&](int weight) {
      const bool hit = pick >= 0 && pick < weight;
      pick -= weight;
      return hit;
    };
    const LaneMask lanes = same ? last_lanes_ & Ready(warp) : SomeLanes(warp);
    last_lanes_ = lanes;
    if (lanes == 0) return;
    std::array<std::uint64_t, kWarpSize> offsets{};
    if (chosen(mix_.weak)) {
      WarpAccess access = Make(warp, lanes, offsets);
      access.kind = rng_.Below(2) == 0 ? AccessKind::kRead : AccessKind::kWrite;
      Do(access, "weak");
    } else if (chosen(mix_.read_only)) {
      WarpAccess access = Make(warp, lanes, offsets);
      access.read_only_path = true;
      Do(access, "read-only");
    } else if (chosen(mix_.strong)) {
      WarpAccess access = Make(warp, lanes, offsets);
      access.kind = rng_.Below(2) == 0 ? AccessKind::kRead : AccessKind::kWrite;
      const std::uint64_t which = rng_.Below(4);
      access.order = which == 0                         ? Order::kVolatile
                     : which == 1                       ? Order::kRelaxed
                     : access.kind == AccessKind::kRead ? Order::kAcquire
                                                        : Order::kRelease;
      access.scope = SomeScope();
      Do(access, "strong");
    } else if (chosen(mix_.atomic)) {
      WarpAccess access = Make(warp, lanes, offsets);
      access.kind = AccessKind::kReadWrite;
      constexpr Order kOrders[] = {Order::kRelaxed, Order::kRelaxed, Order::kAcquire,
                                   Order::kRelease, Order::kAcqRel};
      access.order = kOrders[rng_.Below(5)];
      access.scope = SomeScope();
      access.atomic = true;
      access.returns_value = rng_.Below(4) != 0;
      access.reversed = rng_.Below(2) == 0;
      if (access.bytes < 4) access.bytes = 4;
      for (auto& offset : offsets) offset = offset / access.bytes * access.bytes;
      Do(access, access.returns_value ? "atom" : "red");
    } else if (chosen(mix_.fence)) {
      constexpr Order kOrders[] = {Order::kAcqRel, Order::kAcqRel, Order::kAcquire,
                                   Order::kRelease};
      const Order order = kOrders[rng_.Below(4)];
      const Scope scope = SomeScope();
      Note("fence" + At(warp, lanes) + " scope " + std::to_string(static_cast<int>(scope)));
      fast_.OnFence(warp, lanes, order, scope);
      slow_.Fence(warp, lanes, order, scope);
    } else if (chosen(mix_.block_barrier)) {
      ArriveAll(BlockOf(warp));
    } else if (chosen(mix_.named_barrier)) {
      NamedBarrier(BlockOf(warp));
    } else if (chosen(mix_.warp_barrier)) {
      const LaneMask members = rng_.Below(2) == 0 ? Ready(warp) : lanes;
      Note("warp barrier" + At(warp, members));
      fast_.OnWarpBarrier(warp, members);
      slow_.WarpBarrier(warp, members);
    } else if (chosen(mix_.exit)) {
      Note("exit" + At(warp, lanes));
      live_[warp] &= ~lanes;
      if (rng_.Below(4) != 0) fast_.OnThreadExit(warp, lanes);
      CompleteIfAll(BlockOf(warp));
      EndIfAll(BlockOf(warp));
    } else if (chosen(mix_.copy)) {
      WarpAccess write = Make(warp, lanes, offsets);
      write.kind = AccessKind::kWrite;
      std::array<std::uint64_t, kWarpSize> sources = offsets;
      for (auto& offset : sources) offset += 64;
      WarpAccess read = write;
      read.kind = AccessKind::kRead;
      read.pc = ++pc_;
      read.offsets = sources.data();
      Note(std::to_string(write.pc) + "/" + std::to_string(read.pc) + ": copy" + At(warp, lanes) +
           " to " + std::to_string(offsets[0]) + " x" + std::to_string(write.bytes));
      const std::uint64_t token = fast_.OnAsyncIssue(warp, lanes, read, write);
      slow_.AsyncIssue(read, write, token);
      tokens_[warp].push_back(token);
    } else if (chosen(mix_.copy_wait)) {
      if (tokens_[warp].empty()) return;
      const std::uint64_t token = tokens_[warp][rng_.Below(tokens_[warp].size())];
      Note("wait" + At(warp, lanes) + " for " + std::to_string(token));
      fast_.OnAsyncWait(warp, lanes, token);
      slow_.AsyncWait(warp, lanes, token);
    } else if (chosen(mix_.mbarrier)) {
      Mbarrier(warp, lanes);
    } else if (chosen(mix_.cluster)) {
      Cluster(warp, lanes);
    }
  }

  void ArriveAll(BlockNumber block) {
    // Some of the block's warps arrive; when all have, the barrier completes.
    for (std::uint32_t w = 0; w < shape_.warps_per_block; ++w) {
      const WarpNumber warp = block * shape_.warps_per_block + w;
      if (Ready(warp) == 0 || rng_.Below(3) == 0) continue;
      Note("arrive" + At(warp, Ready(warp)));
      fast_.OnBarrierArrive(block, 0, warp, Ready(warp), true);
      slow_.BarrierArrive(block, 0, warp, Ready(warp), true);
      blocked_[warp] = live_[warp];
    }
    CompleteIfAll(block);
  }
  void CompleteIfAll(BlockNumber block) {
    bool any = false;
    for (std::uint32_t w = 0; w < shape_.warps_per_block; ++w) {
      const WarpNumber warp = block * shape_.warps_per_block + w;
      if (Ready(warp) != 0) return;
      any = any || live_[warp] != 0;
    }
    if (!any) return;
    Note("complete block " + std::to_string(block));
    fast_.OnBarrierComplete(block, 0);
    slow_.BarrierComplete(block, 0);
    for (std::uint32_t w = 0; w < shape_.warps_per_block; ++w)
      blocked_[block * shape_.warps_per_block + w] = 0;
  }
  void NamedBarrier(BlockNumber block) {
    std::vector<std::pair<WarpNumber, LaneMask>> waiters;
    for (std::uint32_t w = 0; w < shape_.warps_per_block; ++w) {
      const WarpNumber warp = block * shape_.warps_per_block + w;
      const LaneMask lanes = SomeLanes(warp);
      if (lanes == 0) continue;
      const bool waits = rng_.Below(2) == 0;
      Note(std::string(waits ? "sync 1" : "arrive 1") + At(warp, lanes));
      fast_.OnBarrierArrive(block, 1, warp, lanes, waits);
      slow_.BarrierArrive(block, 1, warp, lanes, waits);
      if (!waits && rng_.Below(2) == 0) {
        std::array<std::uint64_t, kWarpSize> offsets{};
        WarpAccess access = Make(warp, lanes, offsets);
        access.kind = AccessKind::kWrite;
        Do(access, "weak, between");
      }
    }
    Note("complete 1");
    fast_.OnBarrierComplete(block, 1);
    slow_.BarrierComplete(block, 1);
  }
  void EndIfAll(BlockNumber block) {
    for (std::uint32_t w = 0; w < shape_.warps_per_block; ++w) {
      if (live_[block * shape_.warps_per_block + w] != 0) return;
    }
    Note("end of block " + std::to_string(block));
    fast_.EndBlock(block, 100 + block);
  }
  void Mbarrier(WarpNumber warp, LaneMask lanes) {
    // Shared memory of the block, or of a peer in its cluster.
    BlockNumber block = BlockOf(warp);
    if (shape_.blocks_per_cluster == 2 && rng_.Below(2) == 0) block ^= 1;
    const RegionId region = 200 + block;
    const bool relaxed = rng_.Below(4) == 0;
    const Scope scope = rng_.Below(2) == 0 ? Scope::kCta : Scope::kCluster;
    const std::uint64_t which = rng_.Below(5);
    Note("mbarrier " + std::to_string(which) + At(warp, lanes) + " object " +
         std::to_string(region));
    if (which <= 1) {
      fast_.OnMbarrierArrive(region, 0, warp, lanes, scope, relaxed);
      slow_.MbarrierArrive(region, warp, lanes, scope, relaxed);
    } else if (which == 2) {
      fast_.OnMbarrierPhaseComplete(region, 0);
      slow_.MbarrierComplete(region);
    } else if (which == 3) {
      fast_.OnMbarrierWait(region, 0, warp, lanes, scope, relaxed);
      slow_.MbarrierWait(region, warp, lanes, scope, relaxed);
    } else if (!tokens_[warp].empty()) {
      const std::uint64_t token = tokens_[warp][rng_.Below(tokens_[warp].size())];
      fast_.OnAsyncMbarrierArrive(region, 0, warp, lanes, token);
      slow_.MbarrierPublishCopies(region, warp, lanes, token);
    }
  }
  void Cluster(WarpNumber warp, LaneMask lanes) {
    const std::uint32_t cluster = BlockOf(warp) / shape_.blocks_per_cluster;
    const std::uint64_t which = rng_.Below(4);
    Note("cluster " + std::to_string(which) + At(warp, lanes));
    if (which <= 1) {
      const bool relaxed = rng_.Below(4) == 0;
      fast_.OnClusterArrive(BlockOf(warp), warp, lanes, relaxed);
      slow_.ClusterArrive(warp, lanes, relaxed);
    } else if (which == 2) {
      fast_.OnClusterComplete(cluster);
      slow_.ClusterComplete(cluster);
    } else {
      fast_.OnClusterWait(BlockOf(warp), warp, lanes);
      slow_.ClusterWait(warp, lanes);
    }
  }

  const Mix& mix_;
  Rng rng_;
  RaceDetector::Shape shape_;
  RaceDetector fast_;
  ReferenceDetector slow_;
  LaneMask lanes_ = 0;
  std::uint64_t places_ = 1;
  WarpNumber last_warp_ = 0;  // Of the last event.
  LaneMask last_lanes_ = 0;
  std::vector<LaneMask> live_;
  std::vector<LaneMask> blocked_;
  std::vector<std::vector<std::uint64_t>> tokens_;  // By warp.
  std::uint32_t pc_ = 0;
  std::vector<std::string> log_;
};

}  // namespace assay::emu
