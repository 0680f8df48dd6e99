// One instance of a batch as a task of a cluster, and the files by which tasks and the submitting
// shell know of one another, all below the batch's folder on the shared file system:
//
//   tasks/batch-<digest>.json   the plan that tasks run, as it was when they were submitted
//   tasks/array-<n>.json        which instance a task's number means: one array job each
//   tasks/jobs.json             the jobs that were submitted, with their arrays
//   tasks/<i>.lock              held (flock) by the process that runs instance i, dropped by its death
//   tasks/<i>.claim.<g>         who took the instance, a file for each time it was taken (O_EXCL)
//   tasks/<i>.json              what it came to, renamed into place: then nobody runs it again
//
// None runs twice. A task that finds a result ends at once. One that finds the lock held waits for
// it, which the system drops with the process, and then looks for the result. One that finds the
// claim of another job, whose task the cluster still knows, leaves it to that one; a claim whose task
// is no more (its node died) is taken over, and the run goes on at the attempt where it was.
//
// A task trusts the plan whose digest stands on its command line, where the submitting shell put it.
#pragma once

#include "batch/cluster.h"
#include "batch/events.h"
#include "batch/instance_run.h"

namespace assay::batch {

struct ClusterTask {
  Path batch;
  std::string digest;  ///< Of tasks/batch-<digest>.json.
  std::size_t index = 0;
  std::string job;         ///< The cluster's, e.g. "17"; empty outside of one.
  std::size_t number = 0;  ///< Within the job.
  std::string node;
};

struct Claim {
  std::string job;
  std::size_t number = 0;
  std::string node;
  std::string sister;
  int generation = 0;
};

enum class TaskEnd : std::uint8_t { kRan, kDoneBefore, kElsewhere, kInterrupted };

/// Reads the plan that a task runs.
Result<Plan> PlanOfTask(const Path& batch, const std::string& digest, const ops::Library& library,
                        const std::vector<std::string>& ops);

/// Runs the instance and leaves its result. `cluster` is asked whether a claim's task is alive.
Result<TaskEnd> RunClusterTask(const ClusterTask& task, const Plan& plan, const RunTools& tools,
                               Cluster& cluster);

Path ResultFile(const Path& batch, std::size_t index);
/// What a task left, where it has come to its end.
std::optional<InstanceEnded> ReadResult(const Path& batch, std::size_t index);
/// The latest claim of an instance.
std::optional<Claim> LatestClaim(const Path& batch, std::size_t index);

}  // namespace assay::batch
