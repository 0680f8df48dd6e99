// shfl, vote, match, redux, activemask, elect and bar.warp.sync (PTX ISA 9.7.9.5, 9.7.13).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/warp_sync.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

/// Do all 32 lanes hold the same value?
bool AreAlike(const std::uint32_t* lanes) {
  std::uint32_t differs = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) differs |= lanes[lane] ^ lanes[0];
  return differs == 0;
}

}  // namespace

SyncGroups JoinWarp(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand) {
  SyncGroups groups;
  const auto* const masks = warp.Lanes<std::uint32_t>(operand.slot);
  LaneMask waiting = 0;
  LaneMask waiting_need = 0;
  // Nearly always all lanes give the same mask, a constant.
  const bool alike = AreAlike(masks);
  for (LaneMask rest = warp.exec; rest != 0;) {
    const LaneMask mask = masks[FirstLane(rest)];
    LaneMask group = alike ? rest : 0;
    for (LaneMask left = alike ? 0 : rest; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (masks[lane] == mask) group |= LaneMask{1} << lane;
    }
    rest &= ~group;
    if (const LaneMask strangers = group & ~mask;
        strangers != 0 && warp.device->execution.checks.barrier) {
      Report1(warp, FindingKind::kBarrierMisuse, warp.PcOf(op), strangers,
              fmt::format("{} is executed by lanes {:#010x} that its mask {:#010x} does not name",
                          ptx::Mnemonic(op.source->opcode), strangers, mask),
              std::string(ptx::Mnemonic(op.source->opcode)), std::nullopt,
              "a lane must be named in the mask that it gives");
    }
    if ((mask & warp.alive & ~group) != 0) {
      waiting |= group;
      waiting_need = mask;
    } else {
      groups.lanes[static_cast<std::size_t>(groups.count++)] = group;
    }
  }
  if (waiting == 0) return groups;
  AddSplit(warp, warp.pc, waiting, warp.frame, Wait::kWarpSync, waiting_need, 0);
  warp.active &= ~waiting;
  warp.exec &= ~waiting;
  ++warp.pc;
  warp.outcome = Outcome::kReschedule;
  return groups;
}

bool JoinWholeWarp(CoreWarp& warp) {
  if ((warp.alive & ~warp.exec) == 0) return true;
  if (warp.exec == 0) return false;
  AddSplit(warp, warp.pc, warp.exec, warp.frame, Wait::kWarpSync, warp.alive, 0);
  warp.active &= ~warp.exec;
  warp.exec = 0;
  ++warp.pc;
  warp.outcome = Outcome::kReschedule;
  return false;
}

namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

void SetUndefined(CoreWarp& warp, const Decoded& op, const DecodedOperand& target,
                  LaneMask undefined, LaneMask lanes) {
  if (target.kind == DecodedOperand::Kind::kSink) return;
  SetUndefined(*warp.frame, target.shadow, lanes, undefined, warp.PcOf(op));
}

void SetPredicate(CoreWarp& warp, const DecodedOperand& target, LaneMask value, LaneMask lanes) {
  if (target.kind != DecodedOperand::Kind::kPredicate) return;
  LaneMask& d = warp.predicates[target.slot];
  d = (d & ~lanes) | (value & lanes);
}

LaneMask ReadPredicate(const CoreWarp& warp, const DecodedOperand& source) {
  const LaneMask value = warp.predicates[source.slot];
  return source.negated ? ~value : value;
}

enum class Shuffle : std::uint64_t { kUp, kDown, kButterfly, kIndex };

/// Which lane each lane of a shfl reads, were all of them there.
struct ShuffleSources {
  std::uint32_t from[kWarpSize];  ///< Itself, where the source is out of range.
  LaneMask in_range = 0;
};

template <Shuffle kMode>
void FindSources(const std::uint32_t* b, const std::uint32_t* c, ShuffleSources& sources) {
  std::uint32_t valid[kWarpSize];
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t delta = b[lane] & 31;
    const std::uint32_t clamp = c[lane] & 31;
    const std::uint32_t segment = c[lane] >> 8 & 31;
    const std::uint32_t lowest = lane & segment;
    const std::uint32_t highest = lowest | (clamp & ~segment);
    const std::uint32_t from = kMode == Shuffle::kUp          ? lane - delta
                               : kMode == Shuffle::kDown      ? lane + delta
                               : kMode == Shuffle::kButterfly ? lane ^ delta
                                                              : lowest | (delta & ~segment);
    // Below lane 0 there is nobody: those wrap to huge numbers, which are negative ones.
    const auto far = static_cast<std::int32_t>(from);
    const auto limit = static_cast<std::int32_t>(highest);
    const bool reaches = kMode == Shuffle::kUp ? far >= limit : far <= limit;
    sources.from[lane] = reaches ? from : lane;
    valid[lane] = reaches ? 1 : 0;
  }
  for (int lane = 0; lane < kWarpSize; ++lane) sources.in_range |= valid[lane] << lane;
}

/// Of the lanes that shuffle, those whose source does not take part with them.
LaneMask AbsentSources(const SyncGroups& groups, const ShuffleSources& sources) {
  LaneMask absent = 0;
  for (int g = 0; g < groups.count; ++g) {
    const LaneMask lanes = groups.lanes[static_cast<std::size_t>(g)];
    if (lanes == kAllLanes) continue;
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      absent |= (~lanes >> sources.from[lane] & 1) << lane;
    }
  }
  return absent;
}

/// Definedness of a shfl's result, where some of it is undefined.
[[gnu::noinline]] void MarkShuffled(CoreWarp& warp, const Decoded& op,
                                    const ShuffleSources& sources, LaneMask absent) {
  const DecodedOperand& target = op.operands[0];
  const DecodedOperand& source = op.operands[op.destinations];
  const LaneMask source_undefined = warp.frame->undefined[source.shadow];
  const ChoiceOf choice(*warp.frame, source);
  LaneBitsets undefined{};
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint32_t from = sources.from[lane];
    if ((absent >> lane & 1) != 0) {
      undefined[lane] = ~std::uint64_t{0};
    } else if ((source_undefined >> from & 1) != 0) {
      undefined[lane] = UndefinedBits(*warp.frame, source, static_cast<int>(from));
    }
  }
  SetUndefinedBits(*warp.frame, target, warp.exec, undefined, warp.PcOf(op));
  choice.Pass(*warp.frame, target, warp.exec & ~absent);
}

template <Shuffle kMode>
void RunShuffle(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const std::size_t first = op.destinations;
  const SyncGroups groups = JoinWarp(warp, op, op.operands[first + 3]);
  if (groups.count == 0) return;
  const DecodedOperand& target = op.operands[0];
  const auto* const a = warp.Lanes<std::uint32_t>(op.operands[first].slot);
  ShuffleSources sources;
  FindSources<kMode>(warp.Lanes<std::uint32_t>(op.operands[first + 1].slot),
                     warp.Lanes<std::uint32_t>(op.operands[first + 2].slot), sources);
  if (target.kind == DecodedOperand::Kind::kSlot) {
    // The result may lie where the source does.
    std::uint32_t result[kWarpSize];
    for (int lane = 0; lane < kWarpSize; ++lane) result[lane] = a[sources.from[lane] & 31];
    auto* const d = warp.Lanes<std::uint32_t>(target.slot);
    if (warp.exec == kAllLanes) {
      std::memcpy(d, result, sizeof(result));
    } else {
      for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        d[lane] = result[lane];
      }
    }
    // What a lane that does not take part would give is undefined; whether that matters shows when
    // the value is used.
    if (warp.device->track_defined) {
      const LaneMask absent = AbsentSources(groups, sources);
      if ((warp.frame->undefined[op.operands[first].shadow] | absent) == 0) [[likely]] {
        SetUndefined(warp, op, target, 0, warp.exec);
      } else {
        MarkShuffled(warp, op, sources, absent);
      }
    }
  }
  if (op.destinations > 1) {
    SetPredicate(warp, op.operands[1], sources.in_range, warp.exec);
    SetUndefined(warp, op, op.operands[1], 0, warp.exec);
  }
}

void RunVote(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const SyncGroups groups = JoinWarp(warp, op, op.operands[2]);
  const LaneMask holds = ReadPredicate(warp, op.operands[1]);
  const LaneMask source_undefined = warp.frame->undefined[op.operands[1].shadow];
  const ChoiceOf choice(*warp.frame, op.operands[1]);
  const DecodedOperand& target = op.operands[0];
  for (int g = 0; g < groups.count; ++g) {
    const LaneMask lanes = groups.lanes[static_cast<std::size_t>(g)];
    const LaneMask yes = holds & lanes;
    const auto mod = static_cast<Mod>(op.immediate);
    if (mod == Mod::kBallot) {
      auto* const d = warp.Lanes<std::uint32_t>(target.slot);
      for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) d[std::countr_zero(rest)] = yes;
    } else {
      const bool result = mod == Mod::kAll   ? yes == lanes
                          : mod == Mod::kAny ? yes != 0
                                             : yes == lanes || yes == 0;
      SetPredicate(warp, target, result ? kAllLanes : 0, lanes);
    }
    SetUndefined(warp, op, target, (source_undefined & lanes) != 0 ? kAllLanes : 0, lanes);
    choice.Pass(*warp.frame, target, lanes);
  }
}

template <class T>
void RunMatch(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const std::size_t first = op.destinations;
  const SyncGroups groups = JoinWarp(warp, op, op.operands[first + 1]);
  const T* const a = warp.Lanes<T>(op.operands[first].slot);
  const bool all = op.source->Has(Mod::kAll);
  const DecodedOperand& target = op.operands[0];
  const LaneMask source_undefined = warp.frame->undefined[op.operands[first].shadow];
  const ChoiceOf choice(*warp.frame, op.operands[first]);
  for (int g = 0; g < groups.count; ++g) {
    const LaneMask lanes = groups.lanes[static_cast<std::size_t>(g)];
    const bool undefined = (source_undefined & lanes) != 0;
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      LaneMask same = 0;
      for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const int other = std::countr_zero(left);
        if (a[other] == a[lane]) same |= LaneMask{1} << other;
      }
      const LaneMask value = all && same != lanes ? 0 : same;
      if (target.kind == DecodedOperand::Kind::kSlot)
        warp.Lanes<std::uint32_t>(target.slot)[lane] = value;
      if (first > 1)
        SetPredicate(warp, op.operands[1], value != 0 ? kAllLanes : 0, LaneMask{1} << lane);
    }
    for (std::size_t i = 0; i < first; ++i) {
      SetUndefined(warp, op, op.operands[i], undefined ? kAllLanes : 0, lanes);
      choice.Pass(*warp.frame, op.operands[i], lanes);
    }
  }
}

std::uint32_t ReduceTwo(Mod mod, bool is_signed, std::uint32_t a, std::uint32_t b) {
  switch (mod) {
    case Mod::kAdd:
      return a + b;
    case Mod::kAnd:
      return a & b;
    case Mod::kOr:
      return a | b;
    case Mod::kXor:
      return a ^ b;
    case Mod::kMin:
      if (is_signed) return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
      return std::min(a, b);
    default:
      if (is_signed) return static_cast<std::int32_t>(a) > static_cast<std::int32_t>(b) ? a : b;
      return std::max(a, b);
  }
}

void RunRedux(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const SyncGroups groups = JoinWarp(warp, op, op.operands[2]);
  const auto* const a = warp.Lanes<std::uint32_t>(op.operands[1].slot);
  auto* const d = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  const LaneMask source_undefined = warp.frame->undefined[op.operands[1].shadow];
  const ChoiceOf choice(*warp.frame, op.operands[1]);
  const bool is_signed = op.source->type() == Type::kS32;
  for (int g = 0; g < groups.count; ++g) {
    const LaneMask lanes = groups.lanes[static_cast<std::size_t>(g)];
    LaneMask rest = lanes;
    std::uint32_t value = a[std::countr_zero(rest)];
    for (rest &= rest - 1; rest != 0; rest &= rest - 1) {
      value =
          ReduceTwo(static_cast<Mod>(op.immediate), is_signed, value, a[std::countr_zero(rest)]);
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) d[std::countr_zero(left)] = value;
    SetUndefined(warp, op, op.operands[0], (source_undefined & lanes) != 0 ? kAllLanes : 0, lanes);
    choice.Pass(*warp.frame, op.operands[0], lanes);
  }
}

/// Lanes that arrive together need not be together when the mask is taken: under all schedules but
/// the plain one some of them come later.
bool PartForMask(CoreWarp& warp) {
  if (warp.device->execution.schedule.policy == Schedule::Policy::kSequential ||
      warp.exec != warp.active || std::popcount(warp.exec) < 2 || warp.device->rng.Below(2) == 0)
    return false;
  const auto some = static_cast<LaneMask>(warp.device->rng.Next()) & warp.active;
  if (some == 0 || some == warp.active) return false;
  AddSplit(warp, warp.pc, warp.active & ~some, warp.frame, Wait::kReady, 0, 0);
  warp.active = some;
  warp.exec = some;
  return true;
}

void RunActivemask(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  warp.device->counters.used_atomics = true;
  const bool parted = PartForMask(warp);
  auto* const d = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1)
    d[std::countr_zero(rest)] = warp.exec;
  SetUndefined(warp, op, op.operands[0], 0, warp.exec);
  if (!parted) return;
  ++warp.pc;
  warp.outcome = Outcome::kReschedule;
}

void RunElect(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  const SyncGroups groups = JoinWarp(warp, op, op.operands[op.destinations]);
  for (int g = 0; g < groups.count; ++g) {
    const LaneMask lanes = groups.lanes[static_cast<std::size_t>(g)];
    const LaneMask leader = lanes & (~lanes + 1);
    if (op.operands[0].kind == DecodedOperand::Kind::kSlot) {
      auto* const d = warp.Lanes<std::uint32_t>(op.operands[0].slot);
      for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
        d[std::countr_zero(rest)] = static_cast<std::uint32_t>(std::countr_zero(leader));
      }
    }
    for (std::size_t i = 0; i < op.destinations; ++i)
      SetUndefined(warp, op, op.operands[i], 0, lanes);
    if (op.destinations > 1) SetPredicate(warp, op.operands[1], leader, lanes);
  }
}

Handler Sync(Decoded& decoded, Handler handler) {
  decoded.flags |= kFlagControl;
  decoded.propagate = kPropagateSelf;
  return handler;
}
template <Handler kHandler>
Handler Sync(Decoded& decoded) {
  return Sync(decoded, kHandler);
}

bool AreSlots(const Decoded& decoded, std::size_t first, std::size_t count, int bits) {
  if (decoded.operand_count < first + count) return false;
  for (std::size_t i = first; i < first + count; ++i) {
    if (decoded.operands[i].kind != DecodedOperand::Kind::kSlot || decoded.operands[i].bits != bits)
      return false;
  }
  return true;
}

bool IsSlotOrSink(const DecodedOperand& operand, int bits) {
  return operand.kind == DecodedOperand::Kind::kSink ||
         (operand.kind == DecodedOperand::Kind::kSlot && operand.bits == bits);
}

Handler ResolveShuffle(const Instruction& in, Decoded& decoded) {
  constexpr std::pair<Mod, Handler> kModes[] = {{Mod::kUp, &RunShuffle<Shuffle::kUp>},
                                                {Mod::kDown, &RunShuffle<Shuffle::kDown>},
                                                {Mod::kBfly, &RunShuffle<Shuffle::kButterfly>},
                                                {Mod::kIdx, &RunShuffle<Shuffle::kIndex>}};
  // Without .sync: removed from PTX for sm_70 and later.
  if (!in.Has(Mod::kSync) || decoded.destinations == 0 || !IsSlotOrSink(decoded.operands[0], 32))
    return nullptr;
  if (!AreSlots(decoded, decoded.destinations, 4, 32)) return nullptr;
  for (const auto& [mod, handler] : kModes) {
    if (in.Has(mod)) return Sync(decoded, handler);
  }
  return nullptr;
}

Handler ResolveVote(const Instruction& in, Decoded& decoded) {
  if (!in.Has(Mod::kSync) || decoded.operand_count != 3 ||
      decoded.operands[1].kind != DecodedOperand::Kind::kPredicate)
    return nullptr;
  if (!AreSlots(decoded, 2, 1, 32)) return nullptr;
  for (const Mod mod : {Mod::kBallot, Mod::kAll, Mod::kAny, Mod::kUni}) {
    if (!in.Has(mod)) continue;
    decoded.immediate = static_cast<std::uint64_t>(mod);
    const bool fits = mod == Mod::kBallot
                          ? AreSlots(decoded, 0, 1, 32)
                          : decoded.operands[0].kind == DecodedOperand::Kind::kPredicate;
    return fits ? Sync<&RunVote>(decoded) : nullptr;
  }
  return nullptr;
}

Handler ResolveMatch(const Instruction& in, Decoded& decoded) {
  const std::size_t first = decoded.destinations;
  if (first == 0 || !IsSlotOrSink(decoded.operands[0], 32) || !AreSlots(decoded, first + 1, 1, 32))
    return nullptr;
  if (ptx::BitsOf(in.type()) == 32 && AreSlots(decoded, first, 1, 32))
    return Sync<&RunMatch<std::uint32_t>>(decoded);
  if (ptx::BitsOf(in.type()) == 64 && AreSlots(decoded, first, 1, 64))
    return Sync<&RunMatch<std::uint64_t>>(decoded);
  return nullptr;
}

Handler ResolveRedux(const Instruction& in, Decoded& decoded) {
  if (!AreSlots(decoded, 0, 3, 32) || in.type() == Type::kF32) return nullptr;
  for (const Mod mod : {Mod::kAdd, Mod::kMin, Mod::kMax, Mod::kAnd, Mod::kOr, Mod::kXor}) {
    if (!in.Has(mod)) continue;
    decoded.immediate = static_cast<std::uint64_t>(mod);
    return Sync<&RunRedux>(decoded);
  }
  return nullptr;
}

Handler ResolveActivemask(const Instruction&, Decoded& decoded) {
  return AreSlots(decoded, 0, 1, 32) ? Sync<&RunActivemask>(decoded) : nullptr;
}

Handler ResolveElect(const Instruction&, Decoded& decoded) {
  const bool fits = decoded.destinations >= 1 && IsSlotOrSink(decoded.operands[0], 32) &&
                    AreSlots(decoded, decoded.destinations, 1, 32);
  return fits ? Sync<&RunElect>(decoded) : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kShfl, &ResolveShuffle},          {Opcode::kVote, &ResolveVote},
    {Opcode::kMatch, &ResolveMatch},           {Opcode::kRedux, &ResolveRedux},
    {Opcode::kActivemask, &ResolveActivemask}, {Opcode::kElect, &ResolveElect},
};

}  // namespace

std::span<const ResolverRow> WarpRows() { return kRows; }

}  // namespace assay::emu
