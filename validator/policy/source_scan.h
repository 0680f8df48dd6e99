// CUDA C++ source as preprocessing tokens, by the standard's phases of translation 1 to 3 (C++17
// [lex.phases]): what the preprocessor sees, groups that it would skip included.
//
// Splices join lines (and are undone inside of raw strings), comments go, directives are tokens
// with the tokens of their line inside, header names are read as such after #include alone.
// Macros are not expanded: what they assemble is seen in the PTX.
//
// Where compilers read one text in different ways, nothing is guessed: the place is a token of kind
// kProblem, which the policy refuses. Such are unmatched quotes, trigraphs, blanks behind a backslash
// at the end of a line, lone carriage returns, universal character names outside of literals, digit
// separators that are not between digits, unfinished comments, raw strings that run over the end of a
// directive or have no proper delimiter.
//
// Linear in the source; never reads out of bounds; any bytes are acceptable.
//
//   for (const SourceToken& token : ScanSource("#define F(x) x // twice\n")) ...
//   // one kDirective "define" of line 1 that holds F ( x ) x
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
    kPunctuation,  ///< One character each, but for `##`.
    kHeaderName,
    kDirective,
    kProblem,  ///< `text` says what.
  };
  Kind kind = Kind::kPunctuation;
  /// Strings and characters without quotes and prefix, escapes as written; header names with their
  /// quotes; of a directive the name, empty for a null directive.
  std::string text;
  std::uint32_t line = 0;            ///< 1-based, of its first character.
  std::vector<SourceToken> inner{};  ///< Of a directive: the tokens behind its name.
};

std::vector<SourceToken> ScanSource(std::string_view source);

}  // namespace assay::policy
