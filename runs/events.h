// What can happen in a run. The list of events, as one JSON line each (events.jsonl,
// assay.event/1), is the truth about a run; RunState (run_state.h) is what follows from it and
// nothing else.
//
// An event is appended and flushed before anything that depends on it is done or told. Adding a
// kind: a struct, a row in events.cc, a clause in run_state.cc.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "runs/conversation.h"
#include "validator/verdict/verdict.h"

namespace assay::runs {

/// Why an attempt is made.
enum class DraftKind : std::uint8_t { kFirst, kRepair, kRestart, kOptimize };
std::string_view Name(DraftKind kind);

/// An attempt to be made: why, and from which one.
struct Draft {
  DraftKind kind = DraftKind::kFirst;
  int parent = 0;
  bool operator==(const Draft&) const = default;
};

struct RunStarted {
  Json request;  ///< As run.json shows it (schema/run.schema.json).
  std::string prompts_digest;
};
struct RunResumed {
  Json request;  ///< Attempts and budget may have grown.
};
struct PlannedAttempt {
  int attempt = 0;
  DraftKind kind = DraftKind::kFirst;
  int parent = 0;                 ///< 0: a new conversation.
  std::vector<Message> messages;  ///< What it adds to the parent's conversation.
};
/// All that a strategy names at once: a run killed between two of them would take another course.
struct AttemptsPlanned {
  std::vector<PlannedAttempt> attempts;
};
struct ReplyReceived {
  int attempt = 0;
  ModelReply reply;
  bool final = true;  ///< False: it was cut off and its continuation is asked for.
};
struct TryFailed {
  int attempt = 0;
  std::string error;
  Usage lost;  ///< Paid for nothing.
};
struct AttemptJudged {
  int attempt = 0;
  verdict::Verdict verdict;
  std::vector<std::uint64_t> holdout_seeds;
  std::string vetted;       ///< The emitted kernel's folder below the run's; empty where none.
  std::string certificate;  ///< SHA-256 of its certificate, which holds those of its files.
};
struct RunStopped {
  verdict::Outcome outcome{};
  std::string reason;
  bool resumable = false;
};

using Event = std::variant<RunStarted, RunResumed, AttemptsPlanned, ReplyReceived, TryFailed,
                           AttemptJudged, RunStopped>;

/// An event with where it stands: number from 0, wall-clock stamp, milliseconds since this process
/// took up the run.
struct StampedEvent {
  std::uint64_t number = 0;
  std::string time;
  std::uint64_t milliseconds = 0;
  Event event;
};

Json ToJson(const StampedEvent& event);
Result<StampedEvent> EventFromJson(const Json& json, const std::string& place);

}  // namespace assay::runs
