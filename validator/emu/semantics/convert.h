// cvt for the forms that kernels use most, as pure functions of one lane (PTX ISA 9.7.9.21). All
// other forms: soft_convert.h.
//
// Floating point to integer clamps to the destination's range. NaN becomes 0; where source or
// destination has 64 bits it becomes 2^(bits of the destination - 1). Conversions between
// floating-point types round once. NaN becomes 0x7fffffff or 0x7fff, except that f64 and bf16 on
// either side keep sign and the upper bits of the payload. All as measured on an H200.
#pragma once

#include "validator/emu/semantics/floating.h"
#include "validator/emu/semantics/half.h"
#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

/// .rni, .rzi, .rmi, .rpi. The builtins become one instruction at every level (SSE4.1).
template <Round kMode>
inline double RoundToIntegral(double a) {
  if constexpr (kMode == Round::kNearest) return __builtin_rint(a);
  if constexpr (kMode == Round::kZero) return __builtin_trunc(a);
  if constexpr (kMode == Round::kDown) return __builtin_floor(a);
  return __builtin_ceil(a);
}
template <Round kMode>
inline float RoundToIntegral(float a) {
  if constexpr (kMode == Round::kNearest) return __builtin_rintf(a);
  if constexpr (kMode == Round::kZero) return __builtin_truncf(a);
  if constexpr (kMode == Round::kDown) return __builtin_floorf(a);
  return __builtin_ceilf(a);
}

/// A whole number to an integer, clamped.
template <class T, bool kFromF64 = false>
inline T ClampToInteger(double whole) {
  if constexpr (sizeof(T) < 8) {
    constexpr double kLow = static_cast<double>(kMin<T>);
    constexpr double kHigh = static_cast<double>(kMax<T>);
    double clamped = whole > kLow ? whole : kLow;
    clamped = clamped < kHigh ? clamped : kHigh;
    const T nan = kFromF64 ? static_cast<T>(T{1} << (kBits<T> - 1)) : T{0};
    clamped = IsNan(whole) ? 0.0 : clamped;
    T result;
    if constexpr (kSigned<T> || sizeof(T) < 4) {
      result = static_cast<T>(static_cast<s32>(clamped));
    } else {
      result = static_cast<T>(static_cast<s64>(clamped));
    }
    return IsNan(whole) ? nan : result;
  } else {
    constexpr double kEnd = kSigned<T> ? 0x1p63 : 0x1p64;
    if (IsNan(whole)) return static_cast<T>(u64{1} << 63);
    if (whole >= kEnd) return kMax<T>;
    if (whole <= static_cast<double>(kMin<T>)) return kMin<T>;
    return static_cast<T>(whole);
  }
}

template <class T, Round kMode, bool kFtz>
inline T F32ToInteger(float a) {
  return ClampToInteger<T>(RoundToIntegral<kMode>(static_cast<double>(FlushIf<kFtz>(a))));
}
template <class T, Round kMode>
inline T F64ToInteger(double a) {
  return ClampToInteger<T, true>(RoundToIntegral<kMode>(a));
}
template <class T, class F, Round kMode>
inline T HalfToInteger(u16 a) {
  return ClampToInteger<T>(RoundToIntegral<kMode>(static_cast<double>(F::Widen(a))));
}
template <class T>
inline float IntegerToF32(T a) {
  return static_cast<float>(a);
}
template <class T>
inline double IntegerToF64(T a) {
  return static_cast<double>(a);
}
/// For integers of up to 32 bits.
template <class F, class T>
inline u16 IntegerToHalf(T a) {
  return F::Narrow(NarrowToOdd(static_cast<double>(a)));
}

template <Round kMode, bool kFtz, bool kSat>
inline float F32ToIntegral(float a) {
  const float whole = FlushIf<kFtz>(Canonical(RoundToIntegral<kMode>(FlushIf<kFtz>(a))));
  if constexpr (kSat) return Saturate(whole);
  return whole;
}
/// Without modifiers a plain move.
template <bool kFtz, bool kSat>
inline float F32ToF32(float a) {
  if constexpr (!kFtz && !kSat) return a;
  const float same = FlushIf<kFtz>(Canonical(a));
  if constexpr (kSat) return Saturate(same);
  return same;
}
template <class F, bool kFtz>
inline float HalfToF32(u16 a) {
  if constexpr (std::is_same_v<F, Bf16> && !kFtz) return F::Widen(a);
  return FlushIf<kFtz>(Canonical(F::Widen(a)));
}
template <class F, bool kFtz, bool kRelu>
inline u16 F32ToHalf(float a) {
  const u16 half = F::Narrow(FlushIf<kFtz>(a));
  if constexpr (kRelu) return (half & 0x8000) != 0 ? u16{0} : half;
  return half;
}
/// `a` becomes the upper half.
template <class F, bool kFtz, bool kRelu>
inline u32 F32PairToHalves(float a, float b) {
  return u32{F32ToHalf<F, kFtz, kRelu>(a)} << 16 | u32{F32ToHalf<F, kFtz, kRelu>(b)};
}
template <bool kFtz>
inline double F32ToF64(float a) {
  if constexpr (kFtz) return static_cast<double>(Canonical(Flush(a)));
  return static_cast<double>(a);
}
template <bool kFtz>
inline float F64ToF32(double a) {
  const float result = static_cast<float>(a);
  if constexpr (kFtz)
    return FlushScaled(result, static_cast<float>(a * static_cast<double>(kScale)));
  return result;
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
