#include "report/run_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/words.h"
#include "validator/verdict/render.h"

namespace assay::report {
namespace {

std::string GateOf(const AttemptView& attempt) {
  return attempt.verdict ? EndingGate(*attempt.verdict) : std::string();
}

std::vector<const Finding*> FindingsOf(const AttemptView& attempt) {
  std::vector<const Finding*> findings;
  if (!attempt.verdict) return findings;
  for (const verdict::Counterexample* const counterexample : attempt.verdict->Counterexamples()) {
    for (const Finding& finding : counterexample->findings) findings.push_back(&finding);
  }
  return findings;
}

// Lines move when a kernel changes: a finding stays where kind, memory and output agree.
bool Stays(const Finding& a, const Finding& b) {
  const auto buffer = [](const Finding& f) { return f.memory ? f.memory->buffer : std::string(); };
  const auto output = [](const Finding& f) {
    return f.element ? f.element->output : std::string();
  };
  return a.kind == b.kind && buffer(a) == buffer(b) && output(a) == output(b);
}

Json AttemptAsJson(const AttemptView& attempt) {
  Json json = {{"attempt", attempt.number},
               {"why", attempt.why},
               {"state", attempt.state},
               {"gate", GateOf(attempt)},
               {"reason", attempt.verdict ? attempt.verdict->reason : std::string()},
               {"tokens", runs::ToJson(attempt.usage)},
               {"vetted", attempt.vetted}};
  if (attempt.waited) json["waited_seconds"] = *attempt.waited;
  if (attempt.judged) json["judged_seconds"] = *attempt.judged;
  return json;
}

std::string Outcome(const RunView& run) {
  return run.stopped ? std::string(verdict::Name(run.stopped->outcome)) : "not finished";
}

Json FindingsAsJson(const std::vector<const Finding*>& findings) {
  Json json = Json::array();
  for (const Finding* const finding : findings)
    json.push_back({{"kind", Name(finding->kind)}, {"message", finding->message}});
  return json;
}

std::string FindingsAsText(std::string_view what, const std::vector<const Finding*>& findings) {
  std::string text;
  for (const Finding* const finding : findings)
    text += fmt::format("  {:<7} {}: {}\n", what, Name(finding->kind), Head(finding->message, 400));
  return text;
}

}  // namespace

Json RunAsJson(const RunView& run) {
  Json attempts = Json::array();
  for (const AttemptView& attempt : run.attempts) attempts.push_back(AttemptAsJson(attempt));
  Json json = {{"schema", "assay.run_view/1"},
               {"run", run.name},
               {"instance", run.instance},
               {"model", run.model},
               {"outcome", Outcome(run)},
               {"reason", run.stopped ? run.stopped->reason : std::string()},
               {"began", run.started},
               {"last", run.ended},
               {"seconds", run.seconds},
               {"tokens", runs::ToJson(run.answered)},
               {"lost_tokens", runs::ToJson(run.lost)},
               {"attempts", std::move(attempts)}};
  if (run.usd) json["usd"] = *run.usd;
  return json;
}

std::string RunAsText(const RunView& run) {
  std::string text =
      fmt::format("{}: {} by {}, {}\n", run.name, run.instance, run.model, Outcome(run));
  text += fmt::format("began {}, worked on for {}, {} tokens{}\n\n", Moment(run.started),
                      Duration(run.seconds),
                      Count(run.answered.input_tokens + run.answered.output_tokens),
                      run.usd ? ", " + Dollars(*run.usd) : "");
  for (const AttemptView& attempt : run.attempts) {
    const std::string gate = GateOf(attempt);
    text += fmt::format("  {:>3}  {:<13} {:<10} {}\n", attempt.number, attempt.state,
                        gate.empty() ? "-" : gate, attempt.why);
  }
  if (run.result && run.attempts[*run.result].verdict) {
    text += fmt::format("\nattempt {}:\n", run.attempts[*run.result].number);
    text += verdict::RenderVerdict(*run.attempts[*run.result].verdict);
  }
  return text;
}

JudgementChange ChangeOf(const AttemptView& before, const AttemptView& after) {
  JudgementChange change;
  const auto add = [&change](const AttemptView& attempt,
                             std::string JudgementChange::Gate::* side) {
    if (!attempt.verdict) return;
    for (const verdict::GateResult& gate : attempt.verdict->gates) {
      auto row = std::ranges::find(change.gates, gate.gate, &JudgementChange::Gate::gate);
      if (row == change.gates.end())
        row = change.gates.insert(change.gates.end(), JudgementChange::Gate{.gate = gate.gate});
      (*row).*side = std::string(verdict::Name(gate.status));
    }
  };
  add(before, &JudgementChange::Gate::before);
  add(after, &JudgementChange::Gate::after);
  const std::vector<const Finding*> was = FindingsOf(before), is = FindingsOf(after);
  const auto within = [](const Finding* finding, const std::vector<const Finding*>& others) {
    return std::ranges::any_of(others,
                               [&](const Finding* other) { return Stays(*finding, *other); });
  };
  for (const Finding* const finding : was) {
    if (!within(finding, is)) change.gone.push_back(finding);
  }
  for (const Finding* const finding : is)
    (within(finding, was) ? change.stayed : change.came).push_back(finding);
  return change;
}

std::string UnifiedDiff(const std::string& before_name, const std::string& after_name,
                        std::string_view before, std::string_view after) {
  const std::vector<Change> changes = Diff(before, after);
  std::string text;
  for (const Hunk& hunk : Hunks(changes, 3)) {
    if (text.empty()) text = fmt::format("--- {}\n+++ {}\n", before_name, after_name);
    std::size_t first_before = 0, first_after = 0, in_before = 0, in_after = 0;
    for (const Change& change : hunk) {
      if (change.before > 0 && in_before++ == 0) first_before = change.before;
      if (change.after > 0 && in_after++ == 0) first_after = change.after;
    }
    text += fmt::format("@@ -{},{} +{},{} @@\n", first_before, in_before, first_after, in_after);
    for (const Change& change : hunk) {
      text += change.kind == ChangeKind::kAdded     ? '+'
              : change.kind == ChangeKind::kRemoved ? '-'
                                                    : ' ';
      text += std::string(change.text) + "\n";
    }
  }
  return text;
}

Json ComparisonAsJson(const Compared& compared) {
  const AttemptView& before = *compared.before.attempt;
  const AttemptView& after = *compared.after.attempt;
  const JudgementChange change = ChangeOf(before, after);
  const auto side = [](const Compared::Side& each) {
    return Json{{"name", each.name},
                {"instance", each.run->instance},
                {"model", each.run->model},
                {"attempt", AttemptAsJson(*each.attempt)}};
  };
  Json gates = Json::array();
  for (const JudgementChange::Gate& gate : change.gates)
    gates.push_back({{"gate", gate.gate}, {"before", gate.before}, {"after", gate.after}});
  const Counts counts = CountsOf(Diff(before.kernel.value_or(""), after.kernel.value_or("")));
  return {{"schema", "assay.run_comparison/1"},
          {"before", side(compared.before)},
          {"after", side(compared.after)},
          {"gates", std::move(gates)},
          {"findings",
           {{"gone", FindingsAsJson(change.gone)},
            {"stayed", FindingsAsJson(change.stayed)},
            {"came", FindingsAsJson(change.came)}}},
          {"lines_added", counts.added},
          {"lines_removed", counts.removed},
          {"diff", UnifiedDiff(compared.before.name, compared.after.name,
                               before.kernel.value_or(""), after.kernel.value_or(""))}};
}

std::string ComparisonAsText(const Compared& compared) {
  const AttemptView& before = *compared.before.attempt;
  const AttemptView& after = *compared.after.attempt;
  const JudgementChange change = ChangeOf(before, after);
  std::string text;
  for (const Compared::Side& side : {compared.before, compared.after}) {
    text += fmt::format("{}: {} by {}, attempt {}: {}\n", side.name, side.run->instance,
                        side.run->model, side.attempt->number, side.attempt->state);
  }
  if (compared.before.run != compared.after.run) {
    for (const Compared::Side& side : {compared.before, compared.after}) {
      text +=
          fmt::format("  {}: {}, {}, {} tokens\n", side.name,
                      Plural(side.run->attempts.size(), "attempt"), Duration(side.run->seconds),
                      Count(side.run->answered.input_tokens + side.run->answered.output_tokens));
    }
  }
  for (const JudgementChange::Gate& gate : change.gates) {
    if (gate.before == gate.after) continue;
    text += fmt::format("  gate {}: {} before, {} after\n", gate.gate,
                        gate.before.empty() ? "not run" : gate.before,
                        gate.after.empty() ? "not run" : gate.after);
  }
  text += FindingsAsText("gone", change.gone) + FindingsAsText("stayed", change.stayed) +
          FindingsAsText("came", change.came);
  const std::string diff = UnifiedDiff(compared.before.name, compared.after.name,
                                       before.kernel.value_or(""), after.kernel.value_or(""));
  return text + "\n" + (diff.empty() ? "the kernels are the same\n" : diff);
}

}  // namespace assay::report
