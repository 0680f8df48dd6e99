#include "validator/gpu/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace assay::gpu {
namespace {

constexpr std::uint64_t kAlignment = 256;

std::uint64_t RoundUp(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Finding WrittenOutside(const BufferSpec& spec, std::int64_t byte) {
  const auto size = static_cast<std::int64_t>(SizeOf(spec.dtype));
  Finding finding;
  finding.kind = FindingKind::kOutOfBounds;
  finding.memory = MemoryPlace{.space = "global",
                               .buffer = spec.name,
                               .index = byte < 0 ? (byte - size + 1) / size : byte / size,
                               .elements = static_cast<std::uint64_t>(spec.elements),
                               .address = 0,
                               .bytes = 0};
  finding.message = fmt::format(
      "memory {} '{}' was written on the GPU: its guard zone is changed at element {}, of {} that "
      "the buffer has",
      byte < 0 ? "in front of" : "behind", spec.name, finding.memory->index, spec.elements);
  return finding;
}

}  // namespace

Outcome DeviceMemory::Lay(std::span<const BufferSpec> specs,
                          std::span<const std::span<std::byte>> host) {
  specs_ = specs;
  host_ = host;
  places_.clear();
  placed_.assign(specs.size(), {});
  for (std::size_t i = 0; i < specs.size(); ++i) {
    placed_[i].bytes = SizeOf(specs[i].dtype) * static_cast<std::uint64_t>(specs[i].elements);
    if (const auto& reuse = specs[i].reuse) {
      placed_[i].place = placed_[reuse->buffer].place;
    } else {
      placed_[i].place = places_.size();
      places_.emplace_back();
    }
    Place& place = places_[placed_[i].place];
    place.bytes = std::max(
        place.bytes, kGuardBytes + RoundUp(specs[i].misalign + placed_[i].bytes) + kGuardBytes);
  }
  if (apart_) return LayApart();
  needed_ = 0;
  for (Place& place : places_) {
    place.offset = needed_;
    needed_ += place.bytes;
  }
  if (needed_ > capacity_) {
    if (slab_ != 0) driver_.free(slab_);
    slab_ = 0;
    capacity_ = 0;
    if (const int code = driver_.allocate(&slab_, needed_)) return DriverFault{code, "cuMemAlloc"};
    capacity_ = needed_;
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    placed_[i].address = slab_ + places_[placed_[i].place].offset + kGuardBytes + specs[i].misalign;
  }
  if (needed_ == 0) return std::nullopt;
  if (const int code = driver_.fill(slab_, std::to_integer<unsigned char>(kGuard), needed_))
    return DriverFault{code, "cuMemsetD8"};
  return std::nullopt;
}

Outcome DeviceMemory::LayApart() {
  for (const DeviceAddress address : alone_) driver_.free(address);
  alone_.clear();
  needed_ = 0;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    // To the byte: what lies behind the last element is nobody's.
    std::uint64_t bytes = 1;
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      if (placed_[i].place == place) bytes = std::max(bytes, specs_[i].misalign + placed_[i].bytes);
    }
    DeviceAddress address = 0;
    if (const int code = driver_.allocate(&address, bytes)) return DriverFault{code, "cuMemAlloc"};
    alone_.push_back(address);
    needed_ += bytes;
  }
  for (std::size_t i = 0; i < placed_.size(); ++i)
    placed_[i].address = alone_[placed_[i].place] + specs_[i].misalign;
  return std::nullopt;
}

Outcome DeviceMemory::Fill(std::uint32_t buffer) {
  const BufferSpec& spec = specs_[buffer];
  const Placed& placed = placed_[buffer];
  if (placed.bytes == 0) return std::nullopt;
  if (apart_ && spec.fill != BufferFill::kProvided && spec.fill != BufferFill::kZero)
    return std::nullopt;
  if (spec.fill == BufferFill::kProvided) {
    if (const int code = driver_.to_device(placed.address, host_[buffer].data(), placed.bytes))
      return DriverFault{code, "cuMemcpyHtoD"};
    return std::nullopt;
  }
  const std::uint8_t byte = spec.fill == BufferFill::kZero ? 0 : spec.poison;
  if (const int code = driver_.fill(placed.address, byte, placed.bytes))
    return DriverFault{code, "cuMemsetD8"};
  return std::nullopt;
}

Outcome DeviceMemory::MoveIn(std::uint32_t buffer, std::vector<Finding>& findings) {
  Place& place = places_[placed_[buffer].place];
  if (place.tenant >= 0) {
    if (Outcome fault = MoveOut(static_cast<std::uint32_t>(place.tenant), findings)) return fault;
    const auto guard = std::to_integer<unsigned char>(kGuard);
    const int code = apart_ ? kSuccess : driver_.fill(slab_ + place.offset, guard, place.bytes);
    if (code != kSuccess) return DriverFault{code, "cuMemsetD8"};
  }
  place.tenant = buffer;
  placed_[buffer].lived = true;
  return Fill(buffer);
}

Outcome DeviceMemory::Enter(std::uint32_t number, std::span<const std::uint32_t> fresh,
                            std::vector<Finding>& findings) {
  for (std::uint32_t i = 0; i < specs_.size(); ++i) {
    const auto& reuse = specs_[i].reuse;
    const std::uint32_t begins = reuse ? reuse->launch : 0;
    if (placed_[i].lived || begins != number) continue;
    if (Outcome fault = MoveIn(i, findings)) return fault;
  }
  for (const std::uint32_t buffer : fresh) {
    if (Outcome fault = Fill(buffer)) return fault;
  }
  return std::nullopt;
}

Outcome DeviceMemory::CheckGuards(std::uint32_t buffer, std::vector<Finding>& findings) {
  if (apart_) return std::nullopt;
  const Placed& placed = placed_[buffer];
  const Place& place = places_[placed.place];
  const DeviceAddress begin = slab_ + place.offset;
  const DeviceAddress end = begin + place.bytes;
  const auto changed = [](std::span<const std::byte> zone, bool last) -> std::int64_t {
    const auto is_changed = [](std::byte byte) { return byte != kGuard; };
    if (last) {
      const auto found = std::find_if(zone.rbegin(), zone.rend(), is_changed);
      return found == zone.rend() ? -1 : zone.rend() - found - 1;
    }
    const auto found = std::ranges::find_if(zone, is_changed);
    return found == zone.end() ? -1 : found - zone.begin();
  };
  std::vector<std::byte> zone(placed.address - begin);
  if (const int code = driver_.to_host(zone.data(), begin, zone.size()))
    return DriverFault{code, "cuMemcpyDtoH"};
  // In front, the nearest one says most.
  if (const std::int64_t at = changed(zone, true); at >= 0)
    findings.push_back(WrittenOutside(specs_[buffer], at - static_cast<std::int64_t>(zone.size())));
  // A later tenant may be smaller than its place; what lies far behind it is guard as well.
  const DeviceAddress behind = placed.address + placed.bytes;
  zone.resize(std::min<std::uint64_t>(end - behind, std::uint64_t{1} << 20));
  if (const int code = driver_.to_host(zone.data(), behind, zone.size()))
    return DriverFault{code, "cuMemcpyDtoH"};
  if (const std::int64_t at = changed(zone, false); at >= 0) {
    findings.push_back(
        WrittenOutside(specs_[buffer], static_cast<std::int64_t>(placed.bytes) + at));
  }
  return std::nullopt;
}

Outcome DeviceMemory::MoveOut(std::uint32_t buffer, std::vector<Finding>& findings) {
  const BufferSpec& spec = specs_[buffer];
  const Placed& placed = placed_[buffer];
  places_[placed.place].tenant = -1;
  if (Outcome fault = CheckGuards(buffer, findings)) return fault;
  // Nobody looks at workspace, which may be many times as large as all else.
  if (placed.bytes == 0 || spec.role == BufferRole::kWorkspace) return std::nullopt;
  if (spec.role != BufferRole::kInput) {
    if (const int code = driver_.to_host(host_[buffer].data(), placed.address, placed.bytes))
      return DriverFault{code, "cuMemcpyDtoH"};
    return std::nullopt;
  }
  std::vector<std::byte> now(placed.bytes);
  if (const int code = driver_.to_host(now.data(), placed.address, placed.bytes))
    return DriverFault{code, "cuMemcpyDtoH"};
  const auto differs = std::ranges::mismatch(now, host_[buffer].first(placed.bytes));
  if (differs.in1 == now.end()) return std::nullopt;
  Finding finding;
  finding.kind = FindingKind::kWriteToInput;
  finding.memory = MemoryPlace{
      .space = "global",
      .buffer = spec.name,
      .index = (differs.in1 - now.begin()) / static_cast<std::int64_t>(SizeOf(spec.dtype)),
      .elements = static_cast<std::uint64_t>(spec.elements),
      .address = 0,
      .bytes = 0};
  finding.message = fmt::format("the input '{}' was written on the GPU: element {} has changed",
                                spec.name, finding.memory->index);
  findings.push_back(std::move(finding));
  return std::nullopt;
}

Outcome DeviceMemory::Read(std::uint32_t buffer, std::span<std::byte> to) const {
  if (to.empty()) return std::nullopt;
  if (const int code = driver_.to_host(to.data(), placed_[buffer].address, to.size()))
    return DriverFault{code, "cuMemcpyDtoH"};
  return std::nullopt;
}

Outcome DeviceMemory::Leave(std::vector<Finding>& findings) {
  for (const Place& place : places_) {
    if (place.tenant < 0) continue;
    if (Outcome fault = MoveOut(static_cast<std::uint32_t>(place.tenant), findings)) return fault;
  }
  return std::nullopt;
}

}  // namespace assay::gpu
