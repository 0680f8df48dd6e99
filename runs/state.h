// What a run has come to: the fold of its events. Pure values; the same events give the same state
// on every machine.
//
// An attempt goes through asking (its prompt stands, replies are missing), answered (its reply is
// whole) and judged. Which of them it is follows from what is there; nothing is stored twice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runs/events.h"

namespace assay::runs {

struct Attempt {
  int number = 0;
  DraftKind kind = DraftKind::kFirst;
  int parent = 0;
  std::vector<Message> messages;
  std::vector<ModelReply> replies;  ///< More than one where a reply was cut off and continued.
  bool answered = false;
  std::optional<verdict::Verdict> verdict;
  std::vector<std::uint64_t> holdout_seeds;
  std::string vetted;
  std::string certificate;

  bool Accepted() const { return verdict && verdict->outcome == verdict::Outcome::kAccepted; }
  /// All replies as one: texts joined, the last one's stop reason, usage added.
  ModelReply JoinedReply() const;
};

struct RunState {
  Json request;
  std::string prompts_digest;
  std::vector<Attempt> attempts;           ///< attempts[i].number == i + 1
  Usage answered;                          ///< Tokens of replies.
  Usage lost;                              ///< Tokens of tries that came to nothing.
  std::uint64_t earlier_milliseconds = 0;  ///< Time that ended processes spent on it.
  std::uint64_t session_milliseconds = 0;  ///< Up to the last event of the current process.
  std::optional<RunStopped> stopped;       ///< Cleared by a resumption.

  const Attempt* Find(int number) const;
  int JudgedCount() const;
  /// The accepted attempt that counts: the last one that was emitted; where none was (the jail was
  /// off), the first accepted one.
  const Attempt* Accepted() const;
};

/// Applies one event. An event that does not fit (a reply to an unknown attempt) is an error: the
/// log is not of this run.
Status Apply(const StampedEvent& event, RunState& state);

/// What is sent for the next part of `attempt`: the first messages of its conversation, the last
/// few exchanges before it, its own messages, and what it has answered so far with `continuation`
/// asking for the rest. Bounded in size; a pure function of the state.
Conversation ConversationFor(const RunState& state, const Attempt& attempt,
                             const std::string& continuation);

/// "attempt-3", "attempt-3.2" for its second part.
std::string RequestName(int attempt, std::size_t part);

}  // namespace assay::runs
