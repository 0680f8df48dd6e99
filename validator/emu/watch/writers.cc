#include "validator/emu/watch/writers.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace assay::emu {
namespace {

// A writer as one number: its block counts from 1.
constexpr int kLaunchShift = 40;
constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kLaunchShift) - 1;
constexpr std::size_t kMostRanges = std::size_t{1} << 18;

}  // namespace

Writers::Writers(std::span<const BufferRange> asked) {
  std::size_t bytes = 0;
  for (const BufferRange& range : asked) {
    asked_.push_back({range, bytes});
    bytes += range.bytes;
  }
  writer_.resize(bytes);
}

void Writers::Note(const CoreWarp& warp, const LaneAccess& access, std::uint32_t bytes) {
  const Device& device = *warp.device;
  const std::uint64_t writer =
      std::uint64_t{device.launch.number} << kLaunchShift | (std::uint64_t{warp.block->number} + 1);
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MemoryRegion* const region = access.RegionOf(lane);
    if (region == nullptr || region->kind != MemoryRegion::Kind::kBuffer) continue;
    const std::uint64_t first =
        access.pointer[lane] - reinterpret_cast<std::uintptr_t>(region->data);
    Note(device, *region, first, bytes, writer);
  }
}

void Writers::Note(const Device& device, const MemoryRegion& region, std::uint64_t first,
                   std::uint64_t bytes, std::uint64_t writer) {
  const auto buffer = std::ranges::find(
      device.buffers, region.base, [](const PlacedBuffer& placed) { return placed.region.base; });
  if (buffer == device.buffers.end()) return;
  const auto number = static_cast<std::uint32_t>(buffer - device.buffers.begin());
  // The first range that does not end before it.
  auto at = std::ranges::partition_point(asked_, [&](const Asked& asked) {
    return asked.range.buffer < number ||
           (asked.range.buffer == number && asked.range.first + asked.range.bytes <= first);
  });
  for (; at != asked_.end() && at->range.buffer == number && at->range.first < first + bytes;
       ++at) {
    const std::uint64_t begin = std::max(at->range.first, first);
    const std::uint64_t end = std::min(at->range.first + at->range.bytes, first + bytes);
    std::fill_n(writer_.begin() + static_cast<std::ptrdiff_t>(at->at + begin - at->range.first),
                end - begin, writer);
  }
}

std::optional<std::vector<WrittenRange>> Writers::Take() const {
  std::vector<WrittenRange> taken;
  for (const Asked& asked : asked_) {
    for (std::uint64_t i = 0, next = 0; i < asked.range.bytes; i = next) {
      const std::uint64_t writer = writer_[asked.at + i];
      next = i + 1;
      while (next < asked.range.bytes && writer_[asked.at + next] == writer) ++next;
      if (writer == 0) continue;
      if (taken.size() == kMostRanges) return std::nullopt;
      taken.push_back({.range = {asked.range.buffer, asked.range.first + i, next - i},
                       .launch = static_cast<std::uint32_t>(writer >> kLaunchShift),
                       .block = (writer & kBlockMask) - 1});
    }
  }
  return taken;
}

}  // namespace assay::emu
