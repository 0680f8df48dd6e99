#include "validator/emu/handlers/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "validator/emu/memory.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

/// The device heap's default size.
constexpr std::uint64_t kHeapBytes = 8u << 20;

std::uint64_t ReadArgument(const CoreWarp& warp, const CallSite& site, std::size_t index,
                           int lane) {
  std::uint64_t value = 0;
  if (index >= site.arguments.size()) return value;
  const CallSite::Copy& copy = site.arguments[index];
  const auto at = static_cast<std::size_t>(lane);
  if (copy.slot != kNoSlot) {
    const std::size_t width = copy.bits / 8u;
    std::memcpy(&value, warp.slots + std::size_t{copy.slot} * kSlotBytes + at * width,
                std::min<std::size_t>(8, width));
  } else {
    const std::uint64_t start = at * warp.local_stride + warp.frame->base[at] + copy.frame_offset;
    std::memcpy(&value, warp.local.data() + start, std::min<std::uint64_t>(8, copy.bytes));
  }
  return value;
}

void WriteResult(CoreWarp& warp, const CallSite& site, int lane, std::uint64_t value) {
  if (site.returns.empty()) return;
  const CallSite::Copy& copy = site.returns[0];
  const auto at = static_cast<std::size_t>(lane);
  if (copy.slot != kNoSlot) {
    const std::size_t width = copy.bits / 8u;
    std::memcpy(warp.slots + std::size_t{copy.slot} * kSlotBytes + at * width, &value,
                std::min<std::size_t>(8, width));
    warp.frame->undefined[copy.slot] &= ~(LaneMask{1} << lane);
    return;
  }
  const std::uint64_t start = at * warp.local_stride + warp.frame->base[at] + copy.frame_offset;
  const std::uint64_t bytes = std::min<std::uint64_t>(8, copy.bytes);
  std::memcpy(warp.local.data() + start, &value, bytes);
  std::fill_n(warp.local_defined.data() + start, bytes, std::uint8_t{1});
}

/// A C string of the module's, at most `kLongest` characters.
std::string ReadText(const CoreWarp& warp, std::uint64_t address) {
  constexpr std::uint64_t kLongest = 200;
  const MemoryRegion* const region = GenericRegion(*warp.device, address);
  if (region == nullptr || address < region->base) return "?";
  std::string text;
  for (std::uint64_t i = address - region->base; i < region->size && text.size() < kLongest; ++i) {
    const char c = static_cast<char>(region->data[i]);
    if (c == 0) break;
    text += c;
  }
  return text;
}

void Assertion(CoreWarp& warp, const CallSite& site, LaneMask lanes) {
  const int lane = FirstLane(lanes);
  const std::string condition = ReadText(warp, ReadArgument(warp, site, 0, lane));
  const std::uint64_t line = ReadArgument(warp, site, 2, lane) & 0xffffffffu;
  Report1(warp, FindingKind::kTrap, warp.pc, lanes,
          fmt::format("assertion '{}' failed (line {})", condition, line), "assert");
  warp.device->End(Stop::kFault, "assertion failed");
  warp.outcome = Outcome::kStop;
}

void Allocate(CoreWarp& warp, const CallSite& site, LaneMask lanes) {
  Device& device = *warp.device;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t bytes = ReadArgument(warp, site, 0, lane);
    if (bytes == 0 || bytes > kHeapBytes || device.heap_bytes + bytes > kHeapBytes) {
      WriteResult(warp, site, lane, 0);
      continue;
    }
    device.heap_bytes += bytes;
    std::vector<std::byte>& storage = device.owned.emplace_back(bytes, std::byte{0xff});
    MemoryRegion region;
    region.kind = MemoryRegion::Kind::kHeap;
    region.data = storage.data();
    region.size = bytes;
    region.name = "malloc";
    const std::uint32_t number = AddRegion(device, std::move(region), 0, false);
    WriteResult(warp, site, lane, device.regions[number].base);
  }
}

void Free(CoreWarp& warp, const CallSite& site, LaneMask lanes) {
  Device& device = *warp.device;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t address = ReadArgument(warp, site, 0, lane);
    if (address == 0) continue;
    MemoryRegion* const region = GenericRegion(device, address);
    if (region == nullptr || region->kind != MemoryRegion::Kind::kHeap || region->freed ||
        region->base != address) {
      const bool twice = region != nullptr && region->freed;
      Report1(warp, FindingKind::kInvalidFree, warp.pc, LaneMask{1} << lane,
              twice ? std::string("free of memory that was freed before")
                    : fmt::format("free of {:#x}, which malloc did not return", address),
              "free");
      device.End(Stop::kFault, "invalid free");
      warp.outcome = Outcome::kStop;
      return;
    }
    region->freed = true;
    device.heap_bytes -= region->size;
  }
}

}  // namespace

void CallBuiltin(CoreWarp& warp, const CallSite& site, std::string_view name, LaneMask lanes) {
  if (name == "__assertfail") {
    Assertion(warp, site, lanes);
  } else if (name == "malloc") {
    Allocate(warp, site, lanes);
  } else if (name == "free") {
    Free(warp, site, lanes);
  } else {
    // vprintf prints nothing: output of a judged kernel goes nowhere.
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((lanes >> lane & 1) != 0) WriteResult(warp, site, lane, 0);
    }
  }
}

}  // namespace assay::emu
