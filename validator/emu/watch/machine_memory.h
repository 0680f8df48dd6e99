// The machine's choice (machine.h) in memory: places that it chose, and bytes that hold it.
//
// A register that holds a choice may be stored and loaded again: the bytes are undefined meanwhile,
// and remember in place of a zero the number of a StoredChoice (defined_map.h), so that a load finds
// the class and the origin again, and a whole address as the address that it was. Where the choice
// decides *where* something is stored, whatever may have been meant holds a choice afterwards; where
// it decides where something is loaded from, what is loaded is one. Bytes of an op's output are
// reported at once.
//
// Cost: nothing where no undefined byte is met. Not thread-safe.
#pragma once

#include "validator/emu/core.h"
#include "validator/emu/memory.h"

namespace assay::emu {

/// An address operand some of whose lanes hold chosen bits: which of them are more than an address
/// (an index was chosen as well) is kept in the warp until the access takes it.
void NoteChosenPlace(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                     LaneMask chosen);
/// The lanes whose place was chosen, once.
ChosenPlaces TakeChosenPlaces(CoreWarp& warp, const Decoded& op);
/// After a store of `bytes` a lane at chosen places: whatever may have been meant holds a choice,
/// the bytes that were hit among it.
void SpreadChosenStore(CoreWarp& warp, const LaneAccess& access, std::uint32_t bytes,
                       const ChosenPlaces& places);
/// The same of one store of `bytes` at `offset` in a region, where the bits `open` of the address
/// were chosen at `origin`. What reaches an output is reported.
void StoreAtChosenPlace(CoreWarp& warp, std::uint32_t pc, int lane, MemoryRegion& region,
                        std::uint64_t offset, std::uint64_t bytes, std::uint64_t open,
                        std::uint32_t origin);

/// The number by which memory knows a choice; never 0 or 1 (core.h).
std::uint8_t StoredChoiceNumber(Device& device, StoredChoice choice);
/// The number of what is read at chosen places.
std::uint8_t NumberOf(Device& device, const ChosenPlaces& places);
StoredChoice StoredChoiceAt(const Device& device, std::uint8_t number);

/// What a load finds of the machine's choice in the bytes of `lanes`, all of which have undefined
/// ones: the lanes that hold nothing else undefined, and those that hold one address as it was.
struct LoadedChoice {
  LaneMask chosen = 0;
  LaneMask whole_address = 0;
  std::uint32_t origin = kNoPc;
};
LoadedChoice ChoiceLoaded(CoreWarp& warp, const Decoded& op, const LaneAccess& access,
                          std::uint32_t offset, std::uint32_t bytes, LaneMask lanes);

/// Reports that what `origin` gave reaches `bytes` of an output at `offset`, or decides whether they
/// are written.
void ReportChosenOutput(CoreWarp& warp, std::uint32_t pc, LaneMask lanes,
                        const MemoryRegion& output, std::uint64_t offset, std::uint32_t bytes,
                        std::uint32_t origin);

}  // namespace assay::emu
