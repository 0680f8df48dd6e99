// The folder of a batch:
//
//   batches/<id>/batch.json       what it is asked to do                (from batch_started, _resumed)
//   batches/<id>/events.jsonl     append-only, synced per event          THE TRUTH
//   batches/<id>/summary.json     what it has come to                    (summary.h)
//   batches/<id>/runs/<instance>/ an ordinary run each                   (runs/README.md)
//   batches/<id>/regressions/     counterexamples that sisters share     (validator/verdict/regression_store.h)
//   batches/<id>/tasks/           of a cluster: claims, results, output  (slurm_executor.h)
//
// As with runs: an event is appended and synced before anything acts on it, a last line that a crash
// left torn is cut off, any other damage is an error, and one process at a time works on a batch.
// Record may be called from several threads.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "batch/events.h"

namespace assay::batch {

class BatchFolder {
 public:
  /// A new batch. The folder must not hold one already.
  static Result<std::unique_ptr<BatchFolder>> Create(const Path& path, Clock& clock);
  /// An existing one, with its state. Read-write; locked.
  static Result<std::unique_ptr<BatchFolder>> Open(const Path& path, Clock& clock);
  /// The state so far, without the lock: for those who only look.
  static Result<BatchState> Look(const Path& path);
  /// Its events, likewise.
  static Result<std::vector<StampedEvent>> ReadEvents(const Path& path);

  Status Record(Event event);
  /// A copy: other threads may be recording.
  BatchState state() const;
  const Path& path() const { return path_; }
  Path RunOf(const std::string& instance) const { return path_ / "runs" / instance; }

 private:
  BatchFolder(Path path, Clock& clock);
  Status Lock();

  const Path path_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::chrono::steady_clock::time_point began_;
  UniqueFd log_;
  std::uint64_t next_number_ = 0;
  BatchState state_;
};

}  // namespace assay::batch
