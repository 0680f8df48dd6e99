// How instruction families other than ld/st reach memory: ldmatrix, stmatrix, wmma.load, wmma.store
// and the like.
//
// All checks (bounds, alignment, write protection, definedness, races) happen inside. A fault is
// recorded in the warp and ends the run after the handler returns; the handler simply returns too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validator/emu/exec.h"

namespace assay::emu {

struct ChosenPlaces;

/// Loads `bytes` (1 to 16) for each lane of `lanes` from addresses[lane] in `space` (generic,
/// global, shared, ...) to out + lane * bytes. False: faulted.
struct LoadedLanes {
  LaneMask undefined = 0;      ///< A byte was,
  LaneMask chosen = 0;         ///< and all that were are what the machine chose,
  std::uint32_t choice = ~0u;  ///< at this pc.
};
bool LoadLanes(Warp& warp, const Decoded& op, ptx::Space space, LaneMask lanes,
               const std::uint64_t* addresses, std::uint32_t bytes, std::byte* out,
               LoadedLanes& loaded);

/// Stores `bytes` from in + lane * bytes. False: faulted.
struct StoredLanes {
  LaneMask undefined = 0;      ///< Store undefined bytes;
  LaneMask chosen = 0;         ///< of them, those whose bytes the machine chose;
  std::uint32_t origin = ~0u;  ///< the pc that made them so.
  const ChosenPlaces* places = nullptr;
};
bool StoreLanes(Warp& warp, const Decoded& op, ptx::Space space, LaneMask lanes,
                const std::uint64_t* addresses, std::uint32_t bytes, const std::byte* in,
                const StoredLanes& what);

/// The address that an address operand (`op.operands[index]`, already holding base plus nothing)
/// gives a lane: the register, 32 or 64 bits wide, plus op.immediate.
std::uint64_t AddressOf(Warp& warp, const Decoded& op, std::size_t operand, int lane);

}  // namespace assay::emu
