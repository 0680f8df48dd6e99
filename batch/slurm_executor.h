// Instances of a batch on a cluster: a job array, one instance a task (cluster_task.h), results on
// the shared file system. This shell submits, watches and cancels; it may be killed and started again
// with --resume: tasks go on without it, and what they came to is found.
//
//   leaders in one array, their followers in a second that begins when the first has ended
//   a task that is requeued (its node died) takes its instance up at the attempt where it was
//   a task that the cluster lost without a result is submitted again, three times at most
//   Ctrl-C and the batch's limits cancel all jobs, and wait until the cluster knows of none
//
// Limits by the minute are divided by `at_once`: tasks do not know of one another. The batch's limits
// of money and tokens count what ended; what runs is cut off by each instance's own.
#pragma once

#include "batch/cluster.h"
#include "batch/executor.h"

namespace assay::batch {

struct SlurmOptions {
  Clock& clock;
  /// The program and arguments of a task, but for what names batch, plan and array.
  std::vector<std::string> command;
  unsigned at_once = 0;
  std::function<bool()> interrupted{};
  std::chrono::milliseconds poll{2000};
  /// False: what is missing is written down for whoever runs the tasks, and that is all; the next
  /// call collects what they came to.
  bool wait = true;
};

class SlurmExecutor final : public Executor {
 public:
  SlurmExecutor(Cluster& cluster, SlurmOptions options)
      : cluster_(cluster), options_(std::move(options)) {}
  std::string name() const override { return options_.wait ? "slurm" : "files"; }
  Status Run(Work& work, const std::vector<std::size_t>& todo) override;

 private:
  Cluster& cluster_;
  SlurmOptions options_;
};

/// The instances of an array, in the order of the tasks' numbers.
Result<std::vector<std::size_t>> ReadArray(const Path& file);

/// What a task may ask for a minute, when `at_once` of them share `limits`.
models::RequestLimits ShareOf(models::RequestLimits limits, unsigned at_once);

}  // namespace assay::batch
