#include "validator/oracle/reference_part.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "validator/engine/window.h"

namespace assay::oracle {
namespace {

constexpr std::uint32_t kWarp = 32;

/// Which extent of its blocks counts what a launch has one of for each element or row: threads, or
/// groups of lanes where blocks are [lanes, n].
std::size_t UnitAxis(const Launch& launch) { return launch.block[1] > 1 ? 1 : 0; }

/// Elements that each thread, or group of lanes, of a launch writes: there is one for each element of
/// the leading axes (all of them, or all but the row's). Nothing where the grid fits no such reading.
std::optional<std::int64_t> ElementsOfAUnit(const Launch& launch, const Shape& shape) {
  const bool lanes = UnitAxis(launch) == 1;
  if (launch.grid[1] * launch.grid[2] * launch.block[2] != 1) return std::nullopt;
  const std::int64_t units = launch.block[UnitAxis(launch)];
  std::int64_t inner = 1;
  std::optional<std::int64_t> each;
  for (std::size_t d = shape.size() + 1; d-- > 0;) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < d; ++i) rows *= shape[i];
    // Lanes for each element of a row: where no rows fit.
    const bool elements = d == shape.size() && d > 1;
    if ((rows + units - 1) / units == launch.grid[0]) {
      if (!lanes || !elements) return inner;
      each = inner;
    }
    if (d > 0) inner *= shape[d - 1];
  }
  return each;
}

/// The same units in the smallest blocks of at least `units` that a grid has room for, so that little
/// runs beside what is wanted. References know thread_index() and row_index() alone.
void MakeBlocksSmall(Launch& launch, std::size_t axis, std::uint64_t units) {
  constexpr std::uint64_t kMostBlocks = 0x7fffffff;
  const std::uint64_t all = std::uint64_t{launch.grid[0]} * launch.block[axis];
  while ((all + units - 1) / units > kMostBlocks) units *= 2;
  launch.block[axis] = static_cast<std::uint32_t>(units);
  launch.grid[0] = static_cast<std::uint32_t>((all + units - 1) / units);
}

/// What a warp has room for: a warp costs the same for one of them.
std::uint32_t UnitsOfAWarp(const Launch& launch, std::size_t axis) {
  const std::uint32_t of_warp = axis == 0 ? kWarp : std::max(kWarp / launch.block[0], 1u);
  return std::min(of_warp, launch.block[axis]);
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
                 std::size_t most, Unit unit) {
  Execution& execution = binding.execution;
  for (std::size_t i = 0; i < execution.launches.size(); ++i) {
    Launch& launch = execution.launches[i];
    const std::uint64_t all = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    if (all <= 1) continue;
    if (engine::MayCut(execution, program, i) != engine::Cut::kIndependent) {
      if (all <= engine::kWholeGrid) continue;
      return false;
    }
    const Launch whole = launch;
    const std::size_t axis = UnitAxis(whole);
    MakeBlocksSmall(launch, axis, unit == Unit::kWarp ? UnitsOfAWarp(launch, axis) : 1);
    std::set<std::uint64_t> blocks;
    for (const auto& [name, elements] : wanted) {
      const std::size_t buffer = binding.calls.front().buffer_of.find(name)->second;
      if (!WrittenBy(launch, buffer)) continue;
      const auto inner = ElementsOfAUnit(whole, ShapeOf(binding, name));
      if (!inner) return false;
      std::set<std::uint64_t> distinct;
      for (const std::int64_t index : elements)
        distinct.insert(static_cast<std::uint64_t>(index / *inner) / launch.block[axis]);
      // From one end to the other: what goes wrong past a limit goes right before it.
      const std::vector<std::uint64_t> mine(distinct.begin(), distinct.end());
      const std::size_t count = std::min(mine.size(), most);
      for (std::size_t n = 0; n < count; ++n)
        blocks.insert(mine[count == 1 ? mine.size() - 1 : n * (mine.size() - 1) / (count - 1)]);
    }
    if (blocks.empty()) blocks.insert(0);
    for (const std::uint64_t block : blocks) launch.only.push_back({block, 1});
  }
  return true;
}

namespace {

// The last and the first, then near and far in turn: steps of about the golden section meet all, each
// far from those before.
void Shuffle(std::vector<std::uint64_t>& warps, std::uint64_t seed) {
  const std::size_t count = warps.size();
  if (count < 2) return;
  std::size_t step = std::max<std::size_t>(1, count * 618 / 1000);
  while (std::gcd(step, count) > 1) ++step;
  std::vector<std::uint64_t> shuffled = {warps.back(), warps.front()};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (seed + i * step) % count;
    if (at != 0 && at + 1 != count) shuffled.push_back(warps[at]);
  }
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
      const auto inner = ElementsOfAUnit(launch, ShapeOf(binding, name));
      known = known && inner;
      if (inner) mine.push_back({.launch = i, .output = name, .inner = *inner, .warps = {}});
    }
    if (!known || mine.empty()) continue;
    const std::size_t axis = UnitAxis(launch);
    MakeBlocksSmall(launch, axis, UnitsOfAWarp(launch, axis));
    for (OutputWarps& one : mine) {
      const auto of_block = one.inner * static_cast<std::int64_t>(launch.block[axis]);
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

void CutToWarps(engine::Binding& binding, const std::vector<OutputWarps>& warps, std::size_t first,
                std::size_t end) {
  std::map<std::size_t, std::set<std::uint64_t>> blocks;
  for (const OutputWarps& one : warps) {
    for (std::size_t i = first; i < std::min(end, one.warps.size()); ++i)
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
  struct Written {
    std::int64_t elements = 1;  ///< Of a block.
    std::set<std::uint64_t> blocks;
  };
  std::map<std::string, Written, std::less<>> outputs;
  for (const OutputWarps& one : warps) {
    Written& output = outputs[one.output];
    output.elements = one.inner;
    for (std::size_t i = 0; i < std::min(count, one.warps.size()); ++i)
      output.blocks.insert(one.warps[i]);
  }
  std::size_t kept = 0;
  for (auto& [name, elements] : wanted) {
    const Written& output = outputs[name];
    // Neighbours lie in one block.
    std::uint64_t known = 0;
    bool is_written = output.blocks.contains(known);
    const auto written = [&](std::int64_t index) {
      const auto block = static_cast<std::uint64_t>(index / output.elements);
      if (block != std::exchange(known, block)) is_written = output.blocks.contains(block);
      return is_written;
    };
    kept += static_cast<std::size_t>(std::ranges::count_if(elements, written));
    if (!count_only) std::erase_if(elements, [&](std::int64_t i) { return !written(i); });
  }
  return kept;
}

}  // namespace assay::oracle
