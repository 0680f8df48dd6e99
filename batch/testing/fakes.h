// What tests and benchmarks of batches are made of: plans over the library's ops, models that say by
// instance and attempt what a function of theirs says, judges that obey the kernel's text.
#pragma once

#include <functional>
#include <string>

#include "agent/testing/fakes.h"
#include "batch/batch.h"
#include "batch/instance_run.h"
#include "batch/local_executor.h"

namespace assay::testing {

/// A plan of the named ops in all their dtypes, whose model is exec/scripted.
batch::Plan PlanOf(const std::vector<std::string>& ops,
                   batch::DtypeChoice dtypes = batch::DtypeChoice::kAll);

/// What the model of an instance says to a request.
using Says = std::function<Result<runs::ModelReply>(const std::string& instance,
                                                    const models::ModelRequest& request)>;

/// "refute race data_race" and the like, as a reply of ten tokens.
Result<runs::ModelReply> Reply(const std::string& words);

/// A batch in this process, with scripted models and judges.
class BatchBench {
 public:
  explicit BatchBench(Says says) : says_(std::move(says)) {}

  Result<batch::BatchOutcome> Run(const batch::Plan& plan, const Path& folder, unsigned jobs = 1,
                                  bool resume = false);

  Path store;  ///< Empty: none.
  std::map<std::string, std::string> judge = {{"assay", "test"}};
  std::function<bool()> interrupted;
  std::function<void(const verdict::Candidate&, const loop::JudgeContext&)> on_assess;
  batch::Observer* observer = nullptr;
  SystemClock clock;

 private:
  Says says_;
};

}  // namespace assay::testing
