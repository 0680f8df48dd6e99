// The folder of a run: events.jsonl, and everything else rebuilt from it.
//
//   run.json              the request                                          (from run_started)
//   events.jsonl          append-only, flushed per event                       THE TRUTH
//   transcript.jsonl      every exchange, for replay/                          (from replies, verdicts)
//   attempts/<n>/         prompt.md reply.md kernel.cu launch.json verdict.json counterexample*.json
//   vetted/<instance>/    what emit.h wrote, before the verdict's event
//
// Record appends the event, then changes the state, then writes the files that follow from it; a
// process killed in between leaves a longer log than files, and Open writes them again. A last line
// that a crash left torn is cut off; any other damage is an error. One process at a time works on a
// run: Create and Open take a lock that the system drops with the process. A folder to be opened may
// come from anybody: one that holds links or pipes is refused, and nothing is written through them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "runs/events.h"
#include "runs/state.h"
#include "runs/transcript.h"

namespace assay::runs {

class RunFolder {
 public:
  /// A new run. The folder must not hold one already. `continuation` is the prompt that asks for
  /// the rest of a cut reply.
  static Result<RunFolder> Create(const Path& path, Clock& clock, std::string continuation);
  /// An existing run, with its state. Read-write; locked.
  static Result<RunFolder> Open(const Path& path, Clock& clock, std::string continuation);

  /// The events of a run so far, without taking the lock: for those who only look. A torn last line
  /// is left out.
  static Result<std::vector<StampedEvent>> ReadEvents(const Path& path);
  /// The request of the run's first or latest start, without taking the lock.
  static Result<Json> ReadRequest(const Path& path);

  Status Record(Event event);
  const RunState& state() const { return state_; }
  const Path& path() const { return path_; }

 private:
  RunFolder(Path path, Clock& clock, std::string continuation);
  Status Lock();
  Status Project(const StampedEvent& event);
  Status ProjectReply(int attempt);
  Status ProjectVerdict(const AttemptJudged& event);
  Status Transcribe(const std::string& line);
  Path AttemptFolder(int attempt) const;

  Path path_;
  Clock* clock_;
  std::string continuation_;
  std::chrono::steady_clock::time_point began_;
  UniqueFd log_;
  UniqueFd transcript_;
  std::uint64_t next_number_ = 0;
  RunState state_;
  TranscriptWriter writer_;
};

/// Writes a file that can be rebuilt: a reader sees the old text or the new one, but nothing waits
/// for the disk.
Status WriteDerived(const Path& path, std::string_view text);

}  // namespace assay::runs
