// Workspace that a launch sets up for those behind it (clears.cc).
#pragma once

#include <vector>

#include "ops/launch_plan.h"
#include "validator/execution/execution.h"
#include "validator/ptx/facts/facts.h"

namespace assay::campaign {

/// Findings of a run of all blocks that use something in workspace which nobody has set up: of a buffer in which the first
/// launch that takes it does nothing but store, and all others do nothing but count. Whoever comes first finds what was there
/// before, whatever the order. None where it is not known what the launch that stores has stored, or what else was found.
std::vector<Finding> LeftUncleared(const Report& report, const Execution& execution,
                                   const ops::ResolvedPlan& plan, const facts::Facts* program);

}  // namespace assay::campaign
