#include "agent/compose.h"

#include "agent/feedback.h"
#include "agent/task_prompt.h"

namespace assay::agent {
namespace {

constexpr std::size_t kMaxRegressions = 8;

// All judged attempts but `last`, oldest first.
FeedbackInput InputFor(const RunState& state, const Attempt& last, const ops::Instance& instance,
                       const PromptLibrary& prompts, FeedbackMode mode) {
  FeedbackInput input{.instance = instance,
                      .prompts = prompts,
                      .mode = mode,
                      .last = {last.number, &*last.verdict},
                      .earlier = {}};
  for (const Attempt& attempt : state.attempts) {
    if (attempt.verdict && attempt.number != last.number)
      input.earlier.push_back({attempt.number, &*attempt.verdict});
  }
  return input;
}

}  // namespace

Result<std::vector<Message>> Compose(const RunState& state, const Draft& draft,
                                     const ops::Instance& instance, const PromptLibrary& prompts,
                                     FeedbackMode mode) {
  if (draft.kind == DraftKind::kFirst) return TaskMessages(instance, prompts);
  if (draft.kind == DraftKind::kRestart) {
    ASSAY_TRY(std::vector<Message> messages, TaskMessages(instance, prompts));
    ASSAY_TRY(const std::string summary,
              RestartPrompt(InputFor(state, state.attempts.back(), instance, prompts, mode)));
    // One user message: many services refuse two in a row.
    messages.back().text += "\n\n" + summary;
    return messages;
  }
  const Attempt* const parent = state.Find(draft.parent);
  ASSAY_CHECK(parent != nullptr && parent->verdict, "a draft builds on a judged attempt");
  const FeedbackInput input = InputFor(state, *parent, instance, prompts, mode);
  ASSAY_TRY(std::string text,
            draft.kind == DraftKind::kOptimize ? OptimizePrompt(input) : RepairPrompt(input));
  return std::vector<Message>{{Role::kUser, std::move(text), false}};
}

gates::Verdict FormatVerdict(const ops::Instance& instance, const std::string& engine,
                             const Finding& finding) {
  gates::Counterexample counterexample;
  counterexample.gate = "format";
  counterexample.op = instance.op.name;
  counterexample.op_digest = instance.op.digest;
  for (const auto& [variable, dtype] : instance.binding)
    counterexample.binding[variable] = Name(dtype);
  counterexample.arch = instance.arch;
  counterexample.engine = engine;
  counterexample.findings = {finding};
  gates::GateResult gate;
  gate.gate = "format";
  gate.status = gates::GateStatus::kRefuted;
  gate.counterexamples = {std::move(counterexample)};
  gates::Verdict verdict;
  verdict.outcome = gates::Outcome::kRefuted;
  verdict.reason = finding.message;
  verdict.instance = instance.Id();
  verdict.engine = engine;
  verdict.gates = {std::move(gate)};
  return verdict;
}

std::vector<gates::Counterexample> KnownCounterexamples(const RunState& state,
                                                        const Attempt& attempt) {
  std::vector<gates::Counterexample> known;
  for (const Attempt* at = state.Find(attempt.parent); at != nullptr; at = state.Find(at->parent)) {
    if (!at->verdict) continue;
    for (const gates::GateResult& gate : at->verdict->gates) {
      if (gate.gate == "holdout") continue;
      for (const gates::Counterexample& counterexample : gate.counterexamples) {
        if (counterexample.case_ && known.size() < kMaxRegressions) known.push_back(counterexample);
      }
    }
  }
  return known;
}

}  // namespace assay::agent
