// Values that NVIDIA's occupancy calculator gives.
#include "validator/cost/occupancy.h"

#include <gtest/gtest.h>

namespace assay::cost {
namespace {

struct Row {
  const char* chip;
  BlockNeeds needs;
  std::uint32_t blocks;
  OccupancyLimit limit;
};

class OccupancyTest : public ::testing::TestWithParam<Row> {};

TEST_P(OccupancyTest, IsTheCalculators) {
  const Row& row = GetParam();
  const Chip* const chip = FindChip(row.chip);
  ASSERT_NE(chip, nullptr);
  const Occupancy occupancy = OccupancyOf(*chip, row.needs);
  EXPECT_EQ(occupancy.blocks, row.blocks);
  EXPECT_EQ(occupancy.limit, row.limit);
  EXPECT_EQ(occupancy.warps, row.blocks * ((row.needs.threads + 31) / 32));
}

INSTANTIATE_TEST_SUITE_P(
    Known, OccupancyTest,
    ::testing::Values(
        // Threads: 2048 of them.
        Row{"h100", {.threads = 256, .registers = 32}, 8, OccupancyLimit::kThreads},
        Row{"h100", {.threads = 1024, .registers = 32}, 2, OccupancyLimit::kThreads},
        Row{"a100", {.threads = 768, .registers = 24}, 2, OccupancyLimit::kThreads},
        // Blocks: 32 of them, however small.
        Row{"h100", {.threads = 32, .registers = 32}, 32, OccupancyLimit::kBlocks},
        Row{"h100", {.threads = 1, .registers = 16}, 32, OccupancyLimit::kBlocks},
        // Registers: 33 are given as 40.
        Row{"h100", {.threads = 256, .registers = 33}, 6, OccupancyLimit::kRegisters},
        Row{"h100", {.threads = 256, .registers = 64}, 4, OccupancyLimit::kRegisters},
        Row{"h100", {.threads = 256, .registers = 65}, 3, OccupancyLimit::kRegisters},
        Row{"a100", {.threads = 128, .registers = 255}, 2, OccupancyLimit::kRegisters},
        Row{"a100", {.threads = 1024, .registers = 64}, 1, OccupancyLimit::kRegisters},
        // Shared memory: 228 KiB and 164 KiB, of which each block's system takes one.
        Row{"h100",
            {.threads = 128, .registers = 32, .shared_bytes = 227 * 1024},
            1,
            OccupancyLimit::kShared},
        Row{"h100",
            {.threads = 128, .registers = 32, .shared_bytes = 48 * 1024},
            4,
            OccupancyLimit::kShared},
        Row{"a100",
            {.threads = 128, .registers = 32, .shared_bytes = 48 * 1024},
            3,
            OccupancyLimit::kShared},
        Row{"a100",
            {.threads = 128, .registers = 32, .shared_bytes = 40 * 1024},
            4,
            OccupancyLimit::kShared},
        // More than there is.
        Row{"h100", {.threads = 1024, .registers = 128}, 0, OccupancyLimit::kRegisters},
        Row{"a100",
            {.threads = 32, .registers = 32, .shared_bytes = 164 * 1024},
            0,
            OccupancyLimit::kShared}));

TEST(Chips, StandForTheirTargets) {
  ASSERT_NE(ChipOf("sm_90"), nullptr);
  EXPECT_EQ(ChipOf("sm_90")->name, "h100");
  EXPECT_EQ(ChipOf("sm_90a"), ChipOf("sm_90"));
  EXPECT_EQ(ChipOf("sm_80")->name, "a100");
  EXPECT_EQ(ChipOf("sm_75"), nullptr);
  EXPECT_EQ(FindChip("h101"), nullptr);
}

}  // namespace
}  // namespace assay::cost
