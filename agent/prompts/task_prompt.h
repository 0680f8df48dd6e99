// The first messages of a conversation: what is asked, in full. Pure functions of (instance,
// prompts).
//
// The reference and its plan are shown; holdout cases and the judge's seeds never are. Parts that
// could grow without bound (reference, lists of axes and workloads) are shortened in the middle;
// the contract itself is always whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/prompts/prompt.h"
#include "ops/op.h"
#include "runs/conversation.h"

namespace assay::prompts {

/// The system message and the task, marked as a prefix worth caching.
Result<std::vector<runs::Message>> TaskMessages(const ops::Instance& instance,
                                                const PromptLibrary& prompts);

/// The variables of task.md, by themselves (tests, `assay ops show`).
Result<Variables> TaskVariables(const ops::Instance& instance, const PromptLibrary& prompts);

/// What a prompt says about a target's limits, e.g. for "sm_90". Unknown targets get the limits
/// that all have.
std::string DescribeTarget(std::string_view arch);

}  // namespace assay::prompts
