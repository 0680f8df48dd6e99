// Element types of tensors and scalars, with exact conversion to and from double.
//
// Conversion from double rounds to nearest, ties to even; e4m3 and e5m2 follow the OCP 8-bit formats (e4m3 has no infinity and
// saturates, as cvt.satfinite does). No function here allocates; all are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace assay {

enum class DType : std::uint8_t {
  kBool,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF8E4M3,
  kF8E5M2,
  kBF16,
  kF16,
  kF32,
  kF64,
};

/// Bytes of one element.
std::size_t SizeOf(DType type);
/// "bool", "i8", ..., "f8e4m3", "f8e5m2", "bf16", "f16", "f32", "f64".
std::string_view Name(DType type);
/// Inverse of Name; also accepts "float32", "float16", "bfloat16", "int64", ... as other spec formats write them.
std::optional<DType> ParseDType(std::string_view name);
std::span<const DType> AllDTypes();
bool IsFloat(DType type);
bool IsSignedInteger(DType type);

/// Significand bits with the hidden one (bf16 8, f16 11, f32 24, f64 53); 0 for integers.
int Precision(DType type);
/// Unit roundoff 2^-p of a float type.
double UnitRoundoff(DType type);
/// Largest finite value.
double MaxFinite(DType type);
/// Smallest positive normal value.
double MinNormal(DType type);
/// Distance between neighbouring values of `type` in the binade that holds |value|; the denormal spacing below MinNormal.
double UlpAt(DType type, double value);

/// Reads one little-endian element as double. 64-bit integers beyond 2^53 lose low bits; use LoadAsInt64 for those.
double LoadAsDouble(DType type, const std::byte* element);
std::int64_t LoadAsInt64(DType type, const std::byte* element);
/// Writes one element, rounding to nearest even; integers saturate.
void StoreFromDouble(DType type, double value, std::byte* element);
void StoreFromInt64(DType type, std::int64_t value, std::byte* element);

/// Raw conversions, for the emulator and the oracle alike.
float Bf16ToFloat(std::uint16_t bits);
float F16ToFloat(std::uint16_t bits);
std::uint16_t DoubleToBf16(double value);
std::uint16_t DoubleToF16(double value);

}  // namespace assay
