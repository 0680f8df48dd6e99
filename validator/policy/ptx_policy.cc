// Rules about the PTX: what inline assembly, macros and headers turned into. Rows over what is known
// of the parsed program (validator/ptx/facts).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "validator/policy/policy.h"

namespace assay::policy {
namespace {

using Kind = facts::Use::Kind;

struct PtxRule {
  Kind kind;
  std::string_view word;  ///< One that ends in '*' is a prefix.
  std::string_view what;
  std::string_view why;
  std::string_view cure;
  /// The toolkit's headers check their own conditions (grid.sync() outside of a cooperative launch)
  /// and wait with patience (cuda::barrier). Where a line stands can be forged, so this only leaves
  /// it to the emulator: a trap that runs is a finding of the memory gate, and so is a clock that
  /// reaches a result.
  bool headers_may = false;
};

constexpr std::string_view kTime = "results and speed may not depend on a clock";
constexpr std::string_view kNoTime = "remove it; measure outside of the kernel";
constexpr std::string_view kTrap =
    "a trap ends the whole context: it cannot be control flow or error handling";
constexpr std::string_view kNoTrap = "handle every input of the op's domain";
constexpr std::string_view kHeap = "the device heap is shared state that outlives the call";
constexpr std::string_view kNoHeap = "ask for workspace in launch.json, or use shared memory";
constexpr std::string_view kNoOutput = "a kernel has no output but its buffers";
constexpr std::string_view kRemove = "remove it";

constexpr std::array kRules = {
    PtxRule{Kind::kOpcode, "nanosleep", "nanosleep", "sleeping hides races and wastes the device",
            "synchronise with barriers instead", true},
    PtxRule{Kind::kOpcode, "trap", "trap", kTrap, kNoTrap, true},
    PtxRule{Kind::kOpcode, "brkpt", "brkpt", kTrap, kNoTrap},
    PtxRule{Kind::kOpcode, "pmevent", "pmevent", kNoOutput, kRemove},
    PtxRule{Kind::kOpcode, "discard", "discard",
            "it makes memory undefined behind the checker's back", kRemove},
    PtxRule{Kind::kSpecialRegister, "%clock", "%clock", kTime, kNoTime},
    PtxRule{Kind::kSpecialRegister, "%clock_hi", "%clock_hi", kTime, kNoTime},
    PtxRule{Kind::kSpecialRegister, "%clock64", "%clock64", kTime, kNoTime},
    PtxRule{Kind::kSpecialRegister, "%globaltimer", "%globaltimer", kTime, kNoTime, true},
    PtxRule{Kind::kSpecialRegister, "%globaltimer_lo", "%globaltimer_lo", kTime, kNoTime},
    PtxRule{Kind::kSpecialRegister, "%globaltimer_hi", "%globaltimer_hi", kTime, kNoTime},
    PtxRule{Kind::kSpecialRegister, "%gridid", "%gridid",
            "it tells calls apart: results may depend on arguments alone", kRemove},
    PtxRule{Kind::kCallee, "vprintf", "printf", kNoOutput, kRemove},
    PtxRule{Kind::kCallee, "malloc", "malloc", kHeap, kNoHeap},
    PtxRule{Kind::kCallee, "free", "free", kHeap, kNoHeap},
    PtxRule{Kind::kCallee, "__assertfail", "assert", kTrap, kNoTrap},
    PtxRule{Kind::kCallee, "cuda*", "the device runtime",
            "a candidate launches through launch.json alone", kRemove},
    PtxRule{Kind::kLiteralAddress, "*", "a raw address",
            "memory is reached through the kernel's arguments alone",
            "take the pointer from the arguments"},
};

constexpr std::string_view kNoState = "ask for workspace in launch.json";

bool Matches(const PtxRule& rule, const facts::Use& use) {
  if (rule.kind != use.kind) return false;
  return rule.word.ends_with('*') ? use.name.starts_with(rule.word.substr(0, rule.word.size() - 1))
                                  : use.name == rule.word;
}

Finding Forbid(std::string message, std::string what, std::string_view cure,
               const facts::Site& site) {
  Finding finding;
  finding.kind = FindingKind::kForbiddenConstruct;
  finding.message = std::move(message);
  finding.cause = std::string(cure);
  Access access;
  access.what = std::move(what);
  access.site.file = site.own_line > 0 ? "kernel.cu" : "";
  access.site.line = site.own_line;
  access.site.ptx_line = site.ptx_line;
  access.site.instruction = site.instruction;
  finding.accesses.push_back(std::move(access));
  return finding;
}

void CheckUses(const facts::Facts& program, std::vector<Finding>& findings) {
  for (const facts::Use& use : program.uses) {
    for (const PtxRule& rule : kRules) {
      if (!Matches(rule, use)) continue;
      for (const facts::Site& site : use.sites) {
        if (rule.headers_may && site.in_header) continue;
        findings.push_back(Forbid(fmt::format("{} may not be used: {}", rule.what, rule.why),
                                  fmt::format("uses {}", rule.what), rule.cure, site));
      }
    }
  }
}

// The module is closed: nothing is linked to it, so what it defines itself is what runs, whatever
// its linkage; instantiations of templates and inline functions are weak. What it does not define
// comes from somewhere else.
void CheckLinkage(const facts::Facts& program, std::vector<Finding>& findings) {
  const auto refuse = [&](bool weak, const std::string& name, std::uint32_t ptx_line) {
    const std::string what = weak ? "a weak symbol" : "an external variable";
    findings.push_back(
        Forbid(fmt::format("{} may not be used: '{}' is not defined in kernel.cu", what, name),
               fmt::format("uses {}", what), "define it in kernel.cu",
               {.function = {}, .instruction = {}, .ptx_line = ptx_line, .file = {}, .line = 0}));
  };
  for (const facts::Function& function : program.functions) {
    if (function.is_weak && !function.is_defined) refuse(true, function.name, function.ptx_line);
  }
  for (const facts::Variable& variable : program.variables) {
    if (variable.is_extern) refuse(variable.is_weak, variable.shown, variable.ptx_line);
  }
}

void CheckState(const facts::Facts& program, bool unknown_too, std::vector<Finding>& findings) {
  for (const facts::Variable& variable : program.variables) {
    const bool seen = variable.written == facts::Answer::kYes;
    if (!seen && !(unknown_too && MayBe(variable.written))) continue;
    const facts::Site at = variable.writes.empty() ? facts::Site{.ptx_line = variable.ptx_line}
                                                   : variable.writes.front();
    findings.push_back(Forbid(
        fmt::format("'{}' may not be written{}: a variable outlives the call, and results may not "
                    "depend on the calls before",
                    variable.shown, seen ? "" : ", as it may be through its address"),
        fmt::format("{} '{}'", seen ? "writes" : "lets out the address of", variable.shown),
        kNoState, at));
  }
}

}  // namespace

std::vector<Finding> CheckPtxPolicy(const facts::Facts& program) {
  std::vector<Finding> findings;
  CheckUses(program, findings);
  CheckLinkage(program, findings);
  // What printf and its like might do to the strings that they get is not worth telling beside them.
  // An inconsistent module is refused, not searched for state.
  if (program.fault.empty()) CheckState(program, findings.empty(), findings);
  std::ranges::stable_sort(
      findings, {}, [](const Finding& finding) { return finding.accesses.front().site.ptx_line; });
  std::vector<Finding> distinct;
  for (Finding& finding : findings) {
    const Access& access = finding.accesses.front();
    const bool known = std::ranges::any_of(distinct, [&](const Finding& other) {
      return other.accesses.front().what == access.what &&
             other.accesses.front().site.line == access.site.line;
    });
    if (!known) distinct.push_back(std::move(finding));
  }
  return distinct;
}

}  // namespace assay::policy
