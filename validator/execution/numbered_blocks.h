// How many blocks of a launch have numbers.
#pragma once

#include <cstdint>

namespace assay {

/// The most blocks of one launch. A GPU may take more: its limit of 2^31 - 1 is one along x alone.
inline constexpr std::uint64_t kMostNumberedBlocks = 0x7fffffff;

}  // namespace assay
