#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/text.h"
#include "report/sections.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostReason = 600;

std::string BindingOf(const RunView& run) {
  std::string text;
  const auto binding = run.request.find("binding");
  if (binding == run.request.end() || !binding->is_object()) return text;
  for (const auto& [variable, dtype] : binding->items()) {
    if (!dtype.is_string()) continue;
    text += (text.empty() ? "" : ", ") + variable + " = " + dtype.get<std::string>();
  }
  return text;
}

// What an acceptance is worth: what was examined, what was left out.
std::string Examined(const verdict::Verdict& verdict) {
  const verdict::Ledger& ledger = verdict.ledger;
  if (ledger.planned() == 0) return {};
  std::string text = fmt::format("{} of {} planned cases were examined", Count(ledger.examined()),
                                 Count(ledger.planned()));
  text += ledger.left_out() > 0 ? fmt::format(", {} left out", Count(ledger.left_out())) : "";
  text += ledger.unreached().empty() ? "; every side of every branch was reached."
                                     : fmt::format("; {} of branches never reached.",
                                                   Plural(ledger.unreached().size(), "side"));
  return text;
}

// Gates of one campaign read the same runs and count them each: those count once.
std::uint64_t StepsOf(const RunView& run) {
  std::uint64_t steps = 0;
  for (const AttemptView& attempt : run.attempts) {
    if (!attempt.verdict) continue;
    std::set<std::pair<std::uint64_t, std::uint64_t>> counted;
    for (const verdict::GateResult& gate : attempt.verdict->gates) {
      if (counted.emplace(gate.cases, gate.steps).second) steps += gate.steps;
    }
  }
  return steps;
}

Html VerdictPanel(const RunView& run) {
  const AttemptView* const result = run.result ? &run.attempts[*run.result] : nullptr;
  const std::string outcome = run.stopped ? std::string(verdict::Name(run.stopped->outcome))
                              : result != nullptr && result->state == "accepted" ? "accepted"
                                                                                 : "not finished";
  Html panel = E("strong", {}, Spaced(outcome));
  const bool accepted = result != nullptr && result->state == "accepted";
  // Of an accepted attempt more is said below.
  if (run.stopped && !run.stopped->reason.empty() && !(accepted && outcome == "accepted"))
    panel += E("p", {}, Head(run.stopped->reason, kMostReason));
  if (!run.stopped)
    panel += E("p", {}, "The run goes on, or was interrupted: this is as far as it has come.");
  if (result != nullptr && result->verdict) {
    if (accepted) {
      const std::string examined = Examined(*result->verdict);
      panel += E("p", {},
                 fmt::format("Attempt {} passed every gate of engine {}. ", result->number,
                             Head(result->verdict->engine, 60)),
                 examined);
    } else if (!run.stopped || run.stopped->reason != result->verdict->reason) {
      panel += E("p", {}, fmt::format("Attempt {}, the last one judged: ", result->number),
                 Head(result->verdict->reason, kMostReason));
    }
    if (result->verdict->unsafe_no_jail)
      panel += E("p", {}, "Judged without a jail (--unsafe-no-jail): nothing was emitted.");
  }
  return E("section",
           {{"class", "verdict " + std::string(ToneOf(outcome).text)}, {"id", "verdict"}}, panel);
}

}  // namespace

Html SummarySection(const RunView& run) {
  const std::string binding = BindingOf(run);
  std::string about = run.arch;
  if (!binding.empty()) about = Head(binding, 200) + " · " + about;
  if (!run.model.empty()) about += " · " + Head(run.model, 200);
  Html html = E("p", {{"class", "eyebrow"}}, "Assay report · run ", Head(run.name, 120));
  html += E("h1", {}, Breakable(Head(run.op, 160)));
  html += E("p", {{"class", "soft"}}, Breakable(about), " · ", Moment(run.started));
  html += VerdictPanel(run);

  std::size_t judged = 0;
  for (const AttemptView& attempt : run.attempts) judged += attempt.verdict.has_value();
  Html figures = Figure("attempts", Count(run.attempts.size()),
                        judged == run.attempts.size() ? "" : Plural(judged, "verdict"));
  if (run.result && run.attempts[*run.result].verdict) {
    const verdict::Ledger& ledger = run.attempts[*run.result].verdict->ledger;
    if (ledger.planned() > 0) {
      figures += Figure("cases examined", Count(ledger.examined()),
                        "of " + Count(ledger.planned()) + " planned");
    }
  }
  if (const std::uint64_t steps = StepsOf(run); steps > 0)
    figures += Figure("instructions", Count(steps), "of threads, emulated");
  figures += Figure("time", Duration(run.seconds));
  if (const std::uint64_t tokens = run.answered.input_tokens + run.answered.output_tokens;
      tokens > 0) {
    const std::string written = Count(run.answered.output_tokens) + " written";
    figures +=
        Figure("tokens", Count(tokens), written + (run.answered.estimated ? ", estimated" : ""));
    if (run.usd) figures += Figure("cost", Dollars(*run.usd), "list price");
  }
  html += E("dl", {{"class", "figures"}}, figures);
  return html;
}

}  // namespace assay::report
