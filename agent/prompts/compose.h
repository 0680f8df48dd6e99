// What a new attempt says to the model: the task for first attempts, feedback for repairs. A pure
// function of the state.
#pragma once

#include <vector>

#include "agent/prompts/feedback.h"
#include "agent/prompts/prompt.h"
#include "runs/state.h"

namespace assay::prompts {

/// The messages that `draft` adds to its parent's conversation.
Result<std::vector<runs::Message>> Compose(const runs::RunState& state, const runs::Draft& draft,
                                           const ops::Instance& instance,
                                           const PromptLibrary& prompts, FeedbackMode mode);

}  // namespace assay::prompts
