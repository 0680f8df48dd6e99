// What the value functions of profiles have in common (profile_floats.cc, profile_integers.cc).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/repeating_memory.h"
#include "base/rng.h"
#include "validator/cases/profiles.h"

namespace assay::cases {

/// The tables, which profiles.cc puts together.
std::span<const ProfileRow> FloatProfiles();
std::span<const ProfileRow> IntegerProfiles();

inline Rng At(const FillContext& context, std::int64_t index) {
  return Rng(Mix64(context.stream ^ Mix64(static_cast<std::uint64_t>(index))));
}
// A hash that does not share bits with At(index).
inline std::uint64_t Hash(const FillContext& context, std::int64_t index) {
  return Mix64(~context.stream ^ Mix64(static_cast<std::uint64_t>(index) * 2 + 1));
}
// A normal number; in large tensors one of a few thousand, for to draw one for each element is most of the work.
inline double Noise(const FillContext& context, std::int64_t index) {
  if (context.noise.empty()) return At(context, index).Normal();
  return context.noise[Hash(context, index) % context.noise.size()];
}
inline double Sign(std::uint64_t bits) { return (bits & 1) != 0 ? -1.0 : 1.0; }
inline double Fraction(std::int64_t index, std::int64_t elements) {
  return elements > 1 ? static_cast<double>(index) / static_cast<double>(elements - 1) : 0.5;
}

inline double Zero(const FillContext&, std::int64_t) { return 0; }

// Never 1: a weight of ones would hide that it is ignored.
inline double Constant(const FillContext& context, std::int64_t) {
  if (!std::isnan(context.parameter[0])) return context.parameter[0];
  constexpr std::array kValues = {0.75, -1.5, 2.0, -0.375, 3.0, 0.625};
  return kValues[Mix64(context.stream) % kValues.size()];
}

// Exponents that survive cubing and a million additions in f32, in whatever order factors are
// multiplied; f16 has little room to begin with.
inline bool IsNarrow(DType type) { return type == DType::kF16 || SizeOf(type) == 1; }
inline int RoomyExponent(DType type) { return IsNarrow(type) ? 6 : 28; }

// Past 2^31, where a conversion to int saturates.
inline double Large(const FillContext& context, std::int64_t index) {
  const int exponent = IsNarrow(context.dtype) ? RoomyExponent(context.dtype) : 34;
  return std::ldexp(At(context, index).Normal(), exponent);
}

inline double Extremes(const FillContext& context, std::int64_t index) {
  const auto& domain = *context.domain;
  if (domain.kind != ops::Domain::Kind::kRange) return Large(context, index);
  return Hash(context, index) % 2 == 0 ? domain.low : domain.high;
}

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr ProfileParameter kNone{"", 0};

}  // namespace assay::cases
