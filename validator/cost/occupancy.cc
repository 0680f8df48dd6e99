#include "validator/cost/occupancy.h"

#include <algorithm>
#include <array>

namespace assay::cost {
namespace {

constexpr std::uint64_t UpTo(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string_view Name(OccupancyLimit limit) {
  constexpr std::array<std::string_view, 4> kNames = {"threads", "blocks", "registers",
                                                      "shared memory"};
  return kNames[static_cast<std::size_t>(limit)];
}

Occupancy OccupancyOf(const Chip& chip, const BlockNeeds& needs) {
  constexpr std::uint64_t kWarp = 32, kRegisterUnit = 256, kPartitions = 4;
  constexpr std::uint64_t kSharedUnit = 128, kSystemShared = 1024;
  const std::uint64_t warps = UpTo(std::max(1u, needs.threads), kWarp) / kWarp;
  struct Row {
    OccupancyLimit limit;
    std::uint64_t blocks;
  };
  std::uint64_t by_registers = chip.blocks;
  if (needs.registers > 0) {
    const std::uint64_t of_warp = UpTo(std::uint64_t{needs.registers} * kWarp, kRegisterUnit);
    by_registers = chip.registers / kPartitions / of_warp * kPartitions / warps;
  }
  const std::uint64_t shared = UpTo(needs.shared_bytes + kSystemShared, kSharedUnit);
  // Of equal limits, the one that the author cannot move comes first.
  const std::array rows = {Row{OccupancyLimit::kThreads, chip.threads / kWarp / warps},
                           Row{OccupancyLimit::kBlocks, chip.blocks},
                           Row{OccupancyLimit::kRegisters, by_registers},
                           Row{OccupancyLimit::kShared, chip.shared_bytes / shared}};
  const Row& least = *std::ranges::min_element(rows, {}, &Row::blocks);
  const std::uint64_t resident = least.blocks * warps;
  return {.blocks = static_cast<std::uint32_t>(least.blocks),
          .warps = static_cast<std::uint32_t>(resident),
          .share = static_cast<double>(resident) / (static_cast<double>(chip.threads) / kWarp),
          .limit = least.limit};
}

}  // namespace assay::cost
