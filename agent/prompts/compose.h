// What a new attempt says to the model: the task for first attempts, feedback for repairs. A pure
// function of the state.
#pragma once

#include <vector>

#include "agent/prompts/feedback.h"
#include "agent/prompts/prompt.h"
#include "agent/prompts/task_prompt.h"
#include "runs/state.h"

namespace assay::prompts {

/// The messages that `draft` adds to its parent's conversation. `sister`: shown with the task.
Result<std::vector<runs::Message>> Compose(const runs::RunState& state, const runs::Draft& draft,
                                           const ops::Instance& instance,
                                           const PromptLibrary& prompts, FeedbackMode mode,
                                           const std::optional<Sister>& sister = std::nullopt);

}  // namespace assay::prompts
