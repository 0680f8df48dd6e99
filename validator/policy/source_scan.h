// CUDA C++ source as tokens with lines, without comments; strings are tokens of their own, so that
// rules about identifiers never fire on text inside of them.
//
// Understands what can hide or move text: line splices, raw strings, encoding prefixes, digraphs of
// '#'. It does not expand macros: what macros assemble is seen in the PTX (ptx_policy.cc).
//
// Linear in the source; never reads out of bounds; any bytes are acceptable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::policy {

struct SourceToken {
  enum class Kind : std::uint8_t {
    kIdentifier,
    kNumber,
    kString,
    kCharacter,
    kPunctuation,
    kDirective
  };
  Kind kind = Kind::kPunctuation;
  std::string
      text;  ///< Strings without quotes, directives as one line without the '#', comments removed.
  std::uint32_t line = 0;  ///< 1-based, of its first character.
};

std::vector<SourceToken> ScanSource(std::string_view source);

}  // namespace assay::policy
