#include "validator/emu/race_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/emu/site.h"

namespace assay::emu {
namespace {

Access SideOf(const Engine& engine, const RaceSide& side) {
  const std::uint32_t warps = engine.launch.warps;
  Access access;
  access.what = VerbOf(engine.program.InstructionAt(side.pc));
  access.site = SiteOf(engine, side.pc);
  access.thread = ThreadOf(engine, side.warp / warps, side.warp % warps, side.lane);
  return access;
}

/// The buffer or shared variable that holds an offset of a race region.
std::optional<MemoryPlace> PlaceOfRace(const Engine& engine, const Race& race) {
  const auto in = [&](const MemoryRegion& region,
                      std::string_view space) -> std::optional<MemoryPlace> {
    if (region.race_region != race.region || race.offset < region.race_offset ||
        race.offset - region.race_offset >= region.size) {
      return std::nullopt;
    }
    return PlaceIn(region, space, race.offset - region.race_offset + region.base, race.bytes);
  };
  for (const MemoryRegion& region : engine.regions) {
    if (auto place = in(region, "global")) return place;
  }
  // Shared regions are numbered by block, but every block has the same variables.
  for (const auto& block : engine.resident) {
    for (const MemoryRegion& region : block->shared) {
      MemoryRegion any = region;
      any.race_region = race.region;
      if (auto place = in(any, "shared")) return place;
    }
  }
  return std::nullopt;
}

/// True when a barrier stands between two places in the code.
bool HasBarrier(const Engine& engine, std::uint32_t low, std::uint32_t high) {
  for (std::uint32_t pc = low + 1; pc < high; ++pc) {
    const ptx::Opcode opcode = engine.program.InstructionAt(pc).opcode;
    if (opcode == ptx::Opcode::kBar || opcode == ptx::Opcode::kBarrier) return true;
  }
  return false;
}

std::string MissingEdge(const Engine& engine, const Race& race, std::string_view space) {
  const std::string from = LineOf(engine, race.earlier.pc);
  const std::string to = LineOf(engine, race.later.pc);
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
  const std::uint32_t warps = engine.launch.warps;
  const bool same_block = space == "shared" || race.earlier.warp / warps == race.later.warp / warps;
  if (same_block) {
    const std::string_view what = race.same_warp ? "__syncwarp()" : "barrier";
    const std::uint32_t low = std::min(race.earlier.pc, race.later.pc);
    const std::uint32_t high = std::max(race.earlier.pc, race.later.pc);
    if (HasBarrier(engine, low, high)) {
      // The two are separated in one direction: what is open is the way round, through the loop.
      return fmt::format("no {} between {} and the next round's {}", what, LineOf(engine, high),
                         LineOf(engine, low));
    }
    return fmt::format("no {} between {} and {}", what, LineOf(engine, low), LineOf(engine, high));
  }
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

void ReportRaces(Engine& engine) {
  for (; engine.reported_races < engine.race->races().size(); ++engine.reported_races) {
    const Race& race = engine.race->races()[engine.reported_races];
    Finding finding;
    finding.kind = KindOf(race.race_class);
    finding.accesses = {SideOf(engine, race.later), SideOf(engine, race.earlier)};
    finding.memory = PlaceOfRace(engine, race);
    const std::string where =
        finding.memory && !finding.memory->buffer.empty()
            ? fmt::format("{}[{}]", finding.memory->buffer, finding.memory->index)
            : std::string("the same address");
    const std::string_view space =
        finding.memory ? std::string_view(finding.memory->space) : "global";
    finding.missing = MissingEdge(engine, race, space);
    finding.message = fmt::format(
        "{} at {} and {} at {} both touch {} ({} memory) without {} between them{}",
        finding.accesses[0].what, LineOf(engine, race.later.pc), finding.accesses[1].what,
        LineOf(engine, race.earlier.pc), where, space,
        race.race_class == Race::Class::kProxy ? "a proxy fence" : "an order",
        finding.kind == FindingKind::kSameValueRace ? "; both wrote the same value" : "");
    finding.statistics = {{.name = "occurrences", .value = static_cast<double>(race.occurrences)}};
    engine.findings.Add(std::move(finding), race.later.pc, race.earlier.pc);
  }
}

}  // namespace assay::emu
