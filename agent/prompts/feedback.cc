#include "agent/prompts/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "runs/standing.h"
#include "validator/cases/case.h"
#include "validator/findings/render.h"

namespace assay::prompts {
namespace {

constexpr std::array<std::string_view, 2> kFeedbackModes = {"full", "aggregate"};
constexpr std::size_t kMaxFindings = 3;
constexpr std::size_t kMaxMessage = 2000;
constexpr std::size_t kMaxCase = 1500;
constexpr std::size_t kMaxLine = 240;
constexpr std::size_t kMaxEarlier = 12;
constexpr std::uint32_t kContext = 2;
constexpr std::size_t kMaxExcerptLines = 40;
constexpr std::size_t kMaxStatistics = 6;
constexpr std::string_view kHoldout = "holdout";

// A finding to be told, with the counterexample it belongs to.
struct Told {
  const Finding* finding = nullptr;
  const verdict::Counterexample* counterexample = nullptr;
  bool hidden = false;
  std::vector<std::uint32_t> also;  ///< Other lines that the same is said of.
};

std::vector<Told> Select(const verdict::Verdict& verdict) {
  std::vector<Told> told;
  const auto add = [&](const verdict::Counterexample& counterexample, const Finding& finding,
                       bool hidden) {
    for (Told& known : told) {
      if (known.hidden != hidden || known.finding->kind != finding.kind) continue;
      if (hidden || SameDefect(*known.finding, finding)) return;
      if (finding.message.empty() || finding.message != known.finding->message) continue;
      // One mistake made in many places is one thing to tell.
      if (!finding.accesses.empty()) known.also.push_back(finding.accesses.front().site.line);
      return;
    }
    if (told.size() < kMaxFindings) told.push_back({&finding, &counterexample, hidden, {}});
  };
  // The guilty finding of each counterexample first, then what else was seen there.
  for (const bool guilty : {true, false}) {
    for (const verdict::GateResult& gate : verdict.gates) {
      for (const verdict::Counterexample& counterexample : gate.counterexamples) {
        const bool hidden = gate.gate == kHoldout || counterexample.gate == kHoldout;
        for (std::size_t i = 0; i < counterexample.findings.size(); ++i) {
          if ((i == 0) == guilty) add(counterexample, counterexample.findings[i], hidden);
        }
      }
    }
  }
  return told;
}

std::string Where(const SourceSite& site) {
  if (site.line > 0) return DescribeLine(site);
  return site.instruction.empty() ? "" : "`" + site.instruction + "`";
}

// Compilers print what a kernel's static_assert says. On one line it cannot pass for a heading of
// ours.
std::string Flat(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string Bullet(std::string_view label, const std::string& text) {
  return text.empty() ? "" : fmt::format("- {}: {}\n", label, Flat(Head(text, kMaxMessage)));
}

std::string Number(double value) { return fmt::format("{:.9g}", value); }

std::string AlsoAt(const Told& told) {
  std::set<std::uint32_t> lines(told.also.begin(), told.also.end());
  lines.erase(0);
  constexpr std::size_t kMaxLines = 8;
  std::string text;
  std::size_t count = 0;
  for (const std::uint32_t line : lines) {
    if (++count > kMaxLines) break;
    text += fmt::format("{}line {}", text.empty() ? "" : ", ", line);
  }
  if (lines.size() > kMaxLines) text += fmt::format(" and {} more", lines.size() - kMaxLines);
  return text;
}

std::string Facts(const Told& told) {
  const Finding& finding = *told.finding;
  // What is found in the text alone is no thread's doing.
  const std::string_view family = FamilyOf(finding.kind);
  const bool ran = family != "format" && family != "policy" && family != "compile";
  std::string facts;
  for (const Access& access : finding.accesses) {
    std::string text = ran && access.threads > 0 ? Describe(access.thread) : std::string();
    if (ran && access.threads > 1) text += fmt::format(" and {} more", access.threads - 1);
    if (const std::string where = Where(access.site); !where.empty())
      text += (text.empty() ? "" : ", ") + where;
    if (!access.value.empty()) text += ", value " + access.value;
    facts += Bullet(access.what.empty() ? "by" : access.what, text);
  }
  facts += Bullet("the same at", AlsoAt(told));
  if (finding.memory) {
    const MemoryPlace& memory = *finding.memory;
    std::string text = Describe(memory);
    if (!memory.buffer.empty())
      text += fmt::format(" ({} memory, {} elements)", memory.space, memory.elements);
    if (memory.bytes > 0) text += fmt::format(", access of {} bytes", memory.bytes);
    facts += Bullet("memory", text);
  }
  if (finding.element) {
    const ElementPlace& element = *finding.element;
    std::string index;
    for (const std::int64_t i : element.index)
      index += (index.empty() ? "" : ", ") + std::to_string(i);
    facts += Bullet("element", fmt::format("{}[{}]", element.output, index));
    facts += Bullet("expected", Number(element.expected));
    std::string got = Number(element.got);
    const double off = element.got - element.expected;
    if (std::isfinite(off)) got += fmt::format(" (off by {}", Number(off));
    if (std::isfinite(off) && std::isfinite(element.allowance))
      got += fmt::format(", allowed {}", Number(element.allowance));
    if (std::isfinite(off)) got += ")";
    facts += Bullet("got", got);
  }
  std::size_t statistics = 0;
  for (const Statistic& statistic : finding.statistics) {
    if (!WorthTelling(finding, statistic)) continue;
    if (++statistics > kMaxStatistics) break;
    std::string text = statistic.name == kRaceReach ? std::string() : Number(statistic.value);
    if (statistic.limit != 0) text += fmt::format(" (limit {})", Number(statistic.limit));
    if (!statistic.note.empty()) text += (text.empty() ? "" : ", ") + statistic.note;
    facts += Bullet(statistic.name, text);
  }
  facts += Bullet("missing", finding.missing);
  facts += Bullet("likely cause", finding.cause);
  for (const std::string& line : DescribeOrigins(finding))
    facts += Bullet("origin of the error", line);
  const verdict::Counterexample& counterexample = *told.counterexample;
  if (&finding != &counterexample.findings.front()) return facts;
  facts += Bullet("worst seen, on a larger case", DescribeWorst(counterexample));
  if (counterexample.worst)
    facts += Bullet("likely cause, by larger cases", counterexample.worst->cause);
  return facts;
}

// What to do about findings of a family.
Result<std::string> Advice(const PromptLibrary& prompts, const std::string& family) {
  const std::string name = "repair/" + family + ".md";
  return prompts.Render(prompts.Has(name) ? name : "repair/other.md", {});
}

// What a message has told already, so that findings on one case do not say it all again.
struct Shown {
  const verdict::Counterexample* counterexample = nullptr;
  std::size_t number = 0;
  std::string text;  // a case, an excerpt or a fact
};

// `text`, or a reference to the finding that has it; then remembers it.
std::string Once(std::vector<Shown>& shown, const verdict::Counterexample* counterexample,
                 std::size_t number, std::string text, std::string_view reference) {
  for (const Shown& known : shown) {
    if (known.counterexample == counterexample && known.text == text)
      return fmt::format("{} finding {}.\n\n", reference, known.number);
  }
  shown.push_back({counterexample, number, text});
  return text;
}

// The facts that no finding on the same case has stated.
std::string NewFacts(std::vector<Shown>& shown, const verdict::Counterexample* counterexample,
                     std::size_t number, const std::string& facts) {
  std::string text;
  for (const std::string_view line : SplitLines(facts)) {
    const bool known = std::ranges::any_of(shown, [&](const Shown& fact) {
      return fact.counterexample == counterexample && fact.number != number && fact.text == line;
    });
    if (known) continue;
    shown.push_back({counterexample, number, std::string(line)});
    text += std::string(line) + "\n";
  }
  return text;
}

Result<std::string> RenderFinding(const FeedbackInput& input, const Told& told, std::size_t number,
                                  std::vector<Shown>& shown) {
  const Finding& finding = *told.finding;
  Variables variables = {{"number", std::to_string(number)},
                         {"kind", std::string(Name(finding.kind))},
                         {"message", std::string(MeaningOf(finding.kind))},
                         {"case", ""},
                         {"source", ""},
                         {"facts", ""}};
  if (told.hidden) {
    variables["message"] += ", on a case that is not shown";
    return input.prompts.Render("repair/finding.md", variables);
  }
  if (input.mode == FeedbackMode::kFull) {
    if (!finding.message.empty())
      variables["message"] = Flat(Shorten(finding.message, kMaxMessage));
    if (told.counterexample->probe) {
      const std::string text =
          "Smallest failing case: " +
          Shorten(cases::Describe(told.counterexample->probe->case_, input.instance), kMaxCase) +
          "\n\n";
      variables["case"] =
          Once(shown, told.counterexample, number, text, "Smallest failing case: that of");
    }
    const std::string excerpt = SourceExcerpt(finding, told.counterexample->kernel);
    if (!excerpt.empty()) {
      variables["source"] =
          Once(shown, told.counterexample, number, "In `kernel.cu`:\n\n" + excerpt + "\n",
               "In `kernel.cu`: the lines of");
    }
    variables["facts"] = NewFacts(shown, told.counterexample, number, Facts(told));
  }
  return input.prompts.Render("repair/finding.md", variables);
}

// Templates leave blank lines where a part is empty.
std::string WithoutDoubleBlankLines(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' && result.ends_with("\n\n")) continue;
    result += c;
  }
  return result;
}

// A kernel that is right and too slow has no finding: nothing is wrong with any case.
const verdict::GateResult* TooSlow(const verdict::Verdict& verdict) {
  const auto found = std::ranges::find_if(verdict.gates, [](const verdict::GateResult& gate) {
    return gate.gate == "speed" && gate.status == verdict::GateStatus::kRefuted &&
           gate.counterexamples.empty();
  });
  return found == verdict.gates.end() ? nullptr : &*found;
}

// Times and limits of the workloads, the farthest from its limit first; what bounds occupancy.
std::string Measured(const verdict::Verdict& verdict) {
  std::string measured;
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.gate == "numeric" && gate.cases > 0) {
      measured += fmt::format("- {:.6g} emulated thread-level instructions a case, over {} cases\n",
                              static_cast<double>(gate.steps) / static_cast<double>(gate.cases),
                              gate.cases);
    }
    if (gate.gate == "compile") {
      for (const Statistic& statistic : gate.statistics) {
        measured += fmt::format("- {}: {} {}, at most {}\n", statistic.note,
                                Number(statistic.value), statistic.name, Number(statistic.limit));
      }
    }
    if (gate.gate != "speed" || gate.statistics.empty()) continue;
    const Statistic& mean = gate.statistics.front();
    measured += fmt::format(
        "- {} times the limit, {}{}\n", Number(mean.value), mean.note,
        mean.limit > 0 ? fmt::format("; the op asks for at most {}", Number(mean.limit)) : "");
    std::vector<Statistic> workloads(gate.statistics.begin() + 1, gate.statistics.end());
    std::ranges::stable_sort(workloads, {}, &Statistic::value);
    for (const Statistic& workload : workloads) {
      measured +=
          fmt::format("- {}: {:.1f} % {}\n", workload.name, 100 * workload.value, workload.note);
    }
  }
  return measured.empty() ? "nothing yet" : measured;
}

// Why a verdict without findings is what it is: the judge could not decide.
std::string WhyUndecided(const FeedbackInput& input) {
  if (input.mode == FeedbackMode::kAggregate) return "A gate could not reach a conclusion.";
  for (const verdict::GateResult& gate : input.last.verdict->gates) {
    if (gate.status == verdict::GateStatus::kInconclusive && gate.gate != kHoldout &&
        !gate.reason.empty()) {
      return "Gate " + gate.gate + ": " + gate.reason;
    }
  }
  return input.last.verdict->reason;
}

// All findings that are told, then advice once for each family.
Result<std::string> RenderFindings(const FeedbackInput& input) {
  std::string text;
  std::size_t number = 0;
  std::vector<Shown> shown;
  for (const Told& told : Select(*input.last.verdict)) {
    ASSAY_TRY(const std::string finding, RenderFinding(input, told, ++number, shown));
    text += finding + "\n";
  }
  std::vector<std::string> families = FamiliesOf(*input.last.verdict);
  if (const verdict::GateResult* const slow = TooSlow(*input.last.verdict);
      number == 0 && slow != nullptr) {
    text = "Every result is right, but the kernel is too slow.\n\n";
    if (input.mode == FeedbackMode::kFull) {
      text += fmt::format("{}\n\n{}\n", Flat(Shorten(slow->reason, kMaxMessage)),
                          Measured(*input.last.verdict));
    }
    families = {"speed"};
  } else if (number == 0) {
    text = Flat(Shorten(WhyUndecided(input), kMaxMessage)) + "\n\n";
    families = {"undecided"};
  }
  for (const std::string& family : families) {
    ASSAY_TRY(const std::string advice, Advice(input.prompts, family));
    text += advice + "\n";
  }
  return WithoutDoubleBlankLines(text);
}

std::string Passed(const verdict::Verdict& verdict) {
  std::string passed;
  std::string open;
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.status == verdict::GateStatus::kPassed) {
      passed +=
          "- " + gate.gate + (gate.cases > 0 ? fmt::format(", {} cases", gate.cases) : "") + "\n";
    } else if (gate.status != verdict::GateStatus::kRefuted) {
      open += (open.empty() ? "" : ", ") + gate.gate;
    }
  }
  if (passed.empty()) passed = "Nothing yet.\n";
  return open.empty() ? passed : passed + "Not decided: " + open + ".\n";
}

std::string Earlier(const FeedbackInput& input) {
  std::string text;
  std::size_t left_out =
      input.earlier.size() > kMaxEarlier ? input.earlier.size() - kMaxEarlier : 0;
  if (left_out > 0) text += fmt::format("- ({} older ones left out)\n", left_out);
  for (std::size_t i = left_out; i < input.earlier.size(); ++i) {
    text += "- " + OneLine(input.earlier[i], input.mode) + "\n";
  }
  return text.empty() ? "none\n" : text;
}

std::string Trimmed(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::string_view Name(FeedbackMode mode) { return kFeedbackModes[static_cast<std::size_t>(mode)]; }

std::optional<FeedbackMode> ParseFeedbackMode(std::string_view name) {
  for (std::size_t i = 0; i < kFeedbackModes.size(); ++i) {
    if (kFeedbackModes[i] == name) return static_cast<FeedbackMode>(i);
  }
  return std::nullopt;
}

std::string OneLine(const PastAttempt& attempt, FeedbackMode mode) {
  const verdict::Verdict& verdict = *attempt.verdict;
  std::string text = fmt::format("attempt {}: {}", attempt.number, Name(verdict.outcome));
  if (const double cost = runs::CostOfRunning(verdict);
      verdict.outcome == verdict::Outcome::kAccepted && cost > 0)
    text += fmt::format(", cost {:.6g}", cost);
  const std::vector<Told> told = Select(verdict);
  if (!told.empty()) {
    const Finding& finding = *told.front().finding;
    text += fmt::format(", {}", Name(finding.kind));
    const bool open = !told.front().hidden && mode == FeedbackMode::kFull;
    text += ": " + (open && !finding.message.empty() ? finding.message
                                                     : std::string(MeaningOf(finding.kind)));
  }
  return Head(Flat(std::move(text)), kMaxLine);
}

std::vector<std::string> FamiliesOf(const verdict::Verdict& verdict) {
  std::vector<std::string> families;
  for (const Told& told : Select(verdict)) {
    std::string family(told.hidden ? kHoldout : FamilyOf(told.finding->kind));
    if (std::ranges::find(families, family) == families.end())
      families.push_back(std::move(family));
  }
  return families;
}

std::string SourceExcerpt(const Finding& finding, std::string_view kernel) {
  const std::vector<std::string_view> lines = SplitLines(kernel);
  std::map<std::uint32_t, std::string> shown;  // line -> note of what happens there
  const auto show = [&](std::uint32_t line, const std::string& what) {
    if (line == 0 || line > lines.size()) return;
    const std::uint32_t first = line > kContext ? line - kContext : 1;
    const std::uint32_t last =
        static_cast<std::uint32_t>(std::min<std::size_t>(line + kContext, lines.size()));
    for (std::uint32_t i = first; i <= last; ++i) shown.try_emplace(i);
    std::string& note = shown[line];
    if (note.find(what) == std::string::npos) note += (note.empty() ? "" : "; ") + what;
  };
  for (const Access& access : finding.accesses) {
    const std::string what = access.what.empty() ? "here" : access.what;
    show(access.site.line, what);
    for (const std::uint32_t line : access.site.called_at)
      show(line, "calls what does the " + what);
  }
  constexpr double kWorthShowing = 0.1;
  for (const ErrorShare& share : finding.origins) {
    if (share.share >= kWorthShowing)
      show(share.site.line, fmt::format("{:.0f} % of the error", 100 * share.share));
  }
  if (shown.empty()) return {};
  std::string text = "```text\n";
  std::uint32_t previous = shown.begin()->first - 1;
  std::size_t count = 0;
  for (const auto& [line, note] : shown) {
    if (++count > kMaxExcerptLines) break;
    if (line != previous + 1) text += "       ...\n";
    previous = line;
    text += fmt::format("{} {:>4} | {}", note.empty() ? " " : ">", line,
                        Head(lines[line - 1], kMaxLine));
    if (!note.empty()) text += "    <-- " + note;
    text += "\n";
  }
  return text + "```\n";
}

Result<std::string> RepairPrompt(const FeedbackInput& input) {
  const verdict::Verdict& verdict = *input.last.verdict;
  ASSAY_TRY(const std::string findings, RenderFindings(input));
  std::string gates_text;
  for (const verdict::GateResult& gate : verdict.gates) {
    if (gate.status == verdict::GateStatus::kRefuted)
      gates_text += (gates_text.empty() ? "" : ", ") + gate.gate;
  }
  const std::string headline =
      verdict.outcome == verdict::Outcome::kRefuted
          ? fmt::format("Attempt {} was refuted (gate: {}).", input.last.number,
                        gates_text.empty() ? "none" : gates_text)
          : fmt::format("Attempt {} could be neither accepted nor refuted.", input.last.number);
  return input.prompts.Render("repair.md", {{"headline", headline},
                                            {"findings", Trimmed(findings)},
                                            {"passed", Trimmed(Passed(verdict))},
                                            {"earlier", Trimmed(Earlier(input))}});
}

Result<std::string> RestartPrompt(const FeedbackInput& input) {
  ASSAY_TRY(const std::string findings, RenderFindings(input));
  return input.prompts.Render(
      "restart.md", {{"earlier", Trimmed(Earlier(input))}, {"findings", Trimmed(findings)}});
}

Result<std::string> OptimizePrompt(const FeedbackInput& input) {
  return input.prompts.Render("optimize.md", {{"measured", Trimmed(Measured(*input.last.verdict))},
                                              {"earlier", Trimmed(Earlier(input))}});
}

}  // namespace assay::prompts
