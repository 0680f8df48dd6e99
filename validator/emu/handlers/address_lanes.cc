#include "validator/emu/handlers/address_lanes.h"

#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

AddressCheck CheckAddressesLevel(const std::uint64_t* address, LaneMask lanes, std::uint64_t bytes,
                                 const AddressRange& range, std::uintptr_t* pointer) {
  const u64 base = range.base;
  const u64 last = range.last;
  const u64 data = range.data;
  const u64 first = address[0];
  // An offset is beyond `last` when the top bit of one of these is set.
  u64 beyond = 0;
  u64 low = 0;
  u64 apart = 0;
  // What matters is below 2^63, and signed numbers are compared faster.
  s64 least = INT64_MAX;
  s64 greatest = 0;
  if (lanes == kAllLanes) {
    for (u64 i = 0; i < kWarpSize; ++i) {
      const u64 offset = address[i] - base;
      const s64 place = static_cast<s64>(offset);
      pointer[i] = data + offset;
      least = place < least ? place : least;
      greatest = place > greatest ? place : greatest;
      beyond |= (last - offset) | offset;
      low |= address[i];
      apart |= address[i] ^ (first + i * bytes);
    }
  } else {
    apart = 1;
    for (u64 i = 0; i < kWarpSize; ++i) {
      const u64 offset = address[i] - base;
      const u64 counts = u64{0} - (u64{lanes} >> i & 1);
      const s64 low_place = static_cast<s64>((offset & counts) | (~counts >> 1));
      const s64 high_place = static_cast<s64>(offset & counts);
      pointer[i] = data + offset;
      least = low_place < least ? low_place : least;
      greatest = high_place > greatest ? high_place : greatest;
      beyond |= counts & ((last - offset) | offset);
      low |= counts & address[i];
    }
  }
  AddressCheck check;
  check.inside = beyond >> 63 == 0;
  check.dense = apart == 0;
  check.low = low;
  check.least = static_cast<u64>(least);
  check.greatest = static_cast<u64>(greatest);
  return check;
}

PointerSpan SpanOfPointersLevel(const std::uintptr_t* pointer, LaneMask lanes) {
  u64 least = ~u64{0};
  u64 greatest = 0;
  for (u64 i = 0; i < kWarpSize; ++i) {
    const u64 counts = u64{0} - (u64{lanes} >> i & 1);
    const u64 low = pointer[i] | ~counts;
    const u64 high = pointer[i] & counts;
    least = low < least ? low : least;
    greatest = high > greatest ? high : greatest;
  }
  return {least, greatest};
}

}  // namespace assay::emu::inline ASSAY_EMU_LEVEL
