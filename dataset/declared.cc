#include "dataset/declared.h"

#include <algorithm>
#include <array>
#include <vector>

namespace assay::dataset {
namespace {

constexpr auto kStatementWords =
    std::to_array<std::string_view>({"return",   "else",       "case",        "goto",
                                     "new",      "delete",     "throw",       "sizeof",
                                     "alignof",  "if",         "while",       "for",
                                     "do",       "switch",     "operator",    "break",
                                     "continue", "co_await",   "co_return",   "co_yield",
                                     "not",      "and",        "or",          "default",
                                     "using",    "namespace",  "static_cast", "reinterpret_cast",
                                     "typedef",  "const_cast", "noexcept",    "requires",
                                     "asm",      "__asm__",    "decltype",    "public",
                                     "private",  "protected",  "true",        "false",
                                     "nullptr",  "this",       "try",         "catch",
                                     "template"});

constexpr auto kTypeWords = std::to_array<std::string_view>(
    {"void",         "bool",          "char",           "short",         "int",
     "long",         "float",         "double",         "signed",        "unsigned",
     "auto",         "size_t",        "ptrdiff_t",      "int8_t",        "int16_t",
     "int32_t",      "int64_t",       "uint8_t",        "uint16_t",      "uint32_t",
     "uint64_t",     "uintptr_t",     "half",           "half2",         "__half",
     "__half2",      "bf16",          "nv_bfloat16",    "uint",          "ushort",
     "uchar",        "ulong",         "wchar_t",        "char8_t",       "dim3",
     "nv_bfloat162", "__nv_bfloat16", "__nv_bfloat162", "__nv_fp8_e4m3", "__nv_fp8_e5m2",
     "cudaStream_t", "intptr_t",      "nv_half",        "nv_half2"});

constexpr auto kQualifiers = std::to_array<std::string_view>({"const",
                                                              "volatile",
                                                              "static",
                                                              "inline",
                                                              "extern",
                                                              "constexpr",
                                                              "__restrict__",
                                                              "__restrict",
                                                              "__global__",
                                                              "__device__",
                                                              "__host__",
                                                              "__shared__",
                                                              "__constant__",
                                                              "__forceinline__",
                                                              "__noinline__",
                                                              "__launch_bounds__",
                                                              "__align__",
                                                              "alignas",
                                                              "mutable",
                                                              "register",
                                                              "typename",
                                                              "class",
                                                              "struct",
                                                              "union",
                                                              "enum",
                                                              "friend",
                                                              "explicit",
                                                              "virtual",
                                                              "thread_local",
                                                              "consteval",
                                                              "constinit",
                                                              "__cluster_dims__",
                                                              "__grid_constant__",
                                                              "__managed__",
                                                              "static_assert",
                                                              "concept",
                                                              "final",
                                                              "override",
                                                              "__maxnreg__"});

template <std::size_t N>
bool Holds(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// float2, int4, uchar3, longlong2: the vector types.
bool IsVectorType(std::string_view word) {
  if (word.size() < 4 || word.back() < '1' || word.back() > '4') return false;
  word.remove_suffix(1);
  constexpr auto kBases =
      std::to_array<std::string_view>({"char", "uchar", "short", "ushort", "int", "uint", "long",
                                       "ulong", "longlong", "ulonglong", "float", "double"});
  return Holds(kBases, word);
}

bool IsType(std::string_view word) { return Holds(kTypeWords, word) || IsVectorType(word); }

bool IsQualifier(std::string_view word) { return Holds(kQualifiers, word); }

// What a declaration may stand behind.
bool StartsStatement(std::string_view text) {
  return text.empty() || text == ";" || text == "{" || text == "}" || text == ":" || text == "\n" ||
         IsQualifier(text);
}

class Finder {
 public:
  explicit Finder(std::span<const Token> tokens) : tokens_(tokens) {}

  Declared Run() {
    FindTypes();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      Track(i);
      if (tokens_[i].kind == TokenKind::kDirective) Define(i);
      if (At(i) == "auto") Bindings(i);
      if (IsName(i)) Look(i);
    }
    return std::move(found_);
  }

 private:
  enum class Brace : std::uint8_t { kOther, kStruct, kEnum };

  // Beyond the ends there is an empty text; i may be -1.
  std::string_view At(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }
  bool IsName(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kWord && !IsReserved(At(i));
  }

  // Types come first: whether `a * b` declares b depends on what a is.
  void FindTypes() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view word = At(i);
      const bool introduces = word == "typename" || word == "class" || word == "struct" ||
                              word == "union" || word == "enum" || word == "namespace" ||
                              word == "concept";
      // `typename X::type` and `struct X::Y` name what stands elsewhere.
      if (introduces && IsName(i + 1) && At(i + 2) != "::") AddType(i + 1);
      if (introduces && At(i + 1) == "..." && IsName(i + 2)) AddType(i + 2);
      if (word == "using" && IsName(i + 1) && At(i + 2) == "=") AddType(i + 1);
      if (word == "typedef") {
        std::size_t end = i;
        while (end < tokens_.size() && At(end) != ";") ++end;
        if (end > i + 1 && IsName(end - 1)) AddType(end - 1);
      }
    }
  }
  void AddType(std::size_t i) {
    types_.insert(At(i));
    found_.names.insert(At(i));
  }

  // Which braces are those of a struct, and of an enumeration; and whether parentheses are open in
  // the innermost ones.
  void Track(std::size_t i) {
    const std::string_view text = At(i);
    if (text == "struct" || text == "union" || text == "class") pending_ = Brace::kStruct;
    if (text == "enum") pending_ = Brace::kEnum;
    if (tokens_[i].kind != TokenKind::kPunctuator) return;
    if (text == ";" || text == "(" || text == ")" || text == ">" || text == "=")
      pending_ = Brace::kOther;
    if (text == "{") {
      scopes_.push_back({pending_, 0});
      pending_ = Brace::kOther;
    }
    if (text == "}" && scopes_.size() > 1) scopes_.pop_back();
    if (text == "(") ++scopes_.back().open;
    if (text == ")") scopes_.back().open = std::max(scopes_.back().open - 1, 0);
  }

  void Declare(std::size_t i) {
    found_.names.insert(At(i));
    if (scopes_.back().brace == Brace::kStruct && scopes_.back().open == 0)
      found_.members.insert(At(i));
  }

  void Define(std::size_t i) {
    if (At(i + 1) != "define" || !IsName(i + 2)) return;
    found_.names.insert(At(i + 2));
    // A list of parameters stands right behind the name, without a blank.
    const bool list = At(i + 3) == "(" && At(i + 3).data() == At(i + 2).data() + At(i + 2).size();
    for (std::size_t at = i + 4; list && at < tokens_.size() && At(at) != ")"; ++at) {
      if (tokens_[at].kind == TokenKind::kLineEnd) break;
      if (IsName(at)) found_.names.insert(At(at));
    }
  }

  // auto [a, b] = ...
  void Bindings(std::size_t i) {
    ++i;
    while (At(i) == "&" || At(i) == "&&" || At(i) == "const") ++i;
    if (At(i) != "[") return;
    for (++i; i < tokens_.size() && At(i) != "]"; ++i) {
      if (IsName(i)) Declare(i);
    }
  }

  void Look(std::size_t i) {
    const std::string_view before = At(i - 1);
    const std::string_view next = At(i + 1);
    if (scopes_.back().brace == Brace::kEnum && (before == "{" || before == ",")) Declare(i);
    if (next == ":" && (before == ";" || before == "{" || before == "}")) Declare(i);
    if (next == ">" && IsType(before)) Declare(i);  // template <int N>
    constexpr auto kAfter =
        std::to_array<std::string_view>({"=", ";", ",", ")", "[", "(", "{", ":"});
    if (!Holds(kAfter, next) || !BehindType(i)) return;
    Declare(i);
    Others(i);
  }

  // int a = 1, *b, c[2]: the declarators behind the first one.
  void Others(std::size_t i) {
    constexpr std::size_t kFar = 4096;
    int depth = 0;
    for (std::size_t at = i + 1; at < std::min(tokens_.size(), i + kFar); ++at) {
      const std::string_view text = At(at);
      if (text == ";" || (text == "{" && At(at - 1) == ")")) return;
      if (text == "(" || text == "[" || text == "{") ++depth;
      if (text == ")" || text == "]" || text == "}") --depth;
      if (depth < 0) return;
      if (depth > 0 || text != ",") continue;
      std::size_t name = at + 1;
      while (At(name) == "*" || At(name) == "&") ++name;
      const std::string_view next = At(name + 1);
      if (IsName(name) && (next == "=" || next == ";" || next == "," || next == "[" ||
                           next == "(" || next == "{")) {
        Declare(name);
      }
    }
  }

  // The opening bracket for the closing one at i, or npos.
  std::size_t Opening(std::size_t i, std::string_view open, std::string_view close) const {
    constexpr std::size_t kFar = 256;
    int depth = 0;
    for (std::size_t steps = 0; i < tokens_.size() && steps < kFar; --i, ++steps) {
      if (At(i) == close) ++depth;
      if (At(i) == open && --depth == 0) return i;
      if (At(i) == ";" || At(i) == "{") return npos;
    }
    return npos;
  }

  bool BehindType(std::size_t i) const {
    std::size_t j = i - 1;
    bool pointer = false;
    for (; j < tokens_.size(); --j) {
      const std::string_view text = At(j);
      if (text == "*" || text == "&" || text == "&&")
        pointer = true;
      else if (text == ")") {
        // void __launch_bounds__(256) name(
        const std::size_t open = Opening(j, "(", ")");
        if (open == npos || open == 0) return false;
        if (At(open - 1) == "decltype") return true;
        if (!IsQualifier(At(open - 1))) return false;
        j = open - 1;
      } else if (text != "const" && text != "volatile" && text != "__restrict__" &&
                 text != "__restrict" && text != "..." && text != "__forceinline__" &&
                 text != "__noinline__") {
        break;
      }
    }
    if (j >= tokens_.size()) return false;
    const std::string_view type = At(j);
    if (IsType(type) || types_.contains(type)) return true;
    if (type == ">") {
      const std::size_t open = Opening(j, "<", ">");
      if (open == npos || open == 0 || tokens_[open - 1].kind != TokenKind::kWord) return false;
      const std::string_view ahead = At(open - 2);
      return StartsStatement(ahead) || ahead == "(" || ahead == "," || ahead == "::";
    }
    if (!IsName(j)) return false;
    // Two names in a row: the first can only be a type or a macro. With a star between them the
    // first may be a factor, unless the statement begins with it.
    return !pointer || StartsStatement(At(j - 1));
  }

  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  struct Scope {
    Brace brace = Brace::kOther;
    int open = 0;
  };

  std::span<const Token> tokens_;
  std::set<std::string_view> types_;
  std::vector<Scope> scopes_ = {{}};
  Brace pending_ = Brace::kOther;
  Declared found_;
};

}  // namespace

Declared FindDeclared(std::span<const Token> tokens) { return Finder(tokens).Run(); }

bool IsReserved(std::string_view word) {
  return Holds(kStatementWords, word) || IsQualifier(word) || IsType(word);
}

}  // namespace assay::dataset
