// bar, barrier, bar.warp.sync, barrier.cluster, griddepcontrol (PTX ISA 9.7.13).
#include <fmt/format.h>

#include <bit>

#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/warp_sync.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"

namespace assay::emu {

bool IsAligned(const ptx::Instruction& in) {
  return in.opcode == ptx::Opcode::kBar || in.Has(ptx::Mod::kAligned);
}

void FinishBarrier(CoreWarp& warp, const Split& split, const NamedBarrier& barrier) {
  const Decoded& op = warp.At(split.pc);
  if (!op.source->Has(ptx::Mod::kRed)) return;
  const DecodedOperand& target = op.operands[0];
  if (target.kind == DecodedOperand::Kind::kPredicate) {
    const bool result =
        op.source->Has(ptx::Mod::kAnd) ? barrier.popc == barrier.arrived : barrier.popc != 0;
    LaneMask& d = split.frame->predicates[target.slot];
    d = (d & ~split.mask) | (result ? split.mask : 0);
  } else if (target.kind == DecodedOperand::Kind::kSlot) {
    auto* const d = reinterpret_cast<std::uint32_t*>(split.frame->slots +
                                                     std::size_t{target.slot} * kSlotBytes);
    for (LaneMask rest = split.mask; rest != 0; rest &= rest - 1)
      d[std::countr_zero(rest)] = barrier.popc;
  }
  if (target.kind != DecodedOperand::Kind::kSink)
    split.frame->undefined[target.shadow] &= ~split.mask;
}

namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;

/// Decoded::immediate of a barrier: where its operands stand.
enum BarrierBits : std::uint64_t { kHasId = 1, kHasCount = 2, kArriveOnly = 4, kReduces = 8 };

void Misuse(CoreWarp& warp, const Decoded& op, std::string message) {
  Report1(warp, FindingKind::kBarrierMisuse, warp.PcOf(op), warp.exec, std::move(message),
          std::string(ptx::Mnemonic(op.source->opcode)));
  warp.device->End(Stop::kFault, "barrier misuse");
  warp.outcome = Outcome::kStop;
}

void RunBarrier(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  std::size_t next = op.destinations;
  const auto uniform = [&](std::uint64_t bit) -> std::uint32_t {
    if ((op.immediate & bit) == 0) return 0;
    return warp.Lanes<std::uint32_t>(op.operands[next++].slot)[FirstLane(warp.exec)];
  };
  const std::uint32_t id = uniform(kHasId);
  const std::uint32_t count = uniform(kHasCount);
  if (id >= 16) return Misuse(warp, op, fmt::format("there is no barrier {}: a block has 16", id));
  if (count % kWarpSize != 0) {
    return Misuse(
        warp, op,
        fmt::format("barrier {} for {} threads: the count must be a multiple of 32", id, count));
  }
  LaneMask predicate = 0;
  if ((op.immediate & kReduces) != 0) {
    const DecodedOperand& operand = op.operands[op.operand_count - 1u];
    predicate = warp.predicates[operand.slot];
    if (operand.negated) predicate = ~predicate;
  }
  const bool waits = (op.immediate & kArriveOnly) == 0;
  const bool complete = ArriveAtBarrier(warp, op, id, warp.exec, count, waits, predicate);
  if (complete || !waits) return;
  AddSplit(warp, warp.pc, warp.exec, warp.frame, Wait::kBarrier, 0, static_cast<std::uint8_t>(id));
  warp.active &= ~warp.exec;
  ++warp.pc;
  warp.outcome = Outcome::kReschedule;
}

Handler ResolveBarrier(const Instruction& in, Decoded& decoded) {
  decoded.flags |= kFlagControl;
  decoded.propagate = kPropagateSelf;
  std::size_t numbers = decoded.operand_count - std::size_t{decoded.destinations};
  decoded.immediate = 0;
  if (in.Has(Mod::kRed)) {
    if (numbers < 2 ||
        decoded.operands[decoded.operand_count - 1u].kind != DecodedOperand::Kind::kPredicate)
      return nullptr;
    decoded.immediate |= kReduces;
    --numbers;
  }
  if (in.Has(Mod::kArrive)) decoded.immediate |= kArriveOnly;
  if (numbers == 0 || numbers > 2) return nullptr;
  decoded.immediate |= kHasId;
  if (numbers == 2) decoded.immediate |= kHasCount;
  for (std::size_t i = 0; i < numbers; ++i) {
    const DecodedOperand& operand = decoded.operands[decoded.destinations + i];
    if (operand.kind != DecodedOperand::Kind::kSlot || operand.bits != 32) return nullptr;
  }
  return &RunBarrier;
}

void RunWarpBarrier(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0) return;
  // Lanes may meet at different bar.warp.sync instructions, as long as they name the same mask.
  const auto* const masks = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  const LaneMask need = masks[FirstLane(warp.exec)];
  LaneMask elsewhere = 0;
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[static_cast<std::size_t>(i)];
    if (i == warp.current || split.wait != Wait::kWarpSync || split.need != need ||
        split.pc == warp.pc)
      continue;
    if (warp.At(split.pc).source->opcode == Opcode::kBarWarpSync) elsewhere |= split.mask;
  }
  LaneMask same = 0;
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (masks[lane] == need) same |= LaneMask{1} << lane;
  }
  if (elsewhere != 0 && (need & warp.alive & ~(same | elsewhere)) == 0 && same == warp.exec) {
    for (int i = 0; i < warp.split_count; ++i) {
      Split& split = warp.splits[static_cast<std::size_t>(i)];
      if (i == warp.current || split.wait != Wait::kWarpSync || split.need != need ||
          split.pc == warp.pc)
        continue;
      if (warp.At(split.pc).source->opcode != Opcode::kBarWarpSync) continue;
      split.wait = Wait::kReady;
      ++split.pc;
    }
    if (warp.device->race) warp.device->race->OnWarpBarrier(warp.number, same | elsewhere);
    return;
  }
  const SyncGroups groups = JoinWarp(warp, op, op.operands[0]);
  if (!warp.device->race) return;
  for (int g = 0; g < groups.count; ++g) {
    warp.device->race->OnWarpBarrier(warp.number, groups.lanes[static_cast<std::size_t>(g)]);
  }
}

Handler ResolveWarpBarrier(const Instruction&, Decoded& decoded) {
  decoded.flags |= kFlagControl;
  decoded.propagate = kPropagateSelf;
  const bool fits = decoded.operand_count == 1 &&
                    decoded.operands[0].kind == DecodedOperand::Kind::kSlot &&
                    decoded.operands[0].bits == 32;
  return fits ? &RunWarpBarrier : nullptr;
}

void RunClusterArrive(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (warp.exec != 0) ClusterArrive(warp, warp.exec, op.source->Has(Mod::kRelaxed));
}

void RunClusterWait(Warp& base, const Decoded&) {
  CoreWarp& warp = Core(base);
  if (warp.exec == 0 || ClusterWaitOver(warp, warp.exec)) return;
  AddSplit(warp, warp.pc, warp.exec, warp.frame, Wait::kCluster, 0, 0);
  warp.active &= ~warp.exec;
  ++warp.pc;
  warp.outcome = Outcome::kReschedule;
}

Handler ResolveCluster(const Instruction& in, Decoded& decoded) {
  decoded.flags |= kFlagControl;
  decoded.propagate = kPropagateSelf;
  if (in.Has(Mod::kArrive)) return &RunClusterArrive;
  return in.Has(Mod::kWait) ? &RunClusterWait : nullptr;
}

void Nothing(Warp&, const Decoded&) {}

/// Launches do not overlap here: what the earlier grid did is complete.
Handler ResolveGriddepcontrol(const Instruction&, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  return &Nothing;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kBar, &ResolveBarrier},
    {Opcode::kBarrier, &ResolveBarrier},
    {Opcode::kBarWarpSync, &ResolveWarpBarrier},
    {Opcode::kBarrierCluster, &ResolveCluster},
    {Opcode::kGriddepcontrol, &ResolveGriddepcontrol},
};

}  // namespace

std::span<const ResolverRow> BarrierRows() { return kRows; }

}  // namespace assay::emu
