#include "batch/cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/text.h"

extern char** environ;

namespace assay::batch {
namespace {

constexpr std::size_t kMostOutput = 64u << 20;

struct Ran {
  int exit = -1;
  std::string out;
  std::string err;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Fail(ErrorKind::kEnvironment,
                std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Reads both to their ends; a program that says much on one must not wait for the other.
void Drain(Pipe& out, Pipe& err, Ran& ran) {
  std::array<char, 8192> buffer{};
  const auto read = [&](Pipe& pipe, std::string& into) {
    const ssize_t got = ::read(pipe.read.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) return pipe.read.Reset();
    if (into.size() < kMostOutput) into.append(buffer.data(), static_cast<std::size_t>(got));
  };
  while (out.read || err.read) {
    std::array<pollfd, 2> fds = {{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) read(out, ran.out);
    if (fds[1].revents != 0) read(err, ran.err);
  }
}

// Runs a program with `input` on its standard input. Scripts are far smaller than a pipe holds.
Result<Ran> RunCommand(const std::vector<std::string>& words, const std::string& input = {}) {
  ASSAY_TRY(Pipe in, MakePipe());
  ASSAY_TRY(Pipe out, MakePipe());
  ASSAY_TRY(Pipe err, MakePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  // In a group of its own: Ctrl-C is for us, and we still want its answer.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Fail(ErrorKind::kEnvironment, "cannot run " + words[0] + ": " + std::strerror(failed),
                words[0], "install Slurm's client programs, or use --executor local");
  }
  in.read.Reset();
  out.write.Reset();
  err.write.Reset();
  for (std::string_view rest = input; !rest.empty();) {
    const ssize_t written = ::write(in.write.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;  // it did not want to know: its exit says why
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  in.write.Reset();
  Ran ran;
  Drain(out, err, ran);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
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
    ASSAY_TRY(const Ran ran, RunCommand(words, SlurmScript(submission)));
    if (ran.exit != 0) return Refused("sbatch", ran);
    // "17" or "17;cluster"
    const std::string job(Strip(ran.out).substr(0, Strip(ran.out).find(';')));
    if (!IsNumber(job)) return Refused("sbatch", ran);
    return job;
  }

  Result<std::set<TaskId>> Active(const std::vector<std::string>& jobs) override {
    if (jobs.empty()) return std::set<TaskId>{};
    ASSAY_TRY(const Ran ran,
              RunCommand({"squeue", "-h", "-r", "-o", "%F %K %T", "-j", Joined(jobs)}));
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
      ASSAY_TRY(const Ran ran, RunCommand({"scancel", job}));
      const bool gone = ran.err.find("Invalid job id") != std::string::npos ||
                        ran.err.find("already completed") != std::string::npos;
      if (ran.exit != 0 && !gone) return Refused("scancel", ran);
    }
    return {};
  }

  std::map<TaskId, Account> Accounts(const std::vector<std::string>& jobs) override {
    if (jobs.empty()) return {};
    const auto ran = RunCommand({"sacct", "-n", "-P", "-X", "-j", Joined(jobs), "-o",
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
    ASSAY_TRY(const Ran ran, RunCommand({program, "--version"}));
    if (ran.exit != 0) return Refused(program, ran);
  }
  return std::make_unique<SlurmCluster>();
}

}  // namespace assay::batch
