// The code of the emulator's arithmetic is compiled several times, for several levels of the x86-64
// instruction set; the handlers of the best level that the processor has are chosen when the
// program starts (handlers/rows.cc).
//
// So that the linker never takes an inline function from a translation unit compiled for a newer
// processor, everything in semantics/ and handlers/lanes.h lives in an inline namespace named by
// ASSAY_EMU_LEVEL. Translation units that are compiled once leave the macro unset and get
// `baseline`.
//
// Every level gives the same bits: -ffp-contract=off, no fast-math, and fused operations only where
// the source asks for them.
#pragma once

#include <cstdint>
#include <type_traits>

#ifndef ASSAY_EMU_LEVEL
#define ASSAY_EMU_LEVEL baseline
#endif

namespace assay::emu::inline ASSAY_EMU_LEVEL {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

template <class To, class From>
[[gnu::always_inline]] constexpr To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

/// A conversion that is meant to drop bits or change signedness.
template <class To, class From>
[[gnu::always_inline]] constexpr To Cast(From from) {
  return static_cast<To>(from);
}

template <class T>
inline constexpr int kBits = static_cast<int>(sizeof(T) * 8);
template <class T>
inline constexpr bool kSigned = std::is_signed_v<T>;
/// The integer type of twice the width.
template <class T>
struct WideOf;
template <>
struct WideOf<u8> {
  using type = u16;
};
template <>
struct WideOf<s8> {
  using type = s16;
};
template <>
struct WideOf<u16> {
  using type = u32;
};
template <>
struct WideOf<s16> {
  using type = s32;
};
template <>
struct WideOf<u32> {
  using type = u64;
};
template <>
struct WideOf<s32> {
  using type = s64;
};
template <>
struct WideOf<u64> {
  using type = u128;
};
template <>
struct WideOf<s64> {
  using type = s128;
};
template <class T>
using Wide = typename WideOf<T>::type;
template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
inline constexpr T kMax =
    kSigned<T> ? static_cast<T>(static_cast<Unsigned<T>>(~Unsigned<T>{0}) >> 1)
               : static_cast<T>(~T{0});
template <class T>
inline constexpr T kMin = static_cast<T>(~kMax<T>);

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
