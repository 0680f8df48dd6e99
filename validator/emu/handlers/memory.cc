// ld, st and what goes with them (PTX ISA 9.7.9).
#include "validator/emu/memory.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/handlers/warp_memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/undefined.h"
#include "validator/emu/weak/stale.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;
using ptx::Type;

/// A 128-bit value; registers of that size hold 16 bytes a lane.
struct alignas(8) Wide {
  std::uint64_t low;
  std::uint64_t high;
};

const DecodedOperand& AddressOperand(const Decoded& op, bool load) {
  return op.operands[load ? op.destinations : 0];
}

/// Of Decoded::aux, below the order (PackOrder): ld.global.nc.
constexpr std::uint32_t kReadOnlyPath = 1;
/// Elements of the longest vector: .v8.
constexpr std::size_t kMostElements = 8;

/// Mostly all 32: to count bits is a call on processors that are not known to have an instruction.
std::uint64_t CountLanes(LaneMask lanes) {
  return lanes == kAllLanes ? std::uint64_t{kWarpSize}
                            : static_cast<std::uint64_t>(std::popcount(lanes));
}

bool IsGlobal(Space space) { return space == Space::kGlobal || space == Space::kGeneric; }

using Word4 [[gnu::vector_size(16)]] = std::uint32_t;

void Transpose(Word4 (&rows)[4]) {
  const Word4 a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Word4 b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Word4 c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Word4 d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/// Four words a lane (.v4.b32 and the like), all lanes, between memory and the registers `words`.
template <bool kLoad>
void MoveQuads(const LaneAccess& access, std::uint32_t* const (&words)[4]) {
  for (int lane = 0; lane < kWarpSize; lane += 4) {
    Word4 rows[4];
    for (int i = 0; i < 4; ++i) {
      if (kLoad) {
        std::memcpy(&rows[i], access.at(lane + i), sizeof(Word4));
      } else {
        std::memcpy(&rows[i], words[i] + lane, sizeof(Word4));
      }
    }
    Transpose(rows);
    for (int i = 0; i < 4; ++i) {
      if (kLoad) {
        std::memcpy(words[i] + lane, &rows[i], sizeof(Word4));
      } else {
        std::memcpy(access.at(lane + i), &rows[i], sizeof(Word4));
      }
    }
  }
}

/// True when the access is one of those, and has been made. `first`: of its registers in the
/// operands.
template <bool kLoad, class Memory, class Register>
bool MovedAsQuads(CoreWarp& warp, const Decoded& op, std::uint32_t first, std::uint32_t count,
                  const LaneAccess& access) {
  if (sizeof(Memory) != 4 || sizeof(Register) != 4 || count != 4 || access.lanes != kAllLanes)
    return false;
  std::uint32_t* words[4];
  for (std::uint32_t e = 0; e < 4; ++e) {
    if (op.operands[first + e].kind != DecodedOperand::Kind::kSlot) return false;
    words[e] = warp.Lanes<std::uint32_t>(op.operands[first + e].slot);
  }
  // Lanes that store to one place do so one after the other, element by element.
  if (!kLoad && !access.dense) return false;
  MoveQuads<kLoad>(access, words);
  return true;
}

/// Which bits of `target` a load leaves undefined: those of undefined bytes, widened as the value.
template <class Memory, class Register>
[[gnu::noinline]] void SetLoaded(CoreWarp& warp, const Decoded& op, const DecodedOperand& target,
                                 const LaneAccess& access, std::uint32_t offset,
                                 LaneMask undefined) {
  const LoadedChoice choice = ChoiceLoaded(warp, op, access, offset, sizeof(Memory), undefined);
  // A pointer that was put away, and is used as one.
  if ((op.flags & kFlagLoadsAddress) != 0) undefined &= ~choice.whole_address;
  const std::uint32_t origin =
      undefined != 0 && (undefined & ~choice.chosen) == 0 ? choice.origin : warp.PcOf(op);
  if constexpr (sizeof(Memory) > 8) {
    SetUndefined(*warp.frame, target.shadow, access.lanes, undefined, origin);
  } else {
    LaneBitsets bits{};
    for (LaneMask rest = undefined; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t bad = UndefinedBitsAt(warp, access, lane, offset, sizeof(Memory));
      bits[static_cast<std::size_t>(lane)] =
          static_cast<std::uint64_t>(static_cast<Register>(static_cast<Memory>(bad)));
    }
    SetUndefinedBits(*warp.frame, target, access.lanes, bits, origin);
  }
  warp.frame->machine[target.shadow] |=
      warp.frame->undefined[target.shadow] & choice.chosen & access.lanes;
  if ((undefined & ~choice.chosen) == 0) return;
  NoteUndefinedRead(warp, op, op.source->space,
                    access.address[FirstLane(undefined & ~choice.chosen)] + offset,
                    FirstLane(undefined & ~choice.chosen), sizeof(Memory));
}

/// What is read at an index that the machine chose is its choice.
void MarkReadAtChosenPlace(CoreWarp& warp, const Decoded& op) {
  const ChosenPlaces places = TakeChosenPlaces(warp, op);
  const LaneMask lanes = places.lanes & warp.exec;
  if (lanes == 0) return;
  for (std::size_t d = 0; d < op.destinations; ++d) {
    if (op.operands[d].kind != DecodedOperand::Kind::kSink)
      SetChosen(*warp.frame, op.operands[d].shadow, lanes, places.origin);
  }
}

/// What lanes of a load read in place of the newest value (stale.h).
struct OldReads {
  std::array<Published, kWarpSize> from;
  std::array<const Published*, kWarpSize> by_lane{};
};

/// A strong load has its values: old ones take the place of some.
template <class Memory, class Register>
[[gnu::noinline]] void TakeOldValues(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                                     OldReads& reads) {
  Device& device = *warp.device;
  for (std::uint32_t e = 0; e < op.destinations; ++e) {
    const DecodedOperand& target = op.operands[e];
    for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const MemoryRegion* const region = access.RegionOf(lane);
      if (region == nullptr || !region->writable) continue;
      const auto old =
          device.stale->Read(warp, warp.PcOf(op), lane, *region,
                             access.pointer[lane] + e * sizeof(Memory), sizeof(Memory));
      if (!old) continue;
      if (e == 0) {
        reads.from[static_cast<std::size_t>(lane)] = old->from;
        reads.by_lane[static_cast<std::size_t>(lane)] = &reads.from[static_cast<std::size_t>(lane)];
      }
      if (target.kind == DecodedOperand::Kind::kSink) continue;
      Memory value;
      std::memcpy(&value, old->bytes.data(), sizeof(Memory));
      warp.Lanes<Register>(target.slot)[lane] = static_cast<Register>(value);
      if (!device.track_defined) continue;
      const LaneMask self = LaneMask{1} << lane;
      const std::uint32_t undefined = ~old->defined & ((1u << sizeof(Memory)) - 1);
      if constexpr (sizeof(Memory) > 8) {
        SetUndefined(*warp.frame, target.shadow, self, undefined != 0 ? self : 0, warp.PcOf(op));
      } else {
        LaneBitsets bits{};
        std::uint64_t& word = bits[static_cast<std::size_t>(lane)];
        for (std::uint32_t byte = 0; byte < sizeof(Memory); ++byte) {
          if ((undefined >> byte & 1u) != 0) word |= std::uint64_t{0xff} << 8 * byte;
        }
        word = static_cast<std::uint64_t>(static_cast<Register>(static_cast<Memory>(word)));
        SetUndefinedBits(*warp.frame, target, self, bits, warp.PcOf(op));
      }
      if (undefined != 0) {
        NoteUndefinedRead(warp, op, op.source->space, access.address[lane] + e * sizeof(Memory),
                          lane, sizeof(Memory));
      }
    }
  }
}

/// Reads `Memory` and widens it to `Register`.
template <bool kMonitored, class Memory, class Register>
void Load(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const Space space = op.source->space;
  const std::uint32_t count = op.destinations;
  const std::uint32_t bytes = count * static_cast<std::uint32_t>(sizeof(Memory));
  LaneAccess access;
  const DecodedOperand& address = AddressOperand(op, true);
  Addresses(warp, address, access);
  if constexpr (kMonitored) CheckAddressDefined(warp, op, address, warp.exec);
  if (!Resolve(warp, op, space, warp.exec, bytes, AccessType::kLoad, access)) return;
  if ((op.flags & kFlagOrderMatters) != 0) {
    warp.device->counters.used_atomics = true;
    warp.device->counters.strong_loads = true;
    if (IsGlobal(space)) warp.device->NoteMeeting();
    if constexpr (kMonitored) {
      if (warp.device->stale != nullptr && warp.device->stale->Postpone(warp, op, access)) return;
    }
  }
  if (IsGlobal(space))
    warp.device->counters.bytes_read += std::uint64_t{bytes} * CountLanes(warp.exec);
  const bool moved = MovedAsQuads<true, Memory, Register>(warp, op, 0, count, access);
  for (std::uint32_t e = 0; e < count; ++e) {
    const DecodedOperand& target = op.operands[e];
    if (target.kind == DecodedOperand::Kind::kSink) continue;
    Register* const d = warp.Lanes<Register>(target.slot);
    if (moved) {
      // All four were.
    } else if (sizeof(Memory) == sizeof(Register) && access.dense && count == 1) {
      std::memcpy(d, access.at(0), kWarpSize * sizeof(Memory));
    } else if (access.same && access.lanes == kAllLanes) {
      Memory value;
      std::memcpy(&value, access.at(0) + e * sizeof(Memory), sizeof(Memory));
      std::fill_n(d, kWarpSize, static_cast<Register>(value));
    } else if (access.lanes == kAllLanes) {
      for (int lane = 0; lane < kWarpSize; ++lane) {
        Memory value;
        std::memcpy(&value, access.at(lane) + e * sizeof(Memory), sizeof(Memory));
        d[lane] = static_cast<Register>(value);
      }
    } else {
      for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        Memory value;
        std::memcpy(&value, access.at(lane) + e * sizeof(Memory), sizeof(Memory));
        d[lane] = static_cast<Register>(value);
      }
    }
    if constexpr (kMonitored) {
      if (warp.device->track_defined) {
        const LaneMask undefined = UndefinedLanes(
            warp, access, e * static_cast<std::uint32_t>(sizeof(Memory)), sizeof(Memory));
        if (undefined == 0) [[likely]] {
          warp.frame->undefined[target.shadow] &= ~access.lanes;
        } else {
          SetLoaded<Memory, Register>(warp, op, target, access,
                                      e * static_cast<std::uint32_t>(sizeof(Memory)), undefined);
        }
      }
    }
  }
  if constexpr (kMonitored) {
    if (warp.chosen_place.lanes != 0) [[unlikely]]
      MarkReadAtChosenPlace(warp, op);
    if (warp.device->race) {
      AccessEvent event{.order = UnpackOrder(op),
                        .read_only_path = (op.aux & kReadOnlyPath) != 0,
                        .element_bytes = sizeof(Memory)};
      if (warp.device->stale != nullptr && event.order.order != Order::kWeak) [[unlikely]] {
        OldReads old;
        TakeOldValues<Memory, Register>(warp, op, access, old);
        event.read_from = old.by_lane.data();
        ReportAccess(warp, op, access, bytes, event);
      } else {
        ReportAccess(warp, op, access, bytes, event);
      }
    }
  }
}

/// A strong store of one lane is about to be made: true when it came before a newer one instead, so
/// that memory stays as it is (stale.h).
template <class Memory, class Register>
[[gnu::noinline]] bool StoredEarlier(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                                     AccessEvent event) {
  const int lane = FirstLane(access.lanes);
  const MemoryRegion* const region = access.RegionOf(lane);
  const DecodedOperand& source = op.operands[1];
  if (std::popcount(access.lanes) != 1 || region == nullptr || !region->writable ||
      warp.chosen_place.lanes != 0 ||
      (warp.device->track_defined && (warp.frame->undefined[source.shadow] >> lane & 1u) != 0))
    return false;
  StaleReads& stale = *warp.device->stale;
  const auto place =
      stale.PlaceEarlier(warp, warp.PcOf(op), lane, *region, access.pointer[lane], sizeof(Memory));
  if (!place) return false;
  Published aside;
  event.aside = &aside;
  ReportAccess(warp, op, access, sizeof(Memory), event);
  const Memory value = static_cast<Memory>(warp.Lanes<Register>(source.slot)[lane]);
  std::byte bytes[sizeof(Memory)];
  std::memcpy(bytes, &value, sizeof(Memory));
  stale.StoreEarlier(*place, bytes, std::move(aside));
  return true;
}

template <bool kMonitored, class Memory, class Register>
void Store(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  const Space space = op.source->space;
  const std::uint32_t count = op.operand_count - 1u;
  const std::uint32_t bytes = count * static_cast<std::uint32_t>(sizeof(Memory));
  LaneAccess access;
  const DecodedOperand& address = AddressOperand(op, false);
  Addresses(warp, address, access);
  if constexpr (kMonitored) CheckAddressDefined(warp, op, address, warp.exec);
  if (!Resolve(warp, op, space, warp.exec, bytes, AccessType::kStore, access)) return;
  if (IsGlobal(space)) {
    warp.device->counters.bytes_written += std::uint64_t{bytes} * CountLanes(warp.exec);
  }
  if (!access.local) warp.device->last_progress = warp.device->counters.steps;
  if ((op.flags & kFlagOrderMatters) != 0) {
    warp.device->counters.used_atomics = true;
    if (IsGlobal(space)) warp.device->NoteMeeting();
  }
  if constexpr (kMonitored) {
    if (warp.device->race) {
      const std::byte* registers[kMostElements];
      for (std::uint32_t e = 0; e < count; ++e)
        registers[e] = warp.Lanes<std::byte>(op.operands[1 + e].slot);
      const AccessEvent event{.kind = AccessKind::kWrite,
                              .order = UnpackOrder(op),
                              .element_bytes = sizeof(Memory),
                              .registers = registers,
                              .register_bytes = sizeof(Register)};
      if (warp.device->stale != nullptr && event.order.order != Order::kWeak) [[unlikely]] {
        const bool waits = warp.device->stale->LetLoadWait(warp, op, access);
        const bool stored = count == 1 && StoredEarlier<Memory, Register>(warp, op, access, event);
        if (!stored) ReportAccess(warp, op, access, bytes, event);
        if (waits) warp.outcome = Outcome::kYield;
        if (stored) return;
      } else {
        ReportAccess(warp, op, access, bytes, event);
      }
    }
  }
  const bool dropped = warp.device->drop_stores && access.common != nullptr &&
                       access.common->kind == MemoryRegion::Kind::kBuffer;
  const bool moved = !dropped && MovedAsQuads<false, Memory, Register>(warp, op, 1, count, access);
  for (std::uint32_t e = 0; e < count && !dropped; ++e) {
    const DecodedOperand& source = op.operands[1 + e];
    const Register* const s = warp.Lanes<Register>(source.slot);
    if (moved) {
      // All four were.
    } else if (sizeof(Memory) == sizeof(Register) && access.dense && count == 1) {
      std::memcpy(access.at(0), s, kWarpSize * sizeof(Memory));
    } else {
      for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const Memory value = static_cast<Memory>(s[lane]);
        std::memcpy(access.at(lane) + e * sizeof(Memory), &value, sizeof(Memory));
      }
    }
    if constexpr (kMonitored) {
      if (warp.device->track_defined) {
        MarkStoredRegister(warp, op, access, e * static_cast<std::uint32_t>(sizeof(Memory)),
                           sizeof(Memory), source);
      }
    }
  }
  if constexpr (kMonitored) {
    if (warp.chosen_place.lanes != 0) [[unlikely]]
      StoreAtChosenPlaces(warp, op, access, bytes, TakeChosenPlaces(warp, op));
  }
}

struct Pair {
  Handler plain = nullptr;
  Handler monitored = nullptr;
};

template <class Memory, class Register>
Pair LoadPair() {
  return {&Load<false, Memory, Register>, &Load<true, Memory, Register>};
}
template <class Memory, class Register>
Pair StorePair() {
  return {&Store<false, Memory, Register>, &Store<true, Memory, Register>};
}

template <class U, class S>
Pair LoadSized(int register_bits, bool is_signed) {
  switch (register_bits) {
    case 16:
      if constexpr (sizeof(U) <= 2)
        return is_signed ? LoadPair<S, std::int16_t>() : LoadPair<U, std::uint16_t>();
      return {};
    case 32:
      if constexpr (sizeof(U) <= 4)
        return is_signed ? LoadPair<S, std::int32_t>() : LoadPair<U, std::uint32_t>();
      return {};
    case 64:
      return is_signed ? LoadPair<S, std::int64_t>() : LoadPair<U, std::uint64_t>();
    default:
      return {};
  }
}

template <class U>
Pair StoreSized(int register_bits) {
  switch (register_bits) {
    case 16:
      if constexpr (sizeof(U) <= 2) return StorePair<U, std::uint16_t>();
      return {};
    case 32:
      if constexpr (sizeof(U) <= 4) return StorePair<U, std::uint32_t>();
      return {};
    case 64:
      return StorePair<U, std::uint64_t>();
    default:
      return {};
  }
}

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

/// Width of the register operands [first, end): the same for all of them, or 0. The sink has any
/// width.
int RegisterBitsOf(const Decoded& decoded, std::size_t first, std::size_t end) {
  int bits = 0;
  for (std::size_t i = first; i < end; ++i) {
    const DecodedOperand& operand = decoded.operands[i];
    if (operand.kind == DecodedOperand::Kind::kSink) continue;
    if (operand.kind != DecodedOperand::Kind::kSlot) return 0;
    if (bits != 0 && operand.bits != bits) return 0;
    bits = operand.bits;
  }
  return bits;
}

Handler Finish(Decoded& decoded, Pair pair) {
  decoded.flags |= kFlagMemory;
  decoded.propagate = kPropagateSelf;
  decoded.monitored = pair.monitored;
  return pair.plain;
}

Handler ResolveLoad(const Instruction& in, Decoded& decoded) {
  if (decoded.destinations == 0 || decoded.operand_count < decoded.destinations + 1) return nullptr;
  const int memory_bits = ptx::BitsOf(in.type());
  const int bits = RegisterBitsOf(decoded, 0, decoded.destinations);
  const bool is_signed = IsSigned(in.type());
  decoded.aux = PackOrder(in) | (in.Has(Mod::kNc) ? kReadOnlyPath : 0);
  if (UnpackOrder(decoded).order != Order::kWeak) decoded.flags |= kFlagOrderMatters;
  switch (memory_bits) {
    case 8:
      return Finish(decoded, LoadSized<std::uint8_t, std::int8_t>(bits, is_signed));
    case 16:
      return Finish(decoded, LoadSized<std::uint16_t, std::int16_t>(bits, is_signed));
    case 32:
      return Finish(decoded, LoadSized<std::uint32_t, std::int32_t>(bits, is_signed));
    case 64:
      return Finish(decoded, LoadSized<std::uint64_t, std::int64_t>(bits, is_signed));
    case 128:
      return bits == 128 ? Finish(decoded, LoadPair<Wide, Wide>()) : nullptr;
    default:
      return nullptr;
  }
}

/// A cache policy may follow the values; it changes no result.
void DropCachePolicy(const Instruction& in, Decoded& decoded) {
  if (in.Has(Mod::kL2CacheHint) && decoded.operand_count > 1) --decoded.operand_count;
}

Handler ResolveStore(const Instruction& in, Decoded& decoded) {
  DropCachePolicy(in, decoded);
  if (decoded.operand_count < 2) return nullptr;
  if (decoded.operand_count - std::size_t{1} > kMostElements) return nullptr;
  const int bits = RegisterBitsOf(decoded, 1, decoded.operand_count);
  decoded.aux = PackOrder(in);
  // Of two strong stores that nothing orders, the later one stays.
  if (UnpackOrder(decoded).order != Order::kWeak) decoded.flags |= kFlagOrderMatters;
  switch (ptx::BitsOf(in.type())) {
    case 8:
      return Finish(decoded, StoreSized<std::uint8_t>(bits));
    case 16:
      return Finish(decoded, StoreSized<std::uint16_t>(bits));
    case 32:
      return Finish(decoded, StoreSized<std::uint32_t>(bits));
    case 64:
      return Finish(decoded, StoreSized<std::uint64_t>(bits));
    case 128:
      return bits == 128 ? Finish(decoded, StorePair<Wide, Wide>()) : nullptr;
    default:
      return nullptr;
  }
}

void Nothing(Warp&, const Decoded&) {}

Handler NoEffect(const Instruction&, Decoded& decoded) {
  decoded.propagate = kPropagateSelf;
  return &Nothing;
}

/// createpolicy: an opaque value that nothing depends on.
void CreatePolicy(Warp& warp, const Decoded& op) {
  auto* const d = warp.Lanes<std::uint64_t>(op.d);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((warp.exec >> lane & 1) != 0) d[lane] = 0;
  }
}

Handler ResolveCreatePolicy(const Instruction&, Decoded& decoded) {
  return decoded.destinations == 1 && decoded.operands[0].bits == 64 ? &CreatePolicy : nullptr;
}

constexpr ResolverRow kRows[] = {
    {Opcode::kLd, &ResolveLoad},     {Opcode::kLdu, &ResolveLoad},
    {Opcode::kSt, &ResolveStore},    {Opcode::kPrefetch, &NoEffect},
    {Opcode::kPrefetchu, &NoEffect}, {Opcode::kApplyPriority, &NoEffect},
    {Opcode::kDiscard, &NoEffect},   {Opcode::kCreatePolicy, &ResolveCreatePolicy},
};

}  // namespace

std::span<const ResolverRow> MemoryRows() {
  static const std::vector<ResolverRow> rows = [] {
    std::vector<ResolverRow> all(std::begin(kRows), std::end(kRows));
    for (const auto more : {AddressRows(), StackRows()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rows;
}

std::uint64_t AddressOf(Warp& warp, const Decoded& op, std::size_t operand, int lane) {
  const DecodedOperand& address = op.operands[operand];
  const auto offset = static_cast<std::uint64_t>(address.offset);
  if (address.bits == 64) return warp.Lanes<std::uint64_t>(address.slot)[lane] + offset;
  return static_cast<std::uint32_t>(warp.Lanes<std::uint32_t>(address.slot)[lane] + offset);
}

bool LoadLanes(Warp& base, const Decoded& op, Space space, LaneMask lanes,
               const std::uint64_t* addresses, std::uint32_t bytes, std::byte* out,
               LoadedLanes& loaded) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  std::memcpy(access.address, addresses, sizeof(access.address));
  const bool resolved = Resolve(warp, op, space, lanes, bytes, AccessType::kLoad, access);
  if (!resolved) return false;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(out + static_cast<std::size_t>(lane) * bytes, access.at(lane), bytes);
  }
  loaded = {};
  if (warp.device->track_defined) loaded.undefined = UndefinedLanes(warp, access, 0, bytes);
  if (loaded.undefined != 0) {
    const LoadedChoice choice = ChoiceLoaded(warp, op, access, 0, bytes, loaded.undefined);
    loaded.chosen = choice.chosen;
    loaded.choice = choice.origin;
  }
  if (warp.device->race) ReportAccess(warp, op, access, bytes, {.order = OrderOf(*op.source)});
  return true;
}

bool StoreLanes(Warp& base, const Decoded& op, Space space, LaneMask lanes,
                const std::uint64_t* addresses, std::uint32_t bytes, const std::byte* in,
                const StoredLanes& what) {
  CoreWarp& warp = Core(base);
  LaneAccess access;
  std::memcpy(access.address, addresses, sizeof(access.address));
  const bool resolved = Resolve(warp, op, space, lanes, bytes, AccessType::kStore, access);
  if (!resolved) return false;
  if (warp.device->race) {
    ReportAccess(warp, op, access, bytes,
                 {.kind = AccessKind::kWrite,
                  .order = OrderOf(*op.source),
                  .registers = &in,
                  .register_bytes = bytes});
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(access.at(lane), in + static_cast<std::size_t>(lane) * bytes, bytes);
  }
  if (warp.device->track_defined) {
    MarkStored(warp, op, access, 0, bytes, what.undefined, what.origin, what.chosen);
    if (what.places != nullptr) StoreAtChosenPlaces(warp, op, access, bytes, *what.places);
  }
  warp.device->last_progress = warp.device->counters.steps;
  return true;
}

}  // namespace assay::emu
