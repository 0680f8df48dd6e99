// Sectors of memory, as the machine's caches know them: 32 bytes, four of them a line. A set of
// sectors, and a first-level cache.
//
// The cache is that of one block: its share of the multiprocessor's. Eight ways, the line that was
// not used for longest goes; sectors of a line are filled one by one. Not the machine's placement,
// which nobody knows: lines are spread by a hash, so that no stride is bad by itself.
//
// Cost: a look-up is a few comparisons. A set doubles when it is half full.
//
//   SectorSet seen;
//   if (seen.Insert(address / kSectorBytes)) ...   // the first time
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::emu {

inline constexpr std::uint64_t kSectorBytes = 32;
inline constexpr std::uint64_t kSectorsOfLine = 4;

class SectorSet {
 public:
  /// True when it was not there.
  bool Insert(std::uint64_t sector) {
    if (2 * (count_ + 1) > slots_.size()) Grow();
    std::uint64_t& slot = Find(sector);
    if (slot != 0) return false;
    slot = sector + 1;
    ++count_;
    return true;
  }
  bool Contains(std::uint64_t sector) { return !slots_.empty() && Find(sector) != 0; }
  std::size_t size() const { return count_; }
  void Clear() {
    count_ = 0;
    // What one large block needed is not kept for many small ones.
    if (slots_.size() > 1u << 16) slots_ = {};
    slots_.assign(slots_.size(), 0);
  }

 private:
  static std::uint64_t Hash(std::uint64_t sector) { return (sector * 0x9e3779b97f4a7c15u) >> 20; }
  std::uint64_t& Find(std::uint64_t sector) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = Hash(sector) & mask;
    while (slots_[at] != 0 && slots_[at] != sector + 1) at = (at + 1) & mask;
    return slots_[at];
  }
  void Grow() {
    std::vector<std::uint64_t> old(slots_.empty() ? 64 : 2 * slots_.size(), 0);
    old.swap(slots_);
    for (const std::uint64_t slot : old) {
      if (slot != 0) Find(slot - 1) = slot;
    }
  }

  std::vector<std::uint64_t> slots_;  // Sector plus one; 0 is free.
  std::size_t count_ = 0;
};

class FirstLevel {
 public:
  void Reset(std::uint64_t bytes) {
    sets_ = bytes / (kWays * kSectorsOfLine * kSectorBytes);
    if (sets_ == 0) sets_ = 1;
    lines_.assign(sets_ * kWays, Line{});
    clock_ = 0;
  }
  /// True when the sector was there; now it is.
  bool Touch(std::uint64_t sector) {
    const std::uint64_t tag = sector / kSectorsOfLine + 1;
    const auto bit = static_cast<std::uint8_t>(1u << sector % kSectorsOfLine);
    Line* const set = &lines_[((tag * 0x9e3779b97f4a7c15u) >> 24) % sets_ * kWays];
    ++clock_;
    Line* oldest = set;
    for (std::size_t way = 0; way < kWays; ++way) {
      Line& line = set[way];
      if (line.tag == tag) {
        line.used = clock_;
        const bool there = (line.sectors & bit) != 0;
        line.sectors = static_cast<std::uint8_t>(line.sectors | bit);
        return there;
      }
      if (line.used < oldest->used) oldest = &line;
    }
    *oldest = {.tag = tag, .used = clock_, .sectors = bit};
    return false;
  }

 private:
  static constexpr std::size_t kWays = 8;
  struct Line {
    std::uint64_t tag = 0;  // Line plus one; 0 is empty.
    std::uint64_t used = 0;
    std::uint8_t sectors = 0;
  };
  std::vector<Line> lines_;
  std::uint64_t sets_ = 1;
  std::uint64_t clock_ = 0;
};

}  // namespace assay::emu
