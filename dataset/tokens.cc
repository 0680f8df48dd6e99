#include "dataset/tokens.h"

#include <algorithm>
#include <string>

namespace assay::dataset {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

constexpr std::string_view kLong[] = {"<<=", ">>=", "...", "->*", "<=>", "::", "->", "++", "--",
                                      "<<",  "<=",  ">=",  "==",  "!=",  "&&", "||", "+=", "-=",
                                      "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "##"};

class Scanner {
 public:
  explicit Scanner(std::string_view source) : source_(source) {}

  std::vector<Token> Run() {
    while (at_ < source_.size()) Next();
    if (in_directive_) Push(TokenKind::kLineEnd, at_);
    return std::move(tokens_);
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  // From `begin` to here.
  void Push(TokenKind kind, std::size_t begin) {
    const std::string_view text = source_.substr(begin, at_ - begin);
    tokens_.push_back({kind, text, line_});
    line_ += static_cast<std::uint32_t>(std::ranges::count(text, '\n'));
    fresh_line_ = false;
  }

  void Next() {
    const char c = Peek();
    if (c == '\\' && (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n'))) {
      at_ += Peek(1) == '\n' ? 2 : 3;
      ++line_;
      return;
    }
    if (c == '\n') {
      if (in_directive_) tokens_.push_back({TokenKind::kLineEnd, source_.substr(at_, 1), line_});
      in_directive_ = false;
      fresh_line_ = true;
      ++at_;
      ++line_;
      return;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\0') {
      ++at_;
      return;
    }
    if (c == '/' && Peek(1) == '/') return LineComment();
    if (c == '/' && Peek(1) == '*') return BlockComment();
    const std::size_t begin = at_;
    if (c == '#' && fresh_line_) {
      ++at_;
      in_directive_ = true;
      return Push(TokenKind::kDirective, begin);
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number();
    if (IsWordStart(c)) {
      while (IsWordPart(Peek())) ++at_;
      const std::string_view word = source_.substr(begin, at_ - begin);
      const bool prefix = word == "L" || word == "u" || word == "U" || word == "u8";
      if (Peek() == '"' && word.ends_with('R') &&
          (word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R")) {
        return RawText(begin);
      }
      if (prefix && (Peek() == '"' || Peek() == '\'')) return Quoted(begin);
      return Push(TokenKind::kWord, begin);
    }
    if (c == '"' || c == '\'') return Quoted(begin);
    for (const std::string_view sign : kLong) {
      if (source_.substr(at_).starts_with(sign)) {
        at_ += sign.size();
        return Push(TokenKind::kPunctuator, begin);
      }
    }
    ++at_;
    Push(TokenKind::kPunctuator, begin);
  }

  void LineComment() {
    while (at_ < source_.size() && Peek() != '\n') {
      // A backslash at its end drags the next line into the comment.
      if (Peek() == '\\' && Peek(1) == '\n') {
        ++line_;
        ++at_;
      }
      ++at_;
    }
    at_ = std::min(at_, source_.size());
  }

  void BlockComment() {
    const std::size_t end = source_.find("*/", at_ + 2);
    const std::size_t stop = end == std::string_view::npos ? source_.size() : end + 2;
    line_ += static_cast<std::uint32_t>(std::ranges::count(source_.substr(at_, stop - at_), '\n'));
    at_ = stop;
  }

  void Number() {
    const std::size_t begin = at_;
    while (at_ < source_.size()) {
      const char c = Peek();
      const char before = at_ > begin ? source_[at_ - 1] : '\0';
      const bool exponent = before == 'e' || before == 'E' || before == 'p' || before == 'P';
      const bool hex =
          source_.substr(begin).starts_with("0x") || source_.substr(begin).starts_with("0X");
      const bool sign =
          (c == '+' || c == '-') && exponent && (!hex || before == 'p' || before == 'P');
      const bool separator = c == '\'' && IsWordPart(Peek(1));
      if (!IsWordPart(c) && c != '.' && !sign && !separator) break;
      ++at_;
    }
    Push(TokenKind::kNumber, begin);
  }

  void Quoted(std::size_t begin) {
    const char quote = Peek();
    ++at_;
    while (at_ < source_.size() && Peek() != quote && Peek() != '\n') {
      at_ += Peek() == '\\' && at_ + 1 < source_.size() ? 2 : 1;
    }
    if (Peek() == quote) ++at_;
    at_ = std::min(at_, source_.size());
    Push(TokenKind::kText, begin);
  }

  void RawText(std::size_t begin) {
    const std::size_t open = source_.find('(', at_);
    std::size_t end = source_.size();
    if (open != std::string_view::npos) {
      const std::string close = ")" + std::string(source_.substr(at_ + 1, open - at_ - 1)) + "\"";
      const std::size_t found = source_.find(close, open);
      if (found != std::string_view::npos) end = found + close.size();
    }
    at_ = end;
    Push(TokenKind::kText, begin);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool fresh_line_ = true;
  bool in_directive_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenise(std::string_view source) { return Scanner(source).Run(); }

}  // namespace assay::dataset
