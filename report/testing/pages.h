// Runs and batches that tests make pages of.
#pragma once

#include <string>

#include "base/file.h"
#include "base/json.h"

namespace assay::testing {

/// The page of the demo run as it was recorded (report/testdata/demo), made below `folder`.
std::string DemoPage(const Path& folder);

/// A run in which everything that a model, a server or a stranger writes is an attempt at the page: scripts in names, reasons and
/// kernels, bytes that are no text, sources of megabytes, lines without end.
void WriteHostileRun(const Path& folder);

/// A summary of a batch with `instances` instances, some of each outcome, and drift.
Json BatchSummary(int instances);

}  // namespace assay::testing
