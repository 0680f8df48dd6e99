#include "dataset/corpus.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/digest.h"
#include "dataset/pack.h"
#include "dataset/schema.h"

namespace assay::dataset {
namespace {

using verdict::Counterexample;
using verdict::GateResult;
using verdict::GateStatus;
using verdict::Verdict;

std::int64_t Signed(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}

std::string BindingText(const Target& target) {
  Json binding = Json::object();
  for (const auto& [variable, dtype] : target.binding) binding[variable] = dtype;
  return CompactJson(binding);
}

// The gate that ended it; none where it was accepted.
std::string EndingGate(const Verdict& verdict) {
  for (const GateStatus status : {GateStatus::kRefuted, GateStatus::kInconclusive}) {
    for (const GateResult& result : verdict.gates) {
      if (result.status == status) return result.gate;
    }
  }
  return {};
}

// What stands in tables of its own, or is for drawing only.
Verdict Bare(Verdict verdict) {
  for (GateResult& result : verdict.gates) {
    result.counterexamples.clear();
    result.errors.clear();
  }
  return verdict;
}

// What is run, apart from who is judged and what was found.
std::string CaseDigest(const Counterexample& counterexample) {
  Json json = verdict::ToJson(counterexample);
  for (const char* const key : {"kernel", "launch", "findings", "description", "engine", "worst"})
    json.erase(key);
  return Sha256Hex(CompactJson(json));
}

// The first line of kernel.cu that the finding names; 0: none.
std::uint32_t LineOf(const Finding& finding) {
  for (const Access& access : finding.accesses) {
    if (access.site.line > 0 && access.site.file.ends_with("kernel.cu")) return access.site.line;
  }
  return 0;
}

std::string Sameness(const AttemptRecord& attempt, const Normalised& normalised) {
  const Verdict& verdict = attempt.verdict;
  Json key = {attempt.target.op,
              BindingText(attempt.target),
              attempt.target.arch,
              attempt.language,
              attempt.kernel ? normalised.digest : Sha256Hex(attempt.reply),
              attempt.launch ? NormaliseLaunch(*attempt.launch, normalised) : "",
              verdict::Name(verdict.outcome)};
  const auto counterexamples = verdict.Counterexamples();
  if (!counterexamples.empty() && !counterexamples.front()->findings.empty()) {
    const Finding& finding = counterexamples.front()->findings.front();
    key.push_back(counterexamples.front()->gate);
    key.push_back(Name(finding.kind));
    key.push_back(normalised.PlaceOf(LineOf(finding)));
  }
  return Sha256Hex(CompactJson(key));
}

// The conversation up to and with its first user message: what an attempt without history is asked.
std::string RootPrompt(const std::vector<ChatMessage>& prompt) {
  std::vector<ChatMessage> root;
  for (const ChatMessage& message : prompt) {
    root.push_back(message);
    if (message.role == "user") break;
  }
  return Sha256Hex(CompactJson(ToJson(root)));
}

std::string BytesOf(const Sketch& sketch) {
  std::string bytes(sizeof(Sketch), '\0');
  std::memcpy(bytes.data(), sketch.data(), bytes.size());
  return bytes;
}

// What would make the corpus say less than it seems to.
Status CheckRecord(const RunRecord& record) {
  const auto wrong = [&](const AttemptRecord& attempt, std::string what) {
    return Fail(ErrorKind::kMalformedInput, std::move(what),
                record.name + ": attempt " + std::to_string(attempt.number),
                "restore the run from a copy");
  };
  std::set<int> numbers;
  for (const AttemptRecord& attempt : record.attempts) {
    if (!numbers.insert(attempt.number).second) return wrong(attempt, "is there twice");
    if (attempt.verdict.outcome == verdict::Outcome::kRefuted &&
        attempt.verdict.Counterexamples().empty()) {
      return wrong(attempt, "is refuted without a counterexample");
    }
  }
  for (const AttemptRecord& attempt : record.attempts) {
    if (attempt.parent != 0 && !numbers.contains(attempt.parent))
      return wrong(attempt, "follows an attempt that is not there");
  }
  return {};
}

}  // namespace

Added& Added::operator+=(const Added& other) {
  runs += other.runs;
  attempts += other.attempts;
  known += other.known;
  duplicates += other.duplicates;
  return *this;
}

Result<Corpus> Corpus::Open(const Path& file, Database::Access access) {
  ASSAY_TRY(Database db, OpenCorpusFile(file, access));
  return Corpus(std::move(db));
}

Result<std::string> Corpus::Keep(const std::string& text) {
  std::string digest = Sha256Hex(text);
  ASSAY_TRY(const auto known, db_.Number("SELECT 1 FROM blob WHERE digest = ?", {digest}));
  if (!known) {
    ASSAY_TRY_VOID(db_.Run("INSERT INTO blob(digest, bytes, packed) VALUES (?, ?, ?)",
                           {digest, Signed(text.size()), Bytes{Pack(text)}}));
  }
  return digest;
}

Result<std::int64_t> Corpus::IdOf(std::string_view find, std::string_view insert,
                                  const std::vector<Value>& values) {
  ASSAY_TRY(const auto known, db_.Number(find, values));
  if (known) return *known;
  ASSAY_TRY_VOID(db_.Run(insert, values));
  return db_.LastId();
}

Result<std::int64_t> Corpus::InstanceOf(const Target& target) {
  ASSAY_TRY(const std::int64_t op,
            IdOf("SELECT id FROM op WHERE name = ? AND digest = ?",
                 "INSERT INTO op(name, digest) VALUES (?, ?)", {target.op, target.op_digest}));
  return IdOf("SELECT id FROM instance WHERE op = ? AND binding = ? AND arch = ?",
              "INSERT INTO instance(op, binding, arch) VALUES (?, ?, ?)",
              {op, BindingText(target), target.arch});
}

Result<std::int64_t> Corpus::RunOf(const RunRecord& record, Added& added) {
  ASSAY_TRY(const auto known,
            db_.Number("SELECT id FROM run WHERE identity = ?", {record.identity}));
  if (known) {
    // A run may have ended since; a licence may be known by now.
    ASSAY_TRY_VOID(db_.Run("UPDATE run SET outcome = ?2 WHERE id = ?1 AND ?2 <> ''",
                           {*known, record.outcome}));
    ASSAY_TRY_VOID(
        db_.Run("UPDATE run SET licence = ?2, provenance = ?3 WHERE id = ?1 AND ?2 <> 'unknown'",
                {*known, record.licence, record.provenance}));
    return *known;
  }
  ++added.runs;
  Json versions = Json::object();
  for (const auto& [tool, version] : record.judge) versions[tool] = version;
  ASSAY_TRY(const std::int64_t judge,
            IdOf("SELECT id FROM judge WHERE versions = ?",
                 "INSERT INTO judge(versions) VALUES (?)", {CompactJson(versions)}));
  ASSAY_TRY(const std::string request, Keep(CompactJson(record.request)));
  ASSAY_TRY_VOID(db_.Run(
      "INSERT INTO run(identity, kind, name, request, prompts, judge, started, outcome, licence, "
      "provenance) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {record.identity, record.kind, record.name, request, record.prompts_digest, judge,
       record.started, record.outcome, record.licence, record.provenance}));
  return db_.LastId();
}

Result<Added> Corpus::Ingest(const RunRecord& record) {
  Added added;
  ASSAY_TRY_VOID(CheckRecord(record));
  if (record.attempts.empty()) return added;
  const Status kept = db_.Atomically([&]() -> Status {
    ASSAY_TRY(const std::int64_t run, RunOf(record, added));
    for (const AttemptRecord& attempt : record.attempts) {
      ASSAY_TRY(const auto known, db_.Number("SELECT 1 FROM attempt WHERE run = ? AND number = ?",
                                             {run, std::int64_t{attempt.number}}));
      if (known) {
        ++added.known;
        continue;
      }
      ASSAY_TRY_VOID(AddAttempt(run, attempt, added));
    }
    return {};
  });
  if (!kept) return std::unexpected(kept.error());
  return added;
}

Status Corpus::AddAttempt(std::int64_t run, const AttemptRecord& attempt, Added& added) {
  Normalised normalised;
  Value source;
  Value launch;
  if (attempt.kernel) {
    normalised = Normalise(*attempt.kernel, attempt.language);
    ASSAY_TRY(const std::string digest, Keep(*attempt.kernel));
    source = digest;
    ASSAY_TRY_VOID(db_.Run(
        "INSERT OR IGNORE INTO source(digest, language, normalised, skeleton, sketch, lines) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        {digest, attempt.language, normalised.digest, normalised.skeleton,
         Bytes{BytesOf(normalised.sketch)},
         Signed(normalised.lines.empty() ? 0 : normalised.lines.back())}));
  }
  if (attempt.launch) {
    ASSAY_TRY(const std::string digest, Keep(*attempt.launch));
    launch = digest;
  }
  ASSAY_TRY(const std::int64_t instance, InstanceOf(attempt.target));
  ASSAY_TRY(const std::string prompt, Keep(CompactJson(ToJson(attempt.prompt))));
  ASSAY_TRY(const std::string reply, Keep(attempt.reply));
  const Verdict& verdict = attempt.verdict;
  ASSAY_TRY(const std::string kept_verdict, Keep(CompactJson(verdict::ToJson(Bare(verdict)))));
  std::uint64_t cases = 0;
  std::uint64_t steps = 0;
  double seconds = 0;
  for (const GateResult& result : verdict.gates) {
    cases += result.cases;
    steps += result.steps;
    seconds += result.seconds;
  }
  const std::string sameness = Sameness(attempt, normalised);
  ASSAY_TRY(const auto twin, db_.Number("SELECT 1 FROM attempt WHERE sameness = ?", {sameness}));
  ASSAY_TRY_VOID(db_.Run(
      "INSERT INTO attempt(run, number, parent, kind, instance, model, prompt, root_prompt, reply, "
      "source, launch, outcome, reason, gate, verdict, cases, steps, seconds, input_tokens, "
      "cached_tokens, output_tokens, estimated, sameness) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {run,
       std::int64_t{attempt.number},
       std::int64_t{attempt.parent},
       attempt.kind,
       instance,
       attempt.model,
       prompt,
       RootPrompt(attempt.prompt),
       reply,
       source,
       launch,
       std::string(verdict::Name(verdict.outcome)),
       verdict.reason,
       EndingGate(verdict),
       kept_verdict,
       Signed(cases),
       Signed(steps),
       seconds,
       Signed(attempt.input_tokens),
       Signed(attempt.cached_tokens),
       Signed(attempt.output_tokens),
       std::int64_t{attempt.tokens_estimated},
       sameness}));
  ++added.attempts;
  if (twin) ++added.duplicates;
  return AddFindings(db_.LastId(), attempt, normalised);
}

Status Corpus::AddFindings(std::int64_t id, const AttemptRecord& attempt,
                           const Normalised& normalised) {
  std::int64_t ordinal = 0;
  for (const Counterexample* const counterexample : attempt.verdict.Counterexamples()) {
    ASSAY_TRY(const std::string digest, Keep(CompactJson(verdict::ToJson(*counterexample))));
    ASSAY_TRY_VOID(
        db_.Run("INSERT OR IGNORE INTO counterexample(digest, case_digest, gate) VALUES (?, ?, ?)",
                {digest, CaseDigest(*counterexample), counterexample->gate}));
    // The first finding is the guilty one; the others stand in the counterexample.
    const Finding* const finding =
        counterexample->findings.empty() ? nullptr : &counterexample->findings.front();
    const std::uint32_t line = finding == nullptr ? 0 : LineOf(*finding);
    ASSAY_TRY_VOID(
        db_.Run("INSERT INTO finding(attempt, ordinal, gate, kind, family, line, place, message, "
                "counterexample) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                {id, ordinal, counterexample->gate,
                 finding == nullptr ? std::string() : std::string(Name(finding->kind)),
                 finding == nullptr ? std::string() : std::string(FamilyOf(finding->kind)),
                 std::int64_t{line}, Signed(normalised.PlaceOf(line)),
                 finding == nullptr ? std::string() : finding->message, digest}));
    ++ordinal;
  }
  return {};
}

}  // namespace assay::dataset
