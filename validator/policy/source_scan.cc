#include "validator/policy/source_scan.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace assay::policy {
namespace {

bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80) != 0;
}
bool IsWord(char c) { return IsWordStart(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Scanner {
 public:
  explicit Scanner(std::string_view source) {
    // Splices go first, as in translation phase 2; lines of what follows stay those of the file.
    std::uint32_t line = 1;
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\\') {
        std::size_t next = i + 1;
        if (next < source.size() && source[next] == '\r') ++next;
        if (next < source.size() && source[next] == '\n') {
          ++line;
          i = next;
          continue;
        }
      }
      text_.push_back(source[i]);
      lines_.push_back(line);
      if (source[i] == '\n') ++line;
    }
  }

  std::vector<SourceToken> Run() {
    while (at_ < text_.size()) Step();
    return std::move(tokens_);
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::uint32_t Line() const { return at_ < lines_.size() ? lines_[at_] : 0; }
  void Emit(SourceToken::Kind kind, std::string text, std::uint32_t line) {
    tokens_.push_back({kind, std::move(text), line});
  }

  bool SkipComment() {
    if (Peek() != '/') return false;
    if (Peek(1) == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      return true;
    }
    if (Peek(1) != '*') return false;
    const std::size_t end = text_.find("*/", at_ + 2);
    at_ = end == std::string::npos ? text_.size() : end + 2;
    return true;
  }

  void Step() {
    const char c = Peek();
    if (c == '\n') {
      line_start_ = true;
      ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
      ++at_;
    } else if (SkipComment()) {
    } else if (line_start_ && (c == '#' || (c == '%' && Peek(1) == ':'))) {
      Directive();
    } else {
      line_start_ = false;
      Token();
    }
  }

  // One line; strings and comments inside are respected, comments dropped.
  void Directive() {
    const std::uint32_t line = Line();
    at_ += Peek() == '#' ? 1 : 2;
    std::string text;
    bool quoted = false;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (!quoted && SkipComment()) {
        text.push_back(' ');
        continue;
      }
      if (text_[at_] == '"') quoted = !quoted;
      text.push_back(text_[at_++]);
    }
    const std::size_t first = text.find_first_not_of(" \t\r\f\v");
    const std::size_t last = text.find_last_not_of(" \t\r\f\v");
    Emit(SourceToken::Kind::kDirective,
         first == std::string::npos ? "" : text.substr(first, last - first + 1), line);
  }

  void Token() {
    const std::uint32_t line = Line();
    const char c = Peek();
    if (IsWordStart(c)) {
      const std::size_t start = at_;
      while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
      std::string word = text_.substr(start, at_ - start);
      constexpr std::array<std::string_view, 9> kPrefixes = {"R",  "u8R", "uR", "UR", "LR",
                                                             "u8", "u",   "U",  "L"};
      const auto prefix = std::ranges::find(kPrefixes, word);
      if (Peek() == '"' && prefix != kPrefixes.end()) {
        if (prefix - kPrefixes.begin() < 5) return RawString(line);
        return Quoted('"', SourceToken::Kind::kString, line);
      }
      return Emit(SourceToken::Kind::kIdentifier, std::move(word), line);
    }
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(Peek(1))))) {
      return Number(line);
    }
    if (c == '"') return Quoted('"', SourceToken::Kind::kString, line);
    if (c == '\'') return Quoted('\'', SourceToken::Kind::kCharacter, line);
    Emit(SourceToken::Kind::kPunctuation, std::string(1, c), line);
    ++at_;
  }

  void Number(std::uint32_t line) {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const char before = at_ > start ? text_[at_ - 1] : '\0';
      const bool sign = (c == '+' || c == '-') &&
                        (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      const bool separator = c == '\'' && IsWord(Peek(1));
      if (!IsWord(c) && c != '.' && !sign && !separator) break;
      ++at_;
    }
    Emit(SourceToken::Kind::kNumber, text_.substr(start, at_ - start), line);
  }

  void Quoted(char quote, SourceToken::Kind kind, std::uint32_t line) {
    ++at_;
    std::string text;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) text.push_back(text_[at_++]);
      text.push_back(text_[at_++]);
    }
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
    Emit(kind, std::move(text), line);
  }

  void RawString(std::uint32_t line) {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string::npos || open - at_ > 18)
      return Quoted('"', SourceToken::Kind::kString, line);
    const std::string close = ")" + text_.substr(at_ + 1, open - at_ - 1) + "\"";
    const std::size_t end = text_.find(close, open);
    Emit(SourceToken::Kind::kString,
         text_.substr(open + 1, end == std::string::npos ? std::string::npos : end - open - 1),
         line);
    at_ = end == std::string::npos ? text_.size() : end + close.size();
  }

  std::string text_;
  std::vector<std::uint32_t> lines_;
  std::vector<SourceToken> tokens_;
  std::size_t at_ = 0;
  bool line_start_ = true;
};

}  // namespace

std::vector<SourceToken> ScanSource(std::string_view source) { return Scanner(source).Run(); }

}  // namespace assay::policy
