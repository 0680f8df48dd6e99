#include "cli/batch_options.h"

#include "cli/command.h"
#include "cli/instance.h"

namespace assay::cli {
namespace {

void AddLimits(CLI::App& command, BatchRequest& request) {
  const auto add = [&command](const char* name, auto& value, const char* what,
                              const CLI::Validator& check) {
    command.add_option(name, value, what)->group("Limits")->check(check);
  };
  add("--budget-usd", request.budget.usd, "Money for the batch, in US dollars (0: no limit).",
      NumberFrom(0, 1e9));
  add("--budget-tokens", request.budget.tokens, "Tokens for the batch.", WholeNumber());
  add("--budget-seconds", request.budget.seconds, "Time for the batch.", WholeNumber());
  add("--each-usd", request.each.usd, "Money for each instance.", NumberFrom(0, 1e9));
  add("--each-tokens", request.each.tokens, "Tokens for each instance.", WholeNumber());
  add("--each-seconds", request.each.seconds, "Time for each instance.", WholeNumber());
  add("--requests", request.limits.at_once, "Requests to a service at a time, over all instances.",
      CLI::Range(0, 10000));
  add("--requests-per-minute", request.limits.requests_per_minute,
      "Requests to a service a minute (0: no limit).", WholeNumber());
  add("--tokens-per-minute", request.limits.tokens_per_minute,
      "Tokens to and from a service a minute (0: no limit).", WholeNumber());
  command
      .add_option("--prices", request.prices,
                  "Price table (assay.prices/1) instead of the built-in one.")
      ->group("Limits");
}

void AddCluster(CLI::App& command, BatchRequest& request) {
  const CLI::Validator word(
      [](std::string& text) -> std::string {
        return text.starts_with("-") ||
                       text.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,") !=
                           std::string::npos
                   ? "'" + text + "' is no name"
                   : std::string();
      },
      "");
  const auto add = [&command](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what)->group("Cluster");
  };
  add("--executor", request.executor,
      "local: threads of this process; slurm: a job array; files: prepares tasks for another "
      "cluster.")
      ->check(CLI::IsMember({"local", "slurm", "files"}));
  add("--partition", request.resources.partition, "Partition of the cluster.")->check(word);
  add("--account", request.resources.account, "Account that is charged.")->check(word);
  add("--cpus", request.resources.cpus, "Processors for each instance.")
      ->check(CLI::Range(0, 100000));
  add("--memory", request.resources.memory, "Memory for each instance, e.g. 8G.")->check(word);
  add("--minutes", request.resources.minutes, "Time for each instance.")
      ->check(CLI::Range(0, 10000000));
  add("--gpus", request.resources.gpus, "GPUs for each instance.")->check(CLI::Range(0, 1000));
  for (const auto& [name, value] :
       {std::pair("--task", &request.task), std::pair("--array", &request.array),
        std::pair("--batch-digest", &request.digest)})
    command.add_option(name, *value, "Written by the submitting shell.")->group("");
}

}  // namespace

void AddBatchOptions(CLI::App& command, BatchRequest& request) {
  command.add_option("ops", request.ops, "Ops, by name or folder.");
  command.add_flag("--all", request.all, "Every op of the library.");
  command.add_option("--plan", request.plan, "Plan file (assay.batch_plan/1, docs/batch.md).");
  command.add_option("--dtype", request.dtypes, "e.g. T=f16; each one is an instance of its own.")
      ->allow_extra_args(false);
  command.add_flag("--all-dtypes", request.all_dtypes, "Every choice of dtypes of each op.")
      ->excludes("--dtype");
  command.add_option("--arch", request.archs, "Target; each one is an instance of its own.")
      ->allow_extra_args(false);
  command
      .add_option("--jobs", request.jobs,
                  "Instances at a time (0: one here; as many as a cluster gives).")
      ->check(CLI::Range(0, 10000));
  command
      .add_option("--workers", request.tools.jobs, "Worker processes of a kind (0: one a core).")
      ->check(CLI::Range(0, 1024));
  command.add_option("--engine", request.tools.engine, "Where kernels run.")
      ->check(CLI::IsMember({"emulator"}));
  command.add_flag(
      "--unsafe-no-jail", request.tools.unsafe_no_jail,
      "Run untrusted code without namespaces. Stands in the verdict and bars emission.");
  command.add_option("--out", request.out, "Folder of the batch. Default: batches/<time>.");
  command.add_option(
      "--store", request.store,
      "Artefacts of all batches: what is there for an instance's key is up to date.");
  command.add_option("--resume", request.resume, "Continue the batch in this folder.");
  AddSignOption(command, request.sign_key);
  command.add_flag("--recheck", request.recheck,
                   "Judge again, under today's judge, what the store holds; say what drifted.");
  command.add_flag("--no-share", request.alone,
                   "Instances of an op learn nothing from one another.");
  AddModelOptions(command, request.model);
  AddStrategyOptions(command, request.strategy);
  command
      .add_option("--feedback", request.feedback,
                  "full: the model sees the counterexample; aggregate: the gate only.")
      ->check(CLI::IsMember({"full", "aggregate"}));
  AddEffortOption(command, request.effort);
  command.add_option("--seed", request.seed, "Seed of the cases.")->check(WholeNumber());
  AddLimits(command, request);
  AddCluster(command, request);
}

}  // namespace assay::cli
