#include "base/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace assay {
namespace {

enum class Kind : std::uint8_t { kSigned, kUnsigned, kFloat };

struct Row {
  DType type;
  std::string_view name;
  std::string_view alias;
  std::uint8_t bytes;
  Kind kind;
  std::int8_t precision;  // significand bits with the hidden one
  std::int8_t exponent_bits;
  bool has_infinity;
};

constexpr std::array kRows = {
    Row{DType::kBool, "bool", "bool", 1, Kind::kUnsigned, 0, 0, false},
    Row{DType::kI8, "i8", "int8", 1, Kind::kSigned, 0, 0, false},
    Row{DType::kU8, "u8", "uint8", 1, Kind::kUnsigned, 0, 0, false},
    Row{DType::kI16, "i16", "int16", 2, Kind::kSigned, 0, 0, false},
    Row{DType::kU16, "u16", "uint16", 2, Kind::kUnsigned, 0, 0, false},
    Row{DType::kI32, "i32", "int32", 4, Kind::kSigned, 0, 0, false},
    Row{DType::kU32, "u32", "uint32", 4, Kind::kUnsigned, 0, 0, false},
    Row{DType::kI64, "i64", "int64", 8, Kind::kSigned, 0, 0, false},
    Row{DType::kU64, "u64", "uint64", 8, Kind::kUnsigned, 0, 0, false},
    Row{DType::kF8E4M3, "f8e4m3", "float8_e4m3fn", 1, Kind::kFloat, 4, 4, false},
    Row{DType::kF8E5M2, "f8e5m2", "float8_e5m2", 1, Kind::kFloat, 3, 5, true},
    Row{DType::kBF16, "bf16", "bfloat16", 2, Kind::kFloat, 8, 8, true},
    Row{DType::kF16, "f16", "float16", 2, Kind::kFloat, 11, 5, true},
    Row{DType::kF32, "f32", "float32", 4, Kind::kFloat, 24, 8, true},
    Row{DType::kF64, "f64", "float64", 8, Kind::kFloat, 53, 11, true},
};

constexpr std::array<DType, kRows.size()> kAll = [] {
  std::array<DType, kRows.size()> all{};
  for (std::size_t i = 0; i < kRows.size(); ++i) all[i] = kRows[i].type;
  return all;
}();

const Row& RowOf(DType type) { return kRows[static_cast<std::size_t>(type)]; }

int Bias(const Row& row) { return (1 << (row.exponent_bits - 1)) - 1; }
int MinExponent(const Row& row) { return 1 - Bias(row); }
// e4m3 spends its top exponent on numbers (all but the all-ones significand, which is NaN).
int MaxExponent(const Row& row) { return row.has_infinity ? Bias(row) : Bias(row) + 1; }

// A normal double. What is scaled by one within range is exact, and without the calls of ldexp.
double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// Decodes a small float (at most 16 bits). Exact.
double DecodeSmall(const Row& row, std::uint32_t bits) {
  const int mantissa_bits = row.precision - 1;
  const std::uint32_t mantissa_mask = (1u << mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << row.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> mantissa_bits) & exponent_mask;
  const bool negative = ((bits >> (mantissa_bits + row.exponent_bits)) & 1u) != 0;
  double magnitude;
  if (row.has_infinity && exponent == exponent_mask) {
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (!row.has_infinity && exponent == exponent_mask && mantissa == mantissa_mask) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = static_cast<double>(mantissa) * PowerOfTwo(MinExponent(row) - mantissa_bits);
  } else {
    magnitude = static_cast<double>(mantissa | (mantissa_mask + 1)) *
                PowerOfTwo(static_cast<int>(exponent) - Bias(row) - mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

// Rounds a double to a small float, nearest even, in one rounding.
std::uint32_t EncodeSmall(const Row& row, double value) {
  const int mantissa_bits = row.precision - 1;
  const std::uint32_t exponent_mask = (1u << row.exponent_bits) - 1;
  const std::uint32_t mantissa_mask = (1u << mantissa_bits) - 1;
  const std::uint32_t sign = std::signbit(value) ? 1u << (mantissa_bits + row.exponent_bits) : 0u;
  // Normal numbers that stay so: digits are cut off, and what carries goes on into the exponent.
  const std::uint64_t whole = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  const int power = static_cast<int>(whole >> 52) - 1023;
  if (power >= MinExponent(row) && power < MaxExponent(row)) {
    const int cut = 52 - mantissa_bits;
    const std::uint64_t half = (std::uint64_t{1} << (cut - 1)) - 1 + ((whole >> cut) & 1);
    const std::uint64_t offset = static_cast<std::uint64_t>(1023 - Bias(row)) << mantissa_bits;
    return sign | static_cast<std::uint32_t>(((whole + half) >> cut) - offset);
  }
  // The canonical NaN of the hardware: all ones below the sign.
  if (std::isnan(value)) return (exponent_mask << mantissa_bits) | mantissa_mask;
  const double magnitude = std::fabs(value);
  const std::uint32_t overflow = row.has_infinity
                                     ? exponent_mask << mantissa_bits
                                     : (exponent_mask << mantissa_bits) | (mantissa_mask - 1);
  if (std::isinf(value)) return sign | overflow;
  if (magnitude == 0) return sign;
  // The exponent as it is kept: a double's own denormals are far below whatever these formats tell from
  // zero.
  const std::uint64_t kept = std::bit_cast<std::uint64_t>(magnitude);
  int exponent = std::max(static_cast<int>(kept >> 52) - 1023, MinExponent(row));
  // Exact, as is what is added and taken away again, but that it rounds to whole numbers, nearest even.
  const double scaled = magnitude * PowerOfTwo(mantissa_bits - exponent);
  auto rounded = static_cast<std::uint64_t>((scaled + 0x1p52) - 0x1p52);
  if (rounded > (2u * mantissa_mask + 1u)) {
    rounded >>= 1;
    ++exponent;
  }
  if (exponent > MaxExponent(row)) return sign | overflow;
  if (rounded <= mantissa_mask) return sign | static_cast<std::uint32_t>(rounded);  // denormal
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent + Bias(row)) << mantissa_bits) |
                             (static_cast<std::uint32_t>(rounded) & mantissa_mask);
  if (!row.has_infinity && bits > overflow) return sign | overflow;
  return sign | bits;
}

template <class T>
T Read(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <class T>
void Write(T value, std::byte* element) {
  std::memcpy(element, &value, sizeof value);
}

template <class T>
void WriteSaturated(double value, std::byte* element) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
  const double rounded = std::isnan(value) ? 0.0 : std::nearbyint(value);
  Write(rounded <= kLow    ? std::numeric_limits<T>::min()
        : rounded >= kHigh ? std::numeric_limits<T>::max()
                           : static_cast<T>(rounded),
        element);
}

}  // namespace

std::size_t SizeOf(DType type) { return RowOf(type).bytes; }
std::string_view Name(DType type) { return RowOf(type).name; }
std::span<const DType> AllDTypes() { return kAll; }
bool IsFloat(DType type) { return RowOf(type).kind == Kind::kFloat; }
bool IsSignedInteger(DType type) { return RowOf(type).kind == Kind::kSigned; }
int Precision(DType type) { return RowOf(type).precision; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name || row.alias == name) return row.type;
  }
  return std::nullopt;
}

double UnitRoundoff(DType type) {
  ASSAY_CHECK(IsFloat(type));
  return std::ldexp(1.0, -Precision(type));
}

double MaxFinite(DType type) {
  const Row& row = RowOf(type);
  ASSAY_CHECK(IsFloat(type));
  if (type == DType::kF8E4M3) return 448.0;
  return (2.0 - PowerOfTwo(1 - row.precision)) * PowerOfTwo(MaxExponent(row));
}

double MinNormal(DType type) { return std::ldexp(1.0, MinExponent(RowOf(type))); }

double UlpAt(DType type, double value) {
  const Row& row = RowOf(type);
  const double magnitude = std::fabs(value);
  int exponent = MinExponent(row);
  if (std::isfinite(value) && magnitude > 0) {
    exponent = std::clamp(std::ilogb(magnitude), MinExponent(row), MaxExponent(row));
  } else if (!std::isfinite(value)) {
    exponent = MaxExponent(row);
  }
  return std::ldexp(1.0, exponent - (row.precision - 1));
}

double LoadAsDouble(DType type, const std::byte* element) {
  switch (type) {
    case DType::kBool:
    case DType::kU8:
      return Read<std::uint8_t>(element);
    case DType::kI8:
      return Read<std::int8_t>(element);
    case DType::kI16:
      return Read<std::int16_t>(element);
    case DType::kU16:
      return Read<std::uint16_t>(element);
    case DType::kI32:
      return Read<std::int32_t>(element);
    case DType::kU32:
      return Read<std::uint32_t>(element);
    case DType::kI64:
      return static_cast<double>(Read<std::int64_t>(element));
    case DType::kU64:
      return static_cast<double>(Read<std::uint64_t>(element));
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return DecodeSmall(RowOf(type), Read<std::uint8_t>(element));
    case DType::kBF16:
      return Bf16ToFloat(Read<std::uint16_t>(element));
    case DType::kF16:
      return F16ToFloat(Read<std::uint16_t>(element));
    case DType::kF32:
      return Read<float>(element);
    case DType::kF64:
      return Read<double>(element);
  }
  return 0;
}

std::int64_t LoadAsInt64(DType type, const std::byte* element) {
  if (type == DType::kI64) return Read<std::int64_t>(element);
  if (type == DType::kU64) return static_cast<std::int64_t>(Read<std::uint64_t>(element));
  return static_cast<std::int64_t>(LoadAsDouble(type, element));
}

void StoreFromDouble(DType type, double value, std::byte* element) {
  switch (type) {
    case DType::kBool:
      return Write<std::uint8_t>(value != 0 ? 1 : 0, element);
    case DType::kU8:
      return WriteSaturated<std::uint8_t>(value, element);
    case DType::kI8:
      return WriteSaturated<std::int8_t>(value, element);
    case DType::kI16:
      return WriteSaturated<std::int16_t>(value, element);
    case DType::kU16:
      return WriteSaturated<std::uint16_t>(value, element);
    case DType::kI32:
      return WriteSaturated<std::int32_t>(value, element);
    case DType::kU32:
      return WriteSaturated<std::uint32_t>(value, element);
    case DType::kI64:
      return WriteSaturated<std::int64_t>(value, element);
    case DType::kU64:
      return WriteSaturated<std::uint64_t>(value, element);
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return Write(static_cast<std::uint8_t>(EncodeSmall(RowOf(type), value)), element);
    case DType::kBF16:
      return Write(DoubleToBf16(value), element);
    case DType::kF16:
      return Write(DoubleToF16(value), element);
    case DType::kF32:
      return Write(static_cast<float>(value), element);
    case DType::kF64:
      return Write(value, element);
  }
}

void StoreFromInt64(DType type, std::int64_t value, std::byte* element) {
  if (type == DType::kI64 || type == DType::kU64) return Write(value, element);
  StoreFromDouble(type, static_cast<double>(value), element);
}

float Bf16ToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float F16ToFloat(std::uint16_t bits) {
  return static_cast<float>(DecodeSmall(RowOf(DType::kF16), bits));
}

std::uint16_t DoubleToBf16(double value) {
  return static_cast<std::uint16_t>(EncodeSmall(RowOf(DType::kBF16), value));
}

std::uint16_t DoubleToF16(double value) {
  return static_cast<std::uint16_t>(EncodeSmall(RowOf(DType::kF16), value));
}

}  // namespace assay
