// Small readers that all files of the tracker share: lanes of a mask, bits of registers and memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "validator/emu/core.h"

namespace assay::emu {

/// Calls `visit(lane)` for each lane of the mask, the lowest first.
template <class Visit>
void ForLanesIn(LaneMask lanes, Visit visit) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

/// The first `bytes` (at most 8) as a number, little-endian.
inline std::uint64_t BitsAt(const std::byte* at, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  return bits;
}

inline std::uint16_t HalfAt(const std::byte* at) {
  return static_cast<std::uint16_t>(BitsAt(at, 2));
}

}  // namespace assay::emu
