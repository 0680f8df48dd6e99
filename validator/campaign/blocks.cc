#include "validator/campaign/blocks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/rng.h"

namespace assay::campaign {
namespace {

// Places that blocks are taken from, and how many neighbours at each.
constexpr std::uint64_t kPlaces = 9;
constexpr std::int64_t kFarMore = 4096;  // Times an extent.
constexpr std::uint64_t kMostNeighbours = 32;
static_assert(kPlaces * kMostNeighbours == kMostChosen);

}  // namespace

std::uint64_t Blocks(const Launch& launch) {
  return std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
}

std::uint64_t Threads(const Launch& launch) {
  return std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
}

std::uint64_t ThreadsThatRun(const Launch& launch) {
  const std::uint64_t all = Threads(launch);
  if (launch.threads.empty()) return all;
  std::uint64_t run = 0;
  for (const BlockRange& range : launch.threads)
    run += std::min(range.count, all - std::min(range.first, all));
  return std::max<std::uint64_t>(run, 1);
}

std::vector<BlockRange> ChooseBlocks(std::uint64_t all, std::uint64_t count, std::uint64_t seed) {
  if (count >= all) return {};
  const std::uint64_t places = std::min(kPlaces, all);
  const std::uint64_t length = std::clamp<std::uint64_t>(count / places, 1, kMostNeighbours);
  const std::uint64_t stride = all / places;
  // Each place lies in a part of its own, so that none overlap, however many neighbours it has.
  const std::uint64_t room = stride - std::min(stride, kMostNeighbours);
  Rng rng(DeriveSeed(seed, "slice"));
  std::vector<BlockRange> chosen(places);
  for (std::uint64_t place = 0; place < places; ++place)
    chosen[place] = {place * stride + rng.Below(room + 1), length};
  chosen.front().first = 0;
  chosen.back().first = all - length;
  if (count >= places) return chosen;
  // The last one first, then the first, the middle, and what lies between.
  constexpr std::array<std::uint64_t, kPlaces> kOrder = {8, 0, 4, 2, 6, 1, 3, 5, 7};
  std::vector<BlockRange> few;
  for (const std::uint64_t place : kOrder) {
    if (few.size() < std::max<std::uint64_t>(count, 1))
      few.push_back(chosen[place * (places - 1) / (kPlaces - 1)]);
  }
  std::ranges::sort(few, {}, &BlockRange::first);
  const auto same = std::ranges::unique(few);
  few.erase(same.begin(), same.end());
  return few;
}

std::vector<BlockRange> WithBlocks(std::vector<BlockRange> chosen,
                                   const std::set<std::uint64_t>& more, std::uint64_t all) {
  if (chosen.empty()) return chosen;  // all
  for (const std::uint64_t block : more) {
    const bool known = std::ranges::any_of(chosen, [&](const BlockRange& range) {
      return block >= range.first && block - range.first < range.count;
    });
    if (!known && block < all) chosen.push_back({block, 1});
  }
  std::ranges::sort(chosen, {}, &BlockRange::first);
  return chosen;
}

std::optional<std::uint64_t> WriterOfTheEnd(const std::vector<std::int64_t>& written,
                                            std::int64_t elements, std::uint64_t first,
                                            std::uint64_t all) {
  if (written.empty()) return std::nullopt;
  std::size_t run = 1;
  while (run < written.size() && written[run] == written[run - 1] + 1) ++run;
  if (static_cast<std::uint64_t>(written.front()) != first * run) return std::nullopt;
  return static_cast<std::uint64_t>(elements - 1) / run % all;
}

namespace {

/// Does an axis change the larger of two numbers that an extent chooses between, and no more or fewer blocks come of it?
/// That is what a cap does. Far away another kernel may take over; half of the length may be this one's still.
bool IsFlatPast(const ops::Expression& extent, const ops::AxisValues& axes, std::uint64_t across,
                std::size_t kink, std::int64_t larger) {
  return std::ranges::any_of(axes, [&](const auto& axis) {
    const std::int64_t far = std::min(axis.second, INT64_MAX / kFarMore) * kFarMore;
    return std::ranges::any_of(std::array{far, axis.second / 2}, [&](std::int64_t length) {
      ops::AxisValues other = axes;
      other[axis.first] = length;
      const auto there = extent.Kinks(other);
      const auto blocks = extent.Evaluate(other);
      if (!there[kink] || !blocks) return true;  // Nobody knows.
      return std::max(there[kink]->first, there[kink]->second) != larger &&
             *blocks == static_cast<std::int64_t>(across);
    });
  });
}

/// Along one axis of a grid that is capped: the blocks that come to the end of what it goes over in turns.
/// `elsewhere`: shapes that are far from this one.
/// A unit of work may be a cluster's, whose blocks the extent counts each.
std::set<std::uint64_t> LastAlong(const ops::Expression& extent, const ops::AxisValues& axes,
                                  const std::array<ops::AxisValues, 2>& elsewhere,
                                  std::uint64_t across) {
  constexpr std::uint64_t kMostOfAUnit = 16;
  std::set<std::uint64_t> last;
  const auto kinks = extent.Kinks(axes);
  const std::array others = {extent.Kinks(elsewhere[0]), extent.Kinks(elsewhere[1])};
  for (std::size_t k = 0; k < kinks.size(); ++k) {
    if (!kinks[k]) continue;
    const auto [one, two] = *kinks[k];
    const std::int64_t least = std::min(one, two), most = std::max(one, two);
    // What is the same everywhere is the cap, and below it nothing goes on in turns.
    bool one_changes = false, two_changes = false;
    for (const auto& there : others) {
      if (!there[k]) continue;
      one_changes = one_changes || there[k]->first != one;
      two_changes = two_changes || there[k]->second != two;
    }
    const bool below = (one == most && !one_changes && two_changes) ||
                       (two == most && !two_changes && one_changes);
    if (least <= 0 || (least != most && below)) continue;
    const auto units = static_cast<std::uint64_t>(least);
    // What deals out no units to blocks: a length beside one from which on another kernel takes over.
    if (units > across || across % units != 0 || !IsFlatPast(extent, axes, across, k, most))
      continue;
    const auto unit = static_cast<std::uint64_t>((most - 1) % least);
    const std::uint64_t blocks = across / units;
    last.insert(unit);
    for (std::uint64_t i = 0; i < blocks && blocks <= kMostOfAUnit; ++i)
      last.insert(unit * blocks + i);
  }
  return last;
}

}  // namespace

std::set<std::uint64_t> LastOfTurns(const ops::LaunchPlan& plan, const ops::AxisValues& axes) {
  std::set<std::uint64_t> blocks;
  constexpr std::uint64_t kNumbersOf16Bits = std::uint64_t{1} << 16;
  std::array<ops::AxisValues, 2> elsewhere = {axes, axes};
  for (auto& [name, extent] : elsewhere[0]) extent = 1;
  for (auto& [name, extent] : elsewhere[1])
    extent = std::min(extent, INT64_MAX / kFarMore) * kFarMore;
  for (const ops::KernelPlan& kernel : plan.kernels) {
    // Of a kernel that does not run nobody comes to an end.
    if (std::ranges::any_of(kernel.grid, [&](const ops::Expression& extent) {
          return extent.Evaluate(axes).value_or(1) <= 0;
        }))
      continue;
    // Along each axis the end is come to by the last of its blocks, or by those.
    std::set<std::uint64_t> numbers = {0};
    std::uint64_t stride = 1;
    for (const ops::Expression& extent : kernel.grid) {
      const auto across =
          static_cast<std::uint64_t>(std::max<std::int64_t>(extent.Evaluate(axes).value_or(1), 1));
      std::set<std::uint64_t> along = LastAlong(extent, axes, elsewhere, across);
      along.insert(across - 1);
      std::set<std::uint64_t> more;
      for (const std::uint64_t number : numbers) {
        for (const std::uint64_t index : along) more.insert(number + stride * index);
      }
      numbers = std::move(more);
      stride *= across;
    }
    // The last block of all has been there already; and in 16 bits its number is another one's.
    numbers.erase(stride - 1);
    if (stride > kNumbersOf16Bits) numbers.insert((stride - 1) % kNumbersOf16Bits);
    blocks.merge(numbers);
  }
  return blocks;
}

std::uint64_t BlocksOf(const ops::OpSpec& op, const ops::KernelPlan& kernel,
                       const ops::AxisValues& axes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto complete = ops::ResolveAxes(op, axes);
  if (!complete) return 0;
  std::uint64_t blocks = 1;
  for (const ops::Expression& extent : kernel.grid) {
    const auto along = static_cast<std::uint64_t>(
        std::max<std::int64_t>(extent.Evaluate(*complete).value_or(0), 0));
    if (along == 0) return 0;
    blocks = blocks > kMost / along ? kMost : blocks * along;
  }
  return blocks;
}

bool HasBlocks(const ops::OpSpec& op, const ops::KernelPlan& kernel, const ops::AxisValues& axes) {
  return BlocksOf(op, kernel, axes) > 0;
}

std::vector<bool> PathAt(const ops::OpSpec& op, const ops::LaunchPlan& plan,
                         const ops::AxisValues& axes) {
  std::vector<bool> path;
  for (const ops::KernelPlan& kernel : plan.kernels) path.push_back(HasBlocks(op, kernel, axes));
  return path;
}

std::uint64_t BlocksThatRun(const Launch& launch) {
  if (launch.only.empty()) return Blocks(launch);
  const auto& [across, down, deep] = launch.cluster;
  std::set<std::array<std::uint64_t, 3>> clusters;
  for (const BlockRange& range : launch.only) {
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i) {
      const std::uint64_t row = i / launch.grid[0];
      clusters.insert(
          {i % launch.grid[0] / across, row % launch.grid[1] / down, row / launch.grid[1] / deep});
    }
  }
  return clusters.size() * across * down * deep;
}

}  // namespace assay::campaign
