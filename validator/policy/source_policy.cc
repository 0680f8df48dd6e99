// Rules about the source text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "validator/policy/policy.h"
#include "validator/policy/source_macros.h"
#include "validator/policy/source_scan.h"

namespace assay::policy {
namespace {

using Kind = SourceToken::Kind;

/// An identifier that may not be used. `call` rules fire only where it is called, so that a
/// variable may have the name.
struct WordRule {
  std::string_view word;
  bool call;
  std::string_view why;
  std::string_view cure;
};

constexpr std::string_view kTime = "results and speed may not depend on a clock";
constexpr std::string_view kNoTime = "remove it; measure outside of the kernel";
constexpr std::string_view kHeap = "the device heap is shared state that outlives the call";
constexpr std::string_view kNoHeap = "ask for workspace in launch.json, or use shared memory";
constexpr std::string_view kTrap =
    "a trap ends the whole context: it cannot be control flow or error handling";
constexpr std::string_view kNoTrap = "handle every input of the op's domain";
constexpr std::string_view kOutput = "a kernel has no output but its buffers";
constexpr std::string_view kNoOutput = "remove it";
constexpr std::string_view kHost =
    "a candidate has no host code; launches are described in launch.json";
constexpr std::string_view kNoHost =
    "remove it, and add a kernel to launch.json where another launch is needed";

constexpr std::array kWordRules = {
    WordRule{"__nanosleep", false, "sleeping hides races and wastes the device",
             "synchronise with barriers instead"},
    WordRule{"clock", true, kTime, kNoTime},
    WordRule{"clock64", true, kTime, kNoTime},
    WordRule{"__globaltimer", false, kTime, kNoTime},
    WordRule{"malloc", true, kHeap, kNoHeap},
    WordRule{"free", true, kHeap, kNoHeap},
    WordRule{"calloc", true, kHeap, kNoHeap},
    WordRule{"realloc", true, kHeap, kNoHeap},
    WordRule{"printf", true, kOutput, kNoOutput},
    WordRule{"puts", true, kOutput, kNoOutput},
    WordRule{"vprintf", true, kOutput, kNoOutput},
    WordRule{"assert", true, kTrap, kNoTrap},
    WordRule{"__assert_fail", false, kTrap, kNoTrap},
    WordRule{"__assertfail", false, kTrap, kNoTrap},
    WordRule{"__trap", false, kTrap, kNoTrap},
    WordRule{"__builtin_trap", false, kTrap, kNoTrap},
    WordRule{"__brkpt", false, kTrap, kNoTrap},
    WordRule{"__builtin_debugtrap", false, kTrap, kNoTrap},
    WordRule{"__prof_trigger", false, kOutput, kNoOutput},
    WordRule{"__managed__", false, "managed memory is reached from the host",
             "use workspace in launch.json"},
    WordRule{"__attribute__", false,
             "attributes can change linkage, aliasing and what the compiler reports",
             "use the standard forms: __launch_bounds__, __restrict__, __align__, __forceinline__"},
    WordRule{"__attribute", false,
             "attributes can change linkage, aliasing and what the compiler reports",
             "use the standard forms: __launch_bounds__, __restrict__, __align__, __forceinline__"},
    WordRule{"__declspec", false,
             "attributes can change linkage, aliasing and what the compiler reports",
             "use the standard forms: __launch_bounds__, __restrict__, __align__, __forceinline__"},
    WordRule{"source_location", false,
             "what is judged must be what is shipped, and in another file it would differ",
             kNoOutput},
    WordRule{"__weak__", false, "weak symbols may be replaced by others",
             "define the function in kernel.cu"},
    WordRule{"cudaMalloc", true, kHost, kNoHost},
    WordRule{"cudaFree", true, kHost, kNoHost},
    WordRule{"cudaMemcpy", true, kHost, kNoHost},
    WordRule{"cudaMemcpyAsync", true, kHost, kNoHost},
    WordRule{"cudaMemset", true, kHost, kNoHost},
    WordRule{"cudaMemsetAsync", true, kHost, kNoHost},
    WordRule{"cudaDeviceSynchronize", true, kHost, kNoHost},
    WordRule{"cudaLaunchKernel", true, kHost, kNoHost},
    WordRule{"cudaLaunchDevice", true, kHost, kNoHost},
    WordRule{"cudaStreamCreateWithFlags", true, kHost, kNoHost},
};

/// Headers that the toolkit provides for device code. A name that ends in '/' admits the folder.
constexpr std::array<std::string_view, 26> kHeaders = {"cuda_bf16.h",
                                                       "cuda_fp16.h",
                                                       "cuda_fp8.h",
                                                       "cuda_fp6.h",
                                                       "cuda_fp4.h",
                                                       "cuda_pipeline.h",
                                                       "cuda_pipeline_primitives.h",
                                                       "cuda_awbarrier.h",
                                                       "cuda_awbarrier_primitives.h",
                                                       "cuda_runtime.h",
                                                       "cuda.h",
                                                       "mma.h",
                                                       "cooperative_groups.h",
                                                       "cooperative_groups/",
                                                       "cuda/",
                                                       "cub/",
                                                       "math_constants.h",
                                                       "vector_types.h",
                                                       "vector_functions.h",
                                                       "device_functions.h",
                                                       "stdint.h",
                                                       "stddef.h",
                                                       "cstdint",
                                                       "cstddef",
                                                       "math.h",
                                                       "cmath"};
constexpr std::array<std::string_view, 8> kMoreHeaders = {
    "limits", "type_traits", "utility", "float.h", "limits.h", "cfloat", "climits", "array"};

constexpr std::array<std::string_view, 4> kPragmas = {"unroll", "nounroll", "once", "GCC unroll"};

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool AllowedHeader(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find("..") != std::string_view::npos ||
      name.find('\\') != std::string_view::npos || name.ends_with("source_location")) {
    return false;
  }
  const auto admits = [name](std::string_view header) {
    return header.ends_with('/') ? name.starts_with(header) : name == header;
  };
  return std::ranges::any_of(kHeaders, admits) || std::ranges::any_of(kMoreHeaders, admits);
}

bool AllowedPragma(std::string_view text) {
  text = Trim(text);
  return std::ranges::any_of(kPragmas, [text](std::string_view pragma) {
    return text == pragma ||
           (text.starts_with(pragma) && (text[pragma.size()] == ' ' || text[pragma.size()] == '('));
  });
}

/// Tokens as one line, for messages and for names of pragmas.
std::string Line(std::span<const SourceToken> tokens) {
  std::string line;
  for (const SourceToken& token : tokens) {
    if (!line.empty() && token.kind != Kind::kPunctuation) line += ' ';
    line += token.kind == Kind::kString ? '"' + token.text + '"' : token.text;
  }
  return line;
}

class Checker {
 public:
  Checker(std::string_view source, std::string_view arch)
      : tokens_(ScanSource(source)),
        with_features_(!arch.empty() && (arch.back() == 'a' || arch.back() == 'f')) {}

  std::vector<Finding> Run() {
    for (const MacroUse& macro : CompilerMacros(tokens_, with_features_)) {
      Forbid(macro.line, macro.what,
             "what is judged must be what is shipped, and compiled by another compiler, in another "
             "file or at another time the kernel would be another one",
             "write one kernel for all compilers; __CUDA_ARCH__ may be asked for, and what only "
             "sm_90a has under that target");
    }
    Walk(tokens_, false);
    std::ranges::stable_sort(
        findings_, {}, [](const Finding& finding) { return finding.accesses.front().site.line; });
    return std::move(findings_);
  }

 private:
  /// Bodies of macros are code: their words count as called.
  void Walk(const std::vector<SourceToken>& tokens, bool in_macro) {
    const std::vector<SourceToken>* const outer = std::exchange(walked_, &tokens);
    const std::size_t outer_at = at_;
    for (at_ = 0; at_ < tokens.size(); ++at_) {
      const SourceToken& token = tokens[at_];
      if (token.kind == Kind::kDirective) Directive(token);
      if (token.kind == Kind::kIdentifier) Identifier(token, in_macro);
      if (token.kind == Kind::kPunctuation) Punctuation(token);
      if (token.kind == Kind::kProblem) {
        Forbid(token.line, token.text, "compilers read it in different ways",
               "write plain text that reads in one way");
      }
    }
    walked_ = outer;
    at_ = outer_at;
  }

  const SourceToken& Next(std::size_t ahead = 1) const {
    static const SourceToken kEnd{};
    return at_ + ahead < walked_->size() ? (*walked_)[at_ + ahead] : kEnd;
  }
  const SourceToken& Before(std::size_t back = 1) const {
    static const SourceToken kStart{};
    return at_ >= back ? (*walked_)[at_ - back] : kStart;
  }
  bool Is(std::size_t ahead, std::string_view text) const {
    return Next(ahead).text == text && Next(ahead).kind != Kind::kString;
  }

  void Forbid(std::uint32_t line, const std::string& what, std::string_view why,
              std::string_view cure) {
    Finding finding;
    finding.kind = FindingKind::kForbiddenConstruct;
    finding.message = fmt::format("{} may not be used: {}", what, why);
    finding.cause = std::string(cure);
    Access access;
    access.what = "uses " + what;
    access.site.file = "kernel.cu";
    access.site.line = line;
    finding.accesses.push_back(std::move(access));
    findings_.push_back(std::move(finding));
  }

  void Directive(const SourceToken& token) {
    const std::string& word = token.text;
    if (word == "include" || word == "include_next" || word == "import" || word == "embed") {
      const bool named = !token.inner.empty() && token.inner[0].kind == Kind::kHeaderName;
      const std::string quoted = named ? token.inner[0].text : "";
      const std::string name = named ? quoted.substr(1, quoted.size() - 2) : "";
      if (word == "include" && token.inner.size() == 1 && AllowedHeader(name)) return;
      Forbid(token.line, fmt::format("#{} {}", word, Line(token.inner).substr(0, 80)),
             "only headers of the CUDA toolkit for device code are there",
             "include cuda_bf16.h, cuda_fp16.h, cooperative_groups.h, mma.h, cuda/std/... or "
             "nothing; put your own code into kernel.cu");
      return;
    }
    if (word == "line" ||
        (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos)) {
      Forbid(token.line, "#line", "findings are located by line; moving lines would hide them",
             "remove it");
      return;
    }
    if (word == "pragma" && !AllowedPragma(Line(token.inner))) {
      Forbid(token.line, fmt::format("#pragma {}", Line(token.inner).substr(0, 40)),
             "pragmas can silence the compiler or change what it does",
             "only #pragma unroll and nounroll are known");
      return;
    }
    Walk(token.inner, word == "define");
  }

  void Word(const std::string& word, bool called, std::uint32_t line) {
    for (const WordRule& rule : kWordRules) {
      if (rule.word != word || (rule.call && !called)) continue;
      return Forbid(line, word, rule.why, rule.cure);
    }
  }

  void Identifier(const SourceToken& token, bool in_macro) {
    const auto punctuation = [this](std::size_t back, std::string_view text) {
      return Before(back).kind == Kind::kPunctuation && Before(back).text == text;
    };
    const bool member = punctuation(1, ".") || (punctuation(1, ">") && punctuation(2, "-"));
    Word(token.text, in_macro || (Is(1, "(") && !member), token.line);
    // [[gnu::weak]] and the like.
    const bool vendor = (Is(1, ":") && Is(2, ":")) || token.text == "using";
    if (vendor && punctuation(1, "[") && punctuation(2, "[")) {
      Forbid(token.line, fmt::format("[[{}::...]]", token.text),
             "attributes can change linkage, aliasing and what the compiler reports",
             "use the standard forms: __launch_bounds__, __restrict__, __align__, __forceinline__");
    }
    if (token.text == "_Pragma" && Is(1, "(") && !AllowedPragma(Next(2).text)) {
      Forbid(token.line, fmt::format("_Pragma(\"{}\")", Next(2).text.substr(0, 40)),
             "pragmas can silence the compiler or change what it does",
             "only unroll and nounroll are known");
    }
    if (token.text == "reinterpret_cast" && Is(1, "<")) CheckedCast();
    if (token.text == "extern") Extern(token);
  }

  // reinterpret_cast<T*>(0x1234)
  void CheckedCast() {
    std::size_t ahead = 2;
    bool pointer = false;
    while (ahead < 24 && !Is(ahead, "(") && Next(ahead).line != 0)
      pointer = Is(ahead++, "*") || pointer;
    if (pointer && IsAddress(Next(ahead + 1)) && Is(ahead + 2, ")"))
      RawAddress((*walked_)[at_].line, Next(ahead + 1).text);
  }

  void Punctuation(const SourceToken& token) {
    // (T*)0x1234, (const T *) 123
    if (token.text == ")" && at_ >= 2 && Before().text == "*" && IsAddress(Next())) {
      RawAddress(token.line, Next().text);
    }
    if (token.text == "<" && Is(1, "<") && Is(2, "<")) {
      Forbid(token.line, "<<<...>>>", kHost, kNoHost);
      at_ += 2;
    }
  }

  static bool IsAddress(const SourceToken& token) {
    return token.kind == Kind::kNumber && token.text.find_first_of(".") == std::string::npos &&
           token.text.find_first_not_of("0xXuUlL'") != std::string::npos;
  }

  void RawAddress(std::uint32_t line, const std::string& number) {
    Forbid(line, "the raw address " + number,
           "memory is reached through the kernel's arguments alone",
           "take the pointer from the arguments");
  }

  // extern __shared__ is how dynamic shared memory is declared, extern "C" how a name stays
  // unmangled.
  void Extern(const SourceToken& token) {
    std::size_t ahead = 1;
    if (Next(1).kind == Kind::kString) return;
    for (; ahead < 12 && !Is(ahead, ";") && !Is(ahead, "{"); ++ahead) {
      if (Is(ahead, "__shared__")) return;
    }
    Forbid(token.line, "extern",
           "nothing is linked to a candidate: what is not in kernel.cu does not exist",
           "define it in kernel.cu");
  }

  std::vector<SourceToken> tokens_;
  bool with_features_;
  std::vector<Finding> findings_;
  const std::vector<SourceToken>* walked_ = nullptr;  ///< The tokens, or those of one directive.
  std::size_t at_ = 0;                                ///< Where in them.
};

}  // namespace

std::vector<Finding> CheckSourcePolicy(std::string_view source, std::string_view arch) {
  return Checker(source, arch).Run();
}

}  // namespace assay::policy
