// From a verdict to the next prompt: what failed, on the smallest case, where in the source, what
// is missing, and what held.
//
// Up to three distinct findings are told, each through the template of its family
// (prompts/repair/). Earlier attempts come back in one line each, so that a fixed bug does not
// return. Findings of the holdout gate are told by kind alone: a case that feedback has mentioned
// is not a holdout any more. With FeedbackMode::kAggregate no finding is told by more than its
// kind.
//
// Pure functions; sizes are bounded whatever the verdict holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/prompts/prompt.h"
#include "ops/op.h"
#include "validator/verdict/verdict.h"

namespace assay::prompts {

/// How much of a counterexample the model is told.
enum class FeedbackMode : std::uint8_t { kFull, kAggregate };
std::string_view Name(FeedbackMode mode);
std::optional<FeedbackMode> ParseFeedbackMode(std::string_view name);

struct PastAttempt {
  int number = 0;
  const verdict::Verdict* verdict = nullptr;
};

struct FeedbackInput {
  const ops::Instance& instance;
  const PromptLibrary& prompts;
  FeedbackMode mode = FeedbackMode::kFull;
  PastAttempt last;                  ///< What is to be repaired.
  std::vector<PastAttempt> earlier;  ///< All others that were judged, oldest first.
};

/// The next message after `last` was refuted or left inconclusive.
Result<std::string> RepairPrompt(const FeedbackInput& input);
/// The first message of a new conversation when attempts have got stuck: appended to the task.
Result<std::string> RestartPrompt(const FeedbackInput& input);
/// After acceptance, when speed is asked for.
Result<std::string> OptimizePrompt(const FeedbackInput& input);

/// "attempt 2: refuted by race: two threads write partial[0] ..." One line.
std::string OneLine(const PastAttempt& attempt, FeedbackMode mode);

/// Families of the findings that would be told, guilty first, each once: {"race", "numeric"}.
std::vector<std::string> FamiliesOf(const verdict::Verdict& verdict);

/// The lines around `accesses` of one file, guilty ones marked; empty without line information.
std::string SourceExcerpt(const Finding& finding, std::string_view kernel);

}  // namespace assay::prompts
