// cvt in full, one lane at a time, with the types as data (PTX ISA 9.7.9.21, 9.7.9.22).
//
// The slow, obviously right engine: every source is decoded to an exact value, rounded once and
// encoded. It serves the forms that convert.h does not, and convert.h is tested against it.
//
//   ConvertScalar(0x3fc00000, {.source = Type::kF32, .destination = Type::kS32, .mode =
//   Round::kNearest, .integral = true}) == 2
#pragma once

#include <cstdint>

#include "validator/emu/semantics/soft.h"
#include "validator/ptx/module.h"

namespace assay::emu {

struct Conversion {
  ptx::Type source{};
  ptx::Type destination{};
  Round mode = Round::kNearest;
  bool integral = false;  ///< .rni, .rzi, .rmi, .rpi
  bool ftz = false;
  bool sat = false;
  bool satfinite = false;
  bool relu = false;
};

/// Is this one of the scalar types (integers of 8 to 64 bits, floating point of 8 to 64) that
/// ConvertScalar knows?
bool IsConvertible(ptx::Type type);
/// Converts the low bits of `raw`. The result is zero-extended, but sign-extended for signed
/// integers.
std::uint64_t ConvertScalar(std::uint64_t raw, const Conversion& how);

}  // namespace assay::emu
