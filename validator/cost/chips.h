// What named chips can do, by public figures. One row a chip; docs/cost.md names the source of each
// column.
//
// Rates are the most that the chip can do, so that times derived from them are lower bounds. Latencies
// are measured ones, of loads that nothing disturbs.
//
//   const Chip& chip = *FindChip("h100");       // or ChipOf("sm_90")
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "validator/execution/launch_counts.h"

namespace assay::cost {

struct Chip {
  std::string_view name;  ///< "h100"
  std::string_view title;
  std::string_view arch;  ///< "sm_90"
  std::uint32_t multiprocessors = 0;
  double clock_hz = 0;  ///< Boost.
  double dram_bytes_per_second = 0;
  double l2_bytes_per_second = 0;
  std::uint64_t l2_bytes = 0;

  // Of a multiprocessor.
  std::uint32_t threads = 2048;
  std::uint32_t blocks = 32;
  std::uint32_t registers = 65536;
  std::uint64_t shared_bytes = 0;  ///< Of all blocks, with what the system takes of each.
  std::uint64_t l1_bytes = 0;      ///< L1 and shared memory together.
  double l2_port_bytes = 64;       ///< A cycle, between L2 and L1.
  /// Instructions of warps a cycle.
  std::array<double, kPipeCount> pipes{};
  double issues = 4;
  /// Multiplications a cycle: of wgmma, and of what one warp does alone.
  std::array<double, kMatrixTypeCount> products{};
  double single_warp_share = 1;  ///< Of that rate, for mma and wmma.

  // Cycles.
  std::uint32_t shared_latency = 29;
  std::uint32_t l1_latency = 40;
  std::uint32_t l2_latency = 262;
  std::uint32_t dram_latency = 470;
  /// Blocks that are handed to multiprocessors in a cycle, whatever they do.
  double blocks_a_cycle = 1;
  /// A launch that does nothing, from the end of the one before to its own.
  double launch_seconds = 2e-6;
};

std::span<const Chip> Chips();
/// By name; null for an unknown one.
const Chip* FindChip(std::string_view name);
/// The chip that stands for a target ("sm_90", "sm_90a"); null where no row is of it.
const Chip* ChipOf(std::string_view arch);

}  // namespace assay::cost
