// What is asked of a cluster: submit an array of tasks, look at the queue, cancel. The seam where
// tests put a cluster of their own; SlurmCluster speaks to Slurm by its programs (sbatch, squeue,
// scancel, sacct), without a shell between.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "batch/plan.h"

namespace assay::batch {

struct Submission {
  std::string name;                ///< For people who look at the queue.
  std::size_t tasks = 0;           ///< Numbered from 0.
  unsigned at_once = 0;            ///< Tasks that run at a time; 0: no limit.
  std::vector<std::string> after;  ///< Jobs that must have ended first, well or not.
  Path folder;                     ///< Working folder of the tasks.
  Path output;                     ///< Folder for what they print.
  Resources resources;
  /// The program and its arguments; the task's number is appended.
  std::vector<std::string> command;
};

/// A task's number within its job.
using TaskId = std::pair<std::string, std::size_t>;

/// What the cluster's accounting knows of a task.
struct Account {
  std::string state;
  std::string node;
  double seconds = 0;
  double cpu_seconds = 0;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  /// The job's id.
  virtual Result<std::string> Submit(const Submission& submission) = 0;
  /// Tasks of these jobs that wait or run, or are about to.
  virtual Result<std::set<TaskId>> Active(const std::vector<std::string>& jobs) = 0;
  virtual Status Cancel(const std::vector<std::string>& jobs) = 0;
  /// Empty where there is no accounting.
  virtual std::map<TaskId, Account> Accounts(const std::vector<std::string>& jobs) = 0;
};

/// For clusters that we do not speak to: submitting tells nobody, no task is known to be active.
std::unique_ptr<Cluster> MakeFilesCluster();
/// Fails where Slurm's programs are missing.
Result<std::unique_ptr<Cluster>> MakeSlurmCluster();

/// The batch script of a submission: one line of a shell, every word quoted.
std::string SlurmScript(const Submission& submission);
/// Arguments of sbatch for a submission.
std::vector<std::string> SbatchArguments(const Submission& submission);
/// Lines "JOB TASK STATE" of squeue.
std::set<TaskId> ParseQueue(const std::string& text);
/// Lines "JOB_TASK|STATE|NODE|SECONDS|CPU" of sacct.
std::map<TaskId, Account> ParseAccounts(const std::string& text);

}  // namespace assay::batch
