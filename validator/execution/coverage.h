// What BranchCoverage::sides says: which ways a branch or a selection of the PTX went.
//
// A compiler makes a jump or a `selp` of an `if` as it likes, so that both are told of alike; the bit
// says which it is, for people.
#pragma once

#include <cstdint>

namespace assay {

inline constexpr std::uint8_t kWentFirst = 1;   ///< Taken; of a selection, the first of two.
inline constexpr std::uint8_t kWentSecond = 2;  ///< Not taken; the second.
inline constexpr std::uint8_t kBothWays = kWentFirst | kWentSecond;
inline constexpr std::uint8_t kOfSelection = 4;

}  // namespace assay
