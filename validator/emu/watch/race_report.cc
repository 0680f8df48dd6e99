#include "validator/emu/watch/race_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "validator/emu/program.h"
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
    if (device.program.code[pc].rules.effect == ptx::Effect::kBlock) return true;
  }
  return false;
}

/// True when a jump back stands behind a place in the code, to a place before it.
bool InLoop(const Device& device, std::uint32_t pc) {
  const Program::Impl& program = device.program;
  const FunctionCode& code = program.functions[program.function_of[pc]];
  for (std::uint32_t at = pc; at < code.end_pc; ++at) {
    const Decoded& op = program.code[at];
    if (op.source->opcode == ptx::Opcode::kBra && op.target <= pc) return true;
  }
  return false;
}

/// What stands between a copy and its use, in the order of the code. A use that stands before its
/// copy is the next round's.
struct WaitsBetween {
  std::uint32_t wait_pc = 0;  ///< The one that waits for most; 0: there is none.
  std::uint64_t left = 0;     ///< Groups that it leaves out.
  bool committed = true;      ///< It waits for all copies, or the copy was committed before it.
  bool barrier = false;       ///< That both threads pass: behind it; where there is none, anywhere.

  bool ShowToAll() const { return wait_pc != 0 && committed && left == 0 && barrier; }
};

WaitsBetween WaitsOn(const Device& device, const Race& race) {
  const Program::Impl& program = device.program;
  const std::uint32_t function = program.function_of[race.earlier.pc];
  WaitsBetween found;
  if (function != program.function_of[race.later.pc]) return found;
  bool committed = false;
  const auto walk = [&](std::uint32_t pc, std::uint32_t end) {
    for (; pc < end; ++pc) {
      const ptx::Instruction& in = program.InstructionAt(pc);
      const bool lanes_meet = race.same_warp && in.opcode == ptx::Opcode::kBarWarpSync;
      if (lanes_meet || program.code[pc].rules.effect == ptx::Effect::kBlock) found.barrier = true;
      if (in.opcode == ptx::Opcode::kCpAsyncCommitGroup) committed = true;
      const bool all = in.opcode == ptx::Opcode::kCpAsyncWaitAll;
      if (!all && in.opcode != ptx::Opcode::kCpAsyncWaitGroup) continue;
      const std::uint64_t left = all || in.operands.empty() ? 0 : in.operands[0].bits;
      const bool covers = all || committed;
      const bool better = covers == found.committed ? left < found.left : covers;
      if (found.wait_pc != 0 && !better) continue;
      found = {.wait_pc = pc, .left = left, .committed = covers, .barrier = false};
    }
  };
  const FunctionCode& code = program.functions[function];
  if (race.earlier.pc < race.later.pc) {
    walk(race.earlier.pc + 1, race.later.pc);
  } else {
    walk(race.earlier.pc + 1, code.end_pc - 1);
    walk(code.first_pc, race.later.pc);
  }
  return found;
}

RaceReach ReachOf(const Race& race) {
  return race.across_blocks  ? RaceReach::kGrid
         : race.across_warps ? RaceReach::kBlock
                             : RaceReach::kWarp;
}

bool IsPlainWrite(const RaceSide& side) {
  return side.kind == AccessKind::kWrite && !side.atomic && !side.async;
}

/// Of a copy that nobody has waited for, or whose arrival only its own thread knows of.
std::string MissingWait(const Device& device, const Race& race, std::string_view copy,
                        std::string_view use) {
  if (device.program.InstructionAt(race.earlier.pc).opcode != ptx::Opcode::kCpAsync) {
    return fmt::format(
        "no wait between the copy of {} and {}: the copy's mbarrier or bulk group says when it has "
        "arrived",
        copy, use);
  }
  const std::string wait =
      fmt::format("no cp.async.wait_group (or wait_all) between the copy of {} and {}", copy, use);
  const bool own = race.same_warp && race.earlier.lane == race.later.lane;
  const WaitsBetween waits = WaitsOn(device, race);
  if (waits.wait_pc == 0) {
    if (own) return wait;
    return wait + (waits.barrier ? ", before the barrier that other threads pass"
                                 : ", and no barrier behind it for other threads");
  }
  const std::string place = LineOf(device, waits.wait_pc);
  if (!waits.committed) {
    return fmt::format(
        "no cp.async.commit_group between the copy of {} and the wait at {}: it waits for groups "
        "that are committed",
        copy, place);
  }
  const std::string overtakes = fmt::format(
      "no barrier between {} and the copy of {} that comes after it, which overwrites what other "
      "threads still read",
      use, copy);
  if (waits.ShowToAll() && !own) return overtakes;
  if (waits.left > 0 && (own || waits.barrier)) {
    return fmt::format(
        "the wait at {} leaves the last {} out, and the copy of {} is among them: wait for more "
        "(cp.async.wait_group 0 waits for all){}",
        place, waits.left == 1 ? "group" : fmt::format("{} groups", waits.left), copy,
        own || !InLoop(device, race.earlier.pc) ? std::string()
                                                : "; or, if it is a later round's: " + overtakes);
  }
  if (own) return fmt::format("{} on every way: the one at {} was not passed", wait, place);
  return fmt::format(
      "a barrier behind the wait at {}, between the copy of {} and {}: cp.async.wait_group shows "
      "the data to the thread that waits, a barrier after it to the others{}",
      place, copy, use, waits.left == 0 ? std::string() : " (and it leaves the last groups out)");
}

/// Of two writes by one statement: no order makes both right.
std::string MissingGuard(const Device& device, const Race& race, RaceReach reach,
                         std::string_view line) {
  if (reach == RaceReach::kGrid) {
    return fmt::format(
        "a guard: nothing orders {0} in one block before {0} in another, and both write the "
        "element; "
        "let one block write it, or give each its own",
        line);
  }
  std::string text = fmt::format(
      "a guard: two threads write one element at {}; let one of them write it, or give each its "
      "own",
      line);
  const bool rounds = race.earlier.pc != race.later.pc || InLoop(device, race.later.pc);
  if (rounds && !race.one_instruction) {
    text +=
        fmt::format(" (where the writes belong to different rounds of a loop: a {} between them)",
                    reach == RaceReach::kWarp ? "__syncwarp()" : "barrier");
  }
  return text;
}

/// May the instruction hand on to, or learn from, threads of other blocks? `shadow`: stores or loads
/// besides atomics, but for copies of the one at `but`.
bool IsSignal(const Device& device, std::uint32_t pc, ptx::Shadow shadow, std::uint32_t but) {
  const Decoded& op = device.program.code[pc];
  const ptx::Instruction& in = *op.source;
  if (in.space != ptx::Space::kGlobal && in.space != ptx::Space::kGeneric) return false;
  if (op.rules.shadow == ptx::Shadow::kAtomic) return true;
  constexpr std::array kStrong = {ptx::Mod::kVolatile, ptx::Mod::kRelaxed, ptx::Mod::kAcquire,
                                  ptx::Mod::kRelease};
  return op.rules.shadow == shadow &&
         std::ranges::any_of(kStrong, [&](ptx::Mod mod) { return in.Has(mod); }) &&
         LineOf(device, pc) != LineOf(device, but);
}

/// The fence that releases, for other blocks, what `from` writes before it comes to `signal`: one that
/// its own thread passes, or that another passes behind a barrier of both. By the order of the code;
/// kNoPc: there is none.
std::uint32_t FenceBetween(const Device& device, std::uint32_t from, std::uint32_t signal) {
  bool met = false, parted = false;
  for (std::uint32_t pc = from + 1; pc < signal; ++pc) {
    const Decoded& op = device.program.code[pc];
    const ptx::Instruction& in = *op.source;
    if (op.rules.effect == ptx::Effect::kBlock) met = true;
    if (in.opcode == ptx::Opcode::kBra) parted = true;
    const bool narrow =
        in.Has(ptx::Mod::kCta) || in.Has(ptx::Mod::kCluster) || in.Has(ptx::Mod::kProxy);
    if (op.rules.effect == ptx::Effect::kFence && !narrow && (met || !parted)) return pc;
  }
  return kNoPc;
}

/// Where store, fence and signal are there and the reader was too early all the same; else empty.
std::string MissingWaitFor(const Device& device, std::uint32_t from, std::uint32_t to,
                           std::string_view who) {
  const std::optional<Signal> signal = SignalBetween(device, from, to);
  if (!signal) return {};
  const std::uint32_t fence = FenceBetween(device, from, signal->write_pc);
  if (fence == kNoPc) return {};
  return fmt::format(
      "a wait: the {} came to {} before the fence at {} behind {} was passed; what ended the wait "
      "at {} was there already (a count that goes on from an earlier meeting, a flag that was not "
      "taken back, a condition that holds too early)",
      who, LineOf(device, to), LineOf(device, fence), LineOf(device, from),
      LineOf(device, signal->read_pc));
}

std::string MissingEdge(const Device& device, const Race& race, RaceReach reach,
                        std::string_view space) {
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
    case Race::Class::kEnded:
      return std::string(kMissingLife);
    default:
      break;
  }
  if (race.earlier.async && race.earlier.kind != AccessKind::kRead)
    return MissingWait(device, race, from, to);
  if (IsPlainWrite(race.earlier) && IsPlainWrite(race.later) && from == to)
    return MissingGuard(device, race, reach, from);
  if (reach == RaceReach::kGrid && space == "shared")
    return fmt::format("no barrier of the cluster between {} and {}", from, to);
  if (reach == RaceReach::kGrid) {
    if (race.gap && race.gap->kind == OrderGap::Kind::kAcquire)
      return MissingAcquire(device, *race.gap, from, to, "reader");
    if (race.gap && SignalBetween(device, race.earlier.pc, race.later.pc))
      return MissingRelease(device, *race.gap, race.earlier.pc, race.later.pc, "reader");
    // Who was to read what is written then has read before.
    if (race.earlier.kind == AccessKind::kRead && IsPlainWrite(race.later)) {
      if (std::string wait = MissingWaitFor(device, race.later.pc, race.earlier.pc, "reader");
          !wait.empty())
        return wait;
    }
    return fmt::format(
        "nothing orders {} in one block before {} in another: use atomics, or another launch", from,
        to);
  }
  const std::string_view what = reach == RaceReach::kWarp ? "__syncwarp()" : "barrier";
  const std::uint32_t low = std::min(race.earlier.pc, race.later.pc);
  const std::uint32_t high = std::max(race.earlier.pc, race.later.pc);
  if (HasBarrier(device, low, high) && !InLoop(device, high)) {
    return fmt::format("a barrier between {} and {} that both threads take part in",
                       LineOf(device, low), LineOf(device, high));
  }
  if (HasBarrier(device, low, high)) {
    // The two are separated in one direction: what is open is the way round, through the loop.
    return fmt::format("no {} between {} and the next round's {}", what, LineOf(device, high),
                       LineOf(device, low));
  }
  if (from == to) {
    return fmt::format("no {} between the accesses of {}: its rounds, or its reads and its writes",
                       what, from);
  }
  return fmt::format("no {} between {} and {}", what, LineOf(device, low), LineOf(device, high));
}

/// By the lines of both sides: unrolled copies of a line are one place, whose widest race decides
/// what order is missing.
using Lines = std::pair<std::string, std::string>;
Lines LinesOf(const Device& device, const Race& race) {
  Lines lines = {LineOf(device, race.earlier.pc), LineOf(device, race.later.pc)};
  if (lines.second < lines.first) std::swap(lines.first, lines.second);
  return lines;
}

FindingKind KindOf(Race::Class race_class) {
  if (race_class == Race::Class::kSameValue) return FindingKind::kSameValueRace;
  if (race_class == Race::Class::kReadOnlyCache) return FindingKind::kReadOnlyCacheWrite;
  if (race_class == Race::Class::kEnded) return FindingKind::kUseAfterFree;
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

std::optional<Signal> SignalBetween(const Device& device, std::uint32_t from, std::uint32_t to) {
  const Program::Impl& program = device.program;
  const std::uint32_t function = program.function_of[from];
  if (function != program.function_of[to]) return std::nullopt;
  const FunctionCode& code = program.functions[function];
  Signal signal;
  for (std::uint32_t pc = from + 1; pc < code.end_pc && signal.write_pc == kNoPc; ++pc) {
    if (IsSignal(device, pc, ptx::Shadow::kStore, from)) signal.write_pc = pc;
  }
  for (std::uint32_t pc = to; pc-- > code.first_pc && signal.read_pc == kNoPc;) {
    const Decoded& op = program.code[pc];
    if (IsSignal(device, pc, ptx::Shadow::kLoad, to) && (op.flags & kFlagResultUsed) != 0)
      signal.read_pc = pc;
    signal.fenced = signal.fenced || op.rules.effect == ptx::Effect::kFence;
  }
  if (signal.write_pc == kNoPc || signal.read_pc == kNoPc) return std::nullopt;
  return signal;
}

std::string MissingRelease(const Device& device, const OrderGap& gap, std::uint32_t from_pc,
                           std::uint32_t to_pc, std::string_view who) {
  const std::string from = LineOf(device, from_pc);
  const std::string to = LineOf(device, to_pc);
  const std::optional<Signal> signal = SignalBetween(device, from_pc, to_pc);
  const std::string by =
      signal ? fmt::format("the {} at {}", VerbOf(device.program.InstructionAt(signal->write_pc)),
                           LineOf(device, signal->write_pc))
             : std::string("the store or atomic");
  const std::string which =
      signal ? std::string(", which orders nothing by itself") : std::string(" that signals it");
  std::string text;
  switch (gap.kind) {
    case OrderGap::Kind::kScope:
      return fmt::format(
          "a scope that includes both blocks: what was released behind {} and read before {} is "
          "for its own block only (a fence of the device is __threadfence())",
          from, to);
    case OrderGap::Kind::kSignal:
      text = fmt::format(
          "a release behind {} that the {} has seen: the fence belongs between it and {}{}, and "
          "nothing that the thread at {} has read was written behind one",
          from, who, by, signal ? "" : which, to);
      break;
    default:
      if (std::string wait = MissingWaitFor(device, from_pc, to_pc, who); !wait.empty())
        return wait;
      text = fmt::format(
          "a release behind {}: __threadfence() between it and {}{}, or a release "
          "there",
          from, by, which);
  }
  if (signal && !signal->fenced) {
    text += fmt::format("; and an acquire before {}: __threadfence() behind {}, for the {}", to,
                        LineOf(device, signal->read_pc), who);
  }
  return text;
}

void ReportRaces(Device& device) {
  std::map<Lines, RaceReach> reaches;
  for (std::size_t i = device.reported_races; i < device.race->races().size(); ++i) {
    const Race& race = device.race->races()[i];
    RaceReach& reach = reaches[LinesOf(device, race)];
    reach = std::max(reach, ReachOf(race));
  }
  for (; device.reported_races < device.race->races().size(); ++device.reported_races) {
    const Race& race = device.race->races()[device.reported_races];
    Finding finding;
    finding.kind = KindOf(race.race_class);
    finding.accesses = {SideOf(device, race.later), SideOf(device, race.earlier)};
    const bool is_end = race.race_class == Race::Class::kEnded;
    if (is_end) finding.accesses[1].what = "exit";
    finding.memory = PlaceOfRace(device, race);
    const std::string where =
        finding.memory && !finding.memory->buffer.empty()
            ? fmt::format("{}[{}]", finding.memory->buffer, finding.memory->index)
            : std::string("the same address");
    const std::string_view space =
        finding.memory ? std::string_view(finding.memory->space) : "global";
    const RaceReach reach = reaches[LinesOf(device, race)];
    finding.missing = MissingEdge(device, race, reach, space);
    finding.message =
        is_end
            ? fmt::format("{} at {} of {} in shared memory of another block, which may have ended",
                          finding.accesses[0].what, LineOf(device, race.later.pc), where)
            : fmt::format(
                  "{} at {} and {} at {} both touch {} ({} memory) without {} between "
                  "them{}",
                  finding.accesses[0].what, LineOf(device, race.later.pc), finding.accesses[1].what,
                  LineOf(device, race.earlier.pc), where, space,
                  race.race_class == Race::Class::kProxy ? "a proxy fence" : "an order",
                  finding.kind == FindingKind::kSameValueRace ? "; both wrote the same value" : "");
    finding.statistics = {{.name = "occurrences", .value = static_cast<double>(race.occurrences)},
                          StatisticOf(reach)};
    device.findings.Add(std::move(finding), race.later.pc, race.earlier.pc);
  }
}

}  // namespace assay::emu
