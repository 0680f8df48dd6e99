#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/diff.h"
#include "report/sections.h"
#include "report/source.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostAttempts = 120;
constexpr std::size_t kMostReason = 500;
constexpr std::size_t kMostCards = 40;

std::string_view MarkOf(verdict::GateStatus status) {
  switch (status) {
    case verdict::GateStatus::kPassed:
      return "✓";
    case verdict::GateStatus::kRefuted:
      return "✕";
    case verdict::GateStatus::kInconclusive:
      return "?";
    case verdict::GateStatus::kSkipped:
      return "–";
  }
  return "";
}

Html GateStrip(const verdict::Verdict& verdict) {
  Html items;
  for (const verdict::GateResult& gate : verdict.gates) {
    std::string words = Spaced(verdict::Name(gate.status));
    if (gate.cases > 0) words += ", " + Plural(gate.cases, "case");
    if (!gate.reason.empty()) words += ": " + Head(gate.reason, 200);
    items += E("li",
               {{"class", std::string(verdict::Name(gate.status))},
                {"data-mark", std::string(MarkOf(gate.status))},
                {"title", words}},
               Head(gate.gate, 40));
  }
  return items.empty() ? items : E("ul", {{"class", "gates"}}, items);
}

std::string FactsOf(const AttemptView& attempt) {
  std::string facts = attempt.why;
  const auto add = [&facts](const std::string& more) { facts += " · " + more; };
  if (attempt.usage.output_tokens > 0) {
    add(fmt::format("{} tokens written, {} read{}", Count(attempt.usage.output_tokens),
                    Count(attempt.usage.input_tokens),
                    attempt.usage.estimated ? " (estimated)" : ""));
  }
  if (attempt.waited && *attempt.waited >= 0.05) add("asked for " + Duration(*attempt.waited));
  if (attempt.judged) add("judged in " + Duration(*attempt.judged));
  return facts;
}

// What changed since the attempt that it repairs.
Html Changes(const RunView& run, const AttemptView& attempt, Ration& ration) {
  const AttemptView* const base = attempt.base > 0 ? run.Find(attempt.base) : nullptr;
  if (base == nullptr || !base->kernel || !attempt.kernel) return {};
  const std::vector<Change> changes = Diff(*base->kernel, *attempt.kernel);
  const Counts counts = CountsOf(changes);
  const bool plan_changed = base->launch != attempt.launch;
  Html summary = Html::Text(fmt::format("What changed since attempt {} ", base->number));
  summary += E("span", {{"class", "plus"}}, fmt::format("+{} ", counts.added));
  summary += E("span", {{"class", "minus"}}, fmt::format("−{}", counts.removed));
  if (plan_changed) summary += E("span", {{"class", "soft"}}, ", and the launch plan");
  Html content = ration.Take(DiffListing(changes), "The difference is");
  if (plan_changed && base->launch && attempt.launch) {
    content += E("p", {{"class", "small soft"}}, "launch.json");
    content += ration.Take(DiffListing(Diff(*base->launch, *attempt.launch)), "The difference is");
  }
  return Folded(summary, content, counts.added + counts.removed <= 12 && !plan_changed);
}

Html Cards(const RunView& run, const AttemptView& attempt, Ration& ration, std::size_t& cards) {
  Html html;
  std::size_t number = 0, left_out = 0;
  for (const verdict::Counterexample* const counterexample : attempt.verdict->Counterexamples()) {
    ++number;
    if (cards >= kMostCards) {
      ++left_out;
      continue;
    }
    ++cards;
    const std::string file =
        number == 1 ? "counterexample.json" : fmt::format("counterexample-{}.json", number);
    html += ration.Take(CounterexampleCard(*counterexample, counterexample->kernel,
                                           fmt::format("assay replay {}/attempts/{}/{}", run.name,
                                                       attempt.number, file)),
                        "A counterexample is");
  }
  if (left_out > 0)
    html += E("p", {{"class", "cut"}}, Plural(left_out, "counterexample"),
              " left out here, to keep this page small.");
  return html;
}

Html Item(const RunView& run, const AttemptView& attempt, Ration& ration, std::size_t& cards) {
  const std::string gate = attempt.verdict ? EndingGate(*attempt.verdict) : std::string();
  Html html = E("div", {{"class", "top"}}, E("h3", {}, fmt::format("Attempt {}", attempt.number)),
                StateTag(Spaced(attempt.state) + (gate.empty() ? "" : ": " + Head(gate, 40))));
  html += E("p", {{"class", "facts"}}, FactsOf(attempt));
  if (attempt.verdict) {
    html += GateStrip(*attempt.verdict);
    html += Cards(run, attempt, ration, cards);
    if (attempt.verdict->Counterexamples().empty() && attempt.state != "accepted")
      html += E("p", {}, Head(attempt.verdict->reason, kMostReason));
    if (!attempt.vetted.empty())
      html += E("p", {}, "Written out as ", E("code", {}, Head(attempt.vetted, 200)), ".");
    const bool is_result = run.result && &run.attempts[*run.result] == &attempt;
    if (const Html plots = is_result ? Html() : ErrorPlots(*attempt.verdict); !plots.empty()) {
      html += Folded(Html::Text("How its errors lie"), ration.Take(plots, "Its plots are"),
                     gate == "precision");
    }
  }
  html += Changes(run, attempt, ration);
  return E("li",
           {{"class", std::string(ToneOf(attempt.state).text)},
            {"id", fmt::format("attempt-{}", attempt.number)}},
           html);
}

}  // namespace

Html AttemptsSection(const RunView& run, Ration& ration) {
  Html items;
  std::size_t cards = 0;
  for (std::size_t i = 0; i < run.attempts.size() && i < kMostAttempts; ++i)
    items += Item(run, run.attempts[i], ration, cards);
  Html html = E("h2", {{"id", "attempts"}}, "Attempts");
  if (run.attempts.empty()) html += E("p", {}, "None was made.");
  html += E("ol", {{"class", "timeline"}}, items);
  if (run.attempts.size() > kMostAttempts) {
    html += E("p", {{"class", "cut"}}, Plural(run.attempts.size() - kMostAttempts, "later attempt"),
              " left out here; the result below is of all of them.");
  }
  return E("section", {}, html);
}

}  // namespace assay::report
