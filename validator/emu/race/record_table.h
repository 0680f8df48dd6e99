// What cells of the shadow refer to: records of accesses, and sets of them.
//
// A *record* is one warp's access: warp, stamp, program counter, traits. A *reference* (Ref) is a
// record and the lane that made the access at the cell, or a counted *set* of such pairs. Sets are
// shared by content, with lanes relative to the reference's, so that the cells of a coalesced
// access have one set between them. Records are collected by marking, sets by counting. A large set
// grows by one at a time: it is then the set before and one element more, so that what thousands of
// warps read costs each of them the same.
//
// Not thread-safe. Memory: 36 bytes a record, 8 bytes an element of a set; reported through
// `bytes()`.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "validator/emu/race/rules.h"

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

using RecordId = std::uint32_t;

/// One element of a cell: a record and the lane of reference. `later_value`: it belongs to a later
/// value of the cell than the element before it, i.e. a plain write (no read-modify-write) came
/// between the two. `behind`: see CellRules::InsertWrite.
struct Element {
  RecordId record = 0;
  std::uint8_t lane = 0;
  bool later_value = false;
  bool behind = false;
  bool operator==(const Element&) const = default;
};

/// 0: nothing. Bit 31 clear: record << 5 | lane. Bit 31 set: set << 5 | lane.
using Ref = std::uint32_t;
inline constexpr Ref kSetBit = 1u << 31;
inline constexpr std::uint32_t kLaneBits = 5;
inline constexpr std::uint32_t kLaneOfRef = (1u << kLaneBits) - 1;
inline constexpr std::uint32_t kMaxRecords = 1u << 25;
/// Of an element in a set, where kSetBit stands for later_value.
inline constexpr std::uint32_t kBehindBit = 1u << 30;
inline RecordId RecordOf(std::uint32_t element) {
  return (element & ~(kSetBit | kBehindBit)) >> kLaneBits;
}

inline bool IsSet(Ref ref) { return (ref & kSetBit) != 0; }
inline std::uint32_t IndexOf(Ref ref) { return (ref & ~kSetBit) >> kLaneBits; }
inline std::uint32_t LaneOf(Ref ref) { return ref & kLaneOfRef; }
/// The same content seen from another lane.
inline Ref WithLane(Ref ref, std::uint32_t lane) {
  return (ref & ~kLaneOfRef) | (lane & kLaneOfRef);
}

class RecordTable {
 public:
  void Clear();

  /// The record's number. It must reach a cell before the next Collect.
  RecordId Intern(const Record& record);
  /// A record of its own, because it changes later. Kept until unpinned.
  RecordId NewPinned(const Record& record);
  void Unpin(RecordId id) { std::erase(pinned_, id); }
  Record& record(RecordId id) { return records_[id]; }
  const Record& record(RecordId id) const { return records_[id]; }

  void Decode(Ref ref, std::vector<Element>& out) const;
  /// A reference to these elements, counted `users` times.
  Ref Encode(const std::vector<Element>& elements, std::uint32_t users = 1);
  /// A reference to what `ref`, a set, refers to, and one element more. Counted
  /// once, and the set before stays as it is.
  Ref Append(Ref ref, const Element& element);
  /// Elements of a set, and how many it had when somebody looked through all of them last.
  std::uint32_t SizeOf(Ref ref) const { return IsSet(ref) ? sets_[IndexOf(ref)].size : 1; }
  std::uint32_t TidySizeOf(Ref ref) const { return IsSet(ref) ? sets_[IndexOf(ref)].tidy : 1; }
  /// One reference to what these two refer to, in their place.
  Ref Combine(Ref writers, Ref readers);
  /// What a combined reference stands for, as a pair again.
  void Separate(Ref both, Ref& writers, Ref& readers) const {
    const bool reads = both != 0 && !IsSet(both) && !records_[IndexOf(both)].traits.writes();
    writers = reads ? 0 : both;
    readers = reads ? both : 0;
  }
  /// True when the elements of `readers` are older than those of `writers` (CellRules::Store).
  bool ReadersFirst(Ref readers) const {
    return readers != 0 && !IsSet(readers) && records_[IndexOf(readers)].traits.writes();
  }
  void Use(Ref ref, std::uint32_t times = 1) {
    if (IsSet(ref)) sets_[IndexOf(ref)].users += times;
  }
  void Release(Ref ref) {
    if (IsSet(ref)) ReleaseSet(IndexOf(ref));
  }
  /// Of a set of strong accesses of device scope that all have elements of that size, the size; otherwise 0.
  std::uint16_t WideBytesOf(Ref ref) const {
    return IsSet(ref) ? sets_[IndexOf(ref)].wide_bytes : std::uint16_t{0};
  }
  /// Any record that the reference leads to; its width maps the bytes of a line to lanes.
  const Record& First(Ref ref) const;
  /// Changes when a set's number is given to another content.
  std::uint32_t Generation(Ref ref) const {
    return IsSet(ref) ? sets_[IndexOf(ref)].generation : 0;
  }

  /// Worth collecting now. The caller marks what its cells refer to, then sweeps.
  /// Fewer records than lines of shadow are not worth the walk over those lines.
  bool WantsCollection(std::size_t lines) const {
    return records_.size() >= collect_at_ && free_records_.empty() && records_.size() >= lines;
  }
  void BeginMark();
  void Mark(Ref ref);
  void Sweep();
  std::uint64_t collections() const { return collections_; }

  bool full() const { return full_; }
  std::uint64_t bytes() const;

 private:
  struct Set {
    std::vector<std::uint32_t>
        elements;  // later_value << 31 | behind << 30 | record << 5 | lane from the reference's.
    std::uint32_t parent = 0;      // The set whose elements come before these; counted as a user's.
    std::uint32_t first = 0;       // Of all elements.
    std::uint32_t size = 0;        // All elements, the parent's too;
    std::uint32_t tidy = 0;        // and of the eldest parent, or of itself.
    std::uint16_t wide_bytes = 0;  // WideBytesOf
    std::uint32_t users = 0;
    std::uint32_t generation = 0;
    std::uint32_t hash = 0;
    std::uint32_t next = 0;  // With the same place in buckets_.
  };

  static constexpr std::size_t kFirstBuckets = 1024;

  std::uint32_t& BucketOf(std::uint32_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  RecordId Allocate(const Record& record);
  void ReleaseSet(std::uint32_t index);
  void Rehash();
  /// The set of key_, behind `parent`.
  std::uint32_t FindOrMake(std::uint32_t parent);

  std::vector<Record> records_{1};  // 0 is nobody.
  std::vector<RecordId> pinned_;
  std::vector<bool> marked_;
  std::vector<bool> marked_sets_;
  std::vector<RecordId> free_records_;
  std::size_t collect_at_ = 1u << 16;
  std::uint64_t collections_ = 0;
  struct Memo {
    Record record;
    RecordId id = 0;
  };
  std::array<Memo, 1024>
      memo_{};  // The records themselves, so that a miss touches no other memory.
  std::vector<Set> sets_{1};
  std::vector<std::uint32_t> free_sets_;
  // Sets by hash, chained; 0 ends a chain. A power of two.
  std::vector<std::uint32_t> buckets_ = std::vector<std::uint32_t>(kFirstBuckets);
  std::vector<std::uint32_t> key_;
  std::vector<Element> combined_;
  std::uint64_t set_elements_ = 0;
  bool full_ = false;
};

}  // namespace assay::emu
