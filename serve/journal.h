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
// requests of jobs that are over, and the oldest of these beyond `keep`.
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

 private:
  Journal(Path file, UniqueFd lock, UniqueFd fd, std::uint64_t length)
      : file_(std::move(file)), lock_(std::move(lock)), fd_(std::move(fd)), length_(length) {}
  Status Append(const Json& event);

  Path file_;
  UniqueFd lock_;
  UniqueFd fd_;
  std::uint64_t length_;  ///< Of what is whole.
};

struct Journal::Opened {
  Journal journal;
  std::vector<Job> jobs;                 ///< By number; none of them runs.
  std::vector<std::uint64_t> forgotten;  ///< Their documents are no longer needed.
  std::uint64_t next = 1;                ///< The next job's number.
};

}  // namespace assay::serve
