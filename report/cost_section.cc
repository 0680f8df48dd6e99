#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/sections.h"
#include "report/svg.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostRows = 120;

double JudgedSeconds(const AttemptView& attempt) {
  double seconds = attempt.judged.value_or(0);
  if (attempt.judged || !attempt.verdict) return seconds;
  for (const verdict::GateResult& gate : attempt.verdict->gates) seconds += gate.seconds;
  return seconds;
}

double Spent(const AttemptView& attempt) {
  return attempt.waited.value_or(0) + JudgedSeconds(attempt);
}

Html TimeBar(const AttemptView& attempt, double longest) {
  Canvas canvas(200, 10);
  const double waited = 200 * attempt.waited.value_or(0) / longest;
  canvas.Rect({0, 1}, {200, 8}, "fill-track");
  canvas.Rect({0, 1}, {waited, 8}, "fill-warn");
  canvas.Rect({waited, 1}, {200 * JudgedSeconds(attempt) / longest, 8}, "fill-info");
  return canvas.Take("Time of an attempt", fmt::format("{} for the reply, {} for the verdict",
                                                       Duration(attempt.waited.value_or(0)),
                                                       Duration(JudgedSeconds(attempt))));
}

Html AttemptsTable(const RunView& run) {
  double longest = 1e-3;
  for (const AttemptView& attempt : run.attempts) longest = std::max(longest, Spent(attempt));
  Html rows;
  for (std::size_t i = 0; i < run.attempts.size() && i < kMostRows; ++i) {
    const AttemptView& attempt = run.attempts[i];
    rows +=
        E("tr", {},
          E("td", {},
            E("a", {{"href", fmt::format("#attempt-{}", attempt.number)}},
              fmt::format("{}", attempt.number))),
          E("td", {}, attempt.state), E("td", {{"class", "n"}}, Count(attempt.usage.input_tokens)),
          E("td", {{"class", "n"}}, Count(attempt.usage.cached_input_tokens)),
          E("td", {{"class", "n"}}, Count(attempt.usage.output_tokens)),
          E("td", {{"class", "n"}}, attempt.waited ? Duration(*attempt.waited) : "–"),
          E("td", {{"class", "n"}}, attempt.verdict ? Duration(JudgedSeconds(attempt)) : "–"),
          E("td", {}, TimeBar(attempt, longest)));
  }
  Html html = E("div", {{"class", "scroll"}},
                E("table", {},
                  HeadRow({"attempt", "outcome", "#read", "#of it cached", "#written", "#asking",
                           "#judging", ""}),
                  E("tbody", {}, rows)));
  html += E("p", {{"class", "legend"}},
            E("span", {}, E("span", {{"class", "key warn"}}, ""), "waiting for the model"),
            E("span", {}, E("span", {{"class", "key info"}}, ""), "judging"));
  return html;
}

// Where the judge's time went, over all attempts.
Html GatesTable(const RunView& run) {
  struct Total {
    std::string gate;
    double seconds = 0;
    std::uint64_t cases = 0, steps = 0;
  };
  std::vector<Total> totals;
  double most = 1e-3;
  for (const AttemptView& attempt : run.attempts) {
    if (!attempt.verdict) continue;
    for (const verdict::GateResult& gate : attempt.verdict->gates) {
      auto total = std::ranges::find(totals, gate.gate, &Total::gate);
      if (total == totals.end()) {
        if (totals.size() == 24) continue;
        total = totals.insert(totals.end(), Total{.gate = gate.gate});
      }
      total->seconds += gate.seconds;
      total->cases += gate.cases;
      total->steps += gate.steps;
      most = std::max(most, total->seconds);
    }
  }
  Html rows;
  for (const Total& total : totals) {
    Canvas canvas(200, 10);
    canvas.Rect({0, 1}, {200, 8}, "fill-track");
    canvas.Rect({0, 1}, {200 * total.seconds / most, 8}, "fill-info");
    rows += E("tr", {}, E("td", {}, Head(total.gate, 60)),
              E("td", {{"class", "n"}}, Count(total.cases)),
              E("td", {{"class", "n"}}, Count(total.steps)),
              E("td", {{"class", "n"}}, Duration(total.seconds)),
              E("td", {}, canvas.Take("Time of a gate", Duration(total.seconds))));
  }
  if (rows.empty()) return {};
  Html html = E("h3", {}, "Gate by gate, all attempts together");
  html += E("div", {{"class", "scroll"}},
            E("table", {}, HeadRow({"gate", "#cases", "#instructions", "#time", ""}),
              E("tbody", {}, rows)));
  html += E("p", {{"class", "small soft"}},
            "Gates that read the same runs of the kernel show the same counts; the time of these "
            "runs stands with the first of them.");
  return html;
}

}  // namespace

Html CostSection(const RunView& run) {
  const runs::Usage& usage = run.answered;
  std::string words = fmt::format("{} in {}, {} tokens read ({} of them cached) and {} written",
                                  Plural(run.attempts.size(), "attempt"), Duration(run.seconds),
                                  Count(usage.input_tokens), Count(usage.cached_input_tokens),
                                  Count(usage.output_tokens));
  if (const std::uint64_t lost = run.lost.input_tokens + run.lost.output_tokens; lost > 0)
    words += fmt::format("; {} more in requests that came to nothing", Count(lost));
  words += run.usd ? fmt::format(": {} at list prices.", Dollars(*run.usd))
                   : std::string(". No price of this model is known.");
  if (usage.estimated) words += " Token counts are estimates: the provider gave none.";
  return E("section", {}, E("h2", {{"id", "cost"}}, "Cost"), E("p", {}, words), AttemptsTable(run),
           GatesTable(run));
}

}  // namespace assay::report
