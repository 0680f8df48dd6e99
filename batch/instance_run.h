// One instance of a batch brought to its end: a run of `assay generate` in a folder of its own, taken
// up where an earlier process left it. What the executors have in common.
//
// Never fails: what goes wrong is in the result, so that a failed instance stops no other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/loop/generate.h"
#include "agent/models/limited_model.h"
#include "batch/events.h"
#include "batch/plan.h"
#include "batch/purse.h"

namespace assay::batch {

/// Limiters by service, shared by all instances of a process.
class Limiters {
 public:
  Limiters(models::RequestLimits limits, Clock& clock) : limits_(limits), clock_(clock) {}
  models::RequestLimiter& For(const models::ModelSpec& model);

 private:
  const models::RequestLimits limits_;
  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<models::RequestLimiter>> limiters_;
};

/// What an instance runs with. Functions are called from the thread that runs the instance.
struct RunTools {
  Clock& clock;
  Limiters& limiters;
  Purse& purse;
  std::function<Result<std::vector<std::unique_ptr<loop::Judge>>>(const loop::JudgeSettings&)>
      make_judges;
  /// Empty: the model that the request names.
  std::function<Result<std::unique_ptr<models::Model>>(const loop::GenerateRequest&)> make_model{};
  std::function<void(const loop::Notice&)> observe{};
  std::function<bool()> interrupted{};
  std::function<std::uint64_t()> entropy{};
  std::function<std::optional<std::string>(const std::string&)> variable{};
  Path prompts{};
  std::map<std::string, std::string> versions{};
  std::shared_ptr<const runs::SigningKey> signer{};  ///< Of vetted folders; null: none.
};

struct RunInputs {
  const Task& task;
  Path batch;  ///< The batch's folder.
  std::optional<prompts::Sister> sister;
  std::vector<verdict::Counterexample> regressions;
};

/// "HOST:PID" of this process.
std::string WhereWeAre();

InstanceEnded RunInstance(const RunInputs& inputs, const RunTools& tools);

}  // namespace assay::batch
