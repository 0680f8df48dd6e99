#include "batch/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "base/command.h"
#include "base/text.h"

namespace assay::batch {
namespace {

Result<Ran> RunSlurm(const std::vector<std::string>& words, const std::string& input = {}) {
  return RunCommand(
      words, {.input = input, .cure = "install Slurm's client programs, or use --executor local"});
}

std::unexpected<Error> Refused(const std::string& program, const Ran& ran) {
  return Fail(ErrorKind::kEnvironment,
              fmt::format("{} ended with {}: {}", program, ran.exit,
                          Head(Strip(ValidUtf8(ran.err.empty() ? ran.out : ran.err)), 400)),
              program, "sinfo says how the cluster is");
}

std::string Joined(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ",") + word;
  return joined;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "17_3": the job and the task's number. Nothing for steps ("17_3.batch") and what else is listed.
std::optional<TaskId> ParseTask(std::string_view text) {
  const std::size_t at = text.find('_');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view job = text.substr(0, at);
  const std::string_view task = text.substr(at + 1);
  if (!IsNumber(job) || !IsNumber(task) || task.size() > 9) return std::nullopt;
  std::size_t number = 0;
  std::from_chars(task.data(), task.data() + task.size(), number);
  return TaskId{std::string(job), number};
}

// "[D-]HH:MM:SS[.mmm]" or "MM:SS.mmm"
double ParseDuration(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    std::from_chars(text.data(), text.data() + dash, days);
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  while (true) {
    const std::size_t colon = text.find(':');
    double part = 0;
    const std::string_view word = text.substr(0, colon);
    std::from_chars(word.data(), word.data() + word.size(), part);
    seconds = seconds * 60 + part;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  return days * 86400 + seconds;
}

class SlurmCluster final : public Cluster {
 public:
  Result<std::string> Submit(const Submission& submission) override {
    std::vector<std::string> words = {"sbatch"};
    for (std::string& word : SbatchArguments(submission)) words.push_back(std::move(word));
    ASSAY_TRY(const Ran ran, RunSlurm(words, SlurmScript(submission)));
    if (ran.exit != 0) return Refused("sbatch", ran);
    // "17" or "17;cluster"
    const std::string job(Strip(ran.out).substr(0, Strip(ran.out).find(';')));
    if (!IsNumber(job)) return Refused("sbatch", ran);
    return job;
  }

  Result<std::set<TaskId>> Active(const std::vector<std::string>& jobs) override {
    if (jobs.empty()) return std::set<TaskId>{};
    ASSAY_TRY(const Ran ran,
              RunSlurm({"squeue", "-h", "-r", "-o", "%F %K %T", "-j", Joined(jobs)}));
    // A job that the controller has forgotten is not active.
    if (ran.exit != 0 && ran.err.find("Invalid job id") != std::string::npos) {
      if (jobs.size() == 1) return std::set<TaskId>{};
      std::set<TaskId> all;
      for (const std::string& job : jobs) {
        ASSAY_TRY(const std::set<TaskId> some, Active({job}));
        all.insert(some.begin(), some.end());
      }
      return all;
    }
    if (ran.exit != 0) return Refused("squeue", ran);
    return ParseQueue(ran.out);
  }

  Status Cancel(const std::vector<std::string>& jobs) override {
    for (const std::string& job : jobs) {
      ASSAY_TRY(const Ran ran, RunSlurm({"scancel", job}));
      const bool gone = ran.err.find("Invalid job id") != std::string::npos ||
                        ran.err.find("already completed") != std::string::npos;
      if (ran.exit != 0 && !gone) return Refused("scancel", ran);
    }
    return {};
  }

  std::map<TaskId, Account> Accounts(const std::vector<std::string>& jobs) override {
    if (jobs.empty()) return {};
    const auto ran = RunSlurm({"sacct", "-n", "-P", "-X", "-j", Joined(jobs), "-o",
                               "JobID,State,NodeList,Elapsed,TotalCPU"});
    return ran && ran->exit == 0 ? ParseAccounts(ran->out) : std::map<TaskId, Account>{};
  }
};

// One word of a shell, whatever is in it.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string SlurmScript(const Submission& submission) {
  std::string script = "#!/bin/sh\nexec";
  for (const std::string& word : submission.command) script += " " + Quoted(word);
  return script + " \"$SLURM_ARRAY_TASK_ID\"\n";
}

std::vector<std::string> SbatchArguments(const Submission& submission) {
  const Resources& resources = submission.resources;
  std::vector<std::string> words = {
      "--parsable",
      "--requeue",
      "--open-mode=append",
      "--job-name=" + submission.name,
      fmt::format("--array=0-{}{}", submission.tasks - 1,
                  submission.at_once > 0 ? fmt::format("%{}", submission.at_once) : ""),
      "--chdir=" + submission.folder.string(),
      "--output=" + (submission.output / "%A_%a.out").string()};
  if (!submission.after.empty()) {
    std::string jobs;
    for (const std::string& job : submission.after) jobs += ":" + job;
    words.push_back("--dependency=afterany" + jobs);
  }
  if (!resources.partition.empty()) words.push_back("--partition=" + resources.partition);
  if (!resources.account.empty()) words.push_back("--account=" + resources.account);
  if (resources.cpus > 0) words.push_back(fmt::format("--cpus-per-task={}", resources.cpus));
  if (!resources.memory.empty()) words.push_back("--mem=" + resources.memory);
  if (resources.minutes > 0) words.push_back(fmt::format("--time={}", resources.minutes));
  if (resources.gpus > 0) words.push_back(fmt::format("--gres=gpu:{}", resources.gpus));
  return words;
}

std::set<TaskId> ParseQueue(const std::string& text) {
  std::set<TaskId> active;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string job, task, state;
    words >> job >> task >> state;
    const bool over = state == "COMPLETED" || state == "CANCELLED" || state == "FAILED" ||
                      state == "TIMEOUT" || state == "NODE_FAIL" || state == "OUT_OF_MEMORY" ||
                      state == "BOOT_FAIL" || state == "DEADLINE";
    const auto id = ParseTask(job + "_" + task);
    if (id && !over) active.insert(*id);
  }
  return active;
}

std::map<TaskId, Account> ParseAccounts(const std::string& text) {
  std::map<TaskId, Account> accounts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words;
    std::istringstream parts(line);
    for (std::string word; std::getline(parts, word, '|');) words.push_back(word);
    if (words.size() < 5) continue;
    if (const auto id = ParseTask(words[0]))
      accounts[*id] = {words[1], words[2], ParseDuration(words[3]), ParseDuration(words[4])};
  }
  return accounts;
}

std::unique_ptr<Cluster> MakeFilesCluster() {
  class FilesCluster final : public Cluster {
   public:
    Result<std::string> Submit(const Submission& submission) override {
      return "files-" + After(submission.command, "--array");
    }
    Result<std::set<TaskId>> Active(const std::vector<std::string>&) override {
      return std::set<TaskId>{};
    }
    Status Cancel(const std::vector<std::string>&) override { return {}; }
    std::map<TaskId, Account> Accounts(const std::vector<std::string>&) override { return {}; }

   private:
    static std::string After(const std::vector<std::string>& words, const std::string& option) {
      const auto found = std::ranges::find(words, option);
      return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
    }
  };
  return std::make_unique<FilesCluster>();
}

Result<std::unique_ptr<Cluster>> MakeSlurmCluster() {
  for (const char* const program : {"sbatch", "squeue", "scancel"}) {
    ASSAY_TRY(const Ran ran, RunSlurm({program, "--version"}));
    if (ran.exit != 0) return Refused(program, ran);
  }
  return std::make_unique<SlurmCluster>();
}

}  // namespace assay::batch
