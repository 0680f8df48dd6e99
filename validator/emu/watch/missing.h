// Bytes of buffers that were read though nothing had written them: what the blocks of a launch that run in
// part need of earlier blocks that did not run (Execution::note_missing).
//
// Not thread-safe. Cost: only reads of undefined bytes are noted; memory 16 bytes for each range of them, up to
// kMost ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

class MissingBytes {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  /// Of any region; such as are no buffer are passed over.
  void Note(const MemoryRegion& region, std::uint64_t first, std::uint64_t bytes);
  /// By buffer, ascending, none touching the next. Nothing where they were too many.
  std::optional<std::vector<BufferRange>> Take(const std::vector<PlacedBuffer>& buffers);

 private:
  struct Range {
    std::uint64_t first, end;
  };
  static void Merge(std::vector<Range>& ranges);

  std::map<std::uint64_t, std::vector<Range>> by_base_;
  std::size_t count_ = 0;
  bool too_many_ = false;
};

}  // namespace assay::emu
