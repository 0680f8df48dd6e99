// A batch as a page shows it, read from its summary (summary.json, assay.batch_summary/1) alone.
//
// The summary says what came of each instance, what it cost and when it ended; the runs below it have pages of their own. The file
// may come from anybody: what is missing or of another type is left out of the page, a document of another schema is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace assay::report {

struct BatchRow {
  std::string instance, op, model, outcome, reason, sister, run;
  bool up_to_date = false;
  std::uint64_t attempts = 0;
  std::vector<std::pair<std::string, std::string>> gates;  ///< Name and status.
  std::uint64_t read = 0, written = 0;                     ///< Tokens.
  std::optional<double> usd;
  double seconds = 0;
  std::optional<double> ended;  ///< Seconds since the batch began.
};

struct DriftView {
  std::string instance, before, after, reason, gate, finding;
  bool drifted = false;
  std::vector<std::string> changed;  ///< "judge: assay-worker sha256"
};

struct BatchView {
  std::string name, kind, executor, began, stopped;
  double seconds = 0;
  std::vector<BatchRow> rows;
  std::vector<DriftView> drift;

  std::uint64_t CountOf(std::string_view outcome) const;
};

/// Whether the folder is a batch's.
bool HoldsBatch(const Path& folder);
Result<BatchView> ReadBatchView(const Path& folder);
Result<BatchView> BatchViewOf(const Json& summary, const std::string& place);

/// Seconds since 1970 of "2026-01-31T12:00:00.123Z"; nothing where a text is no such stamp.
std::optional<double> SecondsOf(std::string_view stamp);

}  // namespace assay::report
