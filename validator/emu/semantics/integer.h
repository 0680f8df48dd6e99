// Integer, logic, shift and bit-field instructions as pure functions of one lane (PTX
// ISA 9.7.1, 9.7.2, 9.7.8).
//
// Exact: PTX defines every bit, except for division by zero, where the functions return what an
// H200 returns. Overflow wraps. Cost: a handful of host instructions each, without branches where a
// vectoriser would stumble over them. No state.
//
//   Add<u32>(0xffffffff, 1) == 0;  BfeS<s32>(0x80, 7, 1) == -1
#pragma once

#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

// --- add, sub, mul (9.7.1.1-9.7.1.6)
template <class T>
inline T Add(T a, T b) {
  return Cast<T>(Cast<u64>(a) + Cast<u64>(b));
}
template <class T>
inline T Sub(T a, T b) {
  return Cast<T>(Cast<u64>(a) - Cast<u64>(b));
}
/// add.sat.s32: limits to MININT..MAXINT.
inline s32 AddSat(s32 a, s32 b) {
  const s64 sum = s64{a} + b;
  return Cast<s32>(sum > kMax<s32> ? kMax<s32> : sum < kMin<s32> ? kMin<s32> : sum);
}
inline s32 SubSat(s32 a, s32 b) {
  const s64 difference = s64{a} - b;
  return Cast<s32>(difference > kMax<s32>   ? kMax<s32>
                   : difference < kMin<s32> ? kMin<s32>
                                            : difference);
}
template <class T>
inline T MulLo(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    return Cast<T>(Cast<u32>(a) * Cast<u32>(b));
  } else {
    return Cast<T>(Cast<u64>(a) * Cast<u64>(b));
  }
}
template <class T>
inline T MulHi(T a, T b) {
  return Cast<T>((Cast<Wide<T>>(a) * Cast<Wide<T>>(b)) >> kBits<T>);
}
template <>
inline u16 MulHi(u16 a, u16 b) {
  return Cast<u16>((u32{a} * u32{b}) >> 16);
}
template <class T>
inline Wide<T> MulWide(T a, T b) {
  if constexpr (kBits<T> == 16) {
    return Cast<Wide<T>>(Cast<Wide<T>>(a) * Cast<Wide<T>>(b));
  } else {
    return Cast<Wide<T>>(a) * Cast<Wide<T>>(b);
  }
}
template <class T>
inline T MadLo(T a, T b, T c) {
  return Add<T>(MulLo<T>(a, b), c);
}
template <class T>
inline T MadHi(T a, T b, T c) {
  return Add<T>(MulHi<T>(a, b), c);
}
template <class T>
inline Wide<T> MadWide(T a, T b, Wide<T> c) {
  return Add<Wide<T>>(MulWide<T>(a, b), c);
}
inline s32 MadHiSat(s32 a, s32 b, s32 c) { return AddSat(MulHi<s32>(a, b), c); }

// --- mul24, mad24 (9.7.1.5-9.7.1.6)
template <class T>
inline s64 Product24(T a, T b) {
  if constexpr (kSigned<T>) {
    return s64{Cast<s32>(Cast<u32>(a) << 8) >> 8} * s64{Cast<s32>(Cast<u32>(b) << 8) >> 8};
  } else {
    return s64{a & 0xffffff} * s64{b & 0xffffff};
  }
}
/// Bits 0..31 of the 48-bit product.
template <class T>
inline T Mul24Lo(T a, T b) {
  return Cast<T>(Product24<T>(a, b));
}
/// Bits 16..47.
template <class T>
inline T Mul24Hi(T a, T b) {
  return Cast<T>(Product24<T>(a, b) >> 16);
}
template <class T>
inline T Mad24Lo(T a, T b, T c) {
  return Add<T>(Mul24Lo<T>(a, b), c);
}
template <class T>
inline T Mad24Hi(T a, T b, T c) {
  return Add<T>(Mul24Hi<T>(a, b), c);
}
inline s32 Mad24HiSat(s32 a, s32 b, s32 c) { return AddSat(Mul24Hi<s32>(a, b), c); }

// --- sad, div, rem, abs,
// neg, min, max (9.7.1.7-9.7.1.14)
template <class T>
inline T Sad(T a, T b, T c) {
  return Add<T>(c, a < b ? Sub<T>(b, a) : Sub<T>(a, b));
}
/// By zero: all ones, as the hardware's subroutine leaves it. The minimum by -1 is the minimum.
template <class T>
inline T Div(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    // A quotient of 32-bit integers in double is never so near to a whole number from below that it
    // rounds to it. The conversion is through 64 bits, because 2^31 (the minimum by -1) and
    // unsigned quotients need them.
    const double quotient = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
    return b == 0 ? Cast<T>(~T{0}) : static_cast<T>(static_cast<s64>(quotient));
  }
  if (b == 0) return Cast<T>(~T{0});
  if constexpr (kSigned<T>) {
    if (b == -1) return Sub<T>(0, a);
  }
  return Cast<T>(a / b);
}
/// By zero: all ones. By -1: 0.
template <class T>
inline T Rem(T a, T b) {
  if constexpr (sizeof(T) == 4)
    return b == 0 ? Cast<T>(~T{0}) : Sub<T>(a, MulLo<T>(Div<T>(a, b), b));
  if (b == 0) return Cast<T>(~T{0});
  if constexpr (kSigned<T>) {
    if (b == -1) return 0;
  }
  return Cast<T>(a % b);
}
template <class T>
inline T AbsInt(T a) {
  return a < 0 ? Sub<T>(0, a) : a;
}
template <class T>
inline T NegInt(T a) {
  return Sub<T>(0, a);
}
template <class T>
inline T MinInt(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T MaxInt(T a, T b) {
  return a > b ? a : b;
}
template <class T>
inline T MinReluInt(T a, T b) {
  return MaxInt<T>(MinInt<T>(a, b), 0);
}
template <class T>
inline T MaxReluInt(T a, T b) {
  return MaxInt<T>(MaxInt<T>(a, b), 0);
}
/// Applies a function of 16-bit values to both halves of a packed operand (u16x2, s16x2).
template <class T, T (*Fn)(T, T)>
inline u32 Packed16(u32 a, u32 b) {
  const u16 low = Cast<u16>(Fn(Cast<T>(a), Cast<T>(b)));
  const u16 high = Cast<u16>(Fn(Cast<T>(a >> 16), Cast<T>(b >> 16)));
  return u32{low} | u32{high} << 16;
}
template <class T, T (*Fn)(T)>
inline u32 Packed16(u32 a) {
  return u32{Cast<u16>(Fn(Cast<T>(a)))} | u32{Cast<u16>(Fn(Cast<T>(a >> 16)))} << 16;
}

// --- popc, clz,
// bfind, fns, brev (9.7.1.15-9.7.1.19)
template <class T>
inline u32 Popc(T a) {
  if constexpr (sizeof(T) == 8) {
    return Cast<u32>(__builtin_popcountll(a));
  } else {
    return Cast<u32>(__builtin_popcount(a));
  }
}
template <class T>
inline u32 Clz(T a) {
  if constexpr (sizeof(T) == 8) {
    return a == 0 ? 64 : Cast<u32>(__builtin_clzll(a));
  } else {
    return a == 0 ? 32 : Cast<u32>(__builtin_clz(a));
  }
}
/// Position of the most significant bit that is not a sign bit; 0xffffffff when there is none.
template <class T>
inline u32 Bfind(T a) {
  Unsigned<T> bits = Cast<Unsigned<T>>(a);
  if constexpr (kSigned<T>) bits = Cast<Unsigned<T>>(a < 0 ? ~a : a);
  return Cast<u32>(kBits<T> - 1) - Clz<Unsigned<T>>(bits);
}
/// The left shift that would bring that bit to the top.
template <class T>
inline u32 BfindShift(T a) {
  const u32 position = Bfind<T>(a);
  return position == 0xffffffffu ? position : Cast<u32>(kBits<T> - 1) - position;
}
template <class T>
inline T Brev(T a) {
  if constexpr (sizeof(T) == 8) {
    a = ((a >> 1) & 0x5555555555555555ull) | ((a & 0x5555555555555555ull) << 1);
    a = ((a >> 2) & 0x3333333333333333ull) | ((a & 0x3333333333333333ull) << 2);
    a = ((a >> 4) & 0x0f0f0f0f0f0f0f0full) | ((a & 0x0f0f0f0f0f0f0f0full) << 4);
    return __builtin_bswap64(a);
  } else {
    a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
    a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
    a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
    return __builtin_bswap32(a);
  }
}
/// Position of the offset-th set bit of `mask`, counted from `base`, upwards or (negative offset)
/// downwards.
inline u32 Fns(u32 mask, u32 base, s32 offset) {
  if (base > 31) return 0xffffffffu;
  if (offset == 0) return (mask >> base & 1) != 0 ? base : 0xffffffffu;
  const int step = offset > 0 ? 1 : -1;
  s64 count = offset > 0 ? s64{offset} - 1 : -s64{offset} - 1;
  for (int position = Cast<int>(base); position >= 0 && position < 32; position += step) {
    if ((mask >> position & 1) == 0) continue;
    if (count == 0) return Cast<u32>(position);
    --count;
  }
  return 0xffffffffu;
}

// --- bfe, bfi,
// szext, bmsk (9.7.1.20-9.7.1.23)
/// Position and length are 8 bits wide. PTX leaves larger ones open: 32-bit forms take the low 8
/// bits, 64-bit forms all.
template <class T>
inline u32 FieldNumber(u32 value) {
  return kBits<T> == 64 ? value : value & 0xff;
}
template <class T>
inline T Bfe(T a, u32 b, u32 c) {
  using U = Unsigned<T>;
  const u32 msb = kBits<T> - 1;
  const u32 pos = FieldNumber<T>(b);
  const u32 len = FieldNumber<T>(c);
  const U bits = Cast<U>(a);
  bool sign = false;
  if constexpr (kSigned<T>) {
    const u64 last = u64{pos} + len - 1;
    sign = len != 0 && (bits >> (last > msb ? msb : last) & 1) != 0;
  }
  // `kept` low bits come from `a`, those above it are the sign.
  const u32 available = pos > msb ? 0 : msb + 1 - pos;
  const u32 kept = len < available ? len : available;
  const U mask = kept > msb ? Cast<U>(~U{0}) : Cast<U>((U{1} << (kept & msb)) - 1);
  const U field = pos > msb ? U{0} : Cast<U>(bits >> (pos & msb));
  return Cast<T>((field & mask) | (sign ? Cast<U>(~mask) : U{0}));
}
template <class T>
inline T Bfi(T a, T b, u32 c, u32 d) {
  const u32 msb = kBits<T> - 1;
  const u32 pos = FieldNumber<T>(c);
  const u32 len = FieldNumber<T>(d);
  if (pos > msb || len == 0) return b;
  const T low = len > msb ? Cast<T>(~T{0}) : Cast<T>((T{1} << (len & msb)) - 1);
  const T mask = Cast<T>(low << (pos & msb));
  return Cast<T>((b & Cast<T>(~mask)) | (Cast<T>(a << (pos & msb)) & mask));
}
template <bool kClamp, class T>
inline T Szext(T a, u32 b) {
  const u32 count = b & 31;
  const bool too_large = kClamp && b >= 32;
  const u32 mask = too_large ? 0 : ~0u << count;
  const bool sign =
      kSigned<T> && count != 0 && !too_large && (Cast<u32>(a) >> ((count - 1) & 31) & 1) != 0;
  return Cast<T>((Cast<u32>(a) & ~mask) | (sign ? mask : 0));
}
template <bool kClamp>
inline u32 Bmsk(u32 a, u32 b) {
  const u32 sum = (a & 31) + (b & 31);
  const u32 mask0 = kClamp && a >= 32 ? 0 : ~0u << (a & 31);
  const bool overflow = sum >= 32 || (kClamp && (a >= 32 || b >= 32));
  const u32 mask1 = overflow ? 0 : ~0u << (sum & 31);
  return mask0 & ~mask1;
}

// --- dp4a, dp2a (9.7.1.24-9.7.1.25)
template <class A, class B>
inline u32 Dp4a(u32 a, u32 b, u32 c) {
  u32 sum = c;
  for (int i = 0; i < 4; ++i) {
    const s32 x = Cast<A>(a >> (8 * i));
    const s32 y = Cast<B>(b >> (8 * i));
    sum += Cast<u32>(x * y);
  }
  return sum;
}
template <class A, class B, int kByte>
inline u32 Dp2a(u32 a, u32 b, u32 c) {
  u32 sum = c;
  for (int i = 0; i < 2; ++i) {
    const s32 x = Cast<A>(a >> (16 * i));
    const s32 y = Cast<B>(b >> (8 * (i + kByte)));
    sum += Cast<u32>(x * y);
  }
  return sum;
}

// --- vabsdiff2, vabsdiff4 (9.7.18.2)
enum class Video { kWrap, kSaturate, kAdd };
/// |a - b|, lane by lane of the width of A and B; a lane of D holds each distance, or c takes them
/// all in.
template <class D, class A, class B, Video kEnd>
inline u32 AbsoluteDifferences(u32 a, u32 b, u32 c) {
  constexpr int kBits = 8 * sizeof(D);
  constexpr u32 kLane = (u32{1} << kBits) - 1;
  constexpr u32 kLargest = D(-1) < D(0) ? kLane >> 1 : kLane;
  u32 result = kEnd == Video::kAdd ? c : 0;
  for (int at = 0; at < 32; at += kBits) {
    const s32 x = Cast<A>(a >> at);
    const s32 y = Cast<B>(b >> at);
    u32 distance = Cast<u32>(x < y ? y - x : x - y);
    if (kEnd == Video::kSaturate && distance > kLargest) distance = kLargest;
    result += kEnd == Video::kAdd ? distance : (distance & kLane) << at;
  }
  return result;
}

// --- logic and shift (9.7.8)
template <class T>
inline T And(T a, T b) {
  return Cast<T>(a & b);
}
template <class T>
inline T Or(T a, T b) {
  return Cast<T>(a | b);
}
template <class T>
inline T Xor(T a, T b) {
  return Cast<T>(a ^ b);
}
template <class T>
inline T Not(T a) {
  return Cast<T>(~a);
}
template <class T>
inline T Cnot(T a) {
  return a == 0 ? 1 : 0;
}
/// Shift amounts beyond the width give zero (or copies of the sign).
template <class T>
inline T Shl(T a, u32 n) {
  return n >= static_cast<u32>(kBits<T>) ? T{0} : Cast<T>(a << (n & (kBits<T> - 1)));
}
template <class T>
inline T Shr(T a, u32 n) {
  if constexpr (kSigned<T>) {
    return Cast<T>(a >> (n >= static_cast<u32>(kBits<T>) ? kBits<T> - 1 : Cast<int>(n)));
  } else {
    return n >= static_cast<u32>(kBits<T>) ? T{0} : Cast<T>(a >> (n & (kBits<T> - 1)));
  }
}
/// shf.l: the upper half of [b:a] << n. shf.r: the lower half of [b:a] >> n.
template <bool kClamp>
inline u32 ShfL(u32 a, u32 b, u32 c) {
  const u32 n = kClamp ? (c > 32 ? 32 : c) : c & 31;
  return Cast<u32>(((u64{b} << 32 | a) << n) >> 32);
}
template <bool kClamp>
inline u32 ShfR(u32 a, u32 b, u32 c) {
  const u32 n = kClamp ? (c > 32 ? 32 : c) : c & 31;
  return Cast<u32>((u64{b} << 32 | a) >> n);
}
/// One byte of [b:a], or its sign eight times when bit 3 of the selector is set.
inline u32 PrmtByte(u64 bytes, u32 selector) {
  const u32 byte = Cast<u32>(bytes >> (8 * (selector & 7))) & 0xff;
  const u32 sign = (byte & 0x80) != 0 ? 0xffu : 0u;
  return (selector & 8) != 0 ? sign : byte;
}
inline u32 Prmt(u32 a, u32 b, u32 c) {
  const u64 bytes = u64{b} << 32 | a;
  return PrmtByte(bytes, c) | PrmtByte(bytes, c >> 4) << 8 | PrmtByte(bytes, c >> 8) << 16 |
         PrmtByte(bytes, c >> 12) << 24;
}
/// The special modes pick bytes by the two low bits of `c`; entry [c][i] is byte i's source.
enum class PrmtMode { kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
template <PrmtMode kMode>
inline u32 PrmtBy(u32 a, u32 b, u32 c) {
  const u64 bytes = u64{b} << 32 | a;
  const u32 n = c & 3;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 from = n;  // kRc8
    if constexpr (kMode == PrmtMode::kF4e) from = n + i;
    if constexpr (kMode == PrmtMode::kB4e) from = (n - i) & 7;
    if constexpr (kMode == PrmtMode::kEcl) from = i > n ? i : n;
    if constexpr (kMode == PrmtMode::kEcr) from = i < n ? i : n;
    if constexpr (kMode == PrmtMode::kRc16) from = (n & 1) * 2 + (i & 1);
    result |= PrmtByte(bytes, from) << (8 * i);
  }
  return result;
}
/// Any function of three bits: bit (4a + 2b + c) of the table.
inline u32 Lop3(u32 a, u32 b, u32 c, u32 table) {
  const auto all = [table](u32 bit) { return u32{0} - (table >> bit & 1); };
  const auto by_c = [&](u32 bit) { return all(bit) ^ (c & (all(bit) ^ all(bit + 1))); };
  const auto by_b = [&](u32 bit) { return by_c(bit) ^ (b & (by_c(bit) ^ by_c(bit + 2))); };
  return by_b(0) ^ (a & (by_b(0) ^ by_b(4)));
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
