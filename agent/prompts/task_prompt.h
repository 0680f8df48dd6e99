// The first messages of a conversation: what is asked, in full. Pure functions of (instance,
// prompts).
//
// The reference and its plan are shown; holdout cases and the judge's seeds never are. Parts that
// could grow without bound (reference, lists of axes and workloads) are shortened in the middle;
// the contract itself is always whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/prompts/prompt.h"
#include "ops/op.h"
#include "runs/conversation.h"
#include "validator/verdict/candidate.h"

namespace assay::prompts {

/// A kernel that was accepted for another instance of the op: other dtypes, or another target.
struct Sister {
  std::string instance;  ///< Its id.
  verdict::Candidate candidate;
};

/// The system message and the task, marked as a prefix worth caching. `sister`, where there is one,
/// is shown after the task (sister.md).
Result<std::vector<runs::Message>> TaskMessages(const ops::Instance& instance,
                                                const PromptLibrary& prompts,
                                                const std::optional<Sister>& sister = std::nullopt);

/// The variables of task.md, by themselves (tests, `assay ops show`).
Result<Variables> TaskVariables(const ops::Instance& instance, const PromptLibrary& prompts);

/// What a prompt says about a target's limits, e.g. for "sm_90". Unknown targets get the limits
/// that all have.
std::string DescribeTarget(std::string_view arch);

}  // namespace assay::prompts
