// Bytes that were written though they look as if nobody had (Report::disguised): who looks at a buffer after a run of
// some blocks sees what was written by what differs from the fill.
//
// Cost: a look at each page that was written.
#pragma once

#include <cstdint>
#include <vector>

#include "validator/emu/core.h"

namespace assay::emu {

/// Of buffer `number`, which `region` holds, if it started uninitialised and is tracked. No more than kMostDisguised ranges.
inline constexpr std::size_t kMostDisguised = std::size_t{1} << 16;
void AddDisguised(const MemoryRegion& region, std::uint32_t number, const BufferSpec& spec,
                  std::vector<BufferRange>& ranges);

}  // namespace assay::emu
