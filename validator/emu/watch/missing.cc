#include "validator/emu/watch/missing.h"

#include <algorithm>

namespace assay::emu {

void MissingBytes::Note(const MemoryRegion& region, std::uint64_t first, std::uint64_t bytes) {
  if (region.kind != MemoryRegion::Kind::kBuffer || too_many_) return;
  std::vector<Range>& ranges = by_base_[region.base];
  if (!ranges.empty() && first >= ranges.back().first && first <= ranges.back().end) {
    ranges.back().end = std::max(ranges.back().end, first + bytes);
    return;
  }
  ranges.push_back({first, first + bytes});
  if (++count_ <= kMost) return;
  count_ = 0;
  for (auto& [base, some] : by_base_) {
    Merge(some);
    count_ += some.size();
  }
  too_many_ = count_ > kMost / 2;
}

void MissingBytes::Merge(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, {}, &Range::first);
  std::size_t kept = 0;
  for (const Range& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

std::optional<std::vector<BufferRange>> MissingBytes::Take(
    const std::vector<PlacedBuffer>& buffers) {
  if (too_many_) return std::nullopt;
  std::vector<BufferRange> taken;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto found = by_base_.find(buffers[i].region.base);
    if (found == by_base_.end()) continue;
    Merge(found->second);
    for (const Range& range : found->second)
      taken.push_back({static_cast<std::uint32_t>(i), range.first, range.end - range.first});
  }
  return taken;
}

}  // namespace assay::emu
