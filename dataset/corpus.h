// The corpus: a database of judged attempts (schema.h), filled by Ingest and read by everything else.
//
//   ASSAY_TRY(Corpus corpus, Corpus::Open("corpus.sqlite", Database::Access::kWrite));
//   ASSAY_TRY(const Added added, corpus.Ingest(record));
//   ASSAY_TRY_VOID(corpus.Check());
//
// Ingesting a run is one transaction, and ingesting it again adds what has come since: a process
// killed at any point leaves some runs ingested and the others not, and the next one finishes. Texts
// are kept once, by digest. Duplicates are kept as well, because how often a model makes the same
// mistake is worth knowing; they share `sameness`, and exports take the first one of each.
//
// `sameness` is a digest of target, language, normalised source and launch, outcome, and the first
// finding's gate, kind and place in the normalised source. Which attempt of several is the first does
// not depend on the order of ingestion: it is the one of the smallest (run identity, number).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataset/database.h"
#include "dataset/normalise.h"
#include "dataset/record.h"

namespace assay::dataset {

struct Added {
  std::uint64_t runs = 0;        ///< Not known before.
  std::uint64_t attempts = 0;    ///< Not known before.
  std::uint64_t known = 0;       ///< Attempts that were there already.
  std::uint64_t duplicates = 0;  ///< Of the new attempts, those the same as another one.
  Added& operator+=(const Added& other);
};

/// An attempt without its texts.
struct AttemptRow {
  std::int64_t id = 0;
  std::int64_t run = 0;
  std::string run_identity;
  std::string run_kind;
  std::string licence;
  int number = 0;
  int parent = 0;
  std::string kind;
  Target target;
  std::string model;
  std::string language;
  std::string prompt;       ///< Digest of its messages.
  std::string root_prompt;  ///< Digest of the messages that its conversation began with.
  std::string reply;        ///< Digest.
  std::string source;       ///< Digest; empty where there is none.
  std::string launch;       ///< Digest; empty where there is none.
  std::string normalised;
  std::string skeleton;
  Sketch sketch{};
  std::string outcome;
  std::string reason;
  std::string gate;
  std::string verdict;  ///< Digest; without counterexamples.
  std::uint64_t cases = 0;
  std::uint64_t steps = 0;
  double seconds = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  bool estimated = false;
  std::string sameness;
  std::string judge;   ///< Versions of what judged, as JSON.
  bool first = false;  ///< Of those that are the same.
};

struct FindingRow {
  std::int64_t attempt = 0;
  int ordinal = 0;
  std::string gate;
  std::string kind;
  std::string family;
  std::uint32_t line = 0;  ///< 0: without a line of the kernel.
  std::string message;
  std::string counterexample;  ///< Digest.
};

class Corpus {
 public:
  static Result<Corpus> Open(const Path& file, Database::Access access);

  Result<Added> Ingest(const RunRecord& record);

  /// By op, then run identity, then number: an order that every copy of the same attempts has.
  Result<std::vector<AttemptRow>> Attempts();
  /// By attempt, then ordinal.
  Result<std::map<std::int64_t, std::vector<FindingRow>>> Findings();
  /// A text by its digest.
  Result<std::string> Text(const std::string& digest);
  /// The verdict of an attempt, with its counterexamples.
  Result<verdict::Verdict> VerdictOf(const AttemptRow& attempt,
                                     const std::vector<FindingRow>& found);
  /// Calls `run` for each run, whole, as it was ingested.
  Status EachRun(const std::function<Status(const RunRecord&)>& run);

  /// Fails where the file is damaged: SQLite's own checks, every text against its digest, every
  /// refuted attempt with a finding, every parent known.
  Status Check();
  /// Digest of all that was ingested, whatever the order: equal for equal corpora.
  Result<std::string> Fingerprint();

  Database& db() { return db_; }

 private:
  explicit Corpus(Database db) : db_(std::move(db)) {}
  Result<std::string> Keep(const std::string& text);
  Result<std::int64_t> IdOf(std::string_view find, std::string_view insert,
                            const std::vector<Value>& values);
  Result<std::int64_t> InstanceOf(const Target& target);
  Result<std::int64_t> RunOf(const RunRecord& record, Added& added);
  Status AddAttempt(std::int64_t run, const AttemptRecord& attempt, Added& added);
  Status AddFindings(std::int64_t id, const AttemptRecord& attempt, const Normalised& normalised);

  Database db_;
};

}  // namespace assay::dataset
