// What a batch is to do: instances (ops x dtypes x archs), each with the request of its run, and what
// all of them share: budget, limits of requests, resources.
//
// A plan comes from the command line, or from a file (assay.batch_plan/1,
// batch/schemas/batch_plan.schema.json):
//
//   {"schema": "assay.batch_plan/1",
//    "defaults": {"model": "cheap", "dtypes": "all", "archs": ["sm_90"], "attempts": 8},
//    "models": {"cheap": {"model": "openai/gpt-5-mini"}, "best": {"model": "openai/gpt-5"}},
//    "ops": [{"op": "softmax"}, {"op": "attention", "model": "best", "priority": 10, "attempts": 24,
//                                "budget": {"usd": 5}}],
//    "budget": {"usd": 50}, "limits": {"requests": 16, "tokens_per_minute": 400000}}
//
// What an op does not say, `defaults` says; what those do not, the command line. Unknown keys are
// errors that name the nearest known one. The instances of an op are sisters: the first in the plan
// leads, the others begin when it has ended (sisters.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/loop/generate.h"
#include "agent/models/limited_model.h"
#include "ops/op.h"

namespace assay::batch {

struct Task {
  loop::GenerateRequest request;  ///< `out`, `resume` and `sister` are the executor's to set.
  int priority = 0;               ///< Higher ones begin first.

  std::string id() const { return request.instance.Id(); }
};

/// What a cluster is asked for, for each instance. 0 and empty: what it gives by itself.
struct Resources {
  std::string partition;
  std::string account;
  std::uint32_t cpus = 0;
  std::string memory;  ///< "8G"
  std::uint32_t minutes = 0;
  std::uint32_t gpus = 0;
};

struct Plan {
  std::vector<Task> tasks;
  loop::Budget budget;  ///< Of the batch as a whole, and the prices of all.
  models::RequestLimits limits;
  Resources resources;
  bool share = true;  ///< Sisters learn from the one that leads them.
};

enum class DtypeChoice : std::uint8_t { kDefault, kAll, kListed };

/// What an op's instances are made with: the command line's words, overridden by a plan's.
struct Settings {
  models::ModelSpec model;  ///< Without a spec: the op's own transcript.
  DtypeChoice dtypes = DtypeChoice::kDefault;
  std::vector<std::map<std::string, std::string>> bindings;  ///< kListed.
  std::vector<std::string> archs = {"sm_90"};
  int priority = 0;
  loop::StrategyOptions strategy;
  prompts::FeedbackMode feedback = prompts::FeedbackMode::kFull;
  campaign::Effort effort = campaign::Effort::kStandard;
  std::string engine = "emulator";
  std::uint64_t seed = 1;
  loop::Budget budget;  ///< Of each instance.
  bool unsafe_no_jail = false;
};

/// Adds the instances of `op` (a name or a folder, as `assay generate` takes it) to the plan.
Status AddOp(Plan& plan, const ops::Library& library, const std::string& op,
             const Settings& settings);

/// Reads a plan file. `base`: what the command line says; `plan`: what it says of the whole.
Result<Plan> ReadPlan(const Json& json, const std::string& place, const ops::Library& library,
                      const Settings& base, Plan plan);

/// No instance twice, at least one, and a price wherever dollars are limited.
Status CheckPlan(const Plan& plan);

/// The plan as batch.json holds it: "instances" with their requests, "budget", "prices", "limits",
/// "resources", "share". `keys`: the instances' keys, in order.
Json PlanToJson(const Plan& plan, const std::vector<std::string>& keys,
                const std::map<std::string, std::string>& versions,
                const std::string& prompts_digest);

/// What the command line says again of a batch that comes from a folder: see TrustPlan.
struct Said {
  std::vector<std::string> ops;
  std::vector<models::ModelSpec> models;
  Path prices;
  bool unsafe_no_jail = false;
};

/// The plan of batch.json. Ops are the library's, or those that `ops` names.
Result<Plan> PlanFromJson(const Json& json, const std::string& place, const ops::Library& library,
                          const std::vector<std::string>& ops);

/// A batch's folder may come from anybody. What its plan would run, send or read (models but
/// replay/, servers, key files, variables, prices) has to be among what was said, or is refused.
/// Addresses are taken as they were said: a record leaves out user and password.
Status TrustPlan(Plan& plan, const Said& said);

}  // namespace assay::batch
