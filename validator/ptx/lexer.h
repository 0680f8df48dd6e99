// Cuts PTX text into tokens, one at a time, without allocating.
//
// Tokens are views into the text, which must outlive them. A dotted word is one token: ".global",
// ".L1::evict_last", ".v4" (its text has no dot). Integers of every base, with or without the U
// suffix, carry their value; 0f and 0d literals and decimal fractions carry the bits of an f32 or
// f64. Comments, white space and `#` lines are skipped.
//
// Cost: linear in the text. Malformed text gives a kError token that says what is wrong, never an
// overrun. Not thread-safe; make one per text.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    kEnd,
    kError,        ///< `text` is the offending text, `problem` what is wrong with it.
    kIdentifier,   ///< `add`, `%r1`, `$L__BB0_1`, `_`
    kDotted,       ///< `.global`: text "global"
    kInteger,      ///< `bits`
    kFloat32,      ///< `bits`, from 0f...
    kFloat64,      ///< `bits`, from 0d... or a decimal fraction
    kString,       ///< Text between the quotes, escapes untouched
    kPunctuation,  ///< `symbol`; `<<` and `>>` are 'l' and 'r'
  };
  Kind kind = Kind::kEnd;
  char symbol = 0;
  std::uint32_t line = 1;    ///< 1-based.
  std::uint32_t offset = 0;  ///< Of the first byte in the text.
  std::uint64_t bits = 0;
  std::string_view text;
  std::string_view problem;

  bool Is(char punctuation) const { return kind == Kind::kPunctuation && symbol == punctuation; }
  bool IsDotted(std::string_view word) const { return kind == Kind::kDotted && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token Next();
  /// The character after the last token, without skipping anything; 0 at the end.
  char Peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  /// After an identifier: takes the dotted words that follow it without a blank, "add" to
  /// "add.sat.s32". The whole text.
  std::string_view ExtendDotted(const Token& identifier);
  /// Skips to the byte after the brace that closes the one just read; false at the end of the text.
  /// For debug sections.
  bool SkipBraces();

 private:
  void SkipBlanks();
  void ScanDottedWord();
  Token Number(Token token);
  Token Error(Token token, std::string_view problem);

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  bool unterminated_comment_ = false;
};

}  // namespace assay::ptx
