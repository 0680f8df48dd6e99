#include "runs/state.h"

#include <algorithm>

#include "base/text.h"
#include "runs/standing.h"

namespace assay::runs {
namespace {

// A model needs its last few tries before its eyes, not all of them: older ones come back as one
// line each (feedback.cc).
constexpr std::size_t kKeptExchanges = 3;
constexpr std::size_t kKeptBytes = 160 * 1024;
constexpr std::size_t kMaxAnswerBytes =
    64 * 1024;  // of a runaway reply, its head and tail are enough

Status Misfit(const StampedEvent& event, const std::string& what) {
  return Fail(ErrorKind::kMalformedInput, what, "event " + std::to_string(event.number),
              "events.jsonl has been edited or mixed up; restore it");
}

struct Folder {
  const StampedEvent& stamped;
  RunState& state;

  Attempt* Known(int number) const {
    const bool known = number >= 1 && static_cast<std::size_t>(number) <= state.attempts.size();
    return known ? &state.attempts[static_cast<std::size_t>(number) - 1] : nullptr;
  }

  Status operator()(const RunStarted& event) const {
    if (stamped.number != 0) return Misfit(stamped, "the run is started a second time");
    state.request = event.request;
    state.prompts_digest = event.prompts_digest;
    return {};
  }
  Status operator()(const RunResumed& event) const {
    state.request = event.request;
    state.earlier_milliseconds += state.session_milliseconds;
    state.session_milliseconds = 0;
    state.stopped.reset();
    return {};
  }
  Status operator()(const AttemptsPlanned& event) const {
    for (const PlannedAttempt& planned : event.attempts) {
      if (static_cast<std::size_t>(planned.attempt) != state.attempts.size() + 1) {
        return Misfit(stamped, "attempts are not numbered in order");
      }
      if (planned.parent != 0 && Known(planned.parent) == nullptr) {
        return Misfit(stamped, "the parent is not known");
      }
      Attempt attempt;
      attempt.number = planned.attempt;
      attempt.kind = planned.kind;
      attempt.parent = planned.parent;
      attempt.messages = planned.messages;
      state.attempts.push_back(std::move(attempt));
    }
    return {};
  }
  Status operator()(const ReplyReceived& event) const {
    Attempt* const attempt = Known(event.attempt);
    if (attempt == nullptr || attempt->answered)
      return Misfit(stamped, "a reply that nobody waits for");
    attempt->replies.push_back(event.reply);
    attempt->answered = event.final;
    state.answered += event.reply.usage;
    return {};
  }
  Status operator()(const TryFailed& event) const {
    state.lost += event.lost;
    return {};
  }
  Status operator()(const AttemptJudged& event) const {
    Attempt* const attempt = Known(event.attempt);
    if (attempt == nullptr || !attempt->answered || attempt->verdict) {
      return Misfit(stamped, "a verdict that nobody waits for");
    }
    attempt->verdict = event.verdict;
    attempt->holdout_seeds = event.holdout_seeds;
    attempt->vetted = event.vetted;
    attempt->certificate = event.certificate;
    return {};
  }
  Status operator()(const RunStopped& event) const {
    state.stopped = event;
    return {};
  }
};

Message Answer(const Attempt& attempt) {
  std::string text = Shorten(attempt.JoinedReply().text, kMaxAnswerBytes);
  // Services refuse empty messages.
  if (Strip(text).empty()) text = "(no text)";
  return {Role::kAssistant, std::move(text), false};
}

}  // namespace

ModelReply Attempt::JoinedReply() const {
  ModelReply joined;
  for (const ModelReply& reply : replies) {
    joined.text += reply.text;
    joined.reasoning += reply.reasoning;
    joined.stop = reply.stop;
    joined.usage += reply.usage;
    joined.request_id = reply.request_id;
    joined.model = reply.model;
  }
  return joined;
}

const Attempt* RunState::Find(int number) const {
  if (number < 1 || static_cast<std::size_t>(number) > attempts.size()) return nullptr;
  return &attempts[static_cast<std::size_t>(number) - 1];
}

int RunState::JudgedCount() const {
  return static_cast<int>(
      std::ranges::count_if(attempts, [](const Attempt& a) { return a.verdict.has_value(); }));
}

const Attempt* RunState::Accepted() const {
  const Attempt* accepted = nullptr;
  for (const Attempt& attempt : attempts) {
    if (!attempt.Accepted()) continue;
    // What was emitted replaced what was there. Without a jail nothing is, and the fastest counts.
    const bool faster = accepted != nullptr && accepted->vetted.empty() && accepted->verdict &&
                        attempt.verdict && RunsFaster(*attempt.verdict, *accepted->verdict);
    if (accepted == nullptr || !attempt.vetted.empty() || faster) accepted = &attempt;
  }
  return accepted;
}

Status Apply(const StampedEvent& event, RunState& state) {
  ASSAY_TRY_VOID(std::visit(Folder{event, state}, event.event));
  state.session_milliseconds = std::max(state.session_milliseconds, event.milliseconds);
  return {};
}

Conversation ConversationFor(const RunState& state, const Attempt& attempt,
                             const std::string& continuation) {
  std::vector<const Attempt*> line;  // from the root of the conversation to the parent
  for (const Attempt* at = state.Find(attempt.parent); at != nullptr; at = state.Find(at->parent)) {
    line.push_back(at);
  }
  std::ranges::reverse(line);
  Conversation conversation;
  if (!line.empty()) conversation.messages = line.front()->messages;
  // Which exchanges are kept: from the last one backwards, while there is room.
  std::size_t first_kept = line.size();
  std::size_t bytes = 0;
  while (first_kept > 0 && line.size() - first_kept < kKeptExchanges) {
    const Attempt& candidate = *line[first_kept - 1];
    for (const ModelReply& reply : candidate.replies) bytes += reply.text.size();
    for (const Message& message : candidate.messages) bytes += message.text.size();
    if (bytes > kKeptBytes && first_kept < line.size()) break;
    --first_kept;
  }
  for (std::size_t i = first_kept; i < line.size(); ++i) {
    // The root's messages stand at the head already; a request must not hold two user messages in a
    // row.
    if (i > 0 && i > first_kept) {
      conversation.messages.insert(conversation.messages.end(), line[i]->messages.begin(),
                                   line[i]->messages.end());
    }
    conversation.messages.push_back(Answer(*line[i]));
  }
  conversation.messages.insert(conversation.messages.end(), attempt.messages.begin(),
                               attempt.messages.end());
  for (const ModelReply& reply : attempt.replies) {
    conversation.messages.push_back(
        {Role::kAssistant, Strip(reply.text).empty() ? "(no text)" : reply.text, false});
    conversation.messages.push_back({Role::kUser, continuation, false});
  }
  return conversation;
}

std::string RequestName(int attempt, std::size_t part) {
  std::string name = "attempt-" + std::to_string(attempt);
  return part > 1 ? name + "." + std::to_string(part) : name;
}

}  // namespace assay::runs
