// From a function of one lane to a handler of 32: Map<Fn>.
//
// Fn is a pure function of semantics/; its parameter types say how the source slots are read and
// its result type how the destination is written. Map<Add<u32>> is the handler of add.u32. A
// function that returns bool writes a predicate.
//
// With all lanes active the loop stores straight to the destination; otherwise results are blended
// by `warp.exec`. Both loops vectorise: slots are aligned, and a destination either is one of the
// sources, lane for lane, or does not overlap it (`ivdep`). Functions are total, so that inactive
// lanes may be computed as well.
//
// This header is compiled once a level (semantics/level.h): nothing here may leave an inline
// function outside of that namespace.
#pragma once

#include "validator/emu/exec.h"
#include "validator/emu/handlers/table.h"
#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

template <class T>
[[gnu::always_inline]] inline T* LanesOf(Warp& warp, Slot slot) {
  void* lanes = warp.slots + static_cast<std::size_t>(slot) * kSlotBytes;
  return static_cast<T*>(__builtin_assume_aligned(lanes, 64));
}

[[gnu::always_inline]] inline bool IsActive(LaneMask exec, int lane) {
  return (exec >> lane & 1) != 0;
}

/// Writes the active lanes of a predicate.
[[gnu::always_inline]] inline void WritePredicate(Warp& warp, Slot predicate, LaneMask value) {
  LaneMask& target = warp.predicates[predicate];
  target = (target & ~warp.exec) | (value & warp.exec);
}

template <std::size_t kBytes>
struct LaneBits;
template <>
struct LaneBits<2> {
  using type = u16;
};
template <>
struct LaneBits<4> {
  using type = u32;
};
template <>
struct LaneBits<8> {
  using type = u64;
};

/// d = results where `exec` has a one. Written with masks, because GCC makes branches of a
/// conditional store.
template <class U>
[[gnu::noinline]] void BlendLanes(U* d, const U* results, LaneMask exec) {
  U* const to = static_cast<U*>(__builtin_assume_aligned(d, 64));
  const U* const from = static_cast<const U*>(__builtin_assume_aligned(results, 64));
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const U mask = static_cast<U>(U{0} - static_cast<U>(exec >> i & 1));
    to[i] = static_cast<U>((from[i] & mask) | (to[i] & static_cast<U>(~mask)));
  }
}

/// Runs `fn(lane)` for all lanes and stores what it returns in those that are active.
template <class R, class Fn>
[[gnu::always_inline]] inline void ForLanes(Warp& warp, Slot destination, Fn fn) {
  if constexpr (std::is_same_v<R, bool>) {
    LaneMask mask = 0;
    for (int i = 0; i < kWarpSize; ++i) mask |= static_cast<LaneMask>(fn(i)) << i;
    WritePredicate(warp, destination, mask);
  } else {
    R* const d = LanesOf<R>(warp, destination);
    const LaneMask exec = warp.exec;
    if (exec == kAllLanes) [[likely]] {
#pragma GCC ivdep
      for (int i = 0; i < kWarpSize; ++i) d[i] = fn(i);
    } else {
      alignas(64) R results[kWarpSize];
      for (int i = 0; i < kWarpSize; ++i) results[i] = fn(i);
      using U = typename LaneBits<sizeof(R)>::type;
      BlendLanes(reinterpret_cast<U*>(d), reinterpret_cast<const U*>(results), exec);
    }
  }
}

template <auto kFn, class Signature = decltype(kFn)>
struct Lanewise;

template <auto kFn, class R, class A>
struct Lanewise<kFn, R (*)(A)> {
  static void Run(Warp& warp, const Decoded& op) {
    const A* const a = LanesOf<A>(warp, op.a);
    ForLanes<R>(warp, op.d, [=](int i) { return kFn(a[i]); });
  }
};
template <auto kFn, class R, class A, class B>
struct Lanewise<kFn, R (*)(A, B)> {
  static void Run(Warp& warp, const Decoded& op) {
    const A* const a = LanesOf<A>(warp, op.a);
    const B* const b = LanesOf<B>(warp, op.b);
    ForLanes<R>(warp, op.d, [=](int i) { return kFn(a[i], b[i]); });
  }
};
template <auto kFn, class R, class A, class B, class C>
struct Lanewise<kFn, R (*)(A, B, C)> {
  static void Run(Warp& warp, const Decoded& op) {
    const A* const a = LanesOf<A>(warp, op.a);
    const B* const b = LanesOf<B>(warp, op.b);
    const C* const c = LanesOf<C>(warp, op.c);
    ForLanes<R>(warp, op.d, [=](int i) { return kFn(a[i], b[i], c[i]); });
  }
};
/// The fourth source comes from the full operand list (bfi).
template <auto kFn, class R, class A, class B, class C, class D>
struct Lanewise<kFn, R (*)(A, B, C, D)> {
  static void Run(Warp& warp, const Decoded& op) {
    const A* const a = LanesOf<A>(warp, op.a);
    const B* const b = LanesOf<B>(warp, op.b);
    const C* const c = LanesOf<C>(warp, op.c);
    const D* const d = LanesOf<D>(warp, op.operands[op.destinations + 3].slot);
    ForLanes<R>(warp, op.d, [=](int i) { return kFn(a[i], b[i], c[i], d[i]); });
  }
};

template <class Signature>
inline constexpr int kArity = 0;
template <class R, class... A>
inline constexpr int kArity<R (*)(A...)> = sizeof...(A);

template <auto kFn>
inline constexpr LaneHandler Map{&Lanewise<kFn>::Run, kArity<decltype(kFn)>};

/// An immediate in the place of a predicate, which arrives as a constant slot: true where not zero.
[[gnu::noinline]] inline LaneMask ConstantPredicate(Warp& warp, const DecodedOperand& operand) {
  LaneMask mask = 0;
  if (operand.bits == 16) {
    const u16* const lanes = LanesOf<u16>(warp, operand.slot);
    for (int i = 0; i < kWarpSize; ++i) mask |= static_cast<LaneMask>(lanes[i] != 0) << i;
  } else {
    const u32* const lanes = LanesOf<u32>(warp, operand.slot);
    const int words = operand.bits == 64 ? 2 : 1;
    for (int i = 0; i < kWarpSize; ++i) {
      const u32 either = lanes[i * words] | lanes[i * words + words - 1];
      mask |= static_cast<LaneMask>(either != 0) << i;
    }
  }
  return mask;
}

/// The lanes in which a predicate operand holds, its negation included.
inline LaneMask PredicateOf(Warp& warp, const DecodedOperand& operand) {
  LaneMask mask = 0;
  if (operand.kind == DecodedOperand::Kind::kPredicate) [[likely]] {
    mask = warp.predicates[operand.slot];
  } else if (operand.kind == DecodedOperand::Kind::kSlot) {
    mask = ConstantPredicate(warp, operand);
  }
  return operand.negated ? ~mask : mask;
}

/// Writes a predicate destination, which may be the sink `_`.
inline void WritePredicate(Warp& warp, const DecodedOperand& operand, LaneMask value) {
  if (operand.kind == DecodedOperand::Kind::kPredicate) WritePredicate(warp, operand.slot, value);
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
