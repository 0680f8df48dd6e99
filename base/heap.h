// What this process' heap does with memory that is freed.
#pragma once

#include <cstddef>

namespace assay {

/// Lists of the elements that slices wrote, and truths: tens of megabytes at a time.
inline constexpr std::size_t kKeptByJudge = std::size_t{128} << 20;

/// Keeps up to `kept` bytes of it for what comes next, and takes most of what is asked for from there: judging asks for alike amounts
/// again and again, and what went back to the system would be mapped, and cleared page by page, each time. Once, before there are
/// threads.
void KeepFreedMemory(std::size_t kept = kKeptByJudge);

}  // namespace assay
