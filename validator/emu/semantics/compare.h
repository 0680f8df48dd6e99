// Comparisons as pure functions (PTX ISA 9.7.6): eq ne lt le gt ge for all types, and for floating
// point also the forms that are true for NaN (equ neu ltu leu gtu geu) and the tests num and nan.
#pragma once

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

enum class Comparison : u8 {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};

template <Comparison kHow, class T>
inline bool Compare(T a, T b) {
  using enum Comparison;
  const bool unordered = a != a || b != b;
  if constexpr (kHow == kEq) return a == b;
  if constexpr (kHow == kNe) return a != b && !unordered;
  if constexpr (kHow == kLt) return a < b;
  if constexpr (kHow == kLe) return a <= b;
  if constexpr (kHow == kGt) return a > b;
  if constexpr (kHow == kGe) return a >= b;
  if constexpr (kHow == kEqu) return a == b || unordered;
  if constexpr (kHow == kNeu) return a != b;
  if constexpr (kHow == kLtu) return a < b || unordered;
  if constexpr (kHow == kLeu) return a <= b || unordered;
  if constexpr (kHow == kGtu) return a > b || unordered;
  if constexpr (kHow == kGeu) return a >= b || unordered;
  if constexpr (kHow == kNum) return !unordered;
  return unordered;
}

/// How stored lanes become values that compare.
template <class T>
struct AsIs {
  using Lane = T;
  static T Load(T value) { return value; }
};
struct AsF32Ftz {
  using Lane = float;
  static float Load(float value) { return Flush(value); }
};
template <class F, bool kFtz>
struct AsHalf {
  using Lane = u16;
  static float Load(u16 value) { return F::Widen(FlushHalf<F, kFtz>(value)); }
};

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
