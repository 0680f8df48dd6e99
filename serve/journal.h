// What the service must not forget: an append-only file of lines, synced before anything is
// acknowledged (journal.jsonl, assay.serve_journal/1).
//
//   {"event": "began", "schema": "assay.serve_journal/1", "next": 17}
//   {"event": "submitted", "jobs": [{"number": 17, "client": "ann", ...}]}
//   {"event": "ended", "number": 17, "outcome": "refuted", ..., "document": "<sha256>"}
//   {"event": "cancelled", "number": 18}
//
// A process killed at any instruction leaves whole lines and perhaps the beginning of one, which was
// acknowledged to nobody and is dropped. Jobs that were submitted and neither ended nor cancelled
// are queued again. Opening writes the file anew, by rename, without what is no longer needed: the
// requests of jobs that are over, and the oldest of these beyond `keep`. A process that runs for long
// does the same where the file has grown (Grown, Rewrite): it is read whole at the next start.
//
// One process at a time (flock). Not thread-safe. Cost: one fdatasync an event.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "serve/job.h"

namespace assay::serve {

class Journal {
 public:
  struct Opened;
  /// Fails where another process has it, and where a line before the last cannot be read.
  static Result<Opened> Open(const Path& folder, std::size_t keep);

  /// All of them or none.
  Status Submitted(std::span<const Job> jobs);
  Status Ended(const Job& job);
  Status Cancelled(std::uint64_t number);

  /// Is most of the file of no more use?
  bool Grown() const { return length_ > grown_; }
  /// Leaves these jobs in the file and nothing else. Where that fails the file is as it was.
  Status Rewrite(std::span<const Job* const> jobs, std::uint64_t next);

 private:
  Journal(Path file, UniqueFd lock) : file_(std::move(file)), lock_(std::move(lock)) {}
  Status Append(const Json& event);

  Path file_;
  UniqueFd lock_;
  UniqueFd fd_;
  std::uint64_t length_ = 0;  ///< Of what is whole.
  std::uint64_t grown_ = 0;
};

/// Of the jobs that are over, all but the latest `keep`; `jobs` by number. Those that were submitted
/// together are kept or forgotten together: their rewards are fetched as one.
std::vector<std::uint64_t> TooOld(std::span<const Job* const> jobs, std::size_t keep);

struct Journal::Opened {
  Journal journal;
  std::vector<Job> jobs;                 ///< By number; none of them runs.
  std::vector<std::uint64_t> forgotten;  ///< Their documents are no longer needed.
  std::uint64_t next = 1;                ///< The next job's number.
};

}  // namespace assay::serve
