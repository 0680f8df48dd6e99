#include "validator/emu/buffers.h"

#include <fmt/format.h>

#include <cstring>

#include "validator/emu/memory.h"

namespace assay::emu {
namespace {

/// Buffers that need filling and are larger than this are filled where they are touched.
constexpr std::uint64_t kLargeBuffer = std::uint64_t{64} << 20;

/// A region for `spec` in `memory`, filled or to be filled, without an address.
MemoryRegion RegionFor(Engine& engine, const BufferSpec& spec, std::span<std::byte> memory) {
  MemoryRegion region;
  if (spec.fill != BufferFill::kProvided) {
    const std::uint8_t value = spec.fill == BufferFill::kZero ? 0 : spec.poison;
    if (memory.size() <= kLargeBuffer) {
      std::memset(memory.data(), value, memory.size());
    } else {
      engine.fills.push_back(std::make_unique<LazyFill>(memory, value));
      region.lazy = engine.fills.back().get();
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

}  // namespace

bool AddBuffers(Engine& engine, std::span<const std::span<std::byte>> buffers) {
  const std::vector<BufferSpec>& specs = engine.execution.buffers;
  if (buffers.size() != specs.size()) {
    engine.End(Stop::kEngineFailure,
               "the number of buffers differs from the number of their descriptions");
    return false;
  }
  if (const Status lives = CheckReuse(engine.execution); !lives) {
    engine.End(Stop::kEngineFailure, ToString(lives.error()));
    return false;
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const BufferSpec& spec = specs[i];
    const std::uint64_t bytes = SizeOf(spec.dtype) * static_cast<std::uint64_t>(spec.elements);
    if (buffers[i].size() < bytes || spec.misalign % SizeOf(spec.dtype) != 0) {
      engine.End(Stop::kEngineFailure,
                 fmt::format("buffer '{}' does not fit its description", spec.name));
      return false;
    }
    PlacedBuffer placed{.region = RegionFor(engine, spec, buffers[i].first(bytes))};
    const bool defined = spec.fill != BufferFill::kUninitialised;
    if (spec.reuse) {
      placed.allocation = engine.buffers[spec.reuse->buffer].allocation;
      TrackRegion(engine, placed.region, placed.allocation, spec.misalign, defined);
    } else {
      placed.allocation = AddRegion(engine, placed.region, spec.misalign, defined);
      placed.region = engine.regions[placed.allocation];
    }
    engine.buffers.push_back(std::move(placed));
  }
  return true;
}

void PlaceBuffers(Engine& engine, std::uint32_t number) {
  for (std::size_t i = 0; i < engine.buffers.size(); ++i) {
    const std::optional<BufferReuse>& reuse = engine.execution.buffers[i].reuse;
    if (!reuse || reuse->launch != number) continue;
    engine.regions[engine.buffers[i].allocation] = engine.buffers[i].region;
  }
}

}  // namespace assay::emu
