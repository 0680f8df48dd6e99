// The dataset card of an export: Markdown with the YAML front matter by which `datasets` finds the
// files. A pure function.
#pragma once

#include "dataset/export.h"

namespace assay::dataset {

struct CardFacts {
  ExportOptions options;
  ExportReport report;
  Json recipe;                                    ///< Of the split.
  std::map<std::string, std::uint64_t> licences;  ///< Attempts by licence.
  std::map<std::string, std::uint64_t> models;    ///< Attempts by model.
  std::map<std::string, std::uint64_t> ops;       ///< Attempts by op.
};

std::string CardOf(const CardFacts& facts);

/// "jsonl", "jsonl.zst", "parquet".
std::string_view ExtensionOf(FileKind kind);

}  // namespace assay::dataset
