// What is refused in a source before the compiler sees it, because the compiler's own answer would
// be worse: bytes that are not UTF-8 text (a byte-order mark makes NVRTC read UTF-16, which no
// check of the text would see through), and #include of files that are not headers of the toolkit.
// A clear message is the purpose; the jail is what keeps files of the host out of reach.
//
// Pure; one pass over the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::workers {

struct SourceProblem {
  std::uint32_t line = 0;  ///< 1-based.
  std::string message;
};

/// The first problem of `source`, or nothing.
std::optional<SourceProblem> CheckSource(std::string_view source);

}  // namespace assay::workers
