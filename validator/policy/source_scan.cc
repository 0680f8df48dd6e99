#include "validator/policy/source_scan.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace assay::policy {
namespace {

using Kind = SourceToken::Kind;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80) != 0;
}
bool IsWord(char c) { return IsWordStart(c) || IsDigit(c); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

constexpr std::array<std::string_view, 5> kRawPrefixes = {"R", "u8R", "uR", "UR", "LR"};
constexpr std::array<std::string_view, 4> kPrefixes = {"u8", "u", "U", "L"};

class Scanner {
 public:
  explicit Scanner(std::string_view source) : source_(source) { JoinLines(); }

  std::vector<SourceToken> Run() {
    while (At() < text_.size()) {
      if (Blank()) continue;
      const bool hash = Peek() == '#' || (Peek() == '%' && Peek(1) == ':');
      if (line_start_ && hash) {
        Directive();
      } else {
        line_start_ = false;
        Token(tokens_);
      }
    }
    return std::move(tokens_);
  }

 private:
  // Phase 2: a backslash at the end of a line joins it with the next; lines of what follows stay
  // those of the file. A file's end is the end of a line.
  void JoinLines() {
    std::uint32_t line = 1;
    for (std::size_t i = 0; i < source_.size(); ++i) {
      const char c = source_[i];
      if (c == '\\') {
        std::size_t next = i + 1;
        while (next < source_.size() && IsBlank(source_[next])) ++next;
        const bool blanks = next > i + 1;
        if (next < source_.size() && source_[next] == '\r') ++next;
        if (next < source_.size() && source_[next] == '\n') {
          if (blanks) {
            Problem(tokens_, "a backslash before blanks at the end of a line", line);
          } else {
            ++line;
            i = next;
            continue;
          }
        }
      }
      if (c == '\r' && (i + 1 >= source_.size() || source_[i + 1] != '\n'))
        Problem(tokens_, "a carriage return without a line feed", line);
      if (c == '?' && source_.substr(i, 2) == "??" && i + 2 < source_.size() &&
          std::string_view("=/'()!<>-").find(source_[i + 2]) != std::string_view::npos)
        Problem(tokens_, "a trigraph", line);
      text_.push_back(c);
      lines_.push_back(line);
      offsets_.push_back(i);
      if (c == '\n') ++line;
    }
  }

  std::size_t At() const { return at_; }
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool AtEndOfLine() const { return at_ >= text_.size() || text_[at_] == '\n'; }
  std::uint32_t Line() const {
    return at_ < lines_.size() ? lines_[at_] : lines_.empty() ? 1 : lines_.back();
  }
  static void Problem(std::vector<SourceToken>& out, std::string what, std::uint32_t line) {
    out.push_back({Kind::kProblem, std::move(what), line});
  }

  /// White space and comments, new lines included.
  bool Blank() {
    const char c = Peek();
    if (c == '\n') {
      line_start_ = true;
      ++at_;
      return true;
    }
    return BlankWithinLine(tokens_);
  }

  bool BlankWithinLine(std::vector<SourceToken>& out) {
    const char c = Peek();
    if (IsBlank(c) || c == '\r' || c == '\0') {
      ++at_;
      return true;
    }
    if (c != '/') return false;
    if (Peek(1) == '/') {
      while (!AtEndOfLine()) ++at_;
      return true;
    }
    if (Peek(1) != '*') return false;
    const std::uint32_t line = Line();
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string::npos) Problem(out, "a comment without an end", line);
    at_ = end == std::string::npos ? text_.size() : end + 2;
    return true;
  }

  void Directive() {
    SourceToken directive{Kind::kDirective, "", Line()};
    at_ += Peek() == '#' ? 1 : 2;
    bool named = false;
    raw_lines_ = 0;
    while (!AtEndOfLine()) {
      if (BlankWithinLine(directive.inner)) continue;
      if (!named) {
        named = true;
        while (!AtEndOfLine() && IsWord(Peek())) directive.text.push_back(text_[at_++]);
        if (!directive.text.empty()) continue;
      }
      const bool includes = directive.text == "include" || directive.text == "include_next" ||
                            directive.text == "import" || directive.text == "embed";
      if (includes && directive.inner.empty() && HeaderName(directive.inner)) continue;
      const std::uint32_t line = Line();
      Token(directive.inner);
      if (!directive.inner.empty() && raw_lines_ > 0) {
        Problem(directive.inner, "a raw string over several lines in a directive", line);
        raw_lines_ = 0;
      }
    }
    line_start_ = true;
    tokens_.push_back(std::move(directive));
  }

  /// <...> or "..." without escapes, to its end on this line.
  bool HeaderName(std::vector<SourceToken>& out) {
    const char close = Peek() == '<' ? '>' : Peek() == '"' ? '"' : '\0';
    if (close == '\0') return false;
    const std::size_t end = text_.find_first_of(std::string("\n") + close, at_ + 1);
    if (end == std::string::npos || text_[end] != close) return false;
    out.push_back({Kind::kHeaderName, text_.substr(at_, end + 1 - at_), Line()});
    at_ = end + 1;
    return true;
  }

  void Token(std::vector<SourceToken>& out) {
    const std::uint32_t line = Line();
    const char c = Peek();
    if (IsWordStart(c)) return Word(out);
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number(out);
    if (c == '"') return Quoted('"', Kind::kString, out);
    if (c == '\'') return Quoted('\'', Kind::kCharacter, out);
    if (c == '\\') Problem(out, "a backslash outside of a literal", line);
    // `%:%:` is `##`.
    const bool pastes = (c == '#' && Peek(1) == '#') || text_.compare(at_, 4, "%:%:") == 0;
    out.push_back({Kind::kPunctuation, pastes ? "##" : std::string(1, c), line});
    at_ += !pastes ? 1 : c == '#' ? 2 : 4;
  }

  void Word(std::vector<SourceToken>& out) {
    const std::uint32_t line = Line();
    const std::size_t start = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    std::string word = text_.substr(start, at_ - start);
    const auto is = [&word](std::string_view prefix) { return word == prefix; };
    if (Peek() == '"' && std::ranges::any_of(kRawPrefixes, is)) return RawString(out, line);
    if (Peek() == '"' && std::ranges::any_of(kPrefixes, is)) return Quoted('"', Kind::kString, out);
    if (Peek() == '\'' && std::ranges::any_of(kPrefixes, is))
      return Quoted('\'', Kind::kCharacter, out);
    out.push_back({Kind::kIdentifier, std::move(word), line});
  }

  // pp-number of [lex.ppnumber]. A quote belongs to it where a digit or a letter follows; where that
  // is no digit of a literal, not all compilers agree.
  void Number(std::vector<SourceToken>& out) {
    const std::uint32_t line = Line();
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const char before = at_ > start ? text_[at_ - 1] : '\0';
      const bool sign = (c == '+' || c == '-') &&
                        (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      if (c == '\'') {
        if (!IsHex(before) || !IsHex(Peek(1))) {
          Problem(out, "a quote in a number that is not between digits", line);
          if (!IsWord(Peek(1))) break;
        }
      } else if (!IsWord(c) && c != '.' && !sign) {
        break;
      }
      ++at_;
    }
    out.push_back({Kind::kNumber, text_.substr(start, at_ - start), line});
  }

  void Quoted(char quote, Kind kind, std::vector<SourceToken>& out) {
    const std::uint32_t line = Line();
    ++at_;
    std::string text;
    while (!AtEndOfLine() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n')
        text.push_back(text_[at_++]);
      text.push_back(text_[at_++]);
    }
    if (AtEndOfLine()) {
      Problem(out, "a quote without its partner", line);
    } else {
      ++at_;
    }
    out.push_back({kind, std::move(text), line});
  }

  // Splices are undone from the opening quote on: the file's own characters count.
  void RawString(std::vector<SourceToken>& out, std::uint32_t line) {
    constexpr std::size_t kLongestDelimiter = 16;
    const std::size_t quote = offsets_[at_];
    const std::size_t open = source_.find('(', quote);
    const std::string_view delimiter =
        open == std::string_view::npos ? "" : source_.substr(quote + 1, open - quote - 1);
    const bool proper = open != std::string_view::npos && delimiter.size() <= kLongestDelimiter &&
                        delimiter.find_first_of(" )\\\t\v\f\n\r\"") == std::string_view::npos;
    const std::string close = ")" + std::string(delimiter) + "\"";
    const std::size_t end = proper ? source_.find(close, open + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      Problem(out, "a raw string without a proper end", line);
      return Quoted('"', Kind::kString, out);
    }
    const std::string_view content = source_.substr(open + 1, end - open - 1);
    raw_lines_ = static_cast<std::size_t>(std::ranges::count(content, '\n'));
    out.push_back({Kind::kString, std::string(content), line});
    const auto after = std::ranges::lower_bound(offsets_, end + close.size());
    at_ = static_cast<std::size_t>(after - offsets_.begin());
  }

  std::string_view source_;
  std::string text_;                  ///< Lines joined.
  std::vector<std::uint32_t> lines_;  ///< Of each of its characters,
  std::vector<std::size_t> offsets_;  ///< and where it stands in the file.
  std::vector<SourceToken> tokens_;
  std::size_t at_ = 0;
  std::size_t raw_lines_ = 0;  ///< Ends of lines in the last raw string.
  bool line_start_ = true;
};

}  // namespace

std::vector<SourceToken> ScanSource(std::string_view source) { return Scanner(source).Run(); }

}  // namespace assay::policy
