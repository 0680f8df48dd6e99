// Exports: a folder that trainers load as it is.
//
//   OUT/README.md             dataset card: YAML front matter with a configuration a format, then words
//   OUT/export.json           what was exported, and from what (assay.corpus.export/1)
//   OUT/SHA256SUMS            of every other file (sha256sum -c)
//   OUT/FORMAT/PART.jsonl     or .jsonl.zst, or .parquet
//
// The folder appears whole or not at all. It is a function of the corpus, the split and the options:
// the same ones give the same bytes; no times, no paths, no machine. A split that leaks is refused.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "dataset/corpus.h"

namespace assay::dataset {

enum class FileKind : std::uint8_t { kJsonl, kJsonlZst, kParquet };

struct ExportOptions {
  std::string split = "default";
  std::vector<std::string> formats;  ///< Empty: all.
  FileKind kind = FileKind::kJsonl;
  std::string name = "assay-corpus";  ///< Title of the card.
  bool replace = false;               ///< An earlier export in the same place goes.
  /// For kParquet: turns every .jsonl below a folder into .parquet.
  std::function<Status(const Path&)> to_parquet;
};

struct ExportReport {
  /// Rows by format, then part.
  std::map<std::string, std::map<std::string, std::uint64_t>> rows;
  std::uint64_t left_out = 0;  ///< Rows of withheld attempts.
};
Json ToJson(const ExportReport& report);

Result<ExportReport> Export(Corpus& corpus, const ExportOptions& options, const Path& out);

/// The counterexamples that the rows of an export name, sorted. Fails where a file is not what
/// SHA256SUMS says.
Result<std::vector<std::string>> CounterexamplesOf(const Path& exported);

}  // namespace assay::dataset
