// Memory that repeats a pattern: inputs of gigabytes whose values are a function of place, at the cost
// of one megabyte.
//
// The pattern is a memory file that nobody may change any more (sealed), mapped again and again, so
// that every place of the memory lies on a page of the pattern. Pages are shared until somebody
// writes there, and then are that process' own. Whoever is handed the descriptor knows by the seals
// that a file shorter than the memory is a pattern, and maps it in the same way
// (SharedMemory::Map, kPrivateCopy); any other file that is too short is an error.
//
// kPatternBytes is a prime number of pages, so that no stride of a power of two, and no index that
// wraps at one, comes back to the same place of the pattern; and one where an index that wraps at
// 2^29 to 2^38 bytes, once or twice, comes back 25 pages away or more. (Of 257 pages 2^24 are one less
// than a whole number of patterns.)
//
//   ASSAY_TRY(SharedMemory memory, Repeat(pattern, bytes));
//
// Cost: the pattern, or a 1024th of the memory where that is more, and as many system calls; a 128th where many such
// memories live.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"
#include "base/shared_memory.h"

namespace assay {

inline constexpr std::size_t kPatternPage = 4096;
/// A pattern of the usual length.
inline constexpr std::size_t kPatternBytes = 227 * kPatternPage;
/// Mappings of one memory: a process has 65,530 of them by default. The file holds a long memory's pattern several
/// times over.
inline constexpr std::size_t kMostRepetitions = 1024;
/// Of one memory where a process has many of them.
inline constexpr std::size_t kFewRepetitions = 128;
/// No longer memory can be made so: its file would have a gigabyte.
inline constexpr std::size_t kMostRepeatedBytes = kFewRepetitions << 30;

/// `bytes` bytes that repeat `pattern`, which is whole pages. Writes stay in this process. kLimit
/// beyond kMostRepeatedBytes.
Result<SharedMemory> Repeat(std::span<const std::byte> pattern, std::size_t bytes);

}  // namespace assay
