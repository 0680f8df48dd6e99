#include "validator/emu/passing.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "validator/emu/site.h"

namespace assay::emu {
namespace {

/// Where in its function control can flow to from there, by pc less the function's first.
std::vector<bool> ReachedFrom(const Program::Impl& program, std::uint32_t from) {
  const FunctionCode& code = program.functions[program.function_of[from]];
  std::vector<bool> seen(code.end_pc - code.first_pc);
  std::vector<std::uint32_t> open = {from};
  while (!open.empty()) {
    const std::uint32_t pc = open.back();
    open.pop_back();
    if (pc < code.first_pc || pc >= code.end_pc || seen[pc - code.first_pc]) continue;
    seen[pc - code.first_pc] = true;
    const Decoded& op = program.code[pc];
    const ptx::Effect effect = op.rules.effect;
    const bool jumps = effect == ptx::Effect::kBranch;
    if (jumps) open.push_back(op.target);
    if (effect == ptx::Effect::kTable)
      open.insert(open.end(), program.branch_tables[op.aux].begin(),
                  program.branch_tables[op.aux].end());
    const bool leaves = jumps || effect == ptx::Effect::kReturn || effect == ptx::Effect::kExit;
    if (!leaves || op.guard != kNoSlot) open.push_back(pc + 1);
  }
  return seen;
}

/// True when control can flow from `from` to `to` within a function. Few places are asked about, each of them
/// at every turn of every warp that waits there.
bool Reaches(Device& device, std::uint32_t from, std::uint32_t to) {
  const Program::Impl& program = device.program;
  if (program.function_of[to] != program.function_of[from]) return false;
  std::vector<bool>& reached = device.reached_from[from];
  if (reached.empty()) reached = ReachedFrom(program, from);
  return reached[to - program.functions[program.function_of[from]].first_pc];
}

}  // namespace

void NotePassing(CoreWarp& warp, std::uint32_t first, std::uint32_t last) {
  const Split& running = warp.splits[static_cast<std::size_t>(warp.current)];
  for (int i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[static_cast<std::size_t>(i)];
    const LaneMask awaited = split.need & running.mask & ~split.passed;
    if (i == warp.current || split.wait != Wait::kWarpSync || split.frame != running.frame ||
        awaited == 0)
      continue;
    for (std::uint32_t pc = first; pc < last; ++pc) {
      if ((warp.At(pc).flags & kFlagMemory) == 0) continue;
      if (!Reaches(*warp.device, split.pc, pc)) continue;
      split.passed |= awaited;
      split.passed_at = pc;
      break;
    }
  }
}

void ReportPassing(CoreWarp& warp, LaneMask lanes) {
  Device& device = *warp.device;
  if (!device.execution.checks.barrier) return;
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    const LaneMask passed = split.passed & split.need & lanes;
    if (split.wait != Wait::kWarpSync || passed == 0) continue;
    const auto side = [&](std::string what, std::uint32_t pc, LaneMask who) {
      return Access{.what = std::move(what),
                    .site = SiteOf(device, pc),
                    .thread = ThreadOf(warp, FirstLane(who)),
                    .threads = static_cast<std::uint64_t>(std::popcount(who)),
                    .value = {}};
    };
    const std::string_view name = ptx::Mnemonic(warp.At(split.pc).source->opcode);
    Finding finding;
    finding.kind = FindingKind::kBarrierMisuse;
    finding.message = fmt::format(
        "{} names lanes {:#010x} in its mask, but lanes {:#010x} go on to {} without it and exit",
        name, split.need, passed, LineOf(device, split.passed_at));
    finding.accesses = {side(fmt::format("waits in {}", name), split.pc, split.mask),
                        side("passes by", split.passed_at, passed)};
    finding.missing = "every lane named in the mask must execute the same instruction";
    device.findings.Add(std::move(finding), split.pc, split.passed_at);
  }
}

void ReportPassedBarrier(CoreWarp& warp, LaneMask lanes) {
  Device& device = *warp.device;
  const std::uint32_t passed_at = warp.last_access;
  if (!device.execution.checks.barrier || passed_at == kNoPc) return;
  for (std::uint32_t id = 0; id < warp.block->barriers.size(); ++id) {
    const NamedBarrier& barrier = warp.block->barriers[id];
    if (!barrier.open || barrier.expected != 0) continue;
    // Not when the barrier lies ahead as well: in a loop, the access belongs to a round before.
    if (!Reaches(device, barrier.first_pc, passed_at) ||
        Reaches(device, passed_at, barrier.first_pc))
      continue;
    const CoreWarp* waiting = nullptr;
    for (const auto& other : warp.block->warps) {
      if (waiting == nullptr && (barrier.lanes[other->index] & other->alive) != 0)
        waiting = other.get();
    }
    if (waiting == nullptr) continue;
    const LaneMask waits = barrier.lanes[waiting->index];
    const auto side = [&](std::string what, std::uint32_t pc, const CoreWarp& of, LaneMask who) {
      return Access{.what = std::move(what),
                    .site = SiteOf(device, pc),
                    .thread = ThreadOf(of, FirstLane(who)),
                    .threads = static_cast<std::uint64_t>(std::popcount(who)),
                    .value = {}};
    };
    Finding finding;
    finding.kind = FindingKind::kBarrierDivergence;
    finding.message = fmt::format(
        "barrier {} is not reached by all threads of the block: some go on to {} without it and "
        "exit",
        id, LineOf(device, passed_at));
    finding.accesses = {
        side(fmt::format("waits at barrier {}", id), barrier.first_pc, *waiting, waits),
        side("passes by", passed_at, warp, lanes)};
    finding.missing = "all threads of the block must reach the same barrier";
    device.findings.Add(std::move(finding), barrier.first_pc, passed_at);
  }
}

}  // namespace assay::emu
