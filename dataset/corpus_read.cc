#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "dataset/corpus.h"
#include "dataset/pack.h"

namespace assay::dataset {
namespace {

using verdict::Counterexample;
using verdict::GateResult;
using verdict::Verdict;

Sketch SketchFrom(const std::string& bytes) {
  Sketch sketch{};
  if (bytes.size() == sizeof(Sketch)) std::memcpy(sketch.data(), bytes.data(), bytes.size());
  return sketch;
}

std::map<std::string, std::string> WordsFromJson(const Json& json) {
  std::map<std::string, std::string> words;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) words[key] = value.get<std::string>();
  }
  return words;
}

std::unexpected<Error> Damaged(const Database& db, std::string what) {
  return Fail(ErrorKind::kMalformedInput, std::move(what), db.file().string(),
              "restore the file, or ingest the runs anew");
}

}  // namespace

Result<std::vector<AttemptRow>> Corpus::Attempts() {
  std::vector<AttemptRow> rows;
  std::map<std::string, std::size_t> firsts;
  ASSAY_TRY_VOID(db_.Each(
      "SELECT a.id, a.run, r.identity, r.kind, r.licence, a.number, a.parent, a.kind, o.name, "
      "o.digest, i.binding, i.arch, a.model, a.prompt, a.root_prompt, a.reply, a.source, a.launch, "
      "s.language, s.normalised, s.skeleton, s.sketch, a.outcome, a.reason, a.gate, a.verdict, "
      "a.cases, a.steps, a.seconds, a.input_tokens, a.cached_tokens, a.output_tokens, a.estimated, "
      "a.sameness, j.versions FROM attempt a JOIN run r ON r.id = a.run JOIN judge j ON j.id = "
      "r.judge JOIN instance i ON i.id = a.instance "
      "JOIN op o ON o.id = i.op LEFT JOIN source s ON s.digest = a.source "
      "ORDER BY o.name, r.identity, a.number",
      {}, [&](const Row& row) -> Status {
        int at = 0;
        const auto number = [&] { return static_cast<std::uint64_t>(row.Int(at++)); };
        AttemptRow attempt;
        attempt.id = row.Int(at++);
        attempt.run = row.Int(at++);
        attempt.run_identity = row.Text(at++);
        attempt.run_kind = row.Text(at++);
        attempt.licence = row.Text(at++);
        attempt.number = static_cast<int>(row.Int(at++));
        attempt.parent = static_cast<int>(row.Int(at++));
        attempt.kind = row.Text(at++);
        attempt.target.op = row.Text(at++);
        attempt.target.op_digest = row.Text(at++);
        ASSAY_TRY(const Json binding, ParseJson(row.Text(at++), "binding"));
        attempt.target.binding = WordsFromJson(binding);
        attempt.target.arch = row.Text(at++);
        attempt.model = row.Text(at++);
        attempt.prompt = row.Text(at++);
        attempt.root_prompt = row.Text(at++);
        attempt.reply = row.Text(at++);
        attempt.source = row.Text(at++);
        attempt.launch = row.Text(at++);
        attempt.language = row.Null(at) ? "cuda" : row.Text(at);
        ++at;
        attempt.normalised = row.Text(at++);
        attempt.skeleton = row.Text(at++);
        attempt.sketch = SketchFrom(row.Text(at++));
        attempt.outcome = row.Text(at++);
        attempt.reason = row.Text(at++);
        attempt.gate = row.Text(at++);
        attempt.verdict = row.Text(at++);
        attempt.cases = number();
        attempt.steps = number();
        attempt.seconds = row.Real(at++);
        attempt.input_tokens = number();
        attempt.cached_tokens = number();
        attempt.output_tokens = number();
        attempt.estimated = row.Int(at++) != 0;
        attempt.sameness = row.Text(at++);
        attempt.judge = row.Text(at++);
        // Sameness includes the op, so that the order within an op decides.
        attempt.first = firsts.emplace(attempt.sameness, rows.size()).second;
        rows.push_back(std::move(attempt));
        return {};
      }));
  return rows;
}

Result<std::map<std::int64_t, std::vector<FindingRow>>> Corpus::Findings() {
  std::map<std::int64_t, std::vector<FindingRow>> all;
  ASSAY_TRY_VOID(db_.Each(
      "SELECT attempt, ordinal, gate, kind, family, line, message, counterexample FROM finding "
      "ORDER BY attempt, ordinal",
      {}, [&](const Row& row) -> Status {
        all[row.Int(0)].push_back({.attempt = row.Int(0),
                                   .ordinal = static_cast<int>(row.Int(1)),
                                   .gate = row.Text(2),
                                   .kind = row.Text(3),
                                   .family = row.Text(4),
                                   .line = static_cast<std::uint32_t>(row.Int(5)),
                                   .message = row.Text(6),
                                   .counterexample = row.Text(7)});
        return {};
      }));
  return all;
}

Result<std::string> Corpus::Text(const std::string& digest) {
  ASSAY_TRY(const auto packed, db_.Text("SELECT packed FROM blob WHERE digest = ?", {digest}));
  if (!packed) return Damaged(db_, "the text " + digest + " is missing");
  Result<std::string> text = Unpack(*packed);
  if (!text) return Damaged(db_, "the text " + digest + " " + text.error().message);
  return text;
}

Result<Verdict> Corpus::VerdictOf(const AttemptRow& attempt, const std::vector<FindingRow>& found) {
  ASSAY_TRY(const std::string text, Text(attempt.verdict));
  const std::string place = db_.file().string() + ": verdict " + attempt.verdict;
  ASSAY_TRY(const Json json, ParseJson(text, place));
  ASSAY_TRY(Verdict verdict, verdict::VerdictFromJson(json, place));
  for (const FindingRow& finding : found) {
    ASSAY_TRY(const std::string counterexample, Text(finding.counterexample));
    const std::string at = db_.file().string() + ": counterexample " + finding.counterexample;
    ASSAY_TRY(const Json document, ParseJson(counterexample, at));
    ASSAY_TRY(Counterexample value, verdict::CounterexampleFromJson(document, at));
    const auto gate = std::ranges::find(verdict.gates, finding.gate, &GateResult::gate);
    if (gate == verdict.gates.end()) return Damaged(db_, "a finding of a gate that did not run");
    gate->counterexamples.push_back(std::move(value));
  }
  return verdict;
}

Status Corpus::EachRun(const std::function<Status(const RunRecord&)>& give) {
  ASSAY_TRY(const std::vector<AttemptRow> attempts, Attempts());
  ASSAY_TRY(const auto findings, Findings());
  std::map<std::int64_t, std::vector<const AttemptRow*>> by_run;
  for (const AttemptRow& attempt : attempts) by_run[attempt.run].push_back(&attempt);
  return db_.Each(
      "SELECT r.id, r.identity, r.kind, r.name, r.request, r.prompts, j.versions, r.started, "
      "r.outcome, r.licence, r.provenance FROM run r JOIN judge j ON j.id = r.judge "
      "ORDER BY r.identity",
      {}, [&](const Row& row) -> Status {
        RunRecord record;
        record.identity = row.Text(1);
        record.kind = row.Text(2);
        record.name = row.Text(3);
        ASSAY_TRY(const std::string request, Text(row.Text(4)));
        ASSAY_TRY(record.request, ParseJson(request, "request"));
        record.prompts_digest = row.Text(5);
        ASSAY_TRY(const Json versions, ParseJson(row.Text(6), "versions"));
        record.judge = WordsFromJson(versions);
        record.started = row.Text(7);
        record.outcome = row.Text(8);
        record.licence = row.Text(9);
        record.provenance = row.Text(10);
        auto members = by_run[row.Int(0)];
        std::ranges::sort(members, {}, [](const AttemptRow* each) { return each->number; });
        for (const AttemptRow* const each : members) {
          AttemptRecord attempt{.number = each->number,
                                .parent = each->parent,
                                .kind = each->kind,
                                .target = each->target,
                                .model = each->model,
                                .language = each->language,
                                .input_tokens = each->input_tokens,
                                .cached_tokens = each->cached_tokens,
                                .output_tokens = each->output_tokens,
                                .tokens_estimated = each->estimated};
          ASSAY_TRY(const std::string prompt, Text(each->prompt));
          ASSAY_TRY(const Json messages, ParseJson(prompt, "prompt"));
          ASSAY_TRY(attempt.prompt, MessagesFromJson(messages, "prompt"));
          ASSAY_TRY(attempt.reply, Text(each->reply));
          if (!each->source.empty()) {
            ASSAY_TRY(attempt.kernel, Text(each->source));
          }
          if (!each->launch.empty()) {
            ASSAY_TRY(attempt.launch, Text(each->launch));
          }
          const auto found = findings.find(each->id);
          ASSAY_TRY(attempt.verdict,
                    VerdictOf(*each,
                              found == findings.end() ? std::vector<FindingRow>() : found->second));
          record.attempts.push_back(std::move(attempt));
        }
        return give(record);
      });
}

Status Corpus::Check() {
  ASSAY_TRY(const auto whole, db_.Text("PRAGMA integrity_check"));
  if (whole != "ok") return Damaged(db_, "SQLite finds: " + whole.value_or("nothing"));
  ASSAY_TRY(const auto dangling, db_.Text("PRAGMA foreign_key_check"));
  if (dangling) return Damaged(db_, "a row of " + *dangling + " refers to what is missing");
  ASSAY_TRY(const auto orphan,
            db_.Number("SELECT count(*) FROM attempt a WHERE a.parent <> 0 AND NOT EXISTS "
                       "(SELECT 1 FROM attempt p WHERE p.run = a.run AND p.number = a.parent)"));
  if (orphan != 0) return Damaged(db_, "an attempt whose parent is missing");
  ASSAY_TRY(const auto silent,
            db_.Number("SELECT count(*) FROM attempt a WHERE a.outcome = 'refuted' AND NOT EXISTS "
                       "(SELECT 1 FROM finding f WHERE f.attempt = a.id)"));
  if (silent != 0) return Damaged(db_, "a refuted attempt without a finding");
  ASSAY_TRY(const auto empty, db_.Number("SELECT count(*) FROM run r WHERE NOT EXISTS "
                                         "(SELECT 1 FROM attempt a WHERE a.run = r.id)"));
  if (empty != 0) return Damaged(db_, "a run without attempts");
  return db_.Each("SELECT digest, packed FROM blob", {}, [&](const Row& row) -> Status {
    ASSAY_TRY(const std::string text, Unpack(row.Text(1)));
    if (Sha256Hex(text) != row.Text(0)) return Damaged(db_, "a text is not what its digest says");
    return {};
  });
}

Result<std::string> Corpus::Fingerprint() {
  std::string all;
  ASSAY_TRY_VOID(EachRun([&](const RunRecord& record) -> Status {
    all += record.identity + record.outcome + record.licence + record.provenance;
    for (const AttemptRecord& attempt : record.attempts) {
      all += CompactJson({attempt.number, attempt.parent, attempt.kind, attempt.target.Id(),
                          attempt.model, ToJson(attempt.prompt), attempt.reply,
                          attempt.kernel.value_or(""), attempt.launch.value_or(""),
                          verdict::ToJson(attempt.verdict), attempt.input_tokens,
                          attempt.output_tokens});
    }
    all = Sha256Hex(all);
    return {};
  }));
  return all;
}

}  // namespace assay::dataset
