// What an address points at: the object, and what is promised of the address's low bits.
//
// An address that the machine chose may be compared and subtracted within its object, and its low
// bits looked at as far as an alignment is promised (machine.h). Which object that is depends on the
// value in the register of one lane: a buffer, a variable in shared memory, the local memory of a
// thread as a whole, the code.
//
// Pure; cost: a look-up of the region. Thread-safe as long as nobody changes the device.
#pragma once

#include "validator/emu/core.h"

namespace assay::emu {

/// The bits of an address that the machine chooses, where `bits` low ones are promised.
constexpr std::uint64_t OnesAbove(int bits) { return ~std::uint64_t{0} << bits; }

/// The least that is promised of an address in local memory: multiples of 16 bytes.
inline constexpr std::uint8_t kPromisedLocal = 4;

/// What an address points at, or one past the end of.
struct Pointee {
  const void* object = nullptr;  ///< Null: this is no address.
  const MemoryRegion* region = nullptr;
  std::uint8_t promised = kPromisedLocal;
  bool inside = false;  ///< Not past the end.
  bool narrow = false;  ///< Of a space whose addresses have 32 bits.
};

/// A lane of a register of up to 64 bits; 0 of what is none.
inline std::uint64_t ReadLane(CoreWarp& warp, const DecodedOperand& operand, int lane) {
  if (operand.kind != DecodedOperand::Kind::kSlot) return 0;
  if (operand.bits == 64) return warp.Lanes<std::uint64_t>(operand.slot)[lane];
  if (operand.bits == 32) return warp.Lanes<std::uint32_t>(operand.slot)[lane];
  return operand.bits == 16 ? warp.Lanes<std::uint16_t>(operand.slot)[lane] : 0;
}

/// What `value` points at in that lane, read as the address that it may be by `kinds` (AddressKind).
Pointee PointeeOf(CoreWarp& warp, std::uint8_t kinds, int lane, std::uint64_t value);

}  // namespace assay::emu
