// Counters that work is dealt out by: words of buffers that started as zeros, to which integers are added by threads that
// look at what the word held. Counts the draws from each (Execution::note_drawn), and deals out chosen numbers in the
// place of what a word holds (Execution::tickets).
//
// Not thread-safe. Cost: a look-up for each such lane; memory for each such word, up to kMost of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

class Draws {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 12;

  explicit Draws(const Execution& execution) : execution_(execution) {}

  /// A thread is about to add to the word of so many bytes at `at`, and to look at what it held.
  void Note(const Device& device, const MemoryRegion& region, std::byte* at, std::uint32_t bytes);
  /// By buffer and place. Nothing where they were too many.
  std::optional<std::vector<DrawnWord>> Take(const Device& device) const;

 private:
  struct Word {
    std::uint32_t bytes = 0;
    std::uint64_t times = 0;
  };
  const Execution& execution_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Word> words_;  ///< By buffer and place.
  std::size_t dealt_ = 0;
  bool too_many_ = false;
};

}  // namespace assay::emu
