// mbarrier (PTX ISA 9.7.13.15).
#include "validator/emu/handlers/mbarrier.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "validator/emu/handlers/rows.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;

constexpr std::uint64_t kMaxCount = (1u << 20) - 1;
constexpr std::int64_t kTxBias = 1 << 21;

struct State {
  std::uint64_t pending = 0;
  std::uint64_t expected = 0;
  std::int64_t transactions = 0;
  bool phase = false;
};

std::uint64_t Encode(const State& state) {
  return state.pending | state.expected << 20 |
         static_cast<std::uint64_t>(state.transactions + kTxBias) << 40 |
         std::uint64_t{state.phase} << 63;
}

State Decode(std::uint64_t word) {
  State state;
  state.pending = word & kMaxCount;
  state.expected = word >> 20 & kMaxCount;
  state.transactions = static_cast<std::int64_t>(word >> 40 & ((1u << 23) - 1)) - kTxBias;
  state.phase = word >> 63 != 0;
  return state;
}

/// Zeros and the poison of shared memory are no barriers.
bool IsBarrier(std::uint64_t word) {
  const State state = Decode(word);
  return word != 0 && state.pending <= kMaxCount && std::abs(state.transactions) <= (1 << 20);
}

std::uint64_t Load(const MbarrierPlace& place) {
  std::uint64_t word;
  std::memcpy(&word, place.word, sizeof(word));
  return word;
}
void Store(const MbarrierPlace& place, std::uint64_t word) {
  std::memcpy(place.word, &word, sizeof(word));
}

void Misuse(CoreWarp& warp, const Decoded& op, int lane, std::string message) {
  Report1(warp, FindingKind::kBarrierMisuse, warp.PcOf(op), LaneMask{1} << lane, std::move(message),
          std::string(ptx::Mnemonic(op.source->opcode)));
  warp.device->End(Stop::kFault, "mbarrier misuse");
  warp.outcome = Outcome::kStop;
}

Scope ScopeOf(const Instruction& in) {
  return in.Has(Mod::kCluster) ? Scope::kCluster : Scope::kCta;
}

/// Generic addresses of mbarriers lie in the shared window.
Space SpaceOf(const Instruction& in) {
  return in.space == Space::kReg ? Space::kGeneric : in.space;
}

bool ResolveObject(CoreWarp& warp, const Decoded& op, std::size_t operand, LaneAccess& access) {
  Addresses(warp, op.operands[operand], access);
  return Resolve(warp, op, SpaceOf(*op.source), warp.exec, 8, AccessType::kAtomic, access);
}

void RunInit(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  if (warp.exec == 0 || !ResolveObject(warp, op, 0, access)) return;
  const auto* const counts = warp.Lanes<std::uint32_t>(op.operands[1].slot);
  ReportMbarrierAccess(warp, op, access, true);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (counts[lane] == 0 || counts[lane] > kMaxCount) {
      return Misuse(warp, op, lane,
                    fmt::format("an mbarrier for {} arrivals: the count must be 1 to {}",
                                counts[lane], kMaxCount));
    }
    const MbarrierPlace place = MbarrierAt(access, lane);
    Store(place, Encode({.pending = counts[lane], .expected = counts[lane]}));
    if (warp.device->race) warp.device->race->OnMbarrierInit(place.region, place.offset);
  }
  if (warp.device->track_defined) MarkStored(warp, op, access, 0, 8, 0, kNoPc);
  warp.device->last_progress = warp.device->counters.steps;
}

void RunInval(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  if (warp.exec == 0 || !ResolveObject(warp, op, 0, access)) return;
  // Libraries invalidate when the last user has left, which they know from relaxed atomics: no race
  // by itself.
  ReportMbarrierAccess(warp, op, access, false);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1)
    Store(MbarrierAt(access, std::countr_zero(rest)), 0);
}

/// Decoded::aux of the arriving instructions.
enum ArriveBits : std::uint32_t {
  kExpects = 1,
  kCompletes = 2,
  kArrives = 4,
  kDrops = 8,
  kNoComplete = 16,
  kHasCount = 32,
  kRelaxed = 64
};

/// Of `lanes`, those that arrive at the first one's barrier before its phase is over: what they
/// release is told to the race detector at once.
LaneMask ArriveTogether(const LaneAccess& access, LaneMask lanes, const std::uint32_t* counts) {
  const MbarrierPlace place = MbarrierAt(access, FirstLane(lanes));
  const std::uint64_t word = Load(place);
  const std::uint64_t pending = IsBarrier(word) ? Decode(word).pending : 0;
  LaneMask together = 0;
  std::uint64_t arrivals = 0;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MbarrierPlace other = MbarrierAt(access, lane);
    if (other.region != place.region || other.offset != place.offset) break;
    if (counts != nullptr && counts[lane] == 0) continue;
    together |= LaneMask{1} << lane;
    arrivals += counts == nullptr ? 1 : counts[lane];
    if (arrivals >= pending) break;
  }
  return together;
}

void RunArrive(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  const std::size_t at = op.destinations;
  if (warp.exec == 0 || !ResolveObject(warp, op, at, access)) return;
  ReportMbarrierAccess(warp, op, access, false);
  const auto* const counts =
      (op.aux & kHasCount) != 0 ? warp.Lanes<std::uint32_t>(op.operands[at + 1].slot) : nullptr;
  LaneMask told = 0;
  for (LaneMask rest = warp.exec; rest != 0 && warp.outcome != Outcome::kStop; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t count = counts == nullptr ? 1 : counts[lane];
    MbarrierUpdate update;
    if ((op.aux & kExpects) != 0) {
      update.expect = count;
      update.arrivals = (op.aux & kArrives) != 0 ? 1 : 0;
    } else if ((op.aux & kCompletes) != 0) {
      update.complete = count;
    } else {
      update.arrivals = count;
    }
    update.drop = (op.aux & kDrops) != 0;
    update.must_not_complete = (op.aux & kNoComplete) != 0;
    const MbarrierPlace place = MbarrierAt(access, lane);
    if (warp.device->race && update.arrivals != 0 && (told >> lane & 1) == 0) {
      const LaneMask now =
          (op.aux & kExpects) != 0 ? LaneMask{1} << lane : ArriveTogether(access, rest, counts);
      told |= now;
      warp.device->race->OnMbarrierArrive(place.region, place.offset, warp.number, now,
                                          ScopeOf(*op.source), (op.aux & kRelaxed) != 0);
    }
    const std::uint64_t before = UpdateMbarrier(warp, op, lane, place, update);
    if (at > 0 && op.operands[0].kind == DecodedOperand::Kind::kSlot) {
      warp.Lanes<std::uint64_t>(op.operands[0].slot)[lane] = before;
      warp.frame->undefined[op.operands[0].shadow] &= ~(LaneMask{1} << lane);
    }
  }
}

template <bool kTry>
void RunWait(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  if (warp.exec == 0 || !ResolveObject(warp, op, 1, access)) return;
  ReportMbarrierAccess(warp, op, access, false);
  warp.device->counters.used_atomics = true;
  const bool parity = op.source->Has(Mod::kParity);
  const DecodedOperand& state = op.operands[2];
  LaneMask over = 0;
  LaneMask together = 0;  // Lanes whose wait for `shared` is over.
  MbarrierPlace shared{};
  const auto tell = [&] {
    if (warp.device->race && together != 0) {
      warp.device->race->OnMbarrierWait(shared.region, shared.offset, warp.number, together,
                                        ScopeOf(*op.source), op.source->Has(Mod::kRelaxed));
    }
    together = 0;
  };
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const MbarrierPlace place = MbarrierAt(access, lane);
    const std::uint64_t word = Load(place);
    if (!IsBarrier(word))
      return Misuse(warp, op, lane,
                    "a wait for an mbarrier that was never initialised, or was invalidated");
    const bool waited = parity ? (warp.Lanes<std::uint32_t>(state.slot)[lane] & 1) != 0
                               : Decode(warp.Lanes<std::uint64_t>(state.slot)[lane]).phase;
    if (Decode(word).phase == waited) continue;
    over |= LaneMask{1} << lane;
    if (place.region != shared.region || place.offset != shared.offset) tell();
    shared = place;
    together |= LaneMask{1} << lane;
  }
  tell();
  const DecodedOperand& target = op.operands[0];
  if (target.kind == DecodedOperand::Kind::kPredicate) {
    LaneMask& d = warp.predicates[target.slot];
    d = (d & ~warp.exec) | over;
    warp.frame->undefined[target.shadow] &= ~warp.exec;
  }
  // Those that it waits for get a turn.
  if (over != warp.exec) warp.outcome = Outcome::kYield;
}

void RunPendingCount(Warp& warp, const Decoded& op) {
  auto* const d = warp.Lanes<std::uint32_t>(op.operands[0].slot);
  const auto* const a = warp.Lanes<std::uint64_t>(op.operands[1].slot);
  for (LaneMask rest = warp.exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    d[lane] = static_cast<std::uint32_t>(Decode(a[lane]).pending);
  }
}

bool IsSlot(const Decoded& decoded, std::size_t index, int bits) {
  return index < decoded.operand_count &&
         decoded.operands[index].kind == DecodedOperand::Kind::kSlot &&
         decoded.operands[index].bits == bits;
}

template <Handler kHandler>
Handler Control(Decoded& decoded) {
  decoded.flags |= kFlagControl | kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return kHandler;
}

Handler ResolveInit(const Instruction&, Decoded& decoded) {
  return IsSlot(decoded, 1, 32) ? Control<&RunInit>(decoded) : nullptr;
}
Handler ResolveInval(const Instruction&, Decoded& decoded) { return Control<&RunInval>(decoded); }

Handler ResolveArrive(const Instruction& in, Decoded& decoded) {
  const bool arrives =
      in.opcode == Opcode::kMbarrierArrive || in.opcode == Opcode::kMbarrierArriveDrop;
  decoded.aux = arrives ? kArrives : 0u;
  if (in.opcode == Opcode::kMbarrierExpectTx || in.Has(Mod::kExpectTx)) decoded.aux |= kExpects;
  if (in.opcode == Opcode::kMbarrierCompleteTx) decoded.aux |= kCompletes;
  if (in.opcode == Opcode::kMbarrierArriveDrop) decoded.aux |= kDrops;
  if (in.Has(Mod::kNoComplete) || in.Has(Mod::kNoComplete_)) decoded.aux |= kNoComplete;
  if (in.Has(Mod::kRelaxed)) decoded.aux |= kRelaxed;
  const std::size_t count_at = decoded.destinations + std::size_t{1};
  if (decoded.operand_count > count_at) {
    if (!IsSlot(decoded, count_at, 32)) return nullptr;
    decoded.aux |= kHasCount;
  } else if (!arrives || (decoded.aux & kExpects) != 0) {
    return nullptr;
  }
  return Control<&RunArrive>(decoded);
}

template <bool kTry>
Handler ResolveWait(const Instruction& in, Decoded& decoded) {
  return IsSlot(decoded, 2, in.Has(Mod::kParity) ? 32 : 64) ? Control<&RunWait<kTry>>(decoded)
                                                            : nullptr;
}

Handler ResolvePendingCount(const Instruction&, Decoded& decoded) {
  return IsSlot(decoded, 0, 32) && IsSlot(decoded, 1, 64) ? &RunPendingCount : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kMbarrierInit, &ResolveInit},
    {Opcode::kMbarrierInval, &ResolveInval},
    {Opcode::kMbarrierArrive, &ResolveArrive},
    {Opcode::kMbarrierArriveDrop, &ResolveArrive},
    {Opcode::kMbarrierExpectTx, &ResolveArrive},
    {Opcode::kMbarrierCompleteTx, &ResolveArrive},
    {Opcode::kMbarrierTestWait, &ResolveWait<false>},
    {Opcode::kMbarrierTryWait, &ResolveWait<true>},
    {Opcode::kMbarrierPendingCount, &ResolvePendingCount},
};

}  // namespace

MbarrierPlace MbarrierAt(const LaneAccess& access, int lane) {
  const MemoryRegion& region = *access.RegionOf(lane);
  return {access.at(lane), region.race_region,
          static_cast<std::uint64_t>(access.at(lane) - region.data) + region.race_offset};
}

std::uint64_t UpdateMbarrier(CoreWarp& warp, const Decoded& op, int lane,
                             const MbarrierPlace& place, const MbarrierUpdate& update) {
  const std::uint64_t word = Load(place);
  if (!IsBarrier(word)) {
    Misuse(warp, op, lane, "an mbarrier that was never initialised, or was invalidated");
    return 0;
  }
  State state = Decode(word);
  if (update.arrivals > state.pending) {
    Misuse(warp, op, lane,
           fmt::format("{} arrivals at an mbarrier that expects {} more in this phase",
                       update.arrivals, state.pending));
    return 0;
  }
  state.transactions +=
      static_cast<std::int64_t>(update.expect) - static_cast<std::int64_t>(update.complete);
  if (std::abs(state.transactions) > (1 << 20) - 1) {
    Misuse(warp, op, lane,
           fmt::format("the transaction count of an mbarrier leaves its range: {}",
                       state.transactions));
    return 0;
  }
  state.pending -= update.arrivals;
  if (update.drop) state.expected -= std::min<std::uint64_t>(state.expected, update.arrivals);
  warp.device->last_progress = warp.device->counters.steps;
  if (state.pending == 0 && state.transactions == 0) {
    if (update.must_not_complete) {
      Misuse(warp, op, lane, "an arrival with .noComplete completes the phase");
      return 0;
    }
    state.phase = !state.phase;
    state.pending = state.expected;
    if (warp.device->race) warp.device->race->OnMbarrierPhaseComplete(place.region, place.offset);
  }
  Store(place, Encode(state));
  return word;
}

void ReportMbarrierAccess(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                          bool initialises) {
  if (!warp.device->race) return;
  AccessEvent event;
  event.kind = initialises ? AccessKind::kWrite : AccessKind::kReadWrite;
  event.atomic = !initialises;
  event.order = initialises ? AccessOrder{} : AccessOrder{Order::kRelaxed, Scope::kCluster};
  ReportAccess(warp, op, access, 8, event);
}

std::span<const ResolverRow> MbarrierRows() { return kRows; }

}  // namespace assay::emu
