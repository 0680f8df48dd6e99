#include "validator/emu/handlers/address_lanes.h"

#include <bit>

#include "validator/emu/semantics/level.h"

namespace assay::emu::inline ASSAY_EMU_LEVEL {

namespace {

/// Addresses of all 32 lanes.
AddressCheck CheckAll(const std::uint64_t* address, std::uint64_t bytes, const AddressRange& range,
                      std::uintptr_t* pointer) {
  const u64 first = address[0];
  u64 from_first = 0;
  u64 from_row = 0;
  for (u64 i = 0; i < kWarpSize; ++i) {
    from_first |= address[i] ^ first;
    from_row |= address[i] ^ (first + i * bytes);
  }
  AddressCheck check;
  check.same = from_first == 0;
  check.dense = from_row == 0;
  const u64 data = range.data - range.base;
  for (u64 i = 0; i < kWarpSize; ++i) pointer[i] = data + address[i];
  // An offset is beyond `last` when the top bit of one of these is set.
  const auto beyond = [&](u64 offset) { return (range.last - offset) | offset; };
  if (check.same || check.dense) {
    check.least = first - range.base;
    check.greatest = check.least + (check.same ? 0 : (kWarpSize - 1) * bytes);
    check.inside = (beyond(check.least) | beyond(check.greatest)) >> 63 == 0;
    check.low = check.same ? first : first | bytes;
    return check;
  }
  // What matters is below 2^63, and signed numbers are compared faster.
  s64 least = INT64_MAX;
  s64 greatest = 0;
  u64 past = 0;
  for (u64 i = 0; i < kWarpSize; ++i) {
    const u64 offset = address[i] - range.base;
    const s64 place = static_cast<s64>(offset);
    least = place < least ? place : least;
    greatest = place > greatest ? place : greatest;
    past |= beyond(offset);
    check.low |= address[i];
  }
  check.inside = past >> 63 == 0;
  check.least = static_cast<u64>(least);
  check.greatest = static_cast<u64>(greatest);
  return check;
}

}  // namespace

AddressCheck CheckAddressesLevel(const std::uint64_t* address, LaneMask lanes, std::uint64_t bytes,
                                 const AddressRange& range, std::uintptr_t* pointer) {
  if (lanes == kAllLanes) return CheckAll(address, bytes, range, pointer);
  // Lanes that do not take part are where one is that does.
  const u64 some = address[std::countr_zero(lanes)];
  u64 filled[kWarpSize];
  for (u64 i = 0; i < kWarpSize; ++i) {
    const u64 counts = u64{0} - (u64{lanes} >> i & 1);
    filled[i] = some ^ ((some ^ address[i]) & counts);
  }
  AddressCheck check = CheckAll(filled, bytes, range, pointer);
  check.dense = false;
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
