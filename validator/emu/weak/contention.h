// What of a run's result depends on who came first.
//
// Watches strong accesses and atomics of threads that nothing orders, and says two things:
//
// Sums of floats. Additions onto one place by threads that nothing orders may come in any order, and
// float sums differ by it. The additions of a stretch in which none is ordered after another are
// kept, a few of them, with what stood there before; the same values are then added up in other
// orders. Other bits: a fact, with two orders and both results. Where all sums are exact, or two
// values meet a zero, there is none. A loop around a compare-and-swap that computes floats is such
// an addition, or whatever else it computes (updates.h): what it does is kept instead of a value.
//
// Contests. An atomic whose old value is used, or a load, that meets a write of a thread that nothing
// orders: the other order would show it something else. Each is a *pair*, counted; some are kept as
// orders to try: the later warp first (Schedule::hold).
//
// Facts are no defects by themselves: a kernel may promise nothing about order, and what came first
// may be of no consequence. Whoever compares results uses them to say why they differ.
//
// Cost: a look-up for each strong access of a lane. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "validator/emu/core.h"
#include "validator/emu/handlers/combine.h"
#include "validator/emu/weak/updates.h"

namespace assay::emu {

class Contention {
 public:
  Contention(Device& device, RaceDetector& race) : engine_(device), race_(race), updates_(device) {}

  void BeginLaunch();
  void EndBlock(RegionId shared_region);

  /// Before `lane` adds the `bytes` at `value` to those at `at`, floats, as `combine` does.
  void OnFloatAdd(const CoreWarp& warp, std::uint32_t pc, int lane, const MemoryRegion& region,
                  const std::byte* at, const std::byte* value, std::uint32_t bytes, Combine combine,
                  bool flush);
  /// Is the compare-and-swap or exchange at `pc` worth telling of?
  bool EndsUpdate(std::uint32_t pc);
  /// Before the race detector hears of a compare-and-swap that succeeds, or an exchange, of `bytes` bytes at `at`.
  void OnSwap(CoreWarp& warp, std::uint32_t pc, int lane, const MemoryRegion& region,
              const std::byte* at, std::uint32_t bytes);
  /// A strong access of the warp, its `number`th. `uses_old`: what stood there is looked at.
  void OnStrong(const WarpAccess& access, std::uint32_t number, const MemoryRegion& region,
                bool uses_old);

  void Report(assay::Report& report) const;

 private:
  static constexpr std::uint32_t kMostBytes = 8;
  static constexpr std::size_t kMostAdds = 10;
  static constexpr std::size_t kMostPlaces = 1 << 16;
  static constexpr std::size_t kMostFacts = 16;
  static constexpr std::size_t kMostOrders = 64;

  struct Add {
    WarpNumber warp = 0;
    std::uint32_t time = 0;
    std::uint32_t pc = 0;
    std::uint8_t lane = 0;
    std::array<std::byte, kMostBytes> value{};
    std::vector<Updates::Value> inputs;  ///< Of an update, in place of a value.
  };
  /// Additions of which none is ordered after another.
  struct Sum {
    std::array<std::byte, kMostBytes> before{};
    std::vector<Add> adds;
  };
  /// The last access that changed a place.
  struct Last {
    WarpNumber warp = 0;
    std::uint32_t time = 0;
    std::uint32_t pc = 0;
    std::uint32_t number = 0;
    LaneMask lanes = 0;
  };
  struct Contest {
    std::uint32_t pc = 0;
    std::uint32_t other_pc = 0;
    std::uint64_t pairs = 0;
    bool looks = false;  ///< The later access only reads.
    Finding finding;
    std::vector<OrderPair> orders;
  };

  /// Makes of a place's bytes what an addition makes of them.
  using Apply = std::function<void(std::array<std::byte, kMostBytes>&, const Add&)>;
  /// The additions at a place that are not ordered before that lane, and what stood there before
  /// them; null where no more are kept.
  Sum* SumAt(const CoreWarp& warp, int lane, const MemoryRegion& region, const std::byte* at);
  void Judge(const Sum& sum, const MemoryRegion& region, const std::byte* at, std::uint32_t bytes,
             const Apply& apply);
  Contest* ContestOf(std::uint32_t pc, std::uint32_t other_pc);

  Device& engine_;
  RaceDetector& race_;
  Updates updates_;
  std::unordered_map<RegionId, std::unordered_map<std::uint64_t, Sum>> sums_;
  std::unordered_map<RegionId, std::unordered_map<std::uint64_t, Last>> lasts_;
  std::size_t places_ = 0;
  std::vector<std::uint32_t> settled_;  ///< Program counters of additions with a fact.
  std::vector<Finding> inexact_;
  std::vector<Contest> contests_;
  std::uint64_t pairs_ = 0;
  std::size_t orders_ = 0;  ///< Of all contests.
};

}  // namespace assay::emu
