// CUDA C++ source as tokens: what is left when layout and comments are gone. No preprocessing, no
// grammar; never fails (a stray byte is a token, an open comment or string ends with the text).
// Linear, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::dataset {

enum class TokenKind : std::uint8_t {
  kWord,    ///< Identifiers and keywords.
  kNumber,  ///< As the preprocessor sees numbers: 1e-5f, 0x1p3.
  kText,    ///< String and character literals, raw ones too, with prefix.
  kPunctuator,
  kDirective,  ///< `#` at the start of a line.
  kLineEnd,    ///< End of a directive.
};

struct Token {
  TokenKind kind{};
  std::string_view text;  ///< Borrowed from the source. A word split by a backslash-newline is two.
  std::uint32_t line = 1;  ///< From 1.
  bool operator==(const Token&) const = default;
};

std::vector<Token> Tokenise(std::string_view source);

}  // namespace assay::dataset
