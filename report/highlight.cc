#include "report/highlight.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace assay::report {
namespace {

// Sorted.
constexpr auto kKeywords = std::to_array<std::string_view>({"__align__",
                                                            "__constant__",
                                                            "__device__",
                                                            "__forceinline__",
                                                            "__global__",
                                                            "__grid_constant__",
                                                            "__host__",
                                                            "__inline__",
                                                            "__launch_bounds__",
                                                            "__noinline__",
                                                            "__restrict__",
                                                            "__shared__",
                                                            "alignas",
                                                            "alignof",
                                                            "asm",
                                                            "auto",
                                                            "break",
                                                            "case",
                                                            "class",
                                                            "const",
                                                            "const_cast",
                                                            "constexpr",
                                                            "continue",
                                                            "decltype",
                                                            "default",
                                                            "do",
                                                            "else",
                                                            "enum",
                                                            "extern",
                                                            "false",
                                                            "for",
                                                            "goto",
                                                            "if",
                                                            "inline",
                                                            "namespace",
                                                            "noexcept",
                                                            "nullptr",
                                                            "operator",
                                                            "private",
                                                            "public",
                                                            "register",
                                                            "reinterpret_cast",
                                                            "return",
                                                            "sizeof",
                                                            "static",
                                                            "static_assert",
                                                            "static_cast",
                                                            "struct",
                                                            "switch",
                                                            "template",
                                                            "this",
                                                            "true",
                                                            "typedef",
                                                            "typename",
                                                            "union",
                                                            "using",
                                                            "volatile",
                                                            "while"});
constexpr auto kTypes = std::to_array<std::string_view>(
    {"__half",    "__half2",     "__nv_bfloat16", "__nv_bfloat162", "bfloat16", "bool",
     "char",      "char4",       "double",        "double2",        "double4",  "float",
     "float2",    "float3",      "float4",        "half",           "half2",    "int",
     "int16_t",   "int2",        "int32_t",       "int4",           "int64_t",  "int8_t",
     "long",      "nv_bfloat16", "ptrdiff_t",     "short",          "signed",   "size_t",
     "uint16_t",  "uint2",       "uint32_t",      "uint4",          "uint64_t", "uint8_t",
     "uintptr_t", "unsigned",    "void"});
constexpr auto kDevice = std::to_array<std::string_view>(
    {"atomicAdd", "atomicAnd", "atomicCAS", "atomicExch", "atomicInc", "atomicMax", "atomicMin",
     "atomicOr", "atomicSub", "atomicXor", "blockDim", "blockIdx", "gridDim", "threadIdx",
     "warpSize"});
// What makes the threads of a block or warp wait for each other.
constexpr auto kBarriers = std::to_array<std::string_view>(
    {"__barrier_sync", "__barrier_sync_count", "__syncthreads", "__syncthreads_and",
     "__syncthreads_count", "__syncthreads_or", "__syncwarp", "arrive_and_wait"});
static_assert(std::ranges::is_sorted(kKeywords) && std::ranges::is_sorted(kTypes) &&
              std::ranges::is_sorted(kDevice) && std::ranges::is_sorted(kBarriers));

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool IsName(char c) { return IsNameStart(c) || IsDigit(c); }

TokenKind KindOfName(std::string_view name) {
  if (std::ranges::binary_search(kKeywords, name)) return TokenKind::kKeyword;
  if (std::ranges::binary_search(kTypes, name)) return TokenKind::kType;
  // Intrinsics have the compiler's own prefix.
  if (std::ranges::binary_search(kDevice, name) || name.starts_with("__"))
    return TokenKind::kDevice;
  return TokenKind::kName;
}

// What a line leaves open for the next one.
enum class Open : std::uint8_t { kNothing, kComment, kLineComment, kRawString, kDirective };

class LineLexer {
 public:
  LineLexer(std::string_view line, Open& open, std::string& raw_end)
      : line_(line), open_(open), raw_end_(raw_end) {}

  TokenLine Run() {
    const bool spliced = line_.ends_with('\\');
    if (open_ == Open::kComment) Until("*/", TokenKind::kComment);
    if (open_ == Open::kRawString) Until(raw_end_, TokenKind::kString);
    bool directive = open_ == Open::kDirective;
    if (open_ == Open::kLineComment) Rest(TokenKind::kComment);
    bool line_comment = open_ == Open::kLineComment;
    if (open_ == Open::kLineComment || open_ == Open::kDirective) open_ = Open::kNothing;
    while (at_ < line_.size()) {
      const std::string_view rest = line_.substr(at_);
      if (rest.starts_with("//")) {
        Rest(TokenKind::kComment);
        line_comment = true;
      } else if (rest.starts_with("/*")) {
        Take(2, TokenKind::kComment);
        open_ = Open::kComment;
        Until("*/", TokenKind::kComment);
      } else if (rest.front() == '#' && OnlySpaceSoFar()) {
        directive = true;
        const std::size_t hash = 1 + Span(rest.substr(1), [](char c) { return c == ' '; });
        Take(hash + Span(rest.substr(hash), IsName), TokenKind::kDirective);
      } else if (rest.front() == '"' || rest.front() == '\'') {
        Quoted(rest.front());
      } else if (rest.starts_with("R\"")) {
        Raw(rest);
      } else if (IsDigit(rest.front()) ||
                 (rest.front() == '.' && rest.size() > 1 && IsDigit(rest[1]))) {
        NumberHere(rest);
      } else if (IsNameStart(rest.front())) {
        const std::size_t length = Span(rest, IsName);
        Take(length, directive ? TokenKind::kDirective : KindOfName(rest.substr(0, length)));
      } else {
        Take(1, TokenKind::kPlain);
      }
    }
    if (open_ == Open::kNothing && spliced)
      open_ = line_comment ? Open::kLineComment : directive ? Open::kDirective : Open::kNothing;
    return std::move(tokens_);
  }

 private:
  template <class Is>
  static std::size_t Span(std::string_view text, Is is) {
    const auto end = std::ranges::find_if_not(text, is);
    return static_cast<std::size_t>(end - text.begin());
  }
  bool OnlySpaceSoFar() const { return Strip(line_.substr(0, at_)).empty(); }
  void Take(std::size_t length, TokenKind kind) {
    const std::string_view text = line_.substr(at_, length);
    at_ += text.size();
    if (text.empty()) return;
    // Neighbours of one kind are one token; names stay apart.
    if (!tokens_.empty() && tokens_.back().kind == kind &&
        (kind == TokenKind::kPlain || kind == TokenKind::kComment || kind == TokenKind::kString ||
         kind == TokenKind::kDirective)) {
      tokens_.back().text = {tokens_.back().text.data(), tokens_.back().text.size() + text.size()};
    } else {
      tokens_.push_back({kind, text});
    }
  }
  void Rest(TokenKind kind) { Take(line_.size() - at_, kind); }
  void Until(std::string_view end, TokenKind kind) {
    const std::size_t found = line_.find(end, at_);
    if (found == std::string_view::npos) return Rest(kind);
    Take(found + end.size() - at_, kind);
    open_ = Open::kNothing;
  }
  void Quoted(char quote) {
    std::size_t length = 1;
    const std::string_view rest = line_.substr(at_);
    while (length < rest.size() && rest[length] != quote) length += rest[length] == '\\' ? 2 : 1;
    Take(length + 1, TokenKind::kString);
  }
  void Raw(std::string_view rest) {
    const std::size_t parenthesis = rest.find('(');
    if (parenthesis == std::string_view::npos || parenthesis > 18) return Take(1, TokenKind::kName);
    raw_end_ = ")" + std::string(rest.substr(2, parenthesis - 2)) + "\"";
    open_ = Open::kRawString;
    Take(parenthesis + 1, TokenKind::kString);
    Until(raw_end_, TokenKind::kString);
  }
  void NumberHere(std::string_view rest) {
    std::size_t length = 1;
    while (length < rest.size() &&
           (IsName(rest[length]) || rest[length] == '.' ||
            // A digit separator stands between digits; the sign of an exponent follows its letter.
            (rest[length] == '\'' && length + 1 < rest.size() && IsName(rest[length + 1])) ||
            ((rest[length] == '+' || rest[length] == '-') &&
             std::string_view("eEpP").contains(rest[length - 1]) && !rest.starts_with("0x"))))
      ++length;
    Take(length, TokenKind::kNumber);
  }

  std::string_view line_;
  Open& open_;
  std::string& raw_end_;
  std::size_t at_ = 0;
  TokenLine tokens_;
};

}  // namespace

std::vector<TokenLine> Highlight(std::string_view source) {
  std::vector<TokenLine> lines;
  Open open = Open::kNothing;
  std::string raw_end;
  for (const std::string_view line : SplitLines(source))
    lines.push_back(LineLexer(line, open, raw_end).Run());
  return lines;
}

std::string_view BarrierOn(const TokenLine& line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool name = line[i].kind == TokenKind::kName || line[i].kind == TokenKind::kDevice;
    if (!name) continue;
    if (std::ranges::binary_search(kBarriers, line[i].text)) return line[i].text;
    // A group's method: block.sync().
    const bool member =
        i > 0 && (line[i - 1].text.ends_with('.') || line[i - 1].text.ends_with("->"));
    if (member && line[i].text == "sync") return line[i].text;
  }
  return {};
}

}  // namespace assay::report
