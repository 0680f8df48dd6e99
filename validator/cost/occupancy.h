// How many blocks of a kernel a multiprocessor holds at once, and what keeps it from holding more.
//
// By the rules of NVIDIA's occupancy calculator for compute capabilities 8.0 and 9.0: registers are
// given to warps in units of 256, within one of four partitions; shared memory to blocks in units of
// 128 bytes, with 1 KiB for the system; warps and blocks have fixed most numbers.
//
//   const Occupancy occupancy = OccupancyOf(chip, {.threads = 256, .registers = 64});
//   occupancy.blocks == 4
#pragma once

#include <cstdint>
#include <string_view>

#include "validator/cost/chips.h"

namespace assay::cost {

struct BlockNeeds {
  std::uint32_t threads = 1;
  std::uint32_t registers = 0;     ///< A thread.
  std::uint64_t shared_bytes = 0;  ///< Static and dynamic.
};

enum class OccupancyLimit : std::uint8_t { kThreads, kBlocks, kRegisters, kShared };
std::string_view Name(OccupancyLimit limit);

struct Occupancy {
  std::uint32_t blocks = 0;  ///< 0: not even one fits.
  std::uint32_t warps = 0;   ///< Of those blocks.
  double share = 0;          ///< Of the warps that the multiprocessor could hold.
  OccupancyLimit limit = OccupancyLimit::kThreads;
};

Occupancy OccupancyOf(const Chip& chip, const BlockNeeds& needs);

}  // namespace assay::cost
