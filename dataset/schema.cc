#include "dataset/schema.h"

#include <array>

namespace assay::dataset {
namespace {

// "ASSY": SQLite keeps it in the file's header, so that a corpus is known before it is read.
constexpr std::int64_t kApplication = 0x41535359;

constexpr auto kMigrations = std::to_array<const char*>({
    R"sql(
CREATE TABLE blob(
  digest TEXT PRIMARY KEY,
  bytes  INTEGER NOT NULL,
  packed BLOB NOT NULL
);
CREATE TABLE op(
  id     INTEGER PRIMARY KEY,
  name   TEXT NOT NULL,
  digest TEXT NOT NULL,
  UNIQUE(name, digest)
);
CREATE TABLE instance(
  id      INTEGER PRIMARY KEY,
  op      INTEGER NOT NULL REFERENCES op,
  binding TEXT NOT NULL,
  arch    TEXT NOT NULL,
  UNIQUE(op, binding, arch)
);
CREATE TABLE judge(
  id       INTEGER PRIMARY KEY,
  versions TEXT NOT NULL UNIQUE
);
CREATE TABLE run(
  id         INTEGER PRIMARY KEY,
  identity   TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  request    TEXT NOT NULL REFERENCES blob,
  prompts    TEXT NOT NULL,
  judge      INTEGER NOT NULL REFERENCES judge,
  started    TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  licence    TEXT NOT NULL,
  provenance TEXT NOT NULL
);
CREATE TABLE source(
  digest     TEXT PRIMARY KEY REFERENCES blob,
  language   TEXT NOT NULL,
  normalised TEXT NOT NULL,
  skeleton   TEXT NOT NULL,
  sketch     BLOB NOT NULL,
  lines      INTEGER NOT NULL
);
CREATE INDEX source_normalised ON source(normalised);
CREATE TABLE attempt(
  id            INTEGER PRIMARY KEY,
  run           INTEGER NOT NULL REFERENCES run,
  number        INTEGER NOT NULL,
  parent        INTEGER NOT NULL,
  kind          TEXT NOT NULL,
  instance      INTEGER NOT NULL REFERENCES instance,
  model         TEXT NOT NULL,
  prompt        TEXT NOT NULL REFERENCES blob,
  root_prompt   TEXT NOT NULL,
  reply         TEXT NOT NULL REFERENCES blob,
  source        TEXT REFERENCES source,
  launch        TEXT REFERENCES blob,
  outcome       TEXT NOT NULL,
  reason        TEXT NOT NULL,
  gate          TEXT NOT NULL,
  verdict       TEXT NOT NULL REFERENCES blob,
  cases         INTEGER NOT NULL,
  steps         INTEGER NOT NULL,
  seconds       REAL NOT NULL,
  input_tokens  INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  estimated     INTEGER NOT NULL,
  sameness      TEXT NOT NULL,
  UNIQUE(run, number)
);
CREATE INDEX attempt_sameness ON attempt(sameness);
CREATE INDEX attempt_source ON attempt(source);
CREATE TABLE counterexample(
  digest      TEXT PRIMARY KEY REFERENCES blob,
  case_digest TEXT NOT NULL,
  gate        TEXT NOT NULL
);
CREATE TABLE finding(
  attempt        INTEGER NOT NULL REFERENCES attempt,
  ordinal        INTEGER NOT NULL,
  gate           TEXT NOT NULL,
  kind           TEXT NOT NULL,
  family         TEXT NOT NULL,
  line           INTEGER NOT NULL,
  place          INTEGER NOT NULL,
  message        TEXT NOT NULL,
  counterexample TEXT NOT NULL REFERENCES counterexample,
  PRIMARY KEY(attempt, ordinal)
) WITHOUT ROWID;
CREATE INDEX finding_kind ON finding(kind);
)sql",
    R"sql(
CREATE TABLE split(
  id       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  recipe   TEXT NOT NULL,
  attempts INTEGER NOT NULL
);
CREATE TABLE split_part(
  split   INTEGER NOT NULL REFERENCES split,
  attempt INTEGER NOT NULL REFERENCES attempt,
  part    TEXT NOT NULL,
  PRIMARY KEY(split, attempt)
) WITHOUT ROWID;
CREATE TABLE split_op(
  split  INTEGER NOT NULL REFERENCES split,
  op     TEXT NOT NULL,
  family TEXT NOT NULL,
  part   TEXT NOT NULL,
  PRIMARY KEY(split, op)
) WITHOUT ROWID;
)sql",
});

Result<std::int64_t> VersionOf(Database& db) {
  ASSAY_TRY(const auto version, db.Number("PRAGMA user_version"));
  return version.value_or(0);
}

Status CheckIsCorpus(Database& db) {
  ASSAY_TRY(const auto application, db.Number("PRAGMA application_id"));
  ASSAY_TRY(const auto tables, db.Number("SELECT count(*) FROM sqlite_schema"));
  if (application == kApplication || (application == 0 && tables == 0)) return {};
  return Fail(ErrorKind::kUsage, "the file is a database, but no corpus", db.file().string(),
              "name another file");
}

Status Migrate(Database& db, std::int64_t known) {
  // Looked at inside the transaction: another process may have migrated while this one waited.
  for (std::int64_t version = 0; version < known; ++version) {
    const std::string script = std::string(kMigrations[static_cast<std::size_t>(version)]) +
                               "PRAGMA user_version = " + std::to_string(version + 1) +
                               "; PRAGMA application_id = " + std::to_string(kApplication);
    ASSAY_TRY_VOID(db.Atomically([&]() -> Status {
      ASSAY_TRY(const std::int64_t now, VersionOf(db));
      return now > version ? Status() : db.Script(script.c_str());
    }));
  }
  return {};
}

}  // namespace

std::span<const char* const> Migrations() { return kMigrations; }

Result<Database> OpenCorpusFile(const Path& file, Database::Access access) {
  ASSAY_TRY(Database db, Database::Open(file, access));
  ASSAY_TRY_VOID(CheckIsCorpus(db));
  constexpr auto kKnown = static_cast<std::int64_t>(kMigrations.size());
  ASSAY_TRY(const std::int64_t version, VersionOf(db));
  if (version > kKnown) {
    return Fail(ErrorKind::kUsage,
                "the corpus has version " + std::to_string(version) + " of its tables, known is " +
                    std::to_string(kKnown),
                file.string(), "use the version of assay that wrote it, or a later one");
  }
  if (access == Database::Access::kWrite) ASSAY_TRY_VOID(Migrate(db, kKnown));
  if (access == Database::Access::kRead && version < kKnown) {
    return Fail(ErrorKind::kUsage, "the corpus has tables of an earlier version", file.string(),
                "assay corpus ingest --corpus " + file.string() + " brings it up to date");
  }
  return db;
}

}  // namespace assay::dataset
