#include "validator/emu/watch/draws.h"

#include <algorithm>
#include <cstring>

namespace assay::emu {

void Draws::Note(const Device& device, const MemoryRegion& region, std::byte* at,
                 std::uint32_t bytes) {
  if (region.kind != MemoryRegion::Kind::kBuffer) return;
  const auto placed = std::ranges::find(
      device.buffers, region.base, [](const PlacedBuffer& buffer) { return buffer.region.base; });
  if (placed == device.buffers.end()) return;
  const auto number = static_cast<std::uint32_t>(placed - device.buffers.begin());
  const auto first = static_cast<std::uint64_t>(at - region.data);
  const auto& tickets = execution_.tickets;
  if (tickets && dealt_ < tickets->held.size() &&
      tickets->word == BufferRange{.buffer = number, .first = first, .bytes = bytes})
    std::memcpy(at, &tickets->held[dealt_++], bytes);
  if (!execution_.note_drawn || too_many_ || execution_.buffers[number].fill != BufferFill::kZero)
    return;
  Word& word = words_[{number, first}];
  word.bytes = bytes;
  ++word.times;
  too_many_ = words_.size() > kMost;
}

std::optional<std::vector<DrawnWord>> Draws::Take(const Device& device) const {
  if (!execution_.note_drawn || too_many_) return std::nullopt;
  std::vector<DrawnWord> drawn;
  for (const auto& [place, word] : words_) {
    const auto& [buffer, first] = place;
    std::uint64_t value = 0;
    std::memcpy(&value, device.buffers[buffer].region.data + first, word.bytes);
    drawn.push_back({.word = {buffer, first, word.bytes}, .times = word.times, .value = value});
  }
  return drawn;
}

}  // namespace assay::emu
