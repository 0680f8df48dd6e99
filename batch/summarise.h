// From a batch's events and the runs below it to its summary. Reads only; takes no lock, so that it
// can be made while the batch is under way.
#pragma once

#include "base/file.h"
#include "batch/events.h"
#include "batch/summary.h"

namespace assay::batch {

/// `state` is that of the batch in `folder`. A run that cannot be read leaves its row without
/// attempts and says so in its reason.
Summary Summarise(const BatchState& state, const Path& folder);

/// Writes summary.json.
Result<Summary> WriteSummary(const BatchState& state, const Path& folder);

}  // namespace assay::batch
