#include "validator/emu/watch/race_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/emu/site.h"

namespace assay::emu {
namespace {

Access SideOf(const Device& device, const RaceSide& side) {
  const std::uint32_t warps = device.launch.warps;
  Access access;
  access.what = VerbOf(device.program.InstructionAt(side.pc));
  access.site = SiteOf(device, side.pc);
  access.thread = ThreadOf(device, side.warp / warps, side.warp % warps, side.lane);
  return access;
}

/// The buffer or shared variable that holds an offset of a race region.
std::optional<MemoryPlace> PlaceOfRace(const Device& device, const Race& race) {
  const auto in = [&](const MemoryRegion& region,
                      std::string_view space) -> std::optional<MemoryPlace> {
    if (region.race_region != race.region || race.offset < region.race_offset ||
        race.offset - region.race_offset >= region.size) {
      return std::nullopt;
    }
    return PlaceIn(region, space, race.offset - region.race_offset + region.base, race.bytes);
  };
  for (const MemoryRegion& region : device.regions) {
    if (auto place = in(region, "global")) return place;
  }
  // Shared regions are numbered by block, but every block has the same variables.
  for (const auto& block : device.resident) {
    for (const MemoryRegion& region : block->shared) {
      MemoryRegion any = region;
      any.race_region = race.region;
      if (auto place = in(any, "shared")) return place;
    }
  }
  return std::nullopt;
}

/// True when a barrier stands between two places in the code.
bool HasBarrier(const Device& device, std::uint32_t low, std::uint32_t high) {
  for (std::uint32_t pc = low + 1; pc < high; ++pc) {
    const ptx::Opcode opcode = device.program.InstructionAt(pc).opcode;
    if (opcode == ptx::Opcode::kBar || opcode == ptx::Opcode::kBarrier) return true;
  }
  return false;
}

std::string MissingEdge(const Device& device, const Race& race, std::string_view space) {
  const std::string from = LineOf(device, race.earlier.pc);
  const std::string to = LineOf(device, race.later.pc);
  switch (race.race_class) {
    case Race::Class::kScopeTooNarrow:
      return fmt::format("the scope of {} or {} does not include both threads", from, to);
    case Race::Class::kMixedSize:
      return fmt::format("{} and {} access the same bytes in different sizes", from, to);
    case Race::Class::kReadOnlyCache:
      return "memory that a kernel writes must not be read through ld.global.nc (const "
             "__restrict__, __ldg)";
    case Race::Class::kProxy:
      return fmt::format(
          "no fence.proxy.async between {} and {}: bulk copies and wgmma read through the "
          "asynchronous proxy",
          from, to);
    default:
      break;
  }
  const std::uint32_t warps = device.launch.warps;
  const bool same_block = space == "shared" || race.earlier.warp / warps == race.later.warp / warps;
  if (same_block) {
    const std::string_view what = race.same_warp ? "__syncwarp()" : "barrier";
    const std::uint32_t low = std::min(race.earlier.pc, race.later.pc);
    const std::uint32_t high = std::max(race.earlier.pc, race.later.pc);
    if (HasBarrier(device, low, high)) {
      // The two are separated in one direction: what is open is the way round, through the loop.
      return fmt::format("no {} between {} and the next round's {}", what, LineOf(device, high),
                         LineOf(device, low));
    }
    return fmt::format("no {} between {} and {}", what, LineOf(device, low), LineOf(device, high));
  }
  if (race.gap && race.gap->kind == OrderGap::Kind::kAcquire)
    return MissingAcquire(device, *race.gap, from, to, "reader");
  return fmt::format(
      "nothing orders {} in one block before {} in another: use atomics, or another launch", from,
      to);
}

FindingKind KindOf(Race::Class race_class) {
  if (race_class == Race::Class::kSameValue) return FindingKind::kSameValueRace;
  if (race_class == Race::Class::kReadOnlyCache) return FindingKind::kReadOnlyCacheWrite;
  return FindingKind::kDataRace;
}

}  // namespace

std::string MissingAcquire(const Device& device, const OrderGap& gap, const std::string& from,
                           const std::string& to, std::string_view who) {
  std::string text = fmt::format("an acquire before {}", to);
  if (gap.read_pc == OrderGap::kNowhere)
    return text + ": __threadfence() between the read of the signal and it, or an acquire there";
  const std::string signal = LineOf(device, gap.read_pc);
  text += fmt::format(
      ": the {} needs a fence (__threadfence()) or ld.acquire after {}, where the signal that "
      "follows {} is read",
      who, signal, from);
  if (gap.elsewhere) {
    text += fmt::format(
        "; another thread of the block reads it, and the barrier between the two is no acquire: "
        "that thread must fence between {} and the barrier",
        signal);
  }
  return text;
}

void ReportRaces(Device& device) {
  for (; device.reported_races < device.race->races().size(); ++device.reported_races) {
    const Race& race = device.race->races()[device.reported_races];
    Finding finding;
    finding.kind = KindOf(race.race_class);
    finding.accesses = {SideOf(device, race.later), SideOf(device, race.earlier)};
    finding.memory = PlaceOfRace(device, race);
    const std::string where =
        finding.memory && !finding.memory->buffer.empty()
            ? fmt::format("{}[{}]", finding.memory->buffer, finding.memory->index)
            : std::string("the same address");
    const std::string_view space =
        finding.memory ? std::string_view(finding.memory->space) : "global";
    finding.missing = MissingEdge(device, race, space);
    finding.message = fmt::format(
        "{} at {} and {} at {} both touch {} ({} memory) without {} between them{}",
        finding.accesses[0].what, LineOf(device, race.later.pc), finding.accesses[1].what,
        LineOf(device, race.earlier.pc), where, space,
        race.race_class == Race::Class::kProxy ? "a proxy fence" : "an order",
        finding.kind == FindingKind::kSameValueRace ? "; both wrote the same value" : "");
    finding.statistics = {{.name = "occurrences", .value = static_cast<double>(race.occurrences)}};
    device.findings.Add(std::move(finding), race.later.pc, race.earlier.pc);
  }
}

}  // namespace assay::emu
