#include "validator/emu/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "validator/emu/memory.h"

namespace assay::emu {
namespace {

/// Buffers that need filling and are larger than this are filled where they are touched; smaller ones (kFilledAtOnce)
/// where some blocks run, which touch little of them.
constexpr std::uint64_t kLargeBuffer = std::uint64_t{64} << 20;

std::uint8_t FillByte(const BufferSpec& spec) {
  return spec.fill == BufferFill::kZero ? 0 : spec.poison;
}

bool StartsDefined(const BufferSpec& spec) { return spec.fill != BufferFill::kUninitialised; }

void FillAgain(const BufferSpec& spec, const PlacedBuffer& buffer) {
  const MemoryRegion& region = buffer.region;
  if (spec.fill == BufferFill::kProvided) {
    std::ranges::copy(buffer.first, region.data);
  } else if (region.lazy != nullptr) {
    region.lazy->FillAgain();
  } else {
    std::fill_n(region.data, region.size, static_cast<std::byte>(FillByte(spec)));
  }
  if (region.defined != nullptr) region.defined->Reset(region.size, StartsDefined(spec));
}

/// A region for `spec` in `memory`, filled or to be filled, without an address.
MemoryRegion RegionFor(Device& device, const BufferSpec& spec, std::span<std::byte> memory) {
  MemoryRegion region;
  const bool some = std::ranges::any_of(device.execution.launches, [](const Launch& launch) {
    return !launch.only.empty() || !launch.threads.empty();
  });
  if (spec.fill != BufferFill::kProvided) {
    if (memory.size() <= (some ? kFilledAtOnce : kLargeBuffer)) {
      std::ranges::fill(memory, static_cast<std::byte>(FillByte(spec)));  // may be empty
    } else {
      device.fills.push_back(std::make_unique<LazyFill>(memory, FillByte(spec)));
      region.lazy = device.fills.back().get();
    }
  }
  region.kind = MemoryRegion::Kind::kBuffer;
  region.data = memory.data();
  region.size = memory.size();
  region.writable = spec.role != BufferRole::kInput;
  region.is_output = spec.role == BufferRole::kOutput;
  region.element_bytes = static_cast<std::uint32_t>(SizeOf(spec.dtype));
  region.name = spec.name;
  return region;
}

/// Where a buffer lies: its allocation, and how far past a boundary there.
struct Place {
  std::uint32_t allocation = 0;
  std::uint64_t offset = 0;
};

/// Places for `count` buffers. Under the plain schedule one after the other; under the others in
/// any order and anywhere that an allocator may put them, since no kernel may care.
std::vector<Place> PlacesFor(const Device& device, std::size_t count) {
  std::vector<Place> places(count);
  const Schedule& schedule = device.execution.schedule;
  for (std::size_t i = 0; i < count; ++i) places[i].allocation = static_cast<std::uint32_t>(i) + 1;
  if (schedule.policy == Schedule::Policy::kSequential) return places;
  // A driver hands out pages of 2 MiB just below 2^47, and parts of them; a framework's allocator
  // hands out multiples of 512 bytes.
  constexpr std::uint64_t kAllocations = 128;
  constexpr std::uint64_t kGranules[] = {512, 512, 65536, std::uint64_t{2} << 20};
  Rng rng(DeriveSeed(schedule.seed, "addresses"));
  const bool high = rng.Below(2) == 0 && count + 8 < kAllocations;
  const auto first = static_cast<std::uint32_t>(high ? kAllocations - 1 - count - rng.Below(8)
                                                     : rng.Below(kAllocations));
  const std::uint64_t granule = kGranules[rng.Below(std::size(kGranules))];
  for (std::size_t i = count; i > 1; --i) std::swap(places[i - 1], places[rng.Below(i)]);
  for (Place& place : places) {
    place.allocation += first;
    place.offset = rng.Below(kAllocationBase / 2 / granule) * granule;
  }
  return places;
}

}  // namespace

bool AddBuffers(Device& device, std::span<const std::span<std::byte>> buffers) {
  const std::vector<BufferSpec>& specs = device.execution.buffers;
  if (buffers.size() != specs.size()) {
    device.End(Stop::kEngineFailure,
               "the number of buffers differs from the number of their descriptions");
    return false;
  }
  if (const Status lives = CheckBuffers(device.execution); !lives) {
    device.End(Stop::kEngineFailure, ToString(lives.error()));
    return false;
  }
  std::set<std::uint32_t> restored;
  for (const Launch& launch : device.execution.launches)
    restored.insert(launch.fresh.begin(), launch.fresh.end());
  std::vector<Place> places = PlacesFor(device, specs.size());
  std::uint32_t last = 0;
  for (const Place& place : places) last = std::max(last, place.allocation);
  device.regions.resize(last + 1);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const BufferSpec& spec = specs[i];
    const std::uint64_t bytes = SizeOf(spec.dtype) * static_cast<std::uint64_t>(spec.elements);
    if (buffers[i].size() < bytes || spec.misalign % SizeOf(spec.dtype) != 0) {
      device.End(Stop::kEngineFailure,
                 fmt::format("buffer '{}' does not fit its description", spec.name));
      return false;
    }
    if (spec.reuse) places[i] = places[spec.reuse->buffer];
    PlacedBuffer placed{.region = RegionFor(device, spec, buffers[i].first(bytes)),
                        .allocation = places[i].allocation,
                        .first = {}};
    if (spec.fill == BufferFill::kProvided && restored.contains(static_cast<std::uint32_t>(i)))
      placed.first.assign(buffers[i].begin(),
                          buffers[i].begin() + static_cast<std::ptrdiff_t>(bytes));
    TrackRegion(device, placed.region, placed.allocation, places[i].offset + spec.misalign,
                StartsDefined(spec));
    if (!spec.reuse) device.regions[placed.allocation] = placed.region;
    device.buffers.push_back(std::move(placed));
  }
  return true;
}

void PlaceBuffers(Device& device, std::uint32_t number) {
  for (std::size_t i = 0; i < device.buffers.size(); ++i) {
    const std::optional<BufferReuse>& reuse = device.execution.buffers[i].reuse;
    if (!reuse || reuse->launch != number) continue;
    device.regions[device.buffers[i].allocation] = device.buffers[i].region;
  }
  for (const std::uint32_t buffer : device.execution.launches[number].fresh)
    FillAgain(device.execution.buffers[buffer], device.buffers[buffer]);
}

}  // namespace assay::emu
