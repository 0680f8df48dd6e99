#include "validator/emu/watch/copied_bytes.h"

#include <algorithm>
#include <utility>

#include "validator/emu/memory.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/machine_memory.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {

void CopiedBytes::Choose(std::uint64_t count, std::uint8_t number) {
  states.resize(count, 1);
  std::ranges::replace(states, std::uint8_t{1}, number);
}

CopiedBytes BytesOf(const MemoryRegion& source, std::uint64_t start, std::uint64_t count) {
  CopiedBytes bytes;
  const DefinedMap* const map = source.defined;
  if (map == nullptr || map->AllDefined() || map->Defined(start, count)) return bytes;
  bytes.states.resize(count, 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!map->Defined(start + i, 1)) bytes.states[i] = map->Choice(start + i);
  }
  return bytes;
}

CopiedBytes BytesOf(CoreWarp& warp, const DecodedOperand& source, int lane, std::uint32_t count) {
  CopiedBytes bytes;
  if (!warp.device->track_defined) return bytes;
  const Frame& frame = *warp.frame;
  if ((frame.undefined[source.shadow] >> lane & 1) == 0) return bytes;
  const std::uint64_t open = UndefinedBits(frame, source, lane);
  const bool chosen = (ChosenLanes(frame, source.shadow) >> lane & 1) != 0;
  const std::uint8_t state =
      chosen ? StoredChoiceNumber(*warp.device, {.origin = frame.origin[source.shadow]})
             : std::uint8_t{0};
  bytes.states.resize(count, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((open >> 8 * (i % 8) & 0xff) != 0) bytes.states[i] = state;
  }
  return bytes;
}

CopiedBytes Combined(const CopiedBytes& a, const CopiedBytes& b) {
  if (a.AllDefined()) return b;
  CopiedBytes both = a;
  for (std::size_t i = 0; i < both.states.size(); ++i) {
    const std::uint8_t other = b.At(i);
    if (other == 0 || both.states[i] == 1) both.states[i] = other;
  }
  return both;
}

void PutBytes(CoreWarp& warp, std::uint32_t pc, int lane, MemoryRegion& target, std::uint64_t start,
              std::uint64_t count, const CopiedBytes& bytes) {
  DefinedMap* const map = target.defined;
  if (map == nullptr) return;
  if (bytes.AllDefined()) return map->Set(start, count, true);
  bool reported = false;
  for (std::uint64_t i = 0; i < count;) {
    const std::uint8_t state = bytes.At(i);
    std::uint64_t end = i + 1;
    while (end < count && bytes.At(end) == state) ++end;
    if (state < 2) {
      map->Set(start + i, end - i, state != 0);
    } else if (!target.is_output) {
      map->SetChosen(start + i, end - i, state);
    } else {
      map->Set(start + i, end - i, true);
      if (!reported)
        ReportChosenOutput(warp, pc, LaneMask{1} << lane, target, start + i,
                           static_cast<std::uint32_t>(end - i),
                           StoredChoiceAt(*warp.device, state).origin);
      reported = true;
    }
    i = end;
  }
}

ChosenPlaces CheckCopyAddress(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                              LaneMask lanes) {
  CheckAddressDefined(warp, op, operand, lanes);
  return TakeChosenPlaces(warp, op);
}

ChosenPlaces CheckCopyNumber(CoreWarp& warp, const Decoded& op, const DecodedOperand& operand,
                             LaneMask lanes) {
  ChosenPlaces places;
  if (!warp.device->track_defined || operand.kind != DecodedOperand::Kind::kSlot) return places;
  const Frame& frame = *warp.frame;
  const LaneMask unset = UnsetLanes(frame, operand.shadow) & lanes;
  if (unset != 0) {
    ReportUndefined(warp, warp.PcOf(op), unset,
                    "a place or a size was computed from undefined bytes", VerbOf(*op.source),
                    frame.origin[operand.shadow]);
  }
  places.lanes = ChosenLanes(frame, operand.shadow) & lanes;
  places.origin = frame.origin[operand.shadow];
  places.pc = warp.PcOf(op);
  places.open.fill(~std::uint64_t{0});
  return places;
}

ChosenPlaces Either(const ChosenPlaces& a, const ChosenPlaces& b) {
  if (a.lanes == 0) return b;
  ChosenPlaces both = a;
  both.lanes |= b.lanes;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) both.open[lane] |= b.open[lane];
  return both;
}

}  // namespace assay::emu
