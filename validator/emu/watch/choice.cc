#include "validator/emu/watch/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/undefined.h"
#include "validator/ptx/isa.h"

namespace assay::emu {
namespace {

using ptx::Effect;

/// Does the instruction leave nothing but registers behind, and go on? Of those that the core flags
/// as reaching memory or control.
bool OnlyWritesRegisters(const Decoded& op) {
  if ((op.flags & (kFlagControl | kFlagMemory)) == 0) return true;
  if (ptx::WritesMemory(ptx::FormOf(*op.source))) return false;
  switch (op.rules.effect) {
    case Effect::kNone:
    case Effect::kBranch:
    case Effect::kTable:
    case Effect::kWarp:
    case Effect::kFence:
      return true;
    default:
      return false;
  }
}

/// Where control goes from `pc`; the end of the function is `exit`.
void Successors(const Program::Impl& program, std::uint32_t pc, std::uint32_t exit,
                std::vector<std::uint32_t>& next) {
  next.clear();
  const Decoded& op = program.code[pc];
  const bool falls = op.guard != kNoSlot;
  switch (op.rules.effect) {
    case Effect::kBranch:
      next.push_back(op.target);
      if (falls) next.push_back(pc + 1);
      return;
    case Effect::kTable:
      next = program.branch_tables[op.aux];
      if (falls) next.push_back(pc + 1);
      return;
    case Effect::kReturn:
    case Effect::kExit:
    case Effect::kTrap:
      next.push_back(exit);
      if (falls) next.push_back(pc + 1);
      return;
    default:
      next.push_back(pc + 1);
  }
}

std::string Sink(const CoreWarp& warp, std::uint32_t effect) {
  const Decoded& op = warp.At(effect);
  const bool leaves = op.rules.effect == Effect::kReturn || op.rules.effect == Effect::kExit;
  return fmt::format("whether {} at {} happens depends",
                     leaves ? std::string("the end of the thread") : "the " + VerbOf(*op.source),
                     LineOf(*warp.device, effect));
}

}  // namespace

/// Immediate post-dominators, by the iteration of Cooper, Harvey and Kennedy (2001) over the
/// reversed graph of instructions.
const std::vector<std::uint32_t>& ChoiceRegions::MeetingPoints(std::uint32_t function) {
  const auto [found, inserted] = meeting_.try_emplace(function);
  std::vector<std::uint32_t>& up = found->second;
  if (!inserted) return up;
  const FunctionCode& code = program_.functions[function];
  const std::uint32_t first = code.first_pc;
  const std::uint32_t exit = code.end_pc;
  const std::uint32_t count = exit - first;
  std::vector<std::vector<std::uint32_t>> before(count + 1);
  std::vector<std::vector<std::uint32_t>> after(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Successors(program_, first + i, exit, after[i]);
    for (std::uint32_t& next : after[i]) {
      next -= first;
      before[next].push_back(i);
    }
  }
  // Reverse post-order of the reversed graph, from the exit.
  constexpr std::uint32_t kUnseen = 0xffffffffu;
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> rank(count + 1, kUnseen);
  std::vector<std::uint8_t> seen(count + 1);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack = {{count, 0}};
  seen[count] = 1;
  while (!stack.empty()) {
    auto& [node, child] = stack.back();
    if (child < before[node].size()) {
      const std::uint32_t next = before[node][child++];
      if (seen[next] == 0) {
        seen[next] = 1;
        stack.emplace_back(next, 0);
      }
    } else {
      rank[node] = static_cast<std::uint32_t>(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  }
  up.assign(count + 1, kUnseen);
  up[count] = count;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = order.size() - 1; i-- > 0;) {
      const std::uint32_t node = order[i];
      std::uint32_t meet = kUnseen;
      for (std::uint32_t next : after[node]) {
        if (up[next] == kUnseen) continue;
        if (meet == kUnseen) {
          meet = next;
          continue;
        }
        std::uint32_t other = next;
        while (meet != other) {
          while (rank[meet] < rank[other]) meet = up[meet];
          while (rank[other] < rank[meet]) other = up[other];
        }
      }
      if (up[node] != meet) {
        up[node] = meet;
        changed = true;
      }
    }
  }
  return up;
}

const ChoiceRegion& ChoiceRegions::At(std::uint32_t branch) {
  const auto [found, inserted] = regions_.try_emplace(branch);
  ChoiceRegion& region = found->second;
  if (!inserted) return region;
  const FunctionCode& code = program_.functions[program_.function_of[branch]];
  const std::uint32_t up = MeetingPoints(program_.function_of[branch])[branch - code.first_pc];
  if (up < code.end_pc - code.first_pc) region.join = code.first_pc + up;
  std::vector<bool> seen(code.end_pc - code.first_pc);
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> open;
  Successors(program_, branch, code.end_pc, open);
  while (!open.empty()) {
    const std::uint32_t pc = open.back();
    open.pop_back();
    if (pc == region.join || pc >= code.end_pc || seen[pc - code.first_pc]) continue;
    seen[pc - code.first_pc] = true;
    const Decoded& op = program_.code[pc];
    if (!OnlyWritesRegisters(op)) region.effect = std::min(region.effect, pc);
    for (std::size_t d = 0; d < op.destinations; ++d) {
      if (op.operands[d].kind == DecodedOperand::Kind::kSlot ||
          op.operands[d].kind == DecodedOperand::Kind::kPredicate)
        region.written.push_back(op.operands[d].shadow);
    }
    Successors(program_, pc, code.end_pc, next);
    open.insert(open.end(), next.begin(), next.end());
  }
  std::ranges::sort(region.written);
  const auto twice = std::ranges::unique(region.written);
  region.written.erase(twice.begin(), twice.end());
  return region;
}

void BranchByChoice(CoreWarp& warp, const Decoded& op, LaneMask chosen, std::uint32_t origin) {
  Device& device = *warp.device;
  if (!device.choice_regions)
    device.choice_regions = std::make_shared<ChoiceRegions>(device.program);
  const std::uint32_t pc = warp.PcOf(op);
  const ChoiceRegion& region = device.choice_regions->At(pc);
  if (region.effect != kNoPc || region.join == kNoPc) {
    const std::uint32_t effect = region.effect == kNoPc ? pc : region.effect;
    return ReportChoice(warp, pc, chosen, Sink(warp, effect), "branch", origin);
  }
  // Whichever side writes them.
  for (const std::uint32_t shadow : region.written) SetChosen(*warp.frame, shadow, chosen, origin);
  for (ChosenPath& path : warp.chosen_paths) {
    if (path.frame != warp.frame || path.branch != pc) continue;
    path.lanes |= chosen;
    return;
  }
  warp.chosen_paths.push_back(
      {.frame = warp.frame, .branch = pc, .join = region.join, .lanes = chosen, .origin = origin});
}

bool DecideByChoice(CoreWarp& warp, const Decoded& op, LaneMask chosen) {
  const FunctionCode& code = warp.device->program.functions[warp.frame->function];
  const std::uint32_t origin = warp.frame->origin[code.slot_count + op.guard];
  if (op.rules.effect == Effect::kBranch || op.rules.effect == Effect::kTable) {
    BranchByChoice(warp, op, chosen, origin);
    return true;
  }
  if (!OnlyWritesRegisters(op) || (op.flags & kFlagControl) != 0) {
    const std::uint32_t pc = warp.PcOf(op);
    ReportChoice(warp, pc, chosen, Sink(warp, pc), VerbOf(*op.source), origin);
    return true;
  }
  if (warp.exec != 0) {
    if (op.propagate != kPropagateSelf) Propagate(warp, op);
    op.monitored(warp, op);
    MarkPathResults(warp, op);
  }
  for (std::size_t d = 0; d < op.destinations; ++d) {
    if (op.operands[d].kind != DecodedOperand::Kind::kSink)
      SetChosen(*warp.frame, op.operands[d].shadow, chosen, origin);
  }
  return false;
}

bool FollowPaths(CoreWarp& warp, std::uint32_t pc) {
  std::erase_if(warp.chosen_paths, [&](ChosenPath& path) {
    if (path.frame == warp.frame && path.join == pc) {
      const LaneMask here = path.lanes & warp.active;
      if (here != 0) {
        for (const std::uint32_t shadow : warp.device->choice_regions->At(path.branch).written)
          SetChosen(*warp.frame, shadow, here, path.origin);
      }
      path.lanes &= ~here;
    }
    path.lanes &= warp.alive;
    return path.lanes == 0;
  });
  return !warp.chosen_paths.empty();
}

void MarkPathResults(CoreWarp& warp, const Decoded& op) {
  for (const ChosenPath& path : warp.chosen_paths) {
    const LaneMask lanes = path.lanes & warp.exec;
    if (path.frame != warp.frame || lanes == 0) continue;
    for (std::size_t d = 0; d < op.destinations; ++d) {
      if (op.operands[d].kind != DecodedOperand::Kind::kSink)
        SetChosen(*warp.frame, op.operands[d].shadow, lanes, path.origin);
    }
  }
}

}  // namespace assay::emu
