// The runs below a folder, and which of them may be cleaned away.
//
// Cleaning is for disks that fill up, so it errs on the side of keeping: a run that holds a vetted kernel stays, as does one that a
// process works on, one that cannot be read (nobody knows what is in it), and anything that is no run. A plan says what would go
// and why the rest stays; carrying it out takes each run's lock first and looks again. Links are neither followed nor removed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "runs/state.h"

namespace assay::runs {

struct RunEntry {
  Path folder;
  std::uintmax_t bytes = 0;                ///< Of all its files.
  std::filesystem::file_time_type last{};  ///< When an event was last written.
  bool vetted = false;                     ///< Something lies in vetted/.
  bool locked = false;                     ///< A process works on it.
  std::string instance, model, began;
  int attempts = 0, judged = 0;
  std::string
      state;  ///< "accepted", "refuted", ... where it has ended; else "running" or "interrupted".
  std::string unreadable;  ///< Why its events could not be read; empty where they could.
};

/// The runs at or below `folder`, sorted by path. A run within a run's folder is part of that run.
Result<std::vector<RunEntry>> ListRuns(const Path& folder);

struct CleaningPolicy {
  std::optional<std::chrono::seconds> older_than;  ///< Since the last event.
  std::optional<std::uintmax_t> keep_bytes;  ///< The oldest go until no more than this is left.
};
struct CleaningStep {
  RunEntry run;
  bool remove = false;
  std::string why;  ///< "older than 30 days", "holds a vetted kernel", ...
};
/// Every run of `runs`, in their order. Pure: `now` is given.
std::vector<CleaningStep> PlanCleaning(std::vector<RunEntry> runs, const CleaningPolicy& policy,
                                       std::filesystem::file_time_type now);

/// Removes a run's folder under its lock; refuses what PlanCleaning would keep for what it is.
Status RemoveRun(const Path& folder);

}  // namespace assay::runs
