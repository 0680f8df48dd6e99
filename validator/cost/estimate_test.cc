// Bounds of counts made by hand.
#include "validator/cost/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::cost {
namespace {

const Chip& H100() { return *FindChip("h100"); }

BufferSpec Buffer(const char* name, std::int64_t elements, BufferRole role) {
  return {.name = name, .dtype = DType::kF32, .elements = elements, .role = role};
}

/// A copy of 2^26 floats by blocks of 256 threads, of which `sampled` ran.
LaunchShape Copy(std::uint64_t sampled) {
  constexpr std::uint32_t kBlocks = 1u << 18;
  LaunchShape shape{
      .entry = "copy", .grid = {kBlocks, 1, 1}, .needs = {.threads = 256, .registers = 16}};
  LaunchCounts& counts = shape.counts;
  counts.blocks = sampled;
  counts.warps = 8 * sampled;
  counts.warp_instructions = 80 * sampled;
  counts.pipes[static_cast<std::size_t>(Pipe::kAlu)] = 40 * sampled;
  counts.pipes[static_cast<std::size_t>(Pipe::kMemory)] = 16 * sampled;
  counts.loads = {.requests = 8 * sampled,
                  .lanes = 256 * sampled,
                  .bytes = 1024 * sampled,
                  .sectors = 32 * sampled,
                  .lines = 8 * sampled};
  counts.stores = counts.loads;
  counts.missed_sectors = 32 * sampled;
  counts.path_cycles = 500 * sampled;
  counts.longest_path = 500;
  counts.buffers = {{.buffer = 0, .read_by_block = 32 * sampled, .read = 32 * sampled},
                    {.buffer = 1, .written_by_block = 32 * sampled, .written = 32 * sampled}};
  return shape;
}

TEST(Estimate, ACopyIsLimitedByMemory) {
  const std::vector<BufferSpec> buffers = {Buffer("x", 1 << 26, BufferRole::kInput),
                                           Buffer("y", 1 << 26, BufferRole::kOutput)};
  for (const std::uint64_t sampled : {1u, 64u, 1u << 18}) {
    const SpeedEstimate estimate =
        EstimateSpeed(H100(), std::vector<LaunchShape>{Copy(sampled)}, buffers);
    EXPECT_EQ(estimate.limiter, Limiter::kDram) << sampled;
    EXPECT_NEAR(estimate.launches[0].dram_bytes, 2.0 * 4 * (1 << 26), 1) << sampled;
    EXPECT_NEAR(estimate.ShareOfLimit(), 1, 0.02) << sampled;
    EXPECT_DOUBLE_EQ(estimate.launches[0].sectors_a_request, 4);
  }
}

TEST(Estimate, SectorsThatNobodyAskedForCost) {
  LaunchShape apart = Copy(64);
  // Each lane's word in a sector of its own, of a tensor eight times as long.
  apart.counts.loads.sectors *= 8;
  apart.counts.loads.lines *= 32;
  apart.counts.missed_sectors *= 8;
  apart.counts.buffers[0].read *= 8;
  apart.counts.buffers[0].read_by_block *= 8;
  const std::vector<BufferSpec> buffers = {Buffer("x", std::int64_t{1} << 29, BufferRole::kInput),
                                           Buffer("y", 1 << 26, BufferRole::kOutput)};
  const SpeedEstimate estimate = EstimateSpeed(H100(), std::vector<LaunchShape>{apart}, buffers);
  const SpeedEstimate together = EstimateSpeed(H100(), std::vector<LaunchShape>{Copy(64)}, buffers);
  EXPECT_GT(estimate.bound, 4 * together.bound);
  EXPECT_LT(estimate.launches[0].useful, 0.25);
  EXPECT_NE(estimate.Words().find("were asked for"), std::string::npos) << estimate.Words();
  EXPECT_EQ(together.Words().find("were asked for"), std::string::npos) << together.Words();
}

TEST(Estimate, AWaveMoreIsATail) {
  LaunchShape busy = Copy(1);
  busy.counts.buffers.clear();
  busy.counts.pipes[static_cast<std::size_t>(Pipe::kAlu)] = 2'000'000;
  const auto bound = [&](std::uint32_t blocks) {
    busy.grid = {blocks, 1, 1};
    return EstimateSpeed(H100(), std::vector<LaunchShape>{busy}, {}).bound - H100().launch_seconds;
  };
  EXPECT_DOUBLE_EQ(bound(1), bound(132));
  EXPECT_NEAR(bound(133), 2 * bound(132), 1e-9);
  EXPECT_NEAR(bound(264), bound(133), 1e-9);
}

TEST(Estimate, FewBlocksWaitForThemselves) {
  LaunchShape few = Copy(1);
  few.grid = {8, 1, 1};
  few.counts.path_cycles = few.counts.longest_path = 1'000'000;
  const std::vector<BufferSpec> buffers = {Buffer("x", 8 * 256, BufferRole::kInput),
                                           Buffer("y", 8 * 256, BufferRole::kOutput)};
  const SpeedEstimate estimate = EstimateSpeed(H100(), std::vector<LaunchShape>{few}, buffers);
  EXPECT_EQ(estimate.limiter, Limiter::kLatency);
  EXPECT_NEAR(estimate.bound, H100().launch_seconds + 1e6 / H100().clock_hz, 1e-9);
  EXPECT_NE(estimate.Words().find("the grid fills 1 % of the chip"), std::string::npos)
      << estimate.Words();
}

TEST(Estimate, WhatDoesNotFitL2IsReadByEachWave) {
  // Every block reads the same 128 MiB, or the same 16 MiB.
  const auto dram = [](std::int64_t elements) {
    LaunchShape shape = Copy(16);
    const auto sectors = static_cast<std::uint64_t>(elements / 8);
    shape.grid = {4 * 132 * 8, 1, 1};
    shape.counts.missed_sectors = 16 * sectors;
    shape.counts.buffers = {{.buffer = 0, .read_by_block = 16 * sectors, .read = sectors}};
    const std::vector<BufferSpec> buffers = {Buffer("x", elements, BufferRole::kInput)};
    return EstimateSpeed(H100(), std::vector<LaunchShape>{shape}, buffers).launches[0].dram_bytes;
  };
  EXPECT_NEAR(dram(1 << 22), 4.0 * (1 << 22), 64);
  EXPECT_NEAR(dram(1 << 25), 4 * 4.0 * (1 << 25), 256);
}

TEST(Estimate, MatrixProductsByTypeAndHow) {
  const auto bound = [](MatrixType type, bool group) {
    LaunchShape shape = Copy(1);
    shape.grid = {132, 1, 1};
    shape.counts.buffers.clear();
    auto& products = group ? shape.counts.group_products : shape.counts.products;
    products[static_cast<std::size_t>(type)] = 1'000'000'000;
    return EstimateSpeed(H100(), std::vector<LaunchShape>{shape}, {}).bound - H100().launch_seconds;
  };
  // 989 TFLOP/s of halves, by whole warp groups.
  const double peak = 132 * 2e9 / bound(MatrixType::kHalf, true);
  EXPECT_NEAR(peak, 989e12, 1e12);
  EXPECT_NEAR(bound(MatrixType::kTf32, true), 2 * bound(MatrixType::kHalf, true), 1e-9);
  EXPECT_GT(bound(MatrixType::kHalf, false), 1.4 * bound(MatrixType::kHalf, true));
}

TEST(Estimate, NothingKnownIsSaid) {
  SpeedEstimate estimate;
  estimate.left_out = "too large";
  EXPECT_EQ(estimate.Words(), "not estimated: too large");
  EXPECT_EQ(estimate.ShareOfLimit(), 0);
  EXPECT_EQ(estimate.Longest(), nullptr);
  EXPECT_EQ(ToJson(estimate)["left_out"], "too large");
}

}  // namespace
}  // namespace assay::cost
