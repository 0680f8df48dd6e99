#include "dataset/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::dataset {
namespace {

using Lines = std::map<int, const AttemptRow*>;  // a run's attempts by number

void Count(Tally& tally, const AttemptRow& attempt) {
  ++tally.attempts;
  if (attempt.outcome == "accepted")
    ++tally.accepted;
  else if (attempt.outcome == "refuted")
    ++tally.refuted;
  else
    ++tally.inconclusive;
  tally.input_tokens += attempt.input_tokens;
  tally.output_tokens += attempt.output_tokens;
  tally.judge_seconds += attempt.seconds;
}

void CountRun(Tally& tally, std::uint64_t accepted_after) {
  ++tally.runs;
  if (accepted_after == 0) return;
  ++tally.runs_accepted;
  tally.attempts_of_accepted_runs += accepted_after;
}

const FindingRow* FirstFinding(const std::map<std::int64_t, std::vector<FindingRow>>& findings,
                               const AttemptRow& attempt) {
  const auto found = findings.find(attempt.id);
  return found == findings.end() || found->second.empty() ? nullptr : &found->second.front();
}

bool Has(const std::map<std::int64_t, std::vector<FindingRow>>& findings, const AttemptRow& attempt,
         const FindingRow& like) {
  const auto found = findings.find(attempt.id);
  return found != findings.end() && std::ranges::any_of(found->second, [&](const FindingRow& each) {
           return each.gate == like.gate && each.kind == like.kind;
         });
}

// Parents come before their children: one walk backwards tells who has an accepted descendant.
std::set<int> Fruitful(const Lines& lines) {
  std::set<int> fruitful;
  for (auto at = lines.rbegin(); at != lines.rend(); ++at) {
    if (at->second->outcome == "accepted" || fruitful.contains(at->first))
      fruitful.insert(at->second->parent);
  }
  return fruitful;
}

Json ToJson(const Tally& tally) {
  return {{"attempts", tally.attempts},
          {"accepted", tally.accepted},
          {"refuted", tally.refuted},
          {"inconclusive", tally.inconclusive},
          {"runs", tally.runs},
          {"runs_accepted", tally.runs_accepted},
          {"input_tokens", tally.input_tokens},
          {"output_tokens", tally.output_tokens},
          {"judge_seconds", tally.judge_seconds},
          {"attempts_of_accepted_runs", tally.attempts_of_accepted_runs}};
}

std::string Share(std::uint64_t part, std::uint64_t of) {
  return of == 0
             ? "-"
             : fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(of));
}

std::string Table(const char* what, const std::map<std::string, Tally>& rows) {
  std::string text =
      fmt::format("{:<36} {:>8} {:>9} {:>6} {:>13} {:>10} {:>12}\n", what, "attempts", "accepted",
                  "runs", "runs accepted", "attempts", "tokens out");
  for (const auto& [name, tally] : rows) {
    const std::string mean =
        tally.runs_accepted == 0
            ? "-"
            : fmt::format("{:.1f}", static_cast<double>(tally.attempts_of_accepted_runs) /
                                        static_cast<double>(tally.runs_accepted));
    text += fmt::format("{:<36} {:>8} {:>9} {:>6} {:>13} {:>10} {:>12}\n", name, tally.attempts,
                        Share(tally.accepted, tally.attempts), tally.runs,
                        Share(tally.runs_accepted, tally.runs), mean, tally.output_tokens);
  }
  return text;
}

}  // namespace

Stats StatsOf(const std::vector<AttemptRow>& attempts,
              const std::map<std::int64_t, std::vector<FindingRow>>& findings) {
  Stats stats;
  std::map<std::int64_t, Lines> by_run;
  std::set<std::string> kernels;
  for (const AttemptRow& attempt : attempts) {
    by_run[attempt.run][attempt.number] = &attempt;
    ++stats.attempts;
    stats.distinct += attempt.first ? 1u : 0u;
    if (!attempt.normalised.empty()) kernels.insert(attempt.normalised);
    Count(stats.models[attempt.model], attempt);
    Count(stats.ops[attempt.target.op], attempt);
    ++stats.licences[attempt.licence];
  }
  stats.runs = by_run.size();
  stats.kernels = kernels.size();
  for (const auto& [attempt, rows] : findings) stats.findings += rows.size();

  std::map<std::pair<std::string, std::string>, Lesson> lessons;
  for (const auto& [run, lines] : by_run) {
    // Candidates that were handed in one by one are no line of attempts.
    if (lines.begin()->second->run_kind == "run") {
      std::uint64_t judged = 0;
      std::uint64_t accepted_after = 0;
      for (const auto& [number, attempt] : lines) {
        ++judged;
        if (attempt->outcome == "accepted" && accepted_after == 0) accepted_after = judged;
      }
      CountRun(stats.models[lines.begin()->second->model], accepted_after);
      CountRun(stats.ops[lines.begin()->second->target.op], accepted_after);
      if (accepted_after > 0)
        ++stats.to_acceptance[static_cast<int>(accepted_after)];
      else
        ++stats.never_accepted;
    }
    const std::set<int> fruitful = Fruitful(lines);
    for (const auto& [number, attempt] : lines) {
      if (const FindingRow* const finding = FirstFinding(findings, *attempt)) {
        Lesson& lesson = lessons[{finding->gate, finding->kind}];
        ++lesson.attempts;
        lesson.distinct += attempt->first ? 1u : 0u;
      }
      const auto parent = lines.find(attempt->parent);
      if (parent == lines.end()) continue;
      const FindingRow* const told = FirstFinding(findings, *parent->second);
      if (told == nullptr) continue;
      Lesson& lesson = lessons[{told->gate, told->kind}];
      const bool accepted = attempt->outcome == "accepted";
      ++lesson.told;
      lesson.cured += Has(findings, *attempt, *told) ? 0u : 1u;
      lesson.accepted_next += accepted ? 1u : 0u;
      lesson.accepted_later += accepted || fruitful.contains(number) ? 1u : 0u;
    }
  }
  for (auto& [key, lesson] : lessons) {
    lesson.gate = key.first;
    lesson.kind = key.second;
    stats.lessons.push_back(std::move(lesson));
  }
  std::ranges::stable_sort(stats.lessons, std::greater(), &Lesson::attempts);
  return stats;
}

Json ToJson(const Stats& stats) {
  Json models = Json::object();
  for (const auto& [name, tally] : stats.models) models[name] = ToJson(tally);
  Json ops = Json::object();
  for (const auto& [name, tally] : stats.ops) ops[name] = ToJson(tally);
  Json lessons = Json::array();
  for (const Lesson& lesson : stats.lessons) {
    lessons.push_back({{"gate", lesson.gate},
                       {"finding", lesson.kind},
                       {"attempts", lesson.attempts},
                       {"distinct", lesson.distinct},
                       {"told", lesson.told},
                       {"cured", lesson.cured},
                       {"accepted_next", lesson.accepted_next},
                       {"accepted_later", lesson.accepted_later}});
  }
  Json histogram = Json::object();
  for (const auto& [attempts, runs] : stats.to_acceptance)
    histogram[std::to_string(attempts)] = runs;
  return {{"schema", "assay.corpus.stats/1"},
          {"runs", stats.runs},
          {"attempts", stats.attempts},
          {"distinct", stats.distinct},
          {"kernels", stats.kernels},
          {"findings", stats.findings},
          {"licences", stats.licences},
          {"models", std::move(models)},
          {"ops", std::move(ops)},
          {"feedback", std::move(lessons)},
          {"attempts_to_acceptance", std::move(histogram)},
          {"never_accepted", stats.never_accepted}};
}

std::string Render(const Stats& stats) {
  std::string text = fmt::format(
      "{} attempts in {} runs, {} without duplicates; {} different kernels, {} findings\n",
      stats.attempts, stats.runs, stats.distinct, stats.kernels, stats.findings);
  for (const auto& [licence, attempts] : stats.licences)
    text += fmt::format("  licence {}: {} attempts\n", licence, attempts);
  text += "\n" + Table("model", stats.models) + "\n" + Table("op", stats.ops);
  text += fmt::format("\n{:<12} {:<22} {:>8} {:>8} {:>6} {:>6} {:>13} {:>14}\n", "gate", "finding",
                      "attempts", "distinct", "told", "cured", "accepted next", "accepted later");
  for (const Lesson& lesson : stats.lessons) {
    text += fmt::format("{:<12} {:<22} {:>8} {:>8} {:>6} {:>6} {:>13} {:>14}\n", lesson.gate,
                        lesson.kind, lesson.attempts, lesson.distinct, lesson.told,
                        Share(lesson.cured, lesson.told), Share(lesson.accepted_next, lesson.told),
                        Share(lesson.accepted_later, lesson.told));
  }
  text += "\nattempts to acceptance:";
  for (const auto& [attempts, runs] : stats.to_acceptance)
    text += fmt::format("  {}: {} runs", attempts, runs);
  text += fmt::format("  never: {} runs\n", stats.never_accepted);
  return text;
}

}  // namespace assay::dataset
