#include "validator/oracle/reference_part.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "validator/engine/window.h"

namespace assay::oracle {
namespace {

constexpr std::uint32_t kWarp = 32;

/// Elements that each thread of a one-dimensional launch writes: there is a thread for each element of
/// the leading axes (all of them, or all but the row's). Nothing where the grid fits no such reading.
std::optional<std::int64_t> ElementsOfAThread(const Launch& launch, const Shape& shape) {
  if (launch.grid[1] * launch.grid[2] * launch.block[1] * launch.block[2] != 1) return std::nullopt;
  const std::int64_t threads = launch.block[0];
  std::int64_t inner = 1;
  for (std::size_t d = shape.size() + 1; d-- > 0;) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < d; ++i) rows *= shape[i];
    if ((rows + threads - 1) / threads == launch.grid[0]) return inner;
    if (d > 0) inner *= shape[d - 1];
  }
  return std::nullopt;
}

/// The same threads in the smallest blocks that a grid has room for, so that little runs beside what
/// is wanted. References know thread_index() alone.
void MakeBlocksSmall(Launch& launch) {
  constexpr std::uint64_t kMostBlocks = 0x7fffffff;
  const std::uint64_t all = std::uint64_t{launch.grid[0]} * launch.block[0];
  std::uint64_t threads = 1;
  while ((all + threads - 1) / threads > kMostBlocks) threads *= 2;
  launch.block[0] = static_cast<std::uint32_t>(threads);
  launch.grid[0] = static_cast<std::uint32_t>((all + threads - 1) / threads);
}

bool WrittenBy(const Launch& launch, std::size_t buffer) {
  return std::ranges::any_of(launch.args, [&](const Argument& argument) {
    return argument.kind == Argument::Kind::kBuffer && argument.buffer == buffer;
  });
}

/// Of an output as the op has it, without the words of a cell.
Shape ShapeOf(const engine::Binding& binding, const std::string& output) {
  Shape shape = binding.calls.front().outputs.find(output)->second.shape;
  shape.pop_back();
  return shape;
}

}  // namespace

bool CutToWanted(engine::Binding& binding, const facts::Facts* program, const Wanted& wanted,
                 std::size_t most) {
  Execution& execution = binding.execution;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    Launch& launch = execution.launches[i];
    if (std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] <= engine::kWholeGrid)
      continue;
    if (engine::MayCut(execution, program, i) != engine::Cut::kIndependent) return false;
    const Launch whole = launch;
    MakeBlocksSmall(launch);
    std::set<std::uint64_t> blocks;
    for (const auto& [name, elements] : wanted) {
      const std::size_t buffer = binding.calls.front().buffer_of.find(name)->second;
      if (!WrittenBy(launch, buffer)) continue;
      const auto inner = ElementsOfAThread(whole, ShapeOf(binding, name));
      if (!inner) return false;
      std::set<std::uint64_t> mine;
      for (const std::int64_t index : elements) {
        if (mine.size() >= most) break;
        mine.insert(static_cast<std::uint64_t>(index / *inner) / launch.block[0]);
      }
      blocks.insert(mine.begin(), mine.end());
    }
    if (blocks.empty()) blocks.insert(0);
    for (const std::uint64_t block : blocks) launch.only.push_back({block, 1});
  }
  return true;
}

namespace {

// The same threads in blocks of one warp, where the grid has room for them.
bool MakeBlocksWarps(Launch& launch) {
  constexpr std::uint64_t kMostBlocks = 0x7fffffff;
  if (launch.grid[1] * launch.grid[2] * launch.block[1] * launch.block[2] != 1) return false;
  const std::uint64_t all = std::uint64_t{launch.grid[0]} * launch.block[0];
  if (launch.block[0] <= kWarp || (all + kWarp - 1) / kWarp > kMostBlocks) return true;
  launch.block[0] = kWarp;
  launch.grid[0] = static_cast<std::uint32_t>((all + kWarp - 1) / kWarp);
  return true;
}

// Near and far in turn: steps of about the golden section meet all, each far from those before.
void Shuffle(std::vector<std::uint64_t>& warps, std::uint64_t seed) {
  const std::size_t count = warps.size();
  if (count < 3) return;
  std::size_t step = std::max<std::size_t>(1, count * 618 / 1000);
  while (std::gcd(step, count) > 1) ++step;
  std::vector<std::uint64_t> shuffled;
  for (std::size_t i = 0; i < count; ++i) shuffled.push_back(warps[(seed + i * step) % count]);
  warps = std::move(shuffled);
}

}  // namespace

std::optional<std::vector<OutputWarps>> WarpsOf(engine::Binding& binding,
                                                const facts::Facts* program, const Wanted& wanted,
                                                std::uint64_t seed) {
  std::vector<OutputWarps> found;
  Execution& execution = binding.execution;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    Launch& launch = execution.launches[i];
    if (engine::MayCut(execution, program, i) != engine::Cut::kIndependent) continue;
    std::vector<OutputWarps> mine;
    bool known = true;
    for (const auto& [name, elements] : wanted) {
      const std::size_t buffer = binding.calls.front().buffer_of.find(name)->second;
      if (!WrittenBy(launch, buffer)) continue;
      const auto inner = ElementsOfAThread(launch, ShapeOf(binding, name));
      known = known && inner;
      if (inner) mine.push_back({.launch = i, .output = name, .inner = *inner, .warps = {}});
    }
    if (!known || mine.empty() || !MakeBlocksWarps(launch)) continue;
    for (OutputWarps& one : mine) {
      const auto of_block = one.inner * static_cast<std::int64_t>(launch.block[0]);
      for (const std::int64_t index : wanted.find(one.output)->second) {
        const auto warp = static_cast<std::uint64_t>(index / of_block);
        if (one.warps.empty() || one.warps.back() != warp) one.warps.push_back(warp);
      }
      Shuffle(one.warps, seed);
      one.inner = of_block;
      found.push_back(std::move(one));
    }
  }
  if (found.empty()) return std::nullopt;
  return found;
}

void CutToWarps(engine::Binding& binding, const std::vector<OutputWarps>& warps,
                std::size_t count) {
  std::map<std::size_t, std::set<std::uint64_t>> blocks;
  for (const OutputWarps& one : warps) {
    for (std::size_t i = 0; i < std::min(count, one.warps.size()); ++i)
      blocks[one.launch].insert(one.warps[i]);
  }
  for (const auto& [launch, chosen] : blocks) {
    std::vector<BlockRange>& only = binding.execution.launches[launch].only;
    only.clear();
    for (const std::uint64_t block : chosen) only.push_back({block, 1});
  }
}

std::size_t KeepWritten(const std::vector<OutputWarps>& warps, std::size_t count, Wanted& wanted,
                        bool count_only) {
  std::map<std::string, std::set<std::uint64_t>, std::less<>> blocks;
  std::map<std::string, std::int64_t, std::less<>> elements_of;
  for (const OutputWarps& one : warps) {
    for (std::size_t i = 0; i < std::min(count, one.warps.size()); ++i)
      blocks[one.output].insert(one.warps[i]);
    elements_of[one.output] = one.inner;
  }
  std::size_t kept = 0;
  for (auto& [name, elements] : wanted) {
    const auto mine = blocks.find(name);
    const auto written = [&](std::int64_t index) {
      return mine != blocks.end() &&
             mine->second.contains(static_cast<std::uint64_t>(index / elements_of[name]));
    };
    kept += static_cast<std::size_t>(std::ranges::count_if(elements, written));
    if (!count_only) std::erase_if(elements, [&](std::int64_t i) { return !written(i); });
  }
  return kept;
}

}  // namespace assay::oracle
