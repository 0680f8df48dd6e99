#include "validator/policy/source_macros.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace assay::policy {
namespace {

using Kind = SourceToken::Kind;

/// Names, or the beginnings of names where they end in '*', that differ between compilers, their
/// versions, hosts, or compilations.
constexpr auto kTelling = std::to_array<std::string_view>(
    {// Who compiles, and with what.
     "__CUDACC_*", "__NVCC__", "__NVCOMPILER*", "__NVRTC*", "__EDG*", "__GNUC*", "__GNUG__",
     "__clang*", "__llvm__", "_MSC_*", "__INTEL*", "__VERSION__", "__PGI*", "__IBMCPP__", "__HIP*",
     "__CUDA_ARCH_LIST__", "__CUDA_API_*", "__CUDART_API_*", "CUDART_VERSION", "__CUDA_LIBDEVICE__",
     "__CUDA__", "__CUDABE__", "__CUDA_INTERNAL*", "__CUDA_PREC_*", "__CUDA_FTZ", "__FAST_MATH__",
     "__USE_FAST_MATH__", "__OPTIMIZE*", "__NO_INLINE__", "__STDC_HOSTED__", "__STRICT_ANSI__",
     "__GLIBCXX__", "_LIBCPP_*", "__GXX_*", "__CUDA_RUNTIME_H__", "__DEVICE_LAUNCH_PARAMETERS_H__",
     // On what, for what host.
     "__linux*", "__unix*", "_WIN32", "_WIN64", "__x86_64*", "__aarch64__", "__BYTE_ORDER__",
     "_GNU_SOURCE",
     // When, and where in which file.
     "__FILE__", "__FILE_NAME__", "__BASE_FILE__", "__LINE__", "__COUNTER__", "__INCLUDE_LEVEL__",
     "__DATE__", "__TIME__", "__TIMESTAMP__", "__builtin_FILE*", "__builtin_LINE",
     "__builtin_FUNCTION", "__builtin_COLUMN", "__PRETTY_FUNCTION__", "__FUNCSIG__",
     "__FUNCDNAME__",
     // What it has.
     "__has_*"});

/// Reserved names that conditions may ask for: the target and the language fix them.
constexpr auto kFixed = std::to_array<std::string_view>(
    {"__CUDA_ARCH__", "__CUDACC__", "__cplusplus", "__cpp_*", "ASSAY_*"});
/// Set for sm_90a and not for sm_90, though the code of either runs on the same chip.
constexpr auto kFeatures = std::to_array<std::string_view>(
    {"__CUDA_ARCH_FEAT_*", "__CUDA_ARCH_SPECIFIC__", "__CUDA_ARCH_FAMILY_SPECIFIC__"});

/// Macros of headers that some compilers read unasked and others do not. A source may bring its own
/// where there is none, and nothing else may hang on that.
constexpr auto kOfHeaders =
    std::to_array<std::string_view>({"INFINITY", "NAN", "HUGE_VAL*", "FLT_*", "DBL_*", "INT*_M*",
                                     "UINT*", "M_*", "NULL", "NDEBUG", "EOF", "assert"});

bool Fits(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view rest = pattern.substr(star + 1);
  return name.starts_with(pattern.substr(0, star)) &&
         (rest.empty() ||
          name.find(rest.substr(0, rest.find('*')), star) != std::string_view::npos);
}

template <std::size_t n>
bool FitsAny(std::string_view name, const std::array<std::string_view, n>& patterns) {
  return std::ranges::any_of(patterns,
                             [name](std::string_view pattern) { return Fits(name, pattern); });
}

bool IsReserved(std::string_view name) {
  return name.starts_with("__") ||
         (name.size() > 1 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z');
}

/// Could `##` begin one of the names with this? Tails are harmless without a head.
bool IsHead(std::string_view name) {
  constexpr std::size_t kShortest = 4;  // names of the author's own begin like `s` or `CU`
  if (name.front() != '_' && name.size() < kShortest) return false;
  return std::ranges::any_of(kTelling, [name](std::string_view pattern) {
    const std::string_view fixed = pattern.substr(0, pattern.find('*'));
    return name.size() < fixed.size() && fixed.starts_with(name);
  });
}

bool IsCondition(std::string_view directive) {
  constexpr std::array<std::string_view, 6> kConditions = {"if",   "ifdef",   "ifndef",
                                                           "elif", "elifdef", "elifndef"};
  return std::ranges::find(kConditions, directive) != kConditions.end();
}

class MacroFinder {
 public:
  MacroFinder(std::span<const SourceToken> tokens, bool with_features)
      : tokens_(tokens), with_features_(with_features) {}

  std::vector<MacroUse> Run() {
    pastes_ = std::ranges::any_of(tokens_, [](const SourceToken& token) { return Pastes(token); });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const SourceToken& token = tokens_[i];
      One(token);
      if (token.kind != Kind::kDirective) continue;
      for (const SourceToken& inner : token.inner) One(inner);
      if (IsCondition(token.text)) Condition(i);
    }
    return std::move(found_);
  }

 private:
  static bool Pastes(const SourceToken& token) {
    return (token.kind == Kind::kPunctuation && token.text == "##") ||
           std::ranges::any_of(token.inner, &MacroFinder::Pastes);
  }

  void Add(const SourceToken& token) {
    MacroUse use{token.line, token.text};
    if (std::ranges::find(found_, use) == found_.end()) found_.push_back(std::move(use));
  }

  void One(const SourceToken& token) {
    if (token.kind != Kind::kIdentifier || FitsAny(token.text, kFixed)) return;
    if (FitsAny(token.text, kFeatures)) {
      if (!with_features_) Add(token);
      return;
    }
    if (FitsAny(token.text, kTelling) || (pastes_ && IsHead(token.text))) Add(token);
  }

  void Condition(std::size_t at) {
    for (const SourceToken& token : tokens_[at].inner) {
      if (token.kind != Kind::kIdentifier || FitsAny(token.text, kTelling)) continue;
      if (IsReserved(token.text) && !FitsAny(token.text, kFixed) && !FitsAny(token.text, kFeatures))
        Add(token);
      if (FitsAny(token.text, kOfHeaders) && !OnlyBringsItsOwn(at)) Add(token);
    }
  }

  /// #ifndef X, #define X ..., #endif
  bool OnlyBringsItsOwn(std::size_t at) const {
    if (tokens_[at].text != "ifndef" || at + 2 >= tokens_.size()) return false;
    const SourceToken& define = tokens_[at + 1];
    const SourceToken& end = tokens_[at + 2];
    return define.kind == Kind::kDirective && define.text == "define" && !define.inner.empty() &&
           !tokens_[at].inner.empty() && define.inner[0].text == tokens_[at].inner[0].text &&
           end.kind == Kind::kDirective && end.text == "endif";
  }

  std::span<const SourceToken> tokens_;
  bool with_features_;
  std::vector<MacroUse> found_;
  bool pastes_ = false;
};

}  // namespace

std::vector<MacroUse> CompilerMacros(std::span<const SourceToken> tokens, bool with_features) {
  return MacroFinder(tokens, with_features).Run();
}

}  // namespace assay::policy
