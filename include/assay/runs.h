// Runs: the folders that generating leaves behind, for whoever looks at them afterwards.
//
//   for (const RunSummary& run : *ListRuns("runs"))
//     if (auto record = ReadRun(run.folder); record) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "assay/error.h"
#include "assay/judge.h"

namespace assay::api {

struct RunSummary {
  std::filesystem::path folder;
  std::string instance;  ///< "rms_norm-T=f16-sm_90"
  std::string model;
  std::string
      state;  ///< "accepted", "refuted", ... where it has ended; else "running", "interrupted".
  std::string began;
  int attempts = 0;
  int judged = 0;
  bool vetted = false;     ///< It holds a kernel that passed every gate.
  std::string unreadable;  ///< Why its record could not be read; empty where it could.
};
/// The runs at or below `folder`, by path.
Result<std::vector<RunSummary>> ListRuns(const std::filesystem::path& folder);

struct RunAttempt {
  int number = 0;
  int parent = 0;  ///< The attempt it repairs; 0: none.
  std::string reply;
  std::optional<Candidate> candidate;  ///< What the reply holds, where it holds one.
  std::optional<Verdict> verdict;
  std::filesystem::path vetted;  ///< Folder of the emitted kernel; empty where there is none.
};
struct RunRecord {
  std::vector<RunAttempt> attempts;
  std::optional<Outcome> outcome;  ///< Where the run has ended.
  std::string reason;
};
/// The record of a run, without its lock: a run under way is read as far as it has come.
Result<RunRecord> ReadRun(const std::filesystem::path& folder);

}  // namespace assay::api
