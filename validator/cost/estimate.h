// What a kernel can reach at best on a chip, at one shape, and what holds it back: computed from counts
// of a sample of its blocks (LaunchCounts), without a GPU.
//
// Model: each unit needs a time for what the blocks ask of it, and none can be faster than the busiest
// one; docs/cost.md has the formulas. So `bound` is a lower bound in seconds on an ideal chip, by a
// model: good for comparing kernels on the same work and for naming what to change. It is no
// prediction, and nobody is shown it as a time: what is shown is the share of the bound that each
// unit has, the share of the op's own limit, and ranks.
//
// Pure: counts and chip in, values out. Thread-safe.
//
//   const SpeedEstimate estimate = EstimateSpeed(chip, launches, buffers);
//   estimate.limiter == Limiter::kDram; estimate.Share(Limiter::kFma) == 0.2
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"
#include "validator/cost/chips.h"
#include "validator/cost/occupancy.h"
#include "validator/execution/execution.h"
#include "validator/execution/launch_counts.h"

namespace assay::cost {

/// What a launch may be waiting for.
enum class Limiter : std::uint8_t {
  kDram,
  kL2,
  kL2Port,  ///< Between L2 and a multiprocessor.
  kL1,      ///< Requests of loads and stores, and passes over banks.
  kIssue,
  kFma,
  kAlu,
  kHalf,
  kDouble,
  kSpecial,
  kConvert,
  kShuffle,
  kMatrix,
  kAtomics,  ///< To the same places.
  kLatency,  ///< Each block waits for itself, and too few others are there meanwhile.
  kHandOut,  ///< Blocks are handed to multiprocessors one after another.
  kLaunch,
};
inline constexpr std::size_t kLimiterCount = static_cast<std::size_t>(Limiter::kLaunch) + 1;
/// "memory bandwidth", "bank conflicts and L1 requests", ...
std::string_view Name(Limiter limiter);

/// One launch, as it was counted and as it is meant.
struct LaunchShape {
  std::string entry;  ///< As the author wrote it.
  Dim3 grid{1, 1, 1};
  BlockNeeds needs;
  std::uint64_t spill_bytes = 0;  ///< Stores and loads, of a thread.
  LaunchCounts counts;
  std::uint64_t blocks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
};

struct LaunchEstimate {
  std::string entry;
  std::uint64_t blocks = 0;
  std::uint64_t sampled = 0;  ///< Blocks that ran.
  BlockNeeds needs;
  std::uint64_t spill_bytes = 0;
  Occupancy occupancy;
  double waves = 0;  ///< Of blocks, over all multiprocessors; 1.1 is one and a tail.
  double bound = 0;  ///< Seconds, of the model.
  Limiter limiter = Limiter::kLaunch;
  std::array<double, kLimiterCount> seconds{};  ///< By limiter.
  double dram_bytes = 0;
  double l2_bytes = 0;
  double sectors_a_request = 0;  ///< Of loads; 4 is what 32 lanes need for 4 bytes each.
  double useful = 0;             ///< Bytes asked for, of the bytes of the sectors touched.
  double conflicts = 0;          ///< Passes over the banks, of as many as are needed.
  double bytes_in_flight = 0;    ///< Of a multiprocessor, on average, by the model.
  std::vector<CostlySite> sites;
  std::vector<std::string> not_counted;
};

struct SpeedEstimate {
  ops::AxisValues axes;
  std::string note;  ///< The workload's.
  std::string chip;
  std::string left_out;  ///< Why nothing is known of this shape; the rest is then empty.
  double bound = 0;      ///< Seconds, of the model: its launches one after the other.
  /// Of the op itself at this shape: every tensor once through memory, at the chip's bandwidth.
  double least = 0;
  Limiter limiter = Limiter::kLaunch;
  std::vector<LaunchEstimate> launches;

  /// How near the bound is to the op's own limit: 1 is as near as can be. Never more.
  double ShareOfLimit() const;
  /// Of the bound, in the launch that takes longest.
  double Share(Limiter of) const;
  /// The launch that takes longest; null where nothing is known.
  const LaunchEstimate* Longest() const;
  /// What holds it back, as a sentence or two for people and for authors of kernels.
  std::string Words() const;
};

/// `buffers` are those of the execution that was counted.
SpeedEstimate EstimateSpeed(const Chip& chip, std::span<const LaunchShape> launches,
                            std::span<const BufferSpec> buffers);

Json ToJson(const SpeedEstimate& estimate);

}  // namespace assay::cost
