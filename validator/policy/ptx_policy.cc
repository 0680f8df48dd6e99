// Rules about the PTX: what inline assembly, macros and headers turned into.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "validator/policy/policy.h"

namespace assay::policy {
namespace {

enum class Where : std::uint8_t {
  kOpcode,   ///< The instruction's name up to the first dot.
  kOperand,  ///< A word anywhere among the operands.
  kCallee,   ///< The function of a call, as a whole or as a prefix that ends in '*'.
  kLine,     ///< A directive: the first word of a line, or the second after .visible and the like.
};

struct PtxRule {
  Where where;
  std::string_view word;
  std::string_view what;
  std::string_view why;
  std::string_view cure;
};

constexpr std::string_view kTime = "results and speed may not depend on a clock";
constexpr std::string_view kNoTime = "remove it; measure outside of the kernel";
constexpr std::string_view kTrap =
    "a trap ends the whole context: it cannot be control flow or error handling";
constexpr std::string_view kNoTrap = "handle every input of the op's domain";
constexpr std::string_view kHeap = "the device heap is shared state that outlives the call";
constexpr std::string_view kNoHeap = "ask for workspace in launch.json, or use shared memory";
constexpr std::string_view kRemove = "remove it";

constexpr std::array kRules = {
    PtxRule{Where::kOpcode, "nanosleep", "nanosleep", "sleeping hides races and wastes the device",
            "synchronise with barriers instead"},
    PtxRule{Where::kOpcode, "trap", "trap", kTrap, kNoTrap},
    PtxRule{Where::kOpcode, "brkpt", "brkpt", kTrap, kNoTrap},
    PtxRule{Where::kOpcode, "pmevent", "pmevent", "a kernel has no output but its buffers",
            kRemove},
    PtxRule{Where::kOpcode, "discard", "discard",
            "it makes memory undefined behind the checker's back", kRemove},
    PtxRule{Where::kOperand, "%clock", "%clock", kTime, kNoTime},
    PtxRule{Where::kOperand, "%clock_hi", "%clock_hi", kTime, kNoTime},
    PtxRule{Where::kOperand, "%clock64", "%clock64", kTime, kNoTime},
    PtxRule{Where::kOperand, "%globaltimer", "%globaltimer", kTime, kNoTime},
    PtxRule{Where::kOperand, "%globaltimer_lo", "%globaltimer_lo", kTime, kNoTime},
    PtxRule{Where::kOperand, "%globaltimer_hi", "%globaltimer_hi", kTime, kNoTime},
    PtxRule{Where::kOperand, "%gridid", "%gridid",
            "it tells calls apart: results may depend on arguments alone", kRemove},
    PtxRule{Where::kCallee, "vprintf", "printf", "a kernel has no output but its buffers", kRemove},
    PtxRule{Where::kCallee, "malloc", "malloc", kHeap, kNoHeap},
    PtxRule{Where::kCallee, "free", "free", kHeap, kNoHeap},
    PtxRule{Where::kCallee, "__assertfail", "assert", kTrap, kNoTrap},
    PtxRule{Where::kCallee, "cuda*", "the device runtime",
            "a candidate launches through launch.json alone", kRemove},
    PtxRule{Where::kLine, ".weak", "a weak symbol", "weak symbols may be replaced by others",
            "define it in kernel.cu"},
};

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    if (!IsWord(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && IsWord(line[end])) ++end;
    words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

std::uint32_t Number(std::string_view word) {
  std::uint32_t value = 0;
  for (const char c : word.substr(0, 9)) {
    if (c < '0' || c > '9') return 0;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return value;
}

class Checker {
 public:
  explicit Checker(std::string_view ptx) : ptx_(ptx) {}

  std::vector<Finding> Run() {
    FindOwnFile();
    std::uint32_t number = 0;
    bool comment = false;
    for (std::size_t start = 0; start < ptx_.size();) {
      const std::size_t end = std::min(ptx_.find('\n', start), ptx_.size());
      ++number;
      Line(WithoutComments(ptx_.substr(start, end - start), comment), number);
      start = end + 1;
    }
    return std::move(findings_);
  }

 private:
  // The table of files may stand behind the code.
  void FindOwnFile() {
    for (std::size_t at = ptx_.find(".file"); at != std::string_view::npos;
         at = ptx_.find(".file", at + 1)) {
      const std::string_view line = ptx_.substr(at, ptx_.find('\n', at) - at);
      const std::vector<std::string_view> words = Words(line);
      if (words.size() > 1 && line.find("kernel.cu\"") != std::string_view::npos)
        own_file_ = Number(words[1]);
    }
  }

  static std::string WithoutComments(std::string_view line, bool& comment) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (comment) {
        if (line.substr(i, 2) == "*/") {
          comment = false;
          ++i;
        }
      } else if (line.substr(i, 2) == "//") {
        break;
      } else if (line.substr(i, 2) == "/*") {
        comment = true;
        ++i;
      } else {
        text.push_back(line[i]);
      }
    }
    return text;
  }

  // .loc FILE LINE COLUMN[, function_name LABEL, inlined_at FILE LINE COLUMN]
  void Location(const std::vector<std::string_view>& words) {
    innermost_file_ = file_ = words.size() > 1 ? Number(words[1]) : 0;
    line_ = words.size() > 2 ? Number(words[2]) : 0;
    const auto inlined = std::ranges::find(words, std::string_view("inlined_at"));
    if (words.end() - inlined > 2) {
      file_ = Number(*(inlined + 1));
      line_ = Number(*(inlined + 2));
    }
  }

  void Line(const std::string& text, std::uint32_t number) {
    const std::vector<std::string_view> words = Words(text);
    if (words.empty()) return;
    if (words[0] == ".loc") return Location(words);
    if (words[0].front() == '.') {
      for (const PtxRule& rule : kRules) {
        if (rule.where == Where::kLine && std::ranges::find(words, rule.word) != words.end())
          Forbid(rule, text, number);
      }
      return;
    }
    // Several instructions may share a line in inline assembly.
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find_first_of(";{}", start), text.size());
      Statement(std::string_view(text).substr(start, end - start), number);
      start = end + 1;
    }
  }

  void Statement(std::string_view text, std::uint32_t number) {
    std::vector<std::string_view> words = Words(text);
    if (!words.empty() && text.find('@') != std::string_view::npos) words.erase(words.begin());
    if (words.empty()) return;
    const std::string_view opcode = words[0].substr(0, words[0].find('.'));
    for (const PtxRule& rule : kRules) {
      bool fires = false;
      switch (rule.where) {
        case Where::kOpcode:
          fires = opcode == rule.word;
          break;
        case Where::kOperand:
          fires = std::ranges::find(words, rule.word) != words.end();
          break;
        case Where::kCallee:
          fires = opcode == "call" && Calls(words, rule.word);
          break;
        case Where::kLine:
          break;
      }
      // The toolkit's headers check their own conditions (grid.sync() outside of a cooperative
      // launch); a trap that runs is a finding of the memory gate. `#line` is refused in sources.
      const bool of_header = innermost_file_ != 0 && innermost_file_ != own_file_;
      if (rule.word == "trap" && of_header) continue;
      if (fires) Forbid(rule, std::string(text), number);
    }
    if ((opcode == "ld" || opcode == "st" || opcode == "atom" || opcode == "red" ||
         opcode == "cp") &&
        LiteralAddress(text)) {
      Forbid({Where::kOpcode, "", "a raw address",
              "memory is reached through the kernel's arguments alone",
              "take the pointer from the arguments"},
             std::string(text), number);
    }
  }

  // Results are often renamed by the compiler; the callee's own name stays.
  static bool Calls(const std::vector<std::string_view>& words, std::string_view callee) {
    return std::ranges::any_of(words.begin() + 1, words.end(), [callee](std::string_view word) {
      return callee.ends_with('*') ? word.starts_with(callee.substr(0, callee.size() - 1))
                                   : word == callee;
    });
  }

  // [12345] or [0x7f00...]: an address that no argument gave. Shared and local memory start at 0
  // and have their own bounds.
  static bool LiteralAddress(std::string_view text) {
    if (text.find(".shared") != std::string_view::npos ||
        text.find(".local") != std::string_view::npos)
      return false;
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos) return false;
    const std::size_t first = text.find_first_not_of(" \t", open + 1);
    return first != std::string_view::npos && text[first] >= '0' && text[first] <= '9';
  }

  void Forbid(const PtxRule& rule, const std::string& text, std::uint32_t number) {
    const std::uint32_t line = file_ == own_file_ ? line_ : 0;
    const bool known = std::ranges::any_of(findings_, [&](const Finding& finding) {
      return finding.accesses.front().what == fmt::format("uses {}", rule.what) &&
             finding.accesses.front().site.line == line;
    });
    if (known) return;
    Finding finding;
    finding.kind = FindingKind::kForbiddenConstruct;
    finding.message = fmt::format("{} may not be used: {}", rule.what, rule.why);
    finding.cause = std::string(rule.cure);
    Access access;
    access.what = fmt::format("uses {}", rule.what);
    access.site.file = line > 0 ? "kernel.cu" : "";
    access.site.line = line;
    access.site.ptx_line = number;
    const std::size_t first = text.find_first_not_of(" \t");
    access.site.instruction = first == std::string::npos ? "" : text.substr(first);
    finding.accesses.push_back(std::move(access));
    findings_.push_back(std::move(finding));
  }

  std::string_view ptx_;
  std::vector<Finding> findings_;
  std::uint32_t file_ = 0;
  std::uint32_t innermost_file_ = 0;  ///< Where the text stands that was inlined.
  std::uint32_t line_ = 0;
  std::uint32_t own_file_ = 1;
};

}  // namespace

std::vector<Finding> CheckPtxPolicy(std::string_view ptx) { return Checker(ptx).Run(); }

}  // namespace assay::policy
