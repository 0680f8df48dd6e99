#include "validator/emu/semantics/soft_convert.h"

namespace assay::emu {
namespace {

using ptx::Type;
using Kind = SoftValue::Kind;

struct IntegerType {
  int bits = 0;  ///< 0: not an integer.
  bool is_signed = false;
};
constexpr IntegerType IntegerOf(Type type) {
  switch (type) {
    case Type::kU8:
      return {8, false};
    case Type::kS8:
      return {8, true};
    case Type::kU16:
      return {16, false};
    case Type::kS16:
      return {16, true};
    case Type::kU32:
      return {32, false};
    case Type::kS32:
      return {32, true};
    case Type::kU64:
      return {64, false};
    case Type::kS64:
      return {64, true};
    default:
      return {};
  }
}

s128 ExtendInteger(u64 raw, IntegerType type) {
  if (type.bits == 64) return type.is_signed ? s128{static_cast<s64>(raw)} : s128{raw};
  const u64 mask = (u64{1} << type.bits) - 1;
  const s128 value = s128{raw & mask};
  const bool negative = type.is_signed && (raw >> (type.bits - 1) & 1) != 0;
  return negative ? value - (s128{1} << type.bits) : value;
}

SoftValue DecodeFloat(u64 raw, Type type) {
  switch (type) {
    case Type::kF16:
      return Decode<kF16>(raw);
    case Type::kBF16:
      return Decode<kBF16>(raw);
    case Type::kF32:
      return Decode<kF32>(raw);
    case Type::kF64:
      return Decode<kF64>(raw);
    case Type::kTF32:
      return Decode<kTF32>(raw >> 13);
    case Type::kE4M3:
      return Decode<kE4M3>(raw);
    case Type::kE5M2:
      return Decode<kE5M2>(raw);
    default:
      return SoftNan();
  }
}

bool IsSubnormalF32(u64 raw) { return (raw & 0x7f800000u) == 0; }

/// Sign, fraction bits counted from the top, and width of a NaN that a conversion hands on.
struct NanFormat {
  Type type;
  int bits;
  int fraction;
};
constexpr NanFormat kNanFormats[] = {
    {Type::kF16, 16, 10}, {Type::kBF16, 16, 7}, {Type::kF32, 32, 23}, {Type::kF64, 64, 52}};
const NanFormat* FindNanFormat(Type type) {
  for (const NanFormat& format : kNanFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

/// NaN in, NaN out: the payload's upper bits, quieted. Conversions to or from f64 pass it on.
u64 PassNan(u64 raw, const NanFormat& from, const NanFormat& to) {
  const u64 sign = raw >> (from.bits - 1) & 1;
  const u64 payload = raw << (64 - from.fraction);  // Drops sign and exponent.
  const u64 exponent = ((u64{1} << (to.bits - 1)) - 1) >> to.fraction << to.fraction;
  return sign << (to.bits - 1) | exponent | u64{1} << (to.fraction - 1) |
         payload >> (64 - to.fraction);
}

u64 EncodeFloat(const SoftValue& value, Type type, Round mode, bool satfinite) {
  switch (type) {
    case Type::kF16:
      return Encode<kF16>(value, mode, satfinite);
    case Type::kBF16:
      return Encode<kBF16>(value, mode, satfinite);
    case Type::kF32:
      return Encode<kF32>(value, mode, satfinite);
    case Type::kF64:
      return Encode<kF64>(value, mode, satfinite);
    case Type::kTF32:
      return Encode<kTF32>(value, mode, satfinite) << 13;
    case Type::kE4M3:
      return Encode<kE4M3>(value, mode, satfinite);
    case Type::kE5M2:
      return Encode<kE5M2>(value, mode, satfinite);
    default:
      return 0;
  }
}

/// The magnitude rounded to a whole number, at most 2^80 or so.
u128 WholeMagnitude(const SoftValue& value, Round mode) {
  const int length = BitLength(value.significand);
  if (length == 0) return 0;
  if (value.exponent >= 0) {
    // Beyond every integer type anyway.
    return value.exponent + length > 80 ? u128{1} << 80 : value.significand << value.exponent;
  }
  const int drop = -value.exponent;
  const bool half = drop <= length && (value.significand >> (drop - 1) & 1) != 0;
  const bool below =
      drop > length || (drop > 1 && (value.significand & ((u128{1} << (drop - 1)) - 1)) != 0);
  u128 kept = drop > 127 ? 0 : value.significand >> drop;
  if (RoundsUp(mode, value.negative, (kept & 1) != 0, half, below)) ++kept;
  return kept;
}

u64 ToInteger(const SoftValue& value, IntegerType type, Round mode, bool from_f64) {
  const s128 low = type.is_signed ? -(s128{1} << (type.bits - 1)) : 0;
  const s128 high = (s128{1} << (type.is_signed ? type.bits - 1 : type.bits)) - 1;
  if (value.kind == Kind::kNan) {
    const u64 minimum = u64{1} << (type.bits - 1);
    return type.bits == 64 || from_f64 ? static_cast<u64>(ExtendInteger(minimum, type)) : 0;
  }
  if (value.kind == Kind::kInfinity) return static_cast<u64>(value.negative ? low : high);
  s128 whole = static_cast<s128>(WholeMagnitude(value, mode));
  if (value.negative) whole = -whole;
  return static_cast<u64>(whole < low ? low : whole > high ? high : whole);
}

u64 IntegerToInteger(s128 value, IntegerType type, bool sat) {
  if (sat) {
    const s128 low = type.is_signed ? -(s128{1} << (type.bits - 1)) : 0;
    const s128 high = (s128{1} << (type.is_signed ? type.bits - 1 : type.bits)) - 1;
    value = value < low ? low : value > high ? high : value;
  }
  return static_cast<u64>(ExtendInteger(static_cast<u64>(value), type));
}

SoftValue ToIntegral(SoftValue value, Round mode) {
  // 2^64 and beyond is whole in every format.
  if (value.kind != Kind::kFinite || value.exponent >= 0) return value;
  value.significand = WholeMagnitude(value, mode);
  value.exponent = 0;
  return value;
}

/// cvt.rna.tf32.f32 as the hardware does it: on the bits. NaN keeps its upper bits, and .satfinite
/// takes the largest finite value's distance from infinity off everything with a full exponent, NaN
/// included.
u64 TiesAwayTf32(u64 raw, bool satfinite) {
  const bool full = (raw & 0x7f800000u) == 0x7f800000u;
  const u64 rounded = (raw + (full ? 0 : 0x1000u)) & 0xffffe000u;
  return satfinite && (rounded & 0x7f800000u) == 0x7f800000u ? rounded - 0x2000u : rounded;
}

/// Below f32's normal range when rounded as if the exponent had no lower end (floating.h).
bool IsTiny(SoftValue value, Round mode) {
  if (value.kind != Kind::kFinite) return false;
  value.exponent += 64;
  return (Encode<kF32>(value, mode) & 0x7fffffffu) < (static_cast<u64>(1 + 64) << 23);
}

SoftValue Saturated(SoftValue value) {
  if (value.kind == Kind::kNan || value.negative || value.IsZero()) return {};
  const bool at_least_one =
      value.kind == Kind::kInfinity || value.exponent + BitLength(value.significand) > 0;
  if (at_least_one) return {.exponent = 0, .significand = 1};
  return value;
}

}  // namespace

bool IsConvertible(ptx::Type type) {
  if (IntegerOf(type).bits != 0) return true;
  switch (type) {
    case Type::kF16:
    case Type::kBF16:
    case Type::kF32:
    case Type::kF64:
    case Type::kTF32:
    case Type::kE4M3:
    case Type::kE5M2:
      return true;
    default:
      return false;
  }
}

std::uint64_t ConvertScalar(std::uint64_t raw, const Conversion& how) {
  const IntegerType from = IntegerOf(how.source);
  const IntegerType to = IntegerOf(how.destination);
  SoftValue value;
  if (from.bits != 0) {
    const s128 integer = ExtendInteger(raw, from);
    if (to.bits != 0) return IntegerToInteger(integer, to, how.sat);
    value.negative = integer < 0;
    value.significand = static_cast<u128>(integer < 0 ? -integer : integer);
  } else {
    // cvt.rm.ftz.f16.f32 and cvt.rp.ftz.f16.f32 do not flush their source on the hardware, whatever
    // PTX says.
    const bool kept =
        how.destination == Type::kF16 && (how.mode == Round::kDown || how.mode == Round::kUp);
    if (how.ftz && how.source == Type::kF32 && !kept && IsSubnormalF32(raw)) raw &= 0x80000000u;
    value = DecodeFloat(raw, how.source);
  }
  if (to.bits != 0) return ToInteger(value, to, how.mode, how.source == Type::kF64);
  const bool f64 = how.source == Type::kF64 || how.destination == Type::kF64;
  if (value.kind == Kind::kNan && f64 && !how.sat && !(how.ftz && how.source == Type::kF32)) {
    const NanFormat* const in = FindNanFormat(how.source);
    const NanFormat* const out = FindNanFormat(how.destination);
    if (in != nullptr && out != nullptr) return PassNan(raw, *in, *out);
  }
  if (how.destination == Type::kTF32 && how.mode == Round::kAway)
    return TiesAwayTf32(raw, how.satfinite);
  if (how.integral) value = ToIntegral(value, how.mode);
  if (how.sat) value = Saturated(value);
  if (how.relu && value.negative && value.kind != Kind::kNan) value = {};
  u64 bits = EncodeFloat(value, how.destination, how.mode, how.satfinite);
  if (how.ftz && how.destination == Type::kF32 && IsTiny(value, how.mode)) bits &= 0x80000000u;
  return bits;
}

}  // namespace assay::emu
