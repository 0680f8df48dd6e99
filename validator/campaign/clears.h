// Workspace that a launch sets up for those behind it (clears.cc).
#pragma once

#include "validator/execution/execution.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// Is it the use of something in workspace that nobody has set up: of a buffer in which the first launch that takes it does
/// nothing but store, and all others do nothing but count? Whoever comes first finds what was there before then, whatever
/// the order.
bool IsLeftUncleared(const Finding& finding, const Execution& execution,
                     const facts::Facts* program);

}  // namespace assay::campaign
