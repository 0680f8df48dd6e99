// A warp's lanes, and sets of them: all that the race detector needs to know of warps.
#pragma once

#include <cstdint>

namespace assay::emu {

inline constexpr int kWarpSize = 32;
using LaneMask = std::uint32_t;
inline constexpr LaneMask kAllLanes = 0xffffffffu;

}  // namespace assay::emu
