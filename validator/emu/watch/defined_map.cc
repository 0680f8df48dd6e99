#include "validator/emu/watch/defined_map.h"

#include <algorithm>
#include <bit>

namespace assay::emu {
namespace {

/// Ones in bits [low, low + count) of a word; count is 1 to 64.
std::uint64_t MaskOf(std::uint64_t low, std::uint64_t count) {
  return (count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << low;
}

}  // namespace

void DefinedMap::Reset(std::uint64_t bytes, bool initially_defined) {
  undefined_ = initially_defined ? 0 : bytes;
  written_undefined_ = false;
  chosen_.clear();
  const std::uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  // A block's shared memory is reset for every block: its pages are reused instead of freed.
  if (pages == pages_.size() && initially_defined == initially_defined_ && pages_.made() == pages) {
    for (std::uint64_t page = 0; page < pages; ++page)
      pages_[page]->fill(initially_defined ? ~std::uint64_t{0} : 0);
    bytes_ = bytes;
    return;
  }
  pages_.Reset(pages);
  bytes_ = bytes;
  initially_defined_ = initially_defined;
}

DefinedMap::Page& DefinedMap::Touch(std::uint64_t page) {
  if (Page* const there = pages_[page]) return *there;
  Page& made = pages_.Put(page, std::make_unique<Page>());
  made.fill(initially_defined_ ? ~std::uint64_t{0} : 0);
  return made;
}

bool DefinedMap::DefinedRange(std::uint64_t offset, std::uint64_t bytes) const {
  while (bytes > 0) {
    const std::uint64_t page = offset / kPageBytes;
    const std::uint64_t within = offset % kPageBytes;
    const std::uint64_t count = std::min(bytes, kPageBytes - within);
    if (const Page* const words = pages_[page]) {
      for (std::uint64_t done = 0; done < count;) {
        const std::uint64_t bit = (within + done) % 64;
        const std::uint64_t part = std::min(count - done, 64 - bit);
        const std::uint64_t mask = MaskOf(bit, part);
        if (((*words)[(within + done) / 64] & mask) != mask) return false;
        done += part;
      }
    } else if (!initially_defined_) {
      return false;
    }
    offset += count;
    bytes -= count;
  }
  return true;
}

std::uint32_t DefinedMap::Bits(std::uint64_t offset, std::uint32_t bytes) const {
  const std::uint32_t all = (std::uint32_t{1} << bytes) - 1;
  if (offset % 64 + bytes <= 64) {
    const Page* const words = pages_[offset / kPageBytes];
    if (words == nullptr) return initially_defined_ ? all : 0;
    return static_cast<std::uint32_t>((*words)[offset % kPageBytes / 64] >> offset % 64) & all;
  }
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    const Page* const words = pages_[(offset + i) / kPageBytes];
    const std::uint64_t within = (offset + i) % kPageBytes;
    const bool defined =
        words ? ((*words)[within / 64] >> (within % 64) & 1) != 0 : initially_defined_;
    bits |= static_cast<std::uint32_t>(defined) << i;
  }
  return bits;
}

void DefinedMap::SetChosen(std::uint64_t offset, std::uint64_t bytes, std::uint8_t choice) {
  Set(offset, bytes, false);
  SetChoices(offset, bytes, choice);
}

void DefinedMap::SetChoices(std::uint64_t offset, std::uint64_t bytes, std::uint8_t choice) {
  while (bytes > 0) {
    const std::uint64_t within = offset % kPageBytes;
    const std::uint64_t count = std::min(bytes, kPageBytes - within);
    auto found = chosen_.find(offset / kPageBytes);
    if (found == chosen_.end() && choice != 0)
      found = chosen_.emplace(offset / kPageBytes, std::make_unique<Choices>()).first;
    if (found != chosen_.end())
      std::fill_n(found->second->begin() + static_cast<std::ptrdiff_t>(within), count, choice);
    offset += count;
    bytes -= count;
  }
}

void DefinedMap::Set(std::uint64_t offset, std::uint64_t bytes, bool defined) {
  written_undefined_ = written_undefined_ || !defined;
  if (!chosen_.empty() && !defined) SetChoices(offset, bytes, 0);
  while (bytes > 0) {
    const std::uint64_t page = offset / kPageBytes;
    const std::uint64_t within = offset % kPageBytes;
    const std::uint64_t count = std::min(bytes, kPageBytes - within);
    if (pages_[page] != nullptr || defined != initially_defined_) {
      Page& words = Touch(page);
      for (std::uint64_t done = 0; done < count;) {
        const std::uint64_t bit = (within + done) % 64;
        const std::uint64_t part = std::min(count - done, 64 - bit);
        const std::uint64_t mask = MaskOf(bit, part);
        std::uint64_t& word = words[(within + done) / 64];
        const std::uint64_t changed = (defined ? ~word : word) & mask;
        if (changed != 0) {
          const auto count_changed = static_cast<std::uint64_t>(std::popcount(changed));
          undefined_ = defined ? undefined_ - count_changed : undefined_ + count_changed;
          word ^= changed;
        }
        done += part;
      }
    }
    offset += count;
    bytes -= count;
  }
}

void DefinedMap::SetBits(std::uint64_t offset, std::uint32_t bytes, std::uint32_t bits) {
  for (std::uint32_t i = 0; i < bytes; ++i) Set(offset + i, 1, (bits >> i & 1) != 0);
}

std::uint64_t DefinedMap::FirstUndefined() const {
  std::uint64_t first = bytes_;
  std::uint64_t next = 0;
  pages_.ForEach([&](std::uint64_t page, const Page& words) {
    if (first < bytes_) return;
    if (!initially_defined_ && next < page) {
      first = next * kPageBytes;
      return;
    }
    next = page + 1;
    const auto* const word = std::ranges::find_if(words, [](std::uint64_t w) { return ~w != 0; });
    if (word == words.end()) return;
    first = page * kPageBytes + static_cast<std::uint64_t>(word - words.begin()) * 64 +
            static_cast<std::uint64_t>(std::countr_one(*word));
  });
  if (first == bytes_ && !initially_defined_) first = next * kPageBytes;
  return std::min(first, bytes_);
}

}  // namespace assay::emu
