// `assay batch` as a function: a plan to a folder full of runs and a summary.
//
//   BatchRequest request{.plan = plan, .folder = "batches/x", .store = "store"};
//   BatchEnvironment environment{.clock = clock, .executor = executor, .judge = facts, ...};
//   ASSAY_TRY(const BatchOutcome outcome, RunBatch(request, environment));
//
// What is up to date (an earlier batch's vetted kernel for the same key, runs/instance_key.h) is left
// alone, as make leaves alone what is newer than its sources. Where nothing is to be done nothing is
// written. A batch that was killed at any instruction is taken up at the attempt where each of its
// runs was.
#pragma once

#include <functional>

#include "batch/executor.h"
#include "batch/summary.h"

namespace assay::batch {

struct BatchRequest {
  Plan plan;
  Path folder;          ///< Made where there is something to do.
  bool resume = false;  ///< `folder` holds a batch to be continued.
  Path store;           ///< Artefacts; empty: none, nothing is up to date.
  unsigned jobs = 1;    ///< For the record.
};

struct BatchEnvironment {
  Clock& clock;
  Executor& executor;
  Observer& observer;
  Purse& purse;
  std::map<std::string, std::string> judge;     ///< Versions and digests of what judges.
  std::map<std::string, std::string> versions;  ///< For run.json and certificates.
  Path prompts{};                               ///< Empty: PromptLibrary::DefaultFolder().
  std::function<bool()> interrupted{};
};

struct BatchOutcome {
  Summary summary;
  Path folder;  ///< Empty: nothing was to be done, and nothing was written.
  bool nothing_to_do = false;
};

Result<BatchOutcome> RunBatch(const BatchRequest& request, BatchEnvironment& environment);

/// 0 where every instance has its kernel, 3 where one failed, 2 where one is waiting or undecided,
/// else 1.
int ExitCode(const Summary& summary);

/// The key of each instance of the plan. Reads transcripts that are replayed.
Result<std::vector<runs::InstanceKey>> KeysOf(const Plan& plan,
                                              const std::map<std::string, std::string>& judge,
                                              const std::string& prompts_digest);

/// batches/<time>, with a number where that is taken.
Result<Path> FreshBatch(Clock& clock);

}  // namespace assay::batch
