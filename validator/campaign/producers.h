// Which blocks of an earlier launch write what a slice of a later one reads.
//
// Nobody says which block writes what. So a few blocks run alone, one in a corner of the grid and its neighbour
// along each axis, and what they wrote is taken to move evenly from block to block. Where the last block of an axis
// says otherwise, one axis holds several (a token, and in it a part of its row), and more blocks tell where each begins
// anew (Refine). That is a guess: whoever runs the blocks that it names sees whether all that is read is there
// (Report::missing), and believes nothing of the slice otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/error.h"
#include "validator/execution/execution.h"

namespace assay::campaign {

/// Adds the bytes of elements, ascending, of a buffer: neighbours as one range.
void AddRanges(std::uint32_t buffer, std::span<const std::int64_t> elements,
               std::uint64_t element_bytes, std::vector<BufferRange>& ranges);

/// The first block of a grid, or the last one of which no neighbour is an end, where blocks may have less to do. Under a
/// mask those of one corner may write nothing.
enum class Corner : std::uint8_t { kFirst, kLast };

/// The block in that corner, then its neighbour along each axis that has any, by number.
std::vector<std::uint64_t> SampleBlocks(const std::array<std::uint32_t, 3>& grid,
                                        Corner corner = Corner::kFirst);

/// What may be spent on learning where an axis of a grid begins anew (Producers::Refine).
inline constexpr std::uint64_t kMostToLearn = 64'000'000;

class Producers {
 public:
  /// May several blocks write the same bytes?
  enum class Places : std::uint8_t { kOfOneBlock, kShared };

  /// What the sample blocks wrote, in their order: ranges by buffer, ascending. Buffers where that does not move evenly are
  /// left out (IsOfAll says whether); nothing where it does so in none.
  static std::optional<Producers> Of(const std::array<std::uint32_t, 3>& grid,
                                     std::span<const std::vector<BufferRange>> samples,
                                     Places places = Places::kOfOneBlock,
                                     Corner corner = Corner::kFirst);

  /// Does it say where the blocks write of all buffers that the first sample wrote?
  bool IsOfAll() const { return is_of_all_; }

  /// What a block writes, run alone. Nothing where that cannot be told, or it would be too much to ask.
  using Writes =
      std::function<Result<std::optional<std::vector<BufferRange>>>(std::uint64_t block)>;
  /// Looks for axes that hold several: at most 2 log2(blocks) blocks are asked for each that is found, three where
  /// there is none. Stays as it was where that does not explain what the last block of an axis writes.
  Status Refine(const Writes& writes);

  /// What a block writes, by that guess: ascending, by buffer.
  std::vector<BufferRange> WrittenBy(std::uint64_t block) const;

  /// Adds the blocks that write some of these bytes. False: they are too many, or too many to look through.
  bool AddWritersOf(std::span<const BufferRange> missing, std::set<std::uint64_t>& blocks) const;

 private:
  struct OfBuffer {
    std::vector<BufferRange> first;  ///< What the first block writes,
    std::vector<std::uint64_t>
        step;  ///< and by how much that moves with a step along each dimension.
    /// Along this axis, the outermost, only its first block writes any: a plane of blocks behind the end.
    std::optional<std::size_t> only_first = std::nullopt;
  };
  /// A part of an axis of the grid: its index there is `coordinate / unit % extent`.
  struct Dimension {
    std::size_t axis;
    std::uint64_t unit;
    std::uint64_t extent;
  };
  struct Search;

  /// Finds how the places of a buffer move. False where they do not move evenly.
  bool Follow(std::uint32_t buffer, OfBuffer& of, std::span<const std::vector<BufferRange>> samples,
              Places places, const std::array<std::uint64_t, 3>& place) const;
  /// Is that what the guess says, or a part of it that begins at the same place?
  bool Agrees(std::uint64_t block, const std::vector<BufferRange>& written) const;
  /// The outermost dimension of an axis, by index.
  std::size_t Outermost(std::size_t axis) const;
  /// After so many steps along the outermost dimension of an axis another one begins. False where it would go backwards.
  bool Split(std::size_t axis, std::uint64_t period, const std::vector<BufferRange>& there);
  Result<std::optional<std::uint64_t>> FindPeriod(std::size_t axis, const Writes& writes) const;

  std::array<std::uint32_t, 3> grid_{};
  std::vector<Dimension> dimensions_;  ///< Of each axis the inner ones first, x before y before z.
  std::map<std::uint32_t, OfBuffer> buffers_;
  bool is_of_all_ = true;
};

/// What a block of a launch writes, run alone. Nothing where that is not known.
using WritesAlone = std::function<Result<std::optional<std::vector<BufferRange>>>(
    std::size_t launch, std::uint64_t block)>;

/// Does nobody write these bytes, as far as blocks tell? Some of those whose places they are have left them, and neither
/// these nor others from all over the grid write anywhere but where they were taken to.
Result<bool> NobodyWrites(std::span<const BufferRange> missing,
                          std::span<const Producers> producers, const Execution& execution,
                          const WritesAlone& alone);

}  // namespace assay::campaign
