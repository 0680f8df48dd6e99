#include "agent/prompts/compose.h"

namespace assay::prompts {
namespace {

// All judged attempts but `last`, oldest first.
FeedbackInput InputFor(const runs::RunState& state, const runs::Attempt& last,
                       const ops::Instance& instance, const PromptLibrary& prompts,
                       FeedbackMode mode) {
  FeedbackInput input{.instance = instance,
                      .prompts = prompts,
                      .mode = mode,
                      .last = {last.number, &*last.verdict},
                      .earlier = {}};
  for (const runs::Attempt& attempt : state.attempts) {
    if (attempt.verdict && attempt.number != last.number)
      input.earlier.push_back({attempt.number, &*attempt.verdict});
  }
  return input;
}

}  // namespace

Result<std::vector<runs::Message>> Compose(const runs::RunState& state, const runs::Draft& draft,
                                           const ops::Instance& instance,
                                           const PromptLibrary& prompts, FeedbackMode mode,
                                           const std::optional<Sister>& sister) {
  if (draft.kind == runs::DraftKind::kFirst) return TaskMessages(instance, prompts, sister);
  if (draft.kind == runs::DraftKind::kRestart) {
    ASSAY_TRY(std::vector<runs::Message> messages, TaskMessages(instance, prompts, sister));
    ASSAY_TRY(const std::string summary,
              RestartPrompt(InputFor(state, state.attempts.back(), instance, prompts, mode)));
    // One user message: many services refuse two in a row.
    messages.back().text += "\n\n" + summary;
    return messages;
  }
  const runs::Attempt* const parent = state.Find(draft.parent);
  ASSAY_CHECK(parent != nullptr && parent->verdict, "a draft builds on a judged attempt");
  const FeedbackInput input = InputFor(state, *parent, instance, prompts, mode);
  ASSAY_TRY(std::string text,
            draft.kind == runs::DraftKind::kOptimize ? OptimizePrompt(input) : RepairPrompt(input));
  return std::vector<runs::Message>{{runs::Role::kUser, std::move(text), false}};
}

}  // namespace assay::prompts
