#include "validator/campaign/producers.h"

#include <algorithm>

#include "base/rng.h"
#include "validator/campaign/blocks.h"

namespace assay::campaign {
namespace {

constexpr std::size_t kMostBlocks = 4096;
// Places that are looked at for a block.
constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 26;

std::uint64_t EndOf(const BufferRange& range) { return range.first + range.bytes; }

std::vector<BufferRange> OfThat(const std::vector<BufferRange>& ranges, std::uint32_t buffer) {
  std::vector<BufferRange> some;
  std::ranges::copy_if(ranges, std::back_inserter(some),
                       [&](const BufferRange& range) { return range.buffer == buffer; });
  return some;
}

/// Does some range, moved by `shift`, touch bytes [first, end)?
bool Touches(const std::vector<BufferRange>& ranges, std::uint64_t shift, std::uint64_t first,
             std::uint64_t end) {
  const auto after = std::ranges::upper_bound(
      ranges, first, {}, [&](const BufferRange& range) { return EndOf(range) + shift; });
  return after != ranges.end() && after->first + shift < end;
}

std::array<std::uint64_t, 3> PlaceOf(const std::array<std::uint32_t, 3>& grid, Corner corner) {
  std::array<std::uint64_t, 3> place{};
  for (std::size_t axis = 0; corner == Corner::kLast && axis < grid.size(); ++axis)
    place[axis] = grid[axis] > 2 ? grid[axis] - 2 : 0;
  return place;
}

}  // namespace

void AddRanges(std::uint32_t buffer, std::span<const std::int64_t> elements,
               std::uint64_t element_bytes, std::vector<BufferRange>& ranges) {
  const std::size_t first = ranges.size();
  for (const std::int64_t element : elements) {
    const std::uint64_t at = static_cast<std::uint64_t>(element) * element_bytes;
    if (ranges.size() > first && EndOf(ranges.back()) == at) {
      ranges.back().bytes += element_bytes;
    } else {
      ranges.push_back({buffer, at, element_bytes});
    }
  }
}

std::vector<std::uint64_t> SampleBlocks(const std::array<std::uint32_t, 3>& grid, Corner corner) {
  const std::array<std::uint64_t, 3> place = PlaceOf(grid, corner);
  const std::uint64_t block = place[0] + grid[0] * (place[1] + grid[1] * place[2]);
  std::vector<std::uint64_t> blocks = {block};
  std::uint64_t stride = 1;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    if (grid[axis] > 1) blocks.push_back(place[axis] > 0 ? block - stride : block + stride);
    stride *= grid[axis];
  }
  return blocks;
}

std::optional<Producers> Producers::Of(const std::array<std::uint32_t, 3>& grid,
                                       std::span<const std::vector<BufferRange>> samples,
                                       Places places, Corner corner) {
  if (samples.empty()) return std::nullopt;
  const std::array<std::uint64_t, 3> place = PlaceOf(grid, corner);
  Producers producers;
  producers.grid_ = grid;
  for (const BufferRange& range : samples.front())
    producers.buffers_[range.buffer].first.push_back(range);
  for (auto& [buffer, of] : producers.buffers_) {
    std::size_t sample = 1;
    std::uint64_t before = 0;  // By how much the first block's places lie before these.
    for (std::size_t axis = 0; axis < grid.size(); ++axis) {
      if (grid[axis] <= 1) continue;
      if (sample >= samples.size()) return std::nullopt;
      const std::vector<BufferRange> beside = OfThat(samples[sample++], buffer);
      if (beside.empty()) return std::nullopt;
      std::uint64_t low = of.first.front().first, high = beside.front().first;
      if (place[axis] > 0) std::swap(low, high);
      if (high < low || (high == low && places == Places::kOfOneBlock)) return std::nullopt;
      const std::uint64_t step = of.step[axis] = high - low;
      before += place[axis] * step;
      // At an end of the grid a block may write less.
      const bool alike = std::ranges::all_of(beside, [&](const BufferRange& range) {
        const std::uint64_t moved = place[axis] > 0 ? range.first + step : range.first - step;
        return std::ranges::any_of(of.first, [&](const BufferRange& known) {
          return known.first <= moved && moved + range.bytes <= EndOf(known);
        });
      });
      if (!alike) return std::nullopt;
    }
    if (of.first.front().first < before) return std::nullopt;
    for (BufferRange& range : of.first) range.first -= before;
  }
  return producers;
}

std::vector<BufferRange> Producers::WrittenBy(std::uint64_t block) const {
  const std::array<std::uint64_t, 3> at = {block % grid_[0], block / grid_[0] % grid_[1],
                                           block / grid_[0] / grid_[1]};
  std::vector<BufferRange> written;
  for (const auto& [buffer, of] : buffers_) {
    std::uint64_t shift = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) shift += at[axis] * of.step[axis];
    for (const BufferRange& range : of.first)
      written.push_back({buffer, range.first + shift, range.bytes});
  }
  return written;
}

bool Producers::AddWritersOf(std::span<const BufferRange> missing,
                             std::set<std::uint64_t>& blocks) const {
  std::uint64_t looks = 0;
  for (const BufferRange& wanted : missing) {
    const auto found = buffers_.find(wanted.buffer);
    if (found == buffers_.end()) continue;
    const auto& [first, step] = found->second;
    const std::uint64_t end = EndOf(wanted);
    const std::uint64_t low = first.front().first, high = EndOf(first.back());
    for (std::uint64_t z = 0; z < grid_[2]; ++z) {
      for (std::uint64_t y = 0; y < grid_[1]; ++y) {
        const std::uint64_t row = z * step[2] + y * step[1];
        if (++looks > kMostLooks) return false;
        if (low + row >= end) break;
        // Along x, those whose first byte lies before the end and whose last one not before the beginning.
        std::uint64_t x = 0, last = grid_[0] - 1;
        if (step[0] > 0) {
          if (high + row <= wanted.first) x = (wanted.first - high - row) / step[0];
          last = std::min<std::uint64_t>(grid_[0] - 1, (end - 1 - low - row) / step[0]);
        }
        for (; x <= last; ++x) {
          if (++looks > kMostLooks) return false;
          if (!Touches(first, row + x * step[0], wanted.first, end)) continue;
          blocks.insert(x + grid_[0] * (y + grid_[1] * z));
          if (blocks.size() > kMostBlocks) return false;
        }
      }
    }
  }
  return true;
}

namespace {

bool Covers(std::span<const BufferRange> ranges, const BufferRange& wanted) {
  return std::ranges::any_of(ranges, [&](const BufferRange& range) {
    return range.buffer == wanted.buffer && range.first <= wanted.first &&
           wanted.first + wanted.bytes <= range.first + range.bytes;
  });
}

}  // namespace

Result<bool> NobodyWrites(std::span<const BufferRange> missing,
                          std::span<const Producers> producers, const Execution& execution,
                          const WritesAlone& alone) {
  constexpr std::size_t kOfThese = 3, kOthers = 5, kLeastThatWrite = 3;
  bool any = false;
  for (std::size_t i = 0; i < producers.size(); ++i) {
    std::set<std::uint64_t> theirs;
    if (!producers[i].AddWritersOf(missing, theirs)) return false;
    if (theirs.empty()) continue;
    any = true;
    std::set<std::uint64_t> tried;
    for (const std::uint64_t block : theirs) {
      if (tried.size() < kOfThese) tried.insert(block);
    }
    Rng rng(DeriveSeed(i, "nobody writes"));
    for (std::size_t other = 0; other < kOthers; ++other)
      tried.insert(rng.Below(Blocks(execution.launches[i])));
    std::size_t writing = 0;
    for (const std::uint64_t block : tried) {
      ASSAY_TRY(const auto written, alone(i, block));
      const std::vector<BufferRange> expected = producers[i].WrittenBy(block);
      if (!written || !std::ranges::all_of(*written, [&](const BufferRange& range) {
            return Covers(expected, range);
          }))
        return false;
      writing += written->empty() ? 0 : 1;
    }
    if (writing < kLeastThatWrite) return false;
  }
  return any;
}

}  // namespace assay::campaign
