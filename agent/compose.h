// What a new attempt says to the model: the task for first attempts, feedback for repairs. A pure
// function of the state.
#pragma once

#include <vector>

#include "agent/generate.h"
#include "agent/prompt.h"
#include "agent/run_state.h"
#include "agent/strategy.h"

namespace assay::agent {

/// The messages that `draft` adds to its parent's conversation.
Result<std::vector<Message>> Compose(const RunState& state, const Draft& draft,
                                     const ops::Instance& instance, const PromptLibrary& prompts,
                                     FeedbackMode mode);

/// The verdict on a reply that holds no candidate: refuted by the format gate.
gates::Verdict FormatVerdict(const ops::Instance& instance, const std::string& engine,
                             const Finding& finding);

/// Counterexamples of the attempts that `attempt` descends from, for the judge to try first. Only
/// those: which other attempts have been judged by now is a matter of timing. Holdout cases stay
/// out: what is tried again would be told.
std::vector<gates::Counterexample> KnownCounterexamples(const RunState& state,
                                                        const Attempt& attempt);

}  // namespace assay::agent
