#include "validator/emu/launch_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/execution/numbered_blocks.h"

namespace assay::emu {
namespace {

using Extents = std::array<std::uint32_t, 3>;

constexpr Extents kMostThreads{1024, 1024, 64};
constexpr Extents kMostBlocks{0x7fffffff, 65535, 65535};
constexpr std::uint64_t kMostThreadsOfBlock = 1024;
constexpr std::uint64_t kMostBlocksOfCluster = 16;

/// A product that stays at the largest number instead of wrapping.
std::uint64_t Product(const Extents& extents) {
  std::uint64_t product = 1;
  for (const std::uint32_t extent : extents) {
    if (__builtin_mul_overflow(product, std::uint64_t{extent}, &product)) return UINT64_MAX;
  }
  return product;
}

bool Exceeds(const Extents& extents, const Extents& limits) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] > limits[i]) return true;
  }
  return false;
}

std::string Text(const Extents& extents) {
  return fmt::format("{} x {} x {}", extents[0], extents[1], extents[2]);
}

bool Given(const Extents& bound) { return bound[0] != 0; }

std::string GridProblem(const Launch& launch) {
  const std::uint64_t blocks = Product(launch.grid), threads = Product(launch.block);
  if (blocks == 0 || threads == 0)
    return "a launch needs at least one block of at least one thread";
  if (Exceeds(launch.grid, kMostBlocks)) {
    return fmt::format("a grid of {} blocks is beyond the device's limits", Text(launch.grid));
  }
  if (blocks > kMostNumberedBlocks) {
    return fmt::format("a grid of {} has more blocks than are numbered here ({})",
                       Text(launch.grid), kMostNumberedBlocks);
  }
  if (Exceeds(launch.block, kMostThreads) || threads > kMostThreadsOfBlock) {
    return fmt::format("a block of {} threads is beyond the limit of {}", Text(launch.block),
                       kMostThreadsOfBlock);
  }
  return {};
}

std::string BlockProblem(const ptx::Function& function, const Extents& block) {
  const ptx::LaunchBounds& bounds = function.bounds;
  const std::uint64_t threads = Product(block);
  if (const std::uint64_t most = Product(bounds.max_threads);
      Given(bounds.max_threads) && threads > most) {
    return fmt::format(
        "kernel '{}' is bounded to {} threads a block (__launch_bounds__), but is "
        "launched with {}",
        function.name, most, threads);
  }
  if (Given(bounds.required_threads) && block != bounds.required_threads) {
    return fmt::format(
        "kernel '{}' is compiled for blocks of {} threads (.reqntid), but is "
        "launched with {}",
        function.name, Text(bounds.required_threads), Text(block));
  }
  return {};
}

std::string ClusterProblem(const ptx::Function& function, const LaunchState& state, bool named) {
  const ptx::LaunchBounds& bounds = function.bounds;
  if (Given(bounds.cluster) && state.cluster != bounds.cluster) {
    return fmt::format(
        "kernel '{}' is compiled for clusters of {} blocks (__cluster_dims__), but "
        "is launched with clusters of {}",
        function.name, Text(bounds.cluster), Text(state.cluster));
  }
  if (bounds.explicit_cluster && !Given(bounds.cluster) && !named) {
    return fmt::format(
        "kernel '{}' must be launched with a cluster (.explicitcluster), but the "
        "launch names none",
        function.name);
  }
  const std::uint64_t blocks = Product(state.cluster);
  if (blocks == 0) return "a cluster needs at least one block";
  if (bounds.max_cluster_rank != 0 && blocks > bounds.max_cluster_rank) {
    return fmt::format("kernel '{}' is bounded to {} blocks a cluster, but is launched with {}",
                       function.name, bounds.max_cluster_rank, blocks);
  }
  if (blocks > kMostBlocksOfCluster) {
    return fmt::format("a cluster of {} blocks is beyond the limit of {}", Text(state.cluster),
                       kMostBlocksOfCluster);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (state.grid[i] % state.cluster[i] != 0) {
      return fmt::format("the grid of {} blocks is not a multiple of the cluster of {}",
                         Text(state.grid), Text(state.cluster));
    }
  }
  return {};
}

Extents Clusters(const LaunchState& launch) {
  return {launch.grid[0] / launch.cluster[0], launch.grid[1] / launch.cluster[1],
          launch.grid[2] / launch.cluster[2]};
}

}  // namespace

std::string ShapeLaunch(const ptx::Function& function, const Launch& launch, LaunchState& state) {
  std::string problem = GridProblem(launch);
  if (problem.empty()) problem = BlockProblem(function, launch.block);
  if (!problem.empty()) return problem;
  state.grid = launch.grid;
  state.block = launch.block;
  state.cluster = launch.cluster;
  // A launch of single blocks names no cluster.
  const bool named = launch.cluster != Dim3{1, 1, 1};
  if (!named && Given(function.bounds.cluster)) state.cluster = function.bounds.cluster;
  problem = ClusterProblem(function, state, named);
  if (!problem.empty()) return problem;
  state.threads = static_cast<std::uint32_t>(Product(state.block));
  state.warps = (state.threads + kWarpSize - 1) / kWarpSize;
  state.blocks = static_cast<std::uint32_t>(Product(state.grid));
  state.blocks_per_cluster = static_cast<std::uint32_t>(Product(state.cluster));
  return {};
}

std::uint32_t ClusterAt(const LaunchState& launch, const Dim3& id) {
  const Extents clusters = Clusters(launch);
  return id[0] / launch.cluster[0] +
         clusters[0] * (id[1] / launch.cluster[1] + clusters[1] * (id[2] / launch.cluster[2]));
}

Dim3 BlockId(const LaunchState& launch, BlockNumber block) {
  const Extents clusters = Clusters(launch);
  const auto at = [](const Extents& extents, std::uint32_t number) {
    return Dim3{number % extents[0], number / extents[0] % extents[1],
                number / extents[0] / extents[1]};
  };
  Dim3 id = at(clusters, block / launch.blocks_per_cluster);
  const Dim3 inside = at(launch.cluster, block % launch.blocks_per_cluster);
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = id[i] * launch.cluster[i] + inside[i];
  return id;
}

}  // namespace assay::emu
