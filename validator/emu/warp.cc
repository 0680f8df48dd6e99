// Splits of a warp and the dispatch loop.
#include <algorithm>
#include <bit>

#include "validator/emu/handlers/warp_sync.h"
#include "validator/emu/passing.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/shadow/tracker.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/choice.h"
#include "validator/emu/watch/costs.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/undefined.h"
#include "validator/emu/weak/stale.h"
#include "validator/emu/work.h"

namespace assay::emu {
namespace {

/// How long the turn of a split is that was passed over for long.
constexpr std::uint64_t kFairTurn = 1024;

bool SamePlace(const Split& a, const Split& b) { return a.pc == b.pc && a.frame == b.frame; }
bool Mergeable(const Split& split) {
  return split.wait == Wait::kReady || split.wait == Wait::kWarpSync;
}

void Remove(CoreWarp& warp, int index) {
  warp.splits[static_cast<std::size_t>(index)] =
      warp.splits[static_cast<std::size_t>(--warp.split_count)];
}

/// Joins splits that stand at the same place. One that waits there for others becomes ready with
/// them.
void MergeSplits(CoreWarp& warp) {
  for (int i = 0; i < warp.split_count; ++i) {
    Split& a = warp.splits[static_cast<std::size_t>(i)];
    if (!Mergeable(a)) continue;
    for (int j = i + 1; j < warp.split_count;) {
      Split& b = warp.splits[static_cast<std::size_t>(j)];
      if (!Mergeable(b) || !SamePlace(a, b)) {
        ++j;
        continue;
      }
      a.mask |= b.mask;
      a.wait = Wait::kReady;
      a.passed_over = std::max(a.passed_over, b.passed_over);
      Remove(warp, j);
    }
  }
}

/// Deepest call first, then lowest pc: lanes that are behind catch up with those that wait at the
/// join.
bool GoesFirst(const Split& a, const Split& b) {
  return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc;
}

int ChooseSplit(CoreWarp& warp, bool& fair_turn) {
  fair_turn = false;
  if (warp.split_count == 1) return warp.splits[0].wait == Wait::kReady ? 0 : -1;
  MergeSplits(warp);
  int best = -1;
  int oldest = -1;
  int ready = 0;
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (split.wait != Wait::kReady) continue;
    ++ready;
    if (best < 0 || GoesFirst(split, warp.splits[static_cast<std::size_t>(best)])) best = i;
    if (oldest < 0 || split.passed_over > warp.splits[static_cast<std::size_t>(oldest)].passed_over)
      oldest = i;
  }
  if (ready < 2) return best;
  if (warp.splits[static_cast<std::size_t>(oldest)].passed_over >= kSplitPatience) {
    fair_turn = true;
    return oldest;
  }
  const Schedule::Policy policy = warp.device->execution.schedule.policy;
  if (policy == Schedule::Policy::kSequential) return best;
  // The other side of a divergence first: it is as legal an order as any.
  if (policy == Schedule::Policy::kReversed) {
    for (int i = 0; i < warp.split_count; ++i) {
      const Split& split = warp.splits[static_cast<std::size_t>(i)];
      if (split.wait == Wait::kReady &&
          GoesFirst(warp.splits[static_cast<std::size_t>(best)], split))
        best = i;
    }
    return best;
  }
  if (warp.device->rng.Below(4) != 0) return best;
  auto nth = warp.device->rng.Below(static_cast<std::uint64_t>(ready));
  for (int i = 0; i < warp.split_count; ++i) {
    if (warp.splits[static_cast<std::size_t>(i)].wait == Wait::kReady && nth-- == 0) return i;
  }
  return best;
}

/// The next pc at which another split stands that could join the running one.
std::uint32_t NextMeeting(const CoreWarp& warp) {
  std::uint32_t limit = kNoPc;
  const Split& running = warp.splits[static_cast<std::size_t>(warp.current)];
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (i == warp.current || !Mergeable(split) || split.frame != running.frame) continue;
    if (split.pc > running.pc) limit = std::min(limit, split.pc);
  }
  return limit;
}

/// A guard with undefined lanes. Returns those of them that the machine decides.
[[gnu::noinline]] LaneMask JudgeGuard(CoreWarp& warp, const Decoded& op, LaneMask lanes) {
  const FunctionCode& code = warp.device->program.functions[warp.frame->function];
  const std::uint32_t shadow = code.slot_count + op.guard;
  if (warp.device->execution.follow_undefined) return lanes;
  const LaneMask chosen = lanes & ChosenLanes(*warp.frame, shadow);
  if (const LaneMask unset = lanes & ~chosen; unset != 0) {
    ReportUndefined(warp, warp.PcOf(op), unset, "a branch was decided by undefined bytes", "branch",
                    warp.frame->origin[shadow]);
  }
  return chosen;
}

/// Before the handler runs: which destinations will be undefined.
void PropagateQuickly(CoreWarp& warp, const Decoded& op) {
  Frame& frame = *warp.frame;
  LaneMask undefined = 0;
  for (std::size_t i = op.destinations; i < op.operand_count; ++i) {
    const DecodedOperand& operand = op.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSink || operand.kind == DecodedOperand::Kind::kNone)
      continue;
    undefined |= frame.undefined[operand.shadow];
  }
  // Results of warp-wide instructions come from other lanes' sources as well.
  if ((undefined & warp.exec) != 0) [[unlikely]]
    return PropagateUndefined(warp, op);
  for (std::size_t i = 0; i < op.destinations; ++i) {
    if (op.operands[i].kind == DecodedOperand::Kind::kSink) continue;
    frame.undefined[op.operands[i].shadow] &= ~warp.exec;
  }
}

/// Who looks on while instructions run.
enum class Watch : std::uint8_t {
  kNobody,
  kMonitors,
  kPaths,  ///< Monitors, while some lanes follow a path that the machine chose (choice.h).
  kShadows,
  kCosts
};

template <Watch kWatch>
std::uint64_t RunSplit(CoreWarp& warp, std::uint64_t budget, std::uint32_t limit) {
  const Decoded* const code = warp.device->program.code.data();
  constexpr bool kMonitored = kWatch == Watch::kMonitors || kWatch == Watch::kPaths;
  const bool track = kMonitored && warp.device->track_defined;
  std::uint32_t pc = warp.pc;
  std::uint64_t ran = 0;
  std::uint64_t extra = 0;
  std::uint64_t work = 0;
  const LaneMask entered = warp.active;
  warp.outcome = Outcome::kNext;
  while (ran < budget) {
    if constexpr (kWatch == Watch::kPaths) {
      if (!FollowPaths(warp, pc)) break;
    }
    const Decoded& op = code[pc];
    LaneMask exec = warp.active;
    if (op.guard != kNoSlot) {
      const LaneMask predicate = warp.predicates[op.guard];
      exec &= op.guard_negated ? ~predicate : predicate;
      if constexpr (kMonitored) {
        if (track) {
          const std::uint32_t shadow =
              warp.device->program.functions[warp.frame->function].slot_count + op.guard;
          const LaneMask undefined = warp.frame->undefined[shadow] & warp.active;
          if (undefined != 0) [[unlikely]] {
            const LaneMask chosen = JudgeGuard(warp, op, undefined);
            warp.exec = exec;
            if (chosen != 0 && !DecideByChoice(warp, op, chosen)) {
              ++ran;
              ++pc;
              if (warp.outcome == Outcome::kStop || pc == limit) break;
              continue;
            }
          }
        }
      }
    }
    warp.exec = exec;
    ++ran;
    if ((op.flags & kFlagControl) == 0) [[likely]] {
      ++pc;
      if (exec != 0) {
        if constexpr (kMonitored) {
          if (track && op.propagate != kPropagateSelf) PropagateQuickly(warp, op);
          op.monitored(warp, op);
          if constexpr (kWatch == Watch::kPaths) MarkPathResults(warp, op);
        } else if constexpr (kWatch == Watch::kShadows) {
          warp.device->shadow->Execute(warp, op);
        } else if constexpr (kWatch == Watch::kCosts) {
          warp.device->costs->Execute(warp, op);
        } else {
          op.run(warp, op);
        }
        if ((op.flags & (kFlagMemory | kFlagFence)) != 0) {
          work += op.extra_work;
          if (warp.outcome >= Outcome::kYield) break;
        }
      }
    } else {
      warp.pc = pc;
      warp.outcome = Outcome::kNext;
      const bool warp_wide = (op.flags & kFlagWarpWide) != 0;
      const bool joined = !warp_wide || JoinWholeWarp(warp);
      if (warp_wide && joined) extra += ExtraSteps(*op.source);
      if (joined) work += op.extra_work;
      if (!joined) {
        // No lane passes the guard, or the warp is not complete yet.
      } else if constexpr (kMonitored) {
        if (track && (op.flags & kFlagWarpWide) != 0 && op.propagate != kPropagateSelf)
          PropagateQuickly(warp, op);
        op.monitored(warp, op);
        if constexpr (kWatch == Watch::kPaths) MarkPathResults(warp, op);
      } else if constexpr (kWatch == Watch::kShadows) {
        warp.device->shadow->Execute(warp, op);
      } else if constexpr (kWatch == Watch::kCosts) {
        warp.device->costs->Execute(warp, op);
      } else {
        op.run(warp, op);
      }
      if (warp.outcome == Outcome::kNext) {
        ++pc;
        if constexpr (kWatch == Watch::kMonitors) {
          if (!warp.chosen_paths.empty()) [[unlikely]]
            break;
        }
      } else if (warp.outcome == Outcome::kJump) {
        pc = warp.pc;
        if (warp.split_count > 1) break;
        if constexpr (kWatch == Watch::kMonitors) {
          if (!warp.chosen_paths.empty()) [[unlikely]]
            break;
        }
        continue;
      } else if (warp.outcome == Outcome::kYield) {
        ++pc;
        break;
      } else {
        pc = warp.pc;
        break;
      }
    }
    if (pc == limit) break;
  }
  warp.pc = pc;
  warp.device->counters.steps += ran * static_cast<std::uint64_t>(std::popcount(entered)) + extra;
  warp.device->counters.warp_steps += ran;
  warp.device->counters.work += ran + work;
  return ran;
}

bool SomeoneWaits(const CoreWarp& warp) {
  for (int i = 0; i < warp.split_count; ++i) {
    if (warp.splits[static_cast<std::size_t>(i)].wait == Wait::kWarpSync) return true;
  }
  return false;
}

}  // namespace

void Enter(CoreWarp& warp, const Split& split) {
  warp.pc = split.pc;
  warp.active = split.mask;
  warp.frame = split.frame;
  warp.slots = split.frame->slots;
  warp.predicates = split.frame->predicates;
}

void AddSplit(CoreWarp& warp, std::uint32_t pc, LaneMask mask, Frame* frame, Wait wait,
              LaneMask need, std::uint8_t barrier) {
  if (mask == 0) return;
  Split added{.pc = pc,
              .mask = mask,
              .depth = frame->depth,
              .wait = wait,
              .barrier = barrier,
              .need = need,
              .frame = frame};
  for (int i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (i == warp.current || !SamePlace(split, added)) continue;
    if (split.wait == Wait::kBarrier && wait == Wait::kBarrier && split.barrier == barrier) {
      split.mask |= mask;
      return;
    }
    if (Mergeable(split) && Mergeable(added)) {
      split.mask |= mask;
      split.wait = Wait::kReady;
      return;
    }
  }
  warp.splits[static_cast<std::size_t>(warp.split_count++)] = added;
}

void ExitLanes(CoreWarp& warp, LaneMask lanes) {
  if (warp.split_count > 1) {
    NotePassing(warp, warp.turn_start, warp.pc);
    ReportPassing(warp, lanes);
  }
  ReportPassedBarrier(warp, lanes);
  warp.alive &= ~lanes;
  warp.active &= ~lanes;
  warp.device->last_progress = warp.device->counters.steps;
  if (warp.device->race) warp.device->race->OnThreadExit(warp.number, lanes, warp.pc - 1);
  // Those who waited for the lanes that are gone look again.
  for (int i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (split.wait == Wait::kWarpSync) split.wait = Wait::kReady;
  }
  RecheckBarriers(*warp.block);
  RecheckCluster(*warp.block);
}

/// Schedule::hold: is it this warp that waits? Not for ever: the others may need it.
bool IsHeld(CoreWarp& warp) {
  constexpr std::uint64_t kPatience = 400'000;
  Device& device = *warp.device;
  HoldState& hold = device.hold;
  if (warp.number != hold.pair->first_warp || device.launch.number != hold.pair->launch ||
      warp.strong_accesses + 1 != hold.pair->first_access)
    return false;
  if (hold.since == 0) hold.since = device.counters.steps + 1;
  hold.waits = true;
  if (device.counters.steps + 1 - hold.since <= kPatience) return true;
  hold.pair = nullptr;
  return false;
}

std::uint64_t RunWarp(CoreWarp& warp, std::uint64_t budget) {
  Device& device = *warp.device;
  if (device.hold.pair != nullptr && warp.alive != 0 && IsHeld(warp)) return 0;
  std::uint64_t ran = 0;
  while (ran < budget && warp.alive != 0 && !device.stopped) {
    if (device.stale != nullptr) [[unlikely]]
      device.stale->FinishLoads(warp);
    bool fair_turn = false;
    const int chosen = ChooseSplit(warp, fair_turn);
    if (chosen < 0) break;
    warp.current = chosen;
    warp.splits[static_cast<std::size_t>(chosen)].passed_over = 0;
    Enter(warp, warp.splits[static_cast<std::size_t>(chosen)]);
    std::uint64_t turn = budget - ran;
    if (fair_turn) turn = std::min(turn, kFairTurn);
    const std::uint32_t limit = warp.split_count > 1 ? NextMeeting(warp) : kNoPc;
    const bool awaited = warp.split_count > 1 && SomeoneWaits(warp);
    warp.turn_start = warp.pc;
    const std::uint64_t now =
        !warp.chosen_paths.empty() ? RunSplit<Watch::kPaths>(warp, turn, limit)
        : device.monitored         ? RunSplit<Watch::kMonitors>(warp, turn, limit)
        : device.shadow != nullptr ? RunSplit<Watch::kShadows>(warp, turn, limit)
        : device.costs != nullptr  ? RunSplit<Watch::kCosts>(warp, turn, limit)
                                   : RunSplit<Watch::kNobody>(warp, turn, limit);
    ran += now;
    warp.executed += now;
    // Of several splits, each turn is a straight line of code.
    if (awaited) {
      NotePassing(warp, warp.turn_start, warp.turn_start + static_cast<std::uint32_t>(now));
    }
    Split& split = warp.splits[static_cast<std::size_t>(chosen)];
    split.pc = warp.pc;
    split.mask = warp.active;
    split.frame = warp.frame;
    split.depth = warp.frame->depth;
    warp.current = -1;
    if (split.mask == 0) Remove(warp, chosen);
    for (int i = 0; i < warp.split_count; ++i) {
      if (i != chosen) warp.splits[static_cast<std::size_t>(i)].passed_over += now;
    }
    if (warp.outcome == Outcome::kYield) break;
  }
  return ran;
}

}  // namespace assay::emu
