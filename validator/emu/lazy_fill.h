// The first content of a large buffer, written page by page when a kernel first gets there.
//
// A buffer of gigabytes of which a kernel touches little costs its touched pages only. What a
// kernel reads is the same as if the whole buffer had been filled before.
//
// Cost: one bit a page of 4 KiB, and for accesses to buffers that are not all touched yet a look at
// it a lane. Not thread-safe.
//
//   LazyFill fill(memory, 0xff);
//   fill.Touch(8192, 4);                        // memory[8192 .. 12287] now holds 0xff
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace assay::emu {

/// Bytes up to which a buffer is never filled so: who maps it may have touched all of its pages before.
inline constexpr std::uint64_t kFilledAtOnce = std::uint64_t{4} << 20;

class LazyFill {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  LazyFill(std::span<std::byte> memory, std::uint8_t value)
      : memory_(memory), value_(value), filled_((memory.size() / kPageBytes + 64) / 64) {}

  /// [offset, offset + bytes) lies in the memory and is about to be accessed.
  void Touch(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t last = (offset + bytes - 1) / kPageBytes;
    for (std::uint64_t page = offset / kPageBytes; page <= last; ++page) {
      std::uint64_t& word = filled_[page / 64];
      const std::uint64_t bit = std::uint64_t{1} << page % 64;
      if ((word & bit) != 0) continue;
      word |= bit;
      const std::uint64_t start = page * kPageBytes;
      std::memset(memory_.data() + start, value_,
                  std::min(kPageBytes, std::uint64_t{memory_.size()} - start));
    }
  }
  /// All that is left. Memory that is to hold zeros is taken to arrive so, as new memory files do:
  /// terabytes of holes stay holes.
  void TouchAll() {
    if (!memory_.empty() && value_ != 0) Touch(0, memory_.size());
  }
  /// What was touched holds the value again.
  void FillAgain() {
    for (std::uint64_t page = 0; page * kPageBytes < memory_.size(); ++page) {
      if ((filled_[page / 64] >> page % 64 & 1) == 0) continue;
      const std::uint64_t start = page * kPageBytes;
      std::memset(memory_.data() + start, value_,
                  std::min(kPageBytes, std::uint64_t{memory_.size()} - start));
    }
  }

 private:
  std::span<std::byte> memory_;
  std::uint8_t value_;
  std::vector<std::uint64_t> filled_;
};

}  // namespace assay::emu
