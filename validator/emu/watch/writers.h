// Which block wrote some bytes last (Execution::whose).
//
// Not thread-safe. Cost: a look at each store's place, by bisection in the ranges that are asked for; eight bytes for each
// byte of these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "validator/emu/core.h"
#include "validator/emu/memory.h"

namespace assay::emu {

class Writers {
 public:
  /// `asked`: by buffer, ascending, none touching the next.
  explicit Writers(std::span<const BufferRange> asked);

  /// The lanes of a store are about to write so many bytes each.
  void Note(const CoreWarp& warp, const LaneAccess& access, std::uint32_t bytes);
  /// In the order of what was asked. Nothing where they are too many.
  std::optional<std::vector<WrittenRange>> Take() const;

 private:
  struct Asked {
    BufferRange range;
    std::size_t at;  ///< Of its first byte in `writer_`.
  };
  void Note(const Device& device, const MemoryRegion& region, std::uint64_t first,
            std::uint64_t bytes, std::uint64_t writer);

  std::vector<Asked> asked_;
  std::vector<std::uint64_t> writer_;  ///< By byte; 0: nobody.
};

}  // namespace assay::emu
