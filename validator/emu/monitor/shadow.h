// What the detector remembers of memory: for each byte that was touched, who wrote it and who read
// it since.
//
// A *record* is one warp's access: warp, stamp, program counter, traits. A *cell* stands for a
// granule of 1, 2 or 4 bytes (as fine as its line was ever accessed) and holds two references, one
// for writers, one for readers: a record and the lane that made the access there, or a *set* of
// such. Sets are shared between cells and counted.
//
// What is kept is what can still matter: an element is forgotten only when a later one is ordered
// after it and conflicts with all that it conflicts with (rules.h, Outdoes), or, of accesses that
// nobody can ever be ordered after (ThreadOrder::NeverKnown), when an equal one is kept. So a
// location with a race never goes without a report; which pair of accesses is named may differ from
// the full list of pairs, and after kKept unordered writers of one cell the oldest are dropped
// (that cell has its report by then).
//
// Cost: 8 bytes for each granule of a touched line of 64 bytes, i.e. 2 bytes a byte for 4-byte
// accesses, 4 for 2-byte, 8 for single bytes; records and sets come on top and are collected when
// nothing refers to them. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "validator/emu/monitor/rules.h"

namespace assay::emu {

struct Record {
  WarpNumber warp = 0;  ///< Or an agent's number.
  Time time = 0;
  std::uint32_t pc = 0;
  /// Which lanes access what lane L's cell refers to: bit i stands for lane (L + i) mod 32. 1: lane
  /// L alone.
  LaneMask pattern = 1;
  WarpNumber issuer = 0;  ///< The real warp: of agents, who started them.
  Traits traits;
};

/// Index of a record.
using RecordId = std::uint32_t;

/// One element of a cell: a record and the lane of reference. `later_value`: it belongs to a later
/// value of the cell than the element before it, i.e. a plain write (no read-modify-write) came
/// between the two.
struct Element {
  RecordId record = 0;
  std::uint8_t lane = 0;
  bool later_value = false;
  bool operator==(const Element&) const = default;
};

/// A reference as stored: 0 nothing; bit 31 clear: record << 5 | lane; set: set << 5 | lane, lanes
/// of the elements being relative.
using Ref = std::uint32_t;

class Shadow {
 public:
  static constexpr std::uint32_t kLineBytes = 64;

  struct Cells {
    std::uint8_t shift = 2;  ///< log2 of the granule.
    std::vector<Ref> refs;   ///< Writers, then readers: 2 * (64 >> shift).
    Ref* writers() { return refs.data(); }
    Ref* readers() { return refs.data() + refs.size() / 2; }
  };

  explicit Shadow(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  void Clear();
  void DropRegion(RegionId region);

  /// The line's cells, at granules of 1 << shift bytes or finer. Null when the limit is reached.
  Cells* Touch(RegionId region, std::uint64_t line, std::uint8_t shift);

  /// The record's number. May collect what no cell refers to: a number that is in no cell yet does
  /// not survive the next call.
  RecordId Intern(const Record& record);
  /// A record that is never shared, because it changes later. Kept until released.
  RecordId NewPinned(const Record& record);
  void Unpin(RecordId id);
  Record& record(RecordId id) { return records_[id]; }

  /// Appends the elements of a reference.
  void Decode(Ref ref, std::vector<Element>& out) const;
  /// The reference to those elements, taking over `old`, which it replaces.
  Ref Encode(const std::vector<Element>& elements, Ref old);

  bool exhausted() const { return exhausted_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  static constexpr std::uint32_t kPageLines = 64;  // 4 KiB of memory.
  static constexpr Ref kSetBit = 1u << 31;
  struct Page {
    std::array<std::unique_ptr<Cells>, kPageLines> lines;
  };
  struct Set {
    std::vector<std::uint32_t>
        elements;  // later_value << 31 | record << 5 | lane relative to the reference's.
    std::uint32_t users = 0;
  };
  struct HashElements {
    std::size_t operator()(const std::vector<std::uint32_t>& v) const;
  };
  using Region = std::unordered_map<std::uint64_t, std::unique_ptr<Page>>;

  RecordId Allocate(const Record& record);
  void Release(Ref ref);
  void Refine(Cells& cells, std::uint8_t shift);
  void Account(std::int64_t delta);
  void CollectRecords();

  std::unordered_map<RegionId, Region> regions_;
  std::vector<Record> records_{1};  // 0 is nobody.
  std::vector<bool> pinned_{true};
  std::vector<RecordId> free_records_;
  std::size_t collect_at_ = 1u << 16;
  std::array<RecordId, 4096> memo_{};
  std::vector<Set> sets_{1};
  std::vector<std::uint32_t> free_sets_;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, HashElements> set_index_;
  std::vector<std::uint32_t> key_;
  std::uint64_t max_bytes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  bool exhausted_ = false;
};

}  // namespace assay::emu
