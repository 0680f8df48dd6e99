#include "validator/campaign/producers.h"

#include <algorithm>
#include <limits>

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

bool Covers(std::span<const BufferRange> ranges, const BufferRange& wanted) {
  return std::ranges::any_of(ranges, [&](const BufferRange& range) {
    return range.buffer == wanted.buffer && range.first <= wanted.first &&
           wanted.first + wanted.bytes <= range.first + range.bytes;
  });
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
  for (std::size_t axis = 0; axis < grid.size(); ++axis)
    producers.dimensions_.push_back({axis, 1, grid[axis]});
  for (const BufferRange& range : samples.front())
    producers.buffers_[range.buffer].first.push_back(range);
  for (auto each = producers.buffers_.begin(); each != producers.buffers_.end();) {
    const bool even = producers.Follow(each->first, each->second, samples, places, place);
    producers.is_of_all_ = producers.is_of_all_ && even;
    each = even ? std::next(each) : producers.buffers_.erase(each);
  }
  if (!producers.is_of_all_ && producers.buffers_.empty()) return std::nullopt;
  return producers;
}

bool Producers::Follow(std::uint32_t buffer, OfBuffer& of,
                       std::span<const std::vector<BufferRange>> samples, Places places,
                       const std::array<std::uint64_t, 3>& place) const {
  of.step.resize(grid_.size());
  std::size_t sample = 1;
  std::uint64_t before = 0;  // By how much the first block's places lie before these.
  for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
    if (grid_[axis] <= 1) continue;
    if (sample >= samples.size()) return false;
    const std::vector<BufferRange> beside = OfThat(samples[sample++], buffer);
    const bool outermost = sample == samples.size() && sample > 2;
    if (beside.empty() && outermost && place[axis] == 0) {
      of.only_first = axis;
      continue;
    }
    if (beside.empty()) return false;
    std::uint64_t low = of.first.front().first, high = beside.front().first;
    if (place[axis] > 0) std::swap(low, high);
    if (high < low || (high == low && places == Places::kOfOneBlock)) return false;
    const std::uint64_t step = of.step[axis] = high - low;
    before += place[axis] * step;
    // At an end of the grid a block may write less.
    const bool alike = std::ranges::all_of(beside, [&](const BufferRange& range) {
      const std::uint64_t moved = place[axis] > 0 ? range.first + step : range.first - step;
      return std::ranges::any_of(of.first, [&](const BufferRange& known) {
        return known.first <= moved && moved + range.bytes <= EndOf(known);
      });
    });
    if (!alike) return false;
  }
  if (of.first.front().first < before) return false;
  for (BufferRange& range : of.first) range.first -= before;
  return true;
}

std::vector<BufferRange> Producers::WrittenBy(std::uint64_t block) const {
  const std::array<std::uint64_t, 3> at = {block % grid_[0], block / grid_[0] % grid_[1],
                                           block / grid_[0] / grid_[1]};
  std::vector<BufferRange> written;
  for (const auto& [buffer, of] : buffers_) {
    if (of.only_first && at[*of.only_first] > 0) continue;
    std::uint64_t shift = 0;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const Dimension& dimension = dimensions_[d];
      shift += at[dimension.axis] / dimension.unit % dimension.extent * of.step[d];
    }
    for (const BufferRange& range : of.first)
      written.push_back({buffer, range.first + shift, range.bytes});
  }
  return written;
}

/// The blocks that write some of a range of a buffer.
struct Producers::Search {
  const Producers& producers;
  const OfBuffer& of;
  std::uint64_t first;
  std::uint64_t end;
  std::set<std::uint64_t>& blocks;
  std::uint64_t& looks;
  std::array<std::uint64_t, 3> at{};

  /// Those of the dimensions before `inner`, the others being fixed. `reach`: by how much those before can move. False
  /// where they are too many.
  bool Walk(std::size_t inner, std::uint64_t shift, std::uint64_t reach) {
    const std::uint64_t low = of.first.front().first + shift;
    const std::uint64_t high = EndOf(of.first.back()) + shift;
    if (low >= end || high + reach <= first) return true;
    const auto& grid = producers.grid_;
    if (inner == 0) {
      if (!Touches(of.first, shift, first, end)) return true;
      blocks.insert(at[0] + grid[0] * (at[1] + grid[1] * at[2]));
      return blocks.size() <= kMostBlocks;
    }
    const std::size_t d = inner - 1;
    const Dimension& dimension = producers.dimensions_[d];
    const std::uint64_t step = of.step[d];
    const std::uint64_t within = reach - (dimension.extent - 1) * step;
    // Those whose first byte lies before the end and whose last one not before the beginning.
    std::uint64_t index = 0, last = of.only_first == dimension.axis ? 0 : dimension.extent - 1;
    if (step > 0) {
      if (high + within <= first) index = (first - high - within) / step;
      last = std::min(last, (end - 1 - low) / step);
    }
    const std::uint64_t before = at[dimension.axis];
    for (; index <= last; ++index) {
      at[dimension.axis] = before + index * dimension.unit;
      if (at[dimension.axis] >= grid[dimension.axis]) break;
      if (++looks > kMostLooks || !Walk(d, shift + index * step, within)) return false;
    }
    at[dimension.axis] = before;
    return true;
  }
};

bool Producers::AddWritersOf(std::span<const BufferRange> missing,
                             std::set<std::uint64_t>& blocks) const {
  std::uint64_t looks = 0;
  for (const BufferRange& wanted : missing) {
    const auto found = buffers_.find(wanted.buffer);
    if (found == buffers_.end()) continue;
    std::uint64_t reach = 0;
    for (std::size_t d = 0; d < dimensions_.size(); ++d)
      reach += (dimensions_[d].extent - 1) * found->second.step[d];
    Search search{.producers = *this,
                  .of = found->second,
                  .first = wanted.first,
                  .end = EndOf(wanted),
                  .blocks = blocks,
                  .looks = looks};
    if (!search.Walk(dimensions_.size(), 0, reach)) return false;
  }
  return true;
}

bool Producers::Agrees(std::uint64_t block, const std::vector<BufferRange>& written) const {
  const std::vector<BufferRange> expected = WrittenBy(block);
  for (const auto& [buffer, of] : buffers_) {
    const std::vector<BufferRange> mine = OfThat(written, buffer);
    const std::vector<BufferRange> guess = OfThat(expected, buffer);
    if (mine.empty()) continue;
    if (guess.empty()) return false;
    if (mine.front().first != guess.front().first) return false;
    for (const BufferRange& range : mine) {
      if (!Covers(guess, range)) return false;
    }
  }
  return true;
}

std::size_t Producers::Outermost(std::size_t axis) const {
  std::size_t outermost = 0;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    if (dimensions_[d].axis == axis) outermost = d;
  }
  return outermost;
}

bool Producers::Split(std::size_t axis, std::uint64_t period,
                      const std::vector<BufferRange>& there) {
  const std::size_t inner = Outermost(axis);
  const auto after = static_cast<std::ptrdiff_t>(inner) + 1;
  for (auto& [buffer, of] : buffers_) {
    const std::vector<BufferRange> mine = OfThat(there, buffer);
    if (mine.empty() || mine.front().first < of.first.front().first || of.only_first == axis)
      return false;
    of.step.insert(of.step.begin() + after, mine.front().first - of.first.front().first);
  }
  Dimension& dimension = dimensions_[inner];
  const Dimension outer = {axis, dimension.unit * period, (dimension.extent + period - 1) / period};
  dimension.extent = period;
  dimensions_.insert(dimensions_.begin() + after, outer);
  return true;
}

// After how many steps along the outermost dimension of an axis blocks write elsewhere than they should. 0: never. Nothing
// where that cannot be told.
Result<std::optional<std::uint64_t>> Producers::FindPeriod(std::size_t axis,
                                                           const Writes& writes) const {
  const Dimension& dimension = dimensions_[Outermost(axis)];
  std::uint64_t stride = dimension.unit;
  for (std::size_t before = 0; before < axis; ++before) stride *= grid_[before];
  const auto agrees = [&](std::uint64_t index) -> Result<std::optional<bool>> {
    ASSAY_TRY(const auto written, writes(index * stride));
    return written ? std::optional(Agrees(index * stride, *written)) : std::nullopt;
  };
  std::uint64_t low = 1, high = dimension.extent - 1;
  // The last one may begin anew itself, and be where the first one is.
  bool any = false;
  for (const std::uint64_t far : {high, high - high / 3, high / 2}) {
    if (far <= low || any) continue;
    ASSAY_TRY(const auto as_guessed, agrees(far));
    if (!as_guessed) return std::nullopt;
    any = !*as_guessed;
    if (any) high = far;
  }
  if (!any) return 0;
  for (bool doubling = true; high - low > 1;) {
    const std::uint64_t middle = doubling ? 2 * low : low + (high - low) / 2;
    if (middle >= high) {
      doubling = false;
      continue;
    }
    ASSAY_TRY(const auto as_guessed, agrees(middle));
    if (!as_guessed) return std::nullopt;
    (*as_guessed ? low : high) = middle;
    doubling = doubling && *as_guessed;
  }
  return high;
}

Status Producers::Refine(const Writes& writes) {
  constexpr int kMostLevels = 2;
  const Producers before = *this;
  for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
    for (int level = 0; grid_[axis] > 2; ++level) {
      ASSAY_TRY(const auto found, FindPeriod(axis, writes));
      constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
      const std::uint64_t period = found.value_or(kUnknown);
      if (period == 0) break;
      std::optional<std::vector<BufferRange>> there;
      if (period != kUnknown && level < kMostLevels) {
        std::uint64_t block = period * dimensions_[Outermost(axis)].unit;
        for (std::size_t inner = 0; inner < axis; ++inner) block *= grid_[inner];
        ASSAY_TRY(there, writes(block));
      }
      if (!there || !Split(axis, period, *there)) {
        *this = before;
        return {};
      }
    }
  }
  return {};
}

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
