// What copying instructions take along of the bytes that they copy: which are defined, which are not
// initialised, and which the machine chose (machine.h).
//
// ld and st go through registers, which hold the same for themselves. What moves bytes from memory to
// memory (cp.async, bulk and tensor copies), or from registers to another block's memory (st.async),
// says it here. A copy to or from a place that the machine chose is the machine's choice, as with ld
// and st: what is read there, and whatever may have been meant where it is written.
//
//   const ChosenPlaces from = CheckCopyAddress(warp, op, op.operands[1], lanes);
//   CopiedBytes bytes = BytesOf(source, start, count);
//   if (from.Holds(lane)) bytes.Choose(count, NumberOf(device, from));
//   PutBytes(warp, op, lane, target, at, count, bytes);
//
// Cost: one look at the source's map where all is defined. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

struct LaneAccess;

/// By byte of a copy: 1 defined, 0 not initialised, from 2 on the number of a choice
/// (StoredChoiceNumber). Empty: all defined.
struct CopiedBytes {
  std::vector<std::uint8_t> states;

  bool AllDefined() const { return states.empty(); }
  std::uint8_t At(std::uint64_t byte) const { return states.empty() ? 1 : states[byte]; }
  /// Of `count` bytes, those that are defined become the machine's choice.
  void Choose(std::uint64_t count, std::uint8_t number);
};

/// What `count` bytes of memory at `start` are.
CopiedBytes BytesOf(const MemoryRegion& source, std::uint64_t start, std::uint64_t count);
/// What `count` bytes of a lane of register `source` are.
CopiedBytes BytesOf(CoreWarp& warp, const DecodedOperand& source, int lane, std::uint32_t count);
/// What comes of combining both, byte by byte: what is not initialised goes first.
CopiedBytes Combined(const CopiedBytes& a, const CopiedBytes& b);

/// `lane` of the instruction at `pc` has put `count` bytes into memory at `start`. A choice that
/// reaches an output is reported; what is not initialised is when the launch ends.
void PutBytes(CoreWarp& warp, std::uint32_t pc, int lane, MemoryRegion& target, std::uint64_t start,
              std::uint64_t count, const CopiedBytes& bytes);

/// Reports undefined bytes in what says where a copy goes to or comes from (CheckAddressDefined), and
/// returns the lanes for which the machine chose it.
ChosenPlaces CheckCopyAddress(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                              LaneMask lanes);
/// The same of an operand that is no address but a coordinate or a size: all of the lanes whose value
/// the machine chose, wherever that may lead.
ChosenPlaces CheckCopyNumber(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                             LaneMask lanes);
/// Lanes of either; the origin of the first, where it has any.
ChosenPlaces Either(const ChosenPlaces& a, const ChosenPlaces& b);

}  // namespace assay::emu
