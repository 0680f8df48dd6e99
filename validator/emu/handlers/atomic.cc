// atom and red (PTX ISA 9.7.13.5, 9.7.13.6). Lanes of one instruction take effect one after the
// other, in lane order or, under a reversing schedule, in reverse.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"
#include "validator/emu/handlers/combine.h"
#include "validator/emu/handlers/rows.h"
#include "validator/emu/memory.h"
#include "validator/emu/scheduler.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/draws.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/undefined.h"
#include "validator/emu/weak/contention.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;
using ptx::Type;

// --- values: storage types with the arithmetic of each PTX type

struct Bits128 {
  std::uint64_t low;
  std::uint64_t high;
  bool operator==(const Bits128&) const = default;
};
struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};
struct Half2 {
  Half lane[2];
};
struct Brain2 {
  Brain lane[2];
};

constexpr std::uint16_t kNaN16 = 0x7fff;
constexpr std::uint32_t kNaN32 = 0x7fffffff;

float Widen(Half value) { return F16ToFloat(value.bits); }
float Widen(Brain value) { return Bf16ToFloat(value.bits); }
// The sum of two values of at most 11 significant bits, rounded to f32 and then again, is rounded
// as if once (24 >= 2 * 11 + 2).
Half Narrow(Half, float value) { return {std::isnan(value) ? kNaN16 : DoubleToF16(value)}; }
Brain Narrow(Brain, float value) { return {std::isnan(value) ? kNaN16 : DoubleToBf16(value)}; }

template <class T>
concept Small = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;
template <class T>
concept Packed = std::is_same_v<T, Half2> || std::is_same_v<T, Brain2>;

/// Global atomics on f32 flush subnormals, those in shared memory do not.
float Flush(float value, bool flush) {
  return flush && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

struct Context {
  bool flush = false;
};

struct Add {
  template <class T>
  static T Apply(T a, T b, T, Context context) {
    if constexpr (std::is_same_v<T, float>) {
      const float sum = Flush(Flush(a, context.flush) + Flush(b, context.flush), context.flush);
      return std::isnan(sum) ? std::bit_cast<float>(kNaN32) : sum;
    } else if constexpr (std::is_same_v<T, double>) {
      return a + b;
    } else if constexpr (Small<T>) {
      return Narrow(a, Widen(a) + Widen(b));
    } else if constexpr (Packed<T>) {
      return {{Apply(a.lane[0], b.lane[0], a.lane[0], context),
               Apply(a.lane[1], b.lane[1], a.lane[1], context)}};
    } else {
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    }
  }
};

template <bool kMin>
struct Extreme {
  template <class T>
  static T Apply(T a, T b, T, Context context) {
    if constexpr (Small<T>) {
      const float x = Widen(a), y = Widen(b);
      if (std::isnan(x)) return std::isnan(y) ? T{kNaN16} : b;
      if (std::isnan(y)) return a;
      // -0 is below +0.
      if (x == y) return (std::signbit(x) == kMin) ? a : b;
      return (x < y) == kMin ? a : b;
    } else if constexpr (Packed<T>) {
      return {{Apply(a.lane[0], b.lane[0], a.lane[0], context),
               Apply(a.lane[1], b.lane[1], a.lane[1], context)}};
    } else {
      return kMin ? std::min(a, b) : std::max(a, b);
    }
  }
};

struct Exchange {
  template <class T>
  static T Apply(T, T b, T, Context) {
    return b;
  }
};
struct CompareAndSwap {
  template <class T>
  static T Apply(T a, T b, T c, Context) {
    return a == b ? c : a;
  }
};
struct Increment {
  template <class T>
  static T Apply(T a, T b, T, Context) {
    return a >= b ? T{0} : static_cast<T>(a + 1);
  }
};
struct Decrement {
  template <class T>
  static T Apply(T a, T b, T, Context) {
    return a == 0 || a > b ? b : static_cast<T>(a - 1);
  }
};
struct BitAnd {
  template <class T>
  static T Apply(T a, T b, T, Context) {
    return a & b;
  }
};
struct BitOr {
  template <class T>
  static T Apply(T a, T b, T, Context) {
    return a | b;
  }
};
struct BitXor {
  template <class T>
  static T Apply(T a, T b, T, Context) {
    return a ^ b;
  }
};

bool InShared(Space space, std::uint64_t address) {
  return space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster ||
         (space == Space::kGeneric && (address & kWindowMask) == kSharedWindow);
}

void ReportUndefinedTarget(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                           std::uint32_t offset, std::uint32_t bytes, LaneMask undefined) {
  const int lane = FirstLane(undefined);
  MemoryPlace place = PlaceOf(warp, op.source->space, access.address[lane] + offset, lane, bytes);
  const std::string where = place.buffer.empty() ? fmt::format("{:#x}", place.address)
                                                 : fmt::format("{}[{}]", place.buffer, place.index);
  Report1(warp, FindingKind::kUninitialisedUse, warp.PcOf(op), undefined,
          fmt::format("{} onto {}, which nothing has written", VerbOf(*op.source), where),
          VerbOf(*op.source), std::move(place),
          fmt::format("a value in {} before anything is combined with it", where));
}

/// One element, in memory, with one that comes from elsewhere.
template <class Op, class T>
void CombineElement(std::byte* at, const std::byte* value, bool flush) {
  T old;
  T with;
  std::memcpy(&old, at, sizeof(T));
  std::memcpy(&with, value, sizeof(T));
  const T updated = Op::Apply(old, with, with, Context{.flush = flush});
  std::memcpy(at, &updated, sizeof(T));
}

/// Float sums depend on the order of their terms (contention.h). Before anything is added.
template <class T>
[[gnu::noinline]] void NoteFloatAdds(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                                     const DecodedOperand* terms, std::uint32_t count, bool flush) {
  for (std::uint32_t e = 0; e < count; ++e) {
    const T* const term = warp.Lanes<T>(terms[e].slot);
    for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const MemoryRegion* const region = access.RegionOf(lane);
      if (region == nullptr) continue;
      warp.device->contention->OnFloatAdd(warp, warp.PcOf(op), lane, *region,
                                          access.at(lane) + e * sizeof(T),
                                          reinterpret_cast<const std::byte*>(&term[lane]),
                                          sizeof(T), &CombineElement<Add, T>, flush);
    }
  }
}

/// So do the floats that a loop around a swap computes (updates.h): of the lanes, those that will
/// put their value there.
template <class Op, class T>
[[gnu::noinline]] void NoteSwaps(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                                 const DecodedOperand& expected) {
  Device& device = *warp.device;
  const std::uint32_t pc = warp.PcOf(op);
  if (!device.contention->EndsUpdate(pc)) return;
  std::array<std::uintptr_t, kWarpSize> swapped{};
  std::size_t count = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    const int lane = device.reverse_lanes ? kWarpSize - 1 - i : i;
    const MemoryRegion* const region = access.RegionOf(lane);
    if ((access.lanes >> lane & 1) == 0 || region == nullptr) continue;
    if constexpr (std::is_same_v<Op, CompareAndSwap>) {
      T old;
      std::memcpy(&old, access.at(lane), sizeof(T));
      const auto end = swapped.begin() + static_cast<std::ptrdiff_t>(count);
      if (!(old == warp.Lanes<T>(expected.slot)[lane]) ||
          std::find(swapped.begin(), end, access.pointer[lane]) != end)
        continue;
      swapped[count++] = access.pointer[lane];
    }
    device.contention->OnSwap(warp, pc, lane, *region, access.at(lane), sizeof(T));
  }
}

/// Who looks at what it held may take it for a number of its own.
template <class Op, class T>
constexpr bool kDraws =
    std::is_integral_v<T> && (std::is_same_v<Op, Add> || std::is_same_v<Op, Increment>);

template <bool kMonitored, class Op, class T>
void ReadModifyWrite(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  Device& device = *warp.device;
  const Space space = op.source->space;
  const bool returns = op.source->opcode == Opcode::kAtom;
  // Operands: destinations (a vector's elements flattened), address, sources, and for cas what to
  // compare first.
  const std::uint32_t count = op.aux & 0xffff;
  const std::size_t address_at = op.destinations;
  const DecodedOperand& address = op.operands[address_at];
  const DecodedOperand* const b = op.operands + address_at + 1;
  const DecodedOperand* const c = std::is_same_v<Op, CompareAndSwap> ? b + 1 : b;
  const std::uint32_t bytes = count * static_cast<std::uint32_t>(sizeof(T));
  LaneAccess access;
  Addresses(warp, address, access);
  if constexpr (kMonitored) CheckAddressDefined(warp, op, address, warp.exec);
  if (!Resolve(warp, op, space, warp.exec, bytes, AccessType::kAtomic, access)) return;
  const auto lanes = static_cast<std::uint64_t>(std::popcount(warp.exec));
  device.counters.atomics += lanes;
  if ((op.flags & kFlagOrderMatters) != 0) device.counters.used_atomics = true;
  const bool in_shared = InShared(space, access.address[std::countr_zero(warp.exec)]);
  if (!in_shared) {
    device.NoteMeeting();
    device.counters.bytes_read += lanes * bytes;
    device.counters.bytes_written += lanes * bytes;
  }
  const Context context{.flush = !in_shared};
  if constexpr (kMonitored && std::is_same_v<Op, Add> && !std::is_integral_v<T>) {
    if (device.contention != nullptr) NoteFloatAdds<T>(warp, op, access, b, count, context.flush);
  }
  if constexpr (kMonitored && sizeof(T) <= 8 &&
                (std::is_same_v<Op, CompareAndSwap> || std::is_same_v<Op, Exchange>)) {
    if (device.contention != nullptr) NoteSwaps<Op, T>(warp, op, access, b[0]);
  }
  if constexpr (kMonitored) {
    if (device.race) {
      ReportAccess(warp, op, access, bytes,
                   {.kind = AccessKind::kReadWrite,
                    .order = UnpackOrder(op),
                    .atomic = true,
                    .returns_value = returns,
                    .element_bytes = sizeof(T)});
    }
  }
  bool changed = false;
  ChosenPlaces places;
  for (std::uint32_t e = 0; e < count; ++e) {
    const T* const sb = warp.Lanes<T>(b[e].slot);
    const T* const sc = warp.Lanes<T>(c[e].slot);
    T* const d = returns && op.operands[e].kind == DecodedOperand::Kind::kSlot
                     ? warp.Lanes<T>(op.operands[e].slot)
                     : nullptr;
    LaneMask undefined = 0;
    LaneMask chosen = 0;
    std::uint32_t choice_origin = kNoPc;
    if constexpr (kMonitored) {
      if (device.track_defined) {
        undefined =
            UndefinedLanes(warp, access, e * static_cast<std::uint32_t>(sizeof(T)), sizeof(T));
        // Reported here, once: what comes of it counts as defined, so that it is not reported again.
        if (undefined != 0) {
          const LoadedChoice choice = ChoiceLoaded(
              warp, op, access, e * static_cast<std::uint32_t>(sizeof(T)), sizeof(T), undefined);
          chosen = choice.chosen;
          choice_origin = choice.origin;
        }
        // What combines nothing that was set with it makes nothing worse: who reads it is told.
        const LaneMask set =
            std::is_same_v<Op, CompareAndSwap> ? kAllLanes : ~UnsetLanes(*warp.frame, b[e].shadow);
        if (const LaneMask unset = undefined & ~chosen & set;
            unset != 0 && !std::is_same_v<Op, Exchange>) {
          ReportUndefinedTarget(warp, op, access, e * static_cast<std::uint32_t>(sizeof(T)),
                                sizeof(T), unset);
          undefined &= ~unset;
        }
      }
    }
    T results[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) {
      const int lane = device.reverse_lanes ? kWarpSize - 1 - i : i;
      if ((access.lanes >> lane & 1) == 0) continue;
      std::byte* const at = access.at(lane) + e * sizeof(T);
      if constexpr (kDraws<Op, T>) {
        if (device.draws != nullptr && d != nullptr && access.RegionOf(lane) != nullptr)
          device.draws->Note(device, *access.RegionOf(lane), at, sizeof(T));
      }
      T old;
      std::memcpy(&old, at, sizeof(T));
      const T updated = Op::Apply(old, sb[lane], sc[lane], context);
      changed = changed || std::memcmp(&updated, &old, sizeof(T)) != 0;
      std::memcpy(at, &updated, sizeof(T));
      results[lane] = old;
    }
    if (d != nullptr) {
      for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        d[lane] = results[lane];
      }
    }
    if constexpr (kMonitored) {
      if (device.track_defined) {
        Frame& frame = *warp.frame;
        LaneMask stored = undefined | frame.undefined[b[e].shadow] | frame.undefined[c[e].shadow];
        if (std::is_same_v<Op, Exchange>) stored = frame.undefined[b[e].shadow];
        const LaneMask unset = UnsetLanes(frame, b[e].shadow) | UnsetLanes(frame, c[e].shadow);
        const bool from_register = (frame.undefined[b[e].shadow] & access.lanes) != 0;
        if (e == 0 && warp.chosen_place.lanes != 0) [[unlikely]]
          places = TakeChosenPlaces(warp, op);
        const LaneMask chosen_place = places.lanes & access.lanes;
        if (chosen_place != 0 && !from_register) choice_origin = places.origin;
        MarkStored(warp, op, access, e * static_cast<std::uint32_t>(sizeof(T)), sizeof(T),
                   stored | chosen_place, from_register ? frame.origin[b[e].shadow] : choice_origin,
                   (stored | chosen_place) & ~unset);
        if (d != nullptr) {
          const LaneMask read = undefined & ~chosen;
          SetUndefined(frame, op.operands[e].shadow, access.lanes, read, warp.PcOf(op));
          if ((chosen | chosen_place) != 0) [[unlikely]]
            SetChosen(frame, op.operands[e].shadow, (chosen | chosen_place) & access.lanes,
                      choice_origin);
        }
      }
    }
  }
  if constexpr (kMonitored) {
    if (places.lanes != 0) [[unlikely]]
      SpreadChosenStore(warp, access, bytes, places);
  }
  // A compare-and-swap that keeps failing is polling, not progress.
  if (changed) device.last_progress = device.counters.steps;
}

struct AtomicRow {
  Mod operation;
  Type type;
  int bits;  ///< Of the source registers.
  bool compares;
  Handler plain;
  Handler monitored;
  Combine combine;
};

#define ATOMIC(mod, type, bits, op, storage) \
  {Mod::k##mod,                              \
   Type::k##type,                            \
   bits,                                     \
   std::is_same_v<op, CompareAndSwap>,       \
   &ReadModifyWrite<false, op, storage>,     \
   &ReadModifyWrite<true, op, storage>,      \
   &CombineElement<op, storage>}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S32 = std::int32_t;
using S64 = std::int64_t;

constexpr AtomicRow kAtomics[] = {
    ATOMIC(Add, U32, 32, Add, U32),
    ATOMIC(Add, S32, 32, Add, S32),
    ATOMIC(Add, U64, 64, Add, U64),
    ATOMIC(Add, S64, 64, Add, S64),
    ATOMIC(Add, F32, 32, Add, float),
    ATOMIC(Add, F64, 64, Add, double),
    ATOMIC(Add, F16, 16, Add, Half),
    ATOMIC(Add, BF16, 16, Add, Brain),
    ATOMIC(Add, F16x2, 32, Add, Half2),
    ATOMIC(Add, BF16x2, 32, Add, Brain2),
    ATOMIC(Min, U32, 32, Extreme<true>, U32),
    ATOMIC(Min, S32, 32, Extreme<true>, S32),
    ATOMIC(Min, U64, 64, Extreme<true>, U64),
    ATOMIC(Min, S64, 64, Extreme<true>, S64),
    ATOMIC(Max, U32, 32, Extreme<false>, U32),
    ATOMIC(Max, S32, 32, Extreme<false>, S32),
    ATOMIC(Max, U64, 64, Extreme<false>, U64),
    ATOMIC(Max, S64, 64, Extreme<false>, S64),
    ATOMIC(Min, F16, 16, Extreme<true>, Half),
    ATOMIC(Max, F16, 16, Extreme<false>, Half),
    ATOMIC(Min, BF16, 16, Extreme<true>, Brain),
    ATOMIC(Max, BF16, 16, Extreme<false>, Brain),
    ATOMIC(Min, F16x2, 32, Extreme<true>, Half2),
    ATOMIC(Max, F16x2, 32, Extreme<false>, Half2),
    ATOMIC(Min, BF16x2, 32, Extreme<true>, Brain2),
    ATOMIC(Max, BF16x2, 32, Extreme<false>, Brain2),
    ATOMIC(Inc, U32, 32, Increment, U32),
    ATOMIC(Dec, U32, 32, Decrement, U32),
    ATOMIC(And, B32, 32, BitAnd, U32),
    ATOMIC(And, B64, 64, BitAnd, U64),
    ATOMIC(Or, B32, 32, BitOr, U32),
    ATOMIC(Or, B64, 64, BitOr, U64),
    ATOMIC(Xor, B32, 32, BitXor, U32),
    ATOMIC(Xor, B64, 64, BitXor, U64),
    ATOMIC(Exch, B32, 32, Exchange, U32),
    ATOMIC(Exch, B64, 64, Exchange, U64),
    ATOMIC(Exch, B128, 128, Exchange, Bits128),
    ATOMIC(Cas, B16, 16, CompareAndSwap, U16),
    ATOMIC(Cas, B32, 32, CompareAndSwap, U32),
    ATOMIC(Cas, B64, 64, CompareAndSwap, U64),
    ATOMIC(Cas, B128, 128, CompareAndSwap, Bits128),
};
#undef ATOMIC

/// Older PTX writes exch.u32, and.u32 and the like.
Type Canonical(Mod operation, Type type) {
  const bool bitwise = operation == Mod::kAnd || operation == Mod::kOr || operation == Mod::kXor ||
                       operation == Mod::kExch || operation == Mod::kCas;
  if (!bitwise || type == Type::kB128) return type;
  const int bits = ptx::BitsOf(type);
  return bits == 16 ? Type::kB16 : bits == 32 ? Type::kB32 : Type::kB64;
}

/// Integer sums, extremes and bit operations come out the same in any order, unless the old value
/// is looked at.
bool OrderMatters(const AtomicRow& row, bool result_used) {
  if (result_used || row.compares || row.operation == Mod::kExch || row.operation == Mod::kInc ||
      row.operation == Mod::kDec)
    return true;
  const bool is_float = row.type == Type::kF32 || row.type == Type::kF64 ||
                        row.type == Type::kF16 || row.type == Type::kBF16 ||
                        row.type == Type::kF16x2 || row.type == Type::kBF16x2;
  return is_float && row.operation == Mod::kAdd;
}

Handler ResolveAtomic(const Instruction& in, Decoded& decoded) {
  const bool returns = in.opcode == Opcode::kAtom;
  if (returns != (decoded.destinations > 0)) return nullptr;
  const std::size_t address_at = decoded.destinations;
  if (in.Has(Mod::kL2CacheHint) && decoded.operand_count > address_at + 2) --decoded.operand_count;
  for (const AtomicRow& row : kAtomics) {
    if (!in.Has(row.operation) || row.type != Canonical(row.operation, in.type())) continue;
    const std::size_t per_element = row.compares ? 2 : 1;
    if (decoded.operand_count <= address_at + 1) return nullptr;
    const std::size_t sources = decoded.operand_count - address_at - 1;
    const std::size_t count = sources / per_element;
    if (count == 0 || sources % per_element != 0 || (returns && count != decoded.destinations))
      return nullptr;
    for (std::size_t i = 0; i < decoded.operand_count; ++i) {
      const DecodedOperand& operand = decoded.operands[i];
      if (i == address_at) {
        if (operand.kind != DecodedOperand::Kind::kSlot || operand.bits < 32) return nullptr;
      } else if (operand.kind == DecodedOperand::Kind::kSink && i < address_at) {
        continue;
      } else if (operand.kind != DecodedOperand::Kind::kSlot || operand.bits != row.bits) {
        return nullptr;
      }
    }
    if (count > 8 || (row.compares && count != 1)) return nullptr;
    decoded.aux = static_cast<std::uint32_t>(count) | PackOrder(in);
    decoded.flags |= kFlagMemory;
    if (OrderMatters(row, returns && (decoded.flags & kFlagResultUsed) != 0))
      decoded.flags |= kFlagOrderMatters;
    decoded.propagate = kPropagateSelf;
    decoded.monitored = row.monitored;
    return row.plain;
  }
  return nullptr;
}

constexpr ResolverRow kRows[] = {{Opcode::kAtom, &ResolveAtomic}, {Opcode::kRed, &ResolveAtomic}};

}  // namespace

Combine CombinerOf(const Instruction& in, Type type) {
  for (const AtomicRow& row : kAtomics) {
    if (!row.compares && in.Has(row.operation) && row.type == Canonical(row.operation, type))
      return row.combine;
  }
  return nullptr;
}

std::span<const ResolverRow> AtomicRows() { return kRows; }

}  // namespace assay::emu
