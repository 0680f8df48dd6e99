// The shadow of memory: for each byte that was touched, references to who wrote it and who read it
// since (record_table.h).
//
// Memory is seen in lines of 64 bytes. A line that was only ever accessed whole, by neighbouring
// lanes of one warp at a time, has two references for all of it: byte i belongs to lane L + i /
// width, L being the reference's lane and width that of its records. Other lines have *cells* of 16
// bytes (a vector, a row of a matrix) to 1, as fine as the line was ever accessed, each with two
// references. Cells of single bytes have one for both (RecordTable::Combine).
//
// Lines stand in pages of 4 KiB of memory, made when touched. Cost: 17 bytes a line, and with cells
// 8 bytes a cell: 0.3 bytes a byte of coalesced memory, 2.3 for 4-byte cells, 4.3 for 2-byte
// ones and for single bytes; records and sets on top. `bytes()` counts all of it.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/page_table.h"
#include "validator/emu/race/record_table.h"

namespace assay::emu {

class Shadow {
 public:
  static constexpr std::uint32_t kLineBytes = 64;
  static constexpr std::uint64_t kPageLines = 64;
  static constexpr std::uint32_t kCoarsest = 4;  ///< log2 of the largest cell.

  /// Without cells, `writers` and `readers` speak for the whole line.
  struct Line {
    Ref writers = 0;
    Ref readers = 0;
    std::unique_ptr<Ref[]> cells;  ///< All writers, then all readers; of bytes, both in one.
  };
  struct Page {
    std::array<Line, kPageLines> lines;
    std::array<std::uint8_t, kPageLines> shift{};  ///< log2 of the granule, of lines with cells.
  };
  struct Cells {
    Ref* writers = nullptr;
    Ref* readers = nullptr;  ///< Null where `writers` are both: cells of single bytes.
    std::uint32_t shift = 2;
  };

  Shadow(RecordTable& table, std::uint64_t max_bytes) : table_(table), max_bytes_(max_bytes) {}

  void Clear();
  void DropRegion(RegionId region);

  /// The page that holds this byte of the region. Null when the limit is reached.
  Page* PageAt(RegionId region, std::uint64_t offset) {
    const std::uint64_t number = offset / (kLineBytes * kPageLines);
    Region& at = RegionAt(region);
    if (number < at.pages.size() && at.pages[number] != nullptr) return at.pages[number];
    return FindPage(at, number);
  }
  /// Reads of this region are of no interest: nobody may write it.
  void SetReadOnly(RegionId region) { RegionAt(region).read_only = true; }
  bool IsReadOnly(RegionId region) { return RegionAt(region).read_only; }
  /// The line's cells, of 1 << shift bytes or finer; splits the line when it has none yet.
  Cells Split(Page& page, std::size_t line, std::uint32_t shift) {
    Ref* const refs = page.lines[line].cells.get();
    const std::uint32_t now = page.shift[line];
    if (refs != nullptr && now <= shift) return CellsAt(refs, now);
    return SplitFiner(page, line, shift);
  }

  /// Frees the records that nothing refers to, when there are enough of them.
  void MaybeCollect() {
    if (table_.WantsCollection(pages_in_use_ * kPageLines)) Collect();
  }

  bool exhausted() const { return exhausted_; }
  std::uint64_t bytes() const { return page_bytes_ + cell_bytes_ + table_.bytes(); }
  std::uint64_t peak_bytes();
  /// Looks whether the limit is kept; cheap, but not for each access.
  void CheckLimit();

 private:
  struct Region {
    PageTable<Page> pages;
    bool read_only = false;
  };
  struct Cached {
    RegionId id = ~0u;
    Region* region = nullptr;
  };
  static constexpr std::uint64_t kMaxPages = 1ull << 26;  // 256 GiB in one region: no such memory.

  Region& RegionAt(RegionId id) {
    Cached& cached = cache_[id % cache_.size()];
    if (cached.region == nullptr || cached.id != id) cached = {id, &regions_[id]};
    return *cached.region;
  }
  static Cells CellsAt(Ref* refs, std::uint32_t shift) {
    return Cells{refs, shift == 0 ? nullptr : refs + (kLineBytes >> shift), shift};
  }
  /// References that a line with cells of this size has.
  static constexpr std::size_t RefCount(std::uint32_t shift) {
    return shift == 0 ? kLineBytes : std::size_t{2} * (kLineBytes >> shift);
  }
  static constexpr std::uint64_t CellBytes(std::uint32_t shift) {
    return RefCount(shift) * sizeof(Ref);
  }
  Cells SplitFiner(Page& page, std::size_t line, std::uint32_t shift);
  Page* FindPage(Region& region, std::uint64_t number);
  void Collect();
  void Empty(Page& page);

  RecordTable& table_;
  std::unordered_map<RegionId, Region> regions_;
  std::array<Cached, 16> cache_;
  std::vector<std::unique_ptr<Page>> spare_;
  std::uint64_t max_bytes_;
  std::uint64_t pages_in_use_ = 0;
  std::uint64_t page_bytes_ = 0;
  std::uint64_t cell_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  bool exhausted_ = false;
};

}  // namespace assay::emu
