#include "validator/ptx/lexer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <system_error>

namespace assay::ptx {
namespace {

enum : std::uint8_t { kWord = 1, kDigit = 2, kStart = 4, kBlank = 8, kHex = 16 };

constexpr std::array<std::uint8_t, 256> MakeClasses() {
  std::array<std::uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = kWord | kStart;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = kWord | kStart;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = kWord | kDigit | kHex;
  for (int c = 'a'; c <= 'f'; ++c) table[static_cast<std::size_t>(c)] |= kHex;
  for (int c = 'A'; c <= 'F'; ++c) table[static_cast<std::size_t>(c)] |= kHex;
  table['_'] = table['$'] = kWord | kStart;
  for (const char c : {' ', '\t', '\r', '\f', '\v'}) table[static_cast<std::size_t>(c)] = kBlank;
  return table;
}
constexpr auto kClasses = MakeClasses();

bool IsClass(char c, std::uint8_t wanted) {
  return (kClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

constexpr std::string_view kPunctuationCharacters = "()[]{}<>,;:|+-*/%!~@=&^?";

}  // namespace

void Lexer::SkipBlanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (IsClass(c, kBlank)) {
      ++position_;
    } else if (c == '/' && position_ + 1 < text_.size() && text_[position_ + 1] == '/') {
      const std::size_t end = text_.find('\n', position_);
      position_ = end == std::string_view::npos ? text_.size() : end;
    } else if (c == '/' && position_ + 1 < text_.size() && text_[position_ + 1] == '*') {
      const std::size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos) {
        unterminated_comment_ = true;
        return;
      }
      for (; position_ < end; ++position_) line_ += text_[position_] == '\n' ? 1u : 0u;
      position_ += 2;
    } else if (c == '#' && (position_ == 0 || text_[position_ - 1] == '\n')) {
      const std::size_t end = text_.find('\n', position_);
      position_ = end == std::string_view::npos ? text_.size() : end;
    } else {
      return;
    }
  }
}

Token Lexer::Error(Token token, std::string_view problem) {
  token.kind = Token::Kind::kError;
  token.problem = problem;
  token.text = text_.substr(token.offset, position_ - token.offset);
  return token;
}

void Lexer::ScanDottedWord() {
  while (true) {
    while (position_ < text_.size() && IsClass(text_[position_], kWord)) ++position_;
    if (position_ + 2 < text_.size() && text_[position_] == ':' && text_[position_ + 1] == ':' &&
        IsClass(text_[position_ + 2], kWord)) {
      position_ += 2;
      continue;
    }
    return;
  }
}

std::string_view Lexer::ExtendDotted(const Token& identifier) {
  while (position_ + 1 < text_.size() && text_[position_] == '.' &&
         IsClass(text_[position_ + 1], kWord)) {
    ++position_;
    ScanDottedWord();
  }
  return text_.substr(identifier.offset, position_ - identifier.offset);
}

bool Lexer::SkipBraces() {
  for (std::size_t depth = 1; position_ < text_.size();) {
    const char c = text_[position_++];
    if (c == '\n') ++line_;
    if (c == '/' && Peek() == '/') position_ = std::min(text_.find('\n', position_), text_.size());
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return true;
  }
  return false;
}

Token Lexer::Number(Token token) {
  const std::size_t start = position_;
  const auto take = [&](std::uint8_t wanted) {
    const std::size_t from = position_;
    while (position_ < text_.size() && IsClass(text_[position_], wanted)) ++position_;
    return text_.substr(from, position_ - from);
  };
  const auto parse = [&](std::string_view digits, int base) {
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.bits, base);
    return problem == std::errc{} && end == digits.data() + digits.size();
  };
  const char second = start + 1 < text_.size() ? text_[start + 1] : '\0';
  bool good = false;
  token.kind = Token::Kind::kInteger;
  if (text_[start] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    const bool single = second == 'f' || second == 'F';
    position_ += 2;
    const std::string_view digits = take(kHex);
    token.kind = single ? Token::Kind::kFloat32 : Token::Kind::kFloat64;
    good = digits.size() == (single ? 8u : 16u) && parse(digits, 16);
    if (!good) return Error(token, "a 0f literal has 8 hexadecimal digits, a 0d literal 16");
  } else if (text_[start] == '0' && (second == 'x' || second == 'X')) {
    position_ += 2;
    good = parse(take(kHex), 16);
  } else if (text_[start] == '0' && (second == 'b' || second == 'B')) {
    position_ += 2;
    good = parse(take(kDigit), 2);
  } else {
    const std::string_view digits = take(kDigit);
    const bool fraction = position_ + 1 < text_.size() && text_[position_] == '.' &&
                          IsClass(text_[position_ + 1], kDigit);
    const bool bare_point = Peek() == '.' && !fraction &&
                            !(position_ + 1 < text_.size() && IsClass(text_[position_ + 1], kWord));
    const bool exponent = Peek() == 'e' || Peek() == 'E';
    if (fraction || bare_point || exponent) {
      double value = 0;
      const char* const first = text_.data() + start;
      const auto [end, problem] = std::from_chars(first, text_.data() + text_.size(), value);
      position_ = start + static_cast<std::size_t>(end - first);
      token.kind = Token::Kind::kFloat64;
      token.bits = std::bit_cast<std::uint64_t>(value);
      good = problem == std::errc{};
    } else {
      good = parse(digits, digits.size() > 1 && digits[0] == '0' ? 8 : 10);
    }
  }
  if (token.kind == Token::Kind::kInteger && (Peek() == 'U' || Peek() == 'u')) ++position_;
  const bool glued = position_ < text_.size() && IsClass(text_[position_], kWord);
  if (glued) take(kWord);
  if (!good || glued) return Error(token, "not a number that fits 64 bits");
  token.text = text_.substr(start, position_ - start);
  return token;
}

Token Lexer::Next() {
  SkipBlanks();
  Token token;
  token.line = line_;
  token.offset = static_cast<std::uint32_t>(position_);
  if (unterminated_comment_) {
    position_ = text_.size();
    token = Error(token, "a comment that is never closed");
    token.text = token.text.substr(0, 2);
    return token;
  }
  if (position_ >= text_.size()) return token;
  const char c = text_[position_];
  const char second = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
  if (IsClass(c, kStart) || (c == '%' && IsClass(second, kWord))) {
    token.kind = Token::Kind::kIdentifier;
    ++position_;
    while (position_ < text_.size() && IsClass(text_[position_], kWord)) ++position_;
  } else if (IsClass(c, kDigit)) {
    return Number(token);
  } else if (c == '.' && IsClass(second, kWord)) {
    token.kind = Token::Kind::kDotted;
    ++position_;
    ScanDottedWord();
    token.text = text_.substr(token.offset + 1, position_ - token.offset - 1);
    return token;
  } else if (c == '"') {
    token.kind = Token::Kind::kString;
    std::size_t end = position_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size() || text_[end] != '"') {
      position_ = end < text_.size() ? end : text_.size();
      return Error(token, "a string that is not closed on its line");
    }
    token.text = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return token;
  } else if ((c == '<' || c == '>') && second == c) {
    token.kind = Token::Kind::kPunctuation;
    token.symbol = c == '<' ? 'l' : 'r';
    position_ += 2;
  } else if (kPunctuationCharacters.find(c) != std::string_view::npos && c != '\0') {
    token.kind = Token::Kind::kPunctuation;
    token.symbol = c;
    ++position_;
  } else {
    ++position_;
    return Error(token, "a character that PTX does not use");
  }
  token.text = text_.substr(token.offset, position_ - token.offset);
  return token;
}

}  // namespace assay::ptx
