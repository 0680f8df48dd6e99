// Which bytes of a memory region hold defined values: one bit a byte, in pages that exist only
// where something differs from the region's initial state.
//
// Cost: 1/8 byte a byte touched. A region that starts defined and never receives an undefined store
// has no pages at all. Not thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/page_table.h"

namespace assay::emu {

class DefinedMap {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  using Page = std::array<std::uint64_t, kPageBytes / 64>;

  DefinedMap() = default;
  DefinedMap(std::uint64_t bytes, bool initially_defined) { Reset(bytes, initially_defined); }

  /// Forgets everything; pages are kept for reuse where the size allows.
  void Reset(std::uint64_t bytes, bool initially_defined);

  bool AllDefined() const { return undefined_ == 0; }
  /// True once bytes were written that are undefined, since the last Reset.
  bool WrittenUndefined() const { return written_undefined_; }
  /// True when all of [offset, offset + bytes) are defined. The range lies within the region.
  bool Defined(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t bit = offset % 64;
    if (bit + bytes > 64) return DefinedRange(offset, bytes);
    const Page* const words = pages_[offset / kPageBytes];
    if (words == nullptr) return initially_defined_;
    const std::uint64_t wanted = bytes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
    return (~(*words)[offset % kPageBytes / 64] >> bit & wanted) == 0;
  }
  /// The definedness of up to 16 bytes, bit i for byte offset + i.
  std::uint32_t Bits(std::uint64_t offset, std::uint32_t bytes) const;
  void Set(std::uint64_t offset, std::uint64_t bytes, bool defined);
  /// Set(offset, bytes, true), for what a lane stores: mostly bytes that were stored before.
  void SetDefined(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t bit = offset % 64;
    Page* const words = pages_[offset / kPageBytes];
    if (words == nullptr || bit + bytes > 64) return Set(offset, bytes, true);
    const std::uint64_t wanted = bytes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
    std::uint64_t& word = (*words)[offset % kPageBytes / 64];
    const std::uint64_t missing = ~word & wanted << bit;
    if (missing == 0) return;
    undefined_ -= static_cast<std::uint64_t>(std::popcount(missing));
    word |= missing;
  }
  /// Sets byte offset + i to bit i.
  void SetBits(std::uint64_t offset, std::uint32_t bytes, std::uint32_t bits);

  /// Makes bytes undefined because the machine chose them: `choice` says which choice (not 0).
  void SetChosen(std::uint64_t offset, std::uint64_t bytes, std::uint8_t choice);
  /// Of an undefined byte: the choice that made it so, or 0 for one that is not initialised.
  std::uint8_t Choice(std::uint64_t offset) const {
    const auto found = chosen_.find(offset / kPageBytes);
    return found == chosen_.end() ? std::uint8_t{0} : (*found->second)[offset % kPageBytes];
  }

  /// Are there bytes whose value the machine chose, or were there?
  bool HasChoices() const { return !chosen_.empty(); }

  /// Undefined bytes in the region, and the first of them (or the region's size).
  std::uint64_t CountUndefined() const { return undefined_; }
  std::uint64_t FirstUndefined() const;
  /// Calls `see(page, words)` for each page of which something was written, ascending: which of its kPageBytes bytes are
  /// defined, a bit each.
  template <class See>
  void ForEachPage(const See& see) const {
    pages_.ForEach(see);
  }
  std::uint64_t page_bytes() const { return pages_.made() * sizeof(Page); }

 private:
  using Choices = std::array<std::uint8_t, kPageBytes>;

  bool DefinedRange(std::uint64_t offset, std::uint64_t bytes) const;
  Page& Touch(std::uint64_t page);
  bool PageBit(std::uint64_t page) const;

  PageTable<Page> pages_;
  void SetChoices(std::uint64_t offset, std::uint64_t bytes, std::uint8_t choice);

  // By page, where there are any; meant for undefined bytes only.
  std::unordered_map<std::uint64_t, std::unique_ptr<Choices>> chosen_;
  std::uint64_t bytes_ = 0;
  std::uint64_t undefined_ = 0;  // Bytes.
  bool initially_defined_ = true;
  bool written_undefined_ = false;
};

}  // namespace assay::emu
