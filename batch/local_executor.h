// Instances of a batch in threads of this process: `jobs` at a time, with one pool of workers and
// one limiter of requests a service for all of them.
//
// What overlaps: one instance waits for its model while others are judged. Memory grows with `jobs`,
// not with the number of instances.
#pragma once

#include "batch/executor.h"
#include "batch/instance_run.h"

namespace assay::batch {

class LocalExecutor final : public Executor {
 public:
  /// `tools.observe` is not used: notices go to Work.
  LocalExecutor(RunTools tools, unsigned jobs) : tools_(std::move(tools)), jobs_(jobs) {}
  std::string name() const override { return "local"; }
  Status Run(Work& work, const std::vector<std::size_t>& todo) override;

 private:
  RunTools tools_;
  unsigned jobs_;
};

}  // namespace assay::batch
