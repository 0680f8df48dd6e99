#include "validator/emu/watch/disguised.h"

#include <algorithm>
#include <span>

#include "validator/emu/watch/defined_map.h"

namespace assay::emu {

void AddDisguised(const MemoryRegion& region, std::uint32_t number, const BufferSpec& spec,
                  std::vector<BufferRange>& ranges) {
  if (spec.fill != BufferFill::kUninitialised || region.defined == nullptr) return;
  const std::uint64_t size = region.element_bytes;
  const auto add = [&](std::uint64_t first) {
    if (!ranges.empty() && ranges.back().buffer == number &&
        ranges.back().first + ranges.back().bytes == first) {
      ranges.back().bytes += size;
    } else if (ranges.size() < kMostDisguised) {
      ranges.push_back({number, first, size});
    }
  };
  constexpr std::uint64_t kPage = DefinedMap::kPageBytes;
  region.defined->ForEachPage([&](std::uint64_t number_of_page, const DefinedMap::Page& words) {
    const std::uint64_t begin = number_of_page * kPage;
    const std::span<const std::byte> page(region.data + begin,
                                          std::min(kPage, region.size - begin));
    const auto holds_only = [](std::span<const std::byte> bytes, std::byte value) {
      return std::ranges::all_of(bytes, [value](std::byte byte) { return byte == value; });
    };
    const bool zeros = holds_only(page, std::byte{0});
    const auto poison = static_cast<std::byte>(spec.poison);
    for (std::uint64_t at = 0; at + size <= page.size(); at += size) {
      if (words[at / 64] == 0 || !(zeros || page[at] == poison)) continue;
      if ((zeros || holds_only(page.subspan(at, size), poison)) &&
          region.defined->Defined(begin + at, size))
        add(begin + at);
    }
  });
}

}  // namespace assay::emu
