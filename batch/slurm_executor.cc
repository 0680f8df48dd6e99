#include "batch/slurm_executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "batch/cluster_task.h"

namespace assay::batch {
namespace {

// Slurm's own limit is 1001 unless it was raised.
constexpr std::size_t kMostOfAnArray = 1000;
constexpr int kMostSubmissions = 3;
// Between the end of a task and the moment when its result is seen here: caches of file systems.
constexpr int kPatience = 5;

std::string ArrayFile(std::size_t number) { return fmt::format("array-{}.json", number); }

struct Job {
  std::string id;
  std::vector<std::size_t> instances;
};

class Watch {
 public:
  Watch(Cluster& cluster, const SlurmOptions& options, Work& work)
      : cluster_(cluster), options_(options), work_(work), tasks_(work.folder().path() / "tasks") {}

  Status Run(const std::vector<std::size_t>& todo) {
    ASSAY_TRY_VOID(MakeFolders(tasks_));
    open_.insert(todo.begin(), todo.end());
    const BatchState state = work_.folder().state();
    for (const std::size_t index : todo) {
      const auto known = state.instances.find(work_.plan().tasks[index].id());
      if (known != state.instances.end())
        claimed_[index] = static_cast<int>(known->second.cost.starts);
    }
    ASSAY_TRY_VOID(WritePlan());
    ASSAY_TRY_VOID(ReadJobs());
    ASSAY_TRY_VOID(Collect());
    ASSAY_TRY_VOID(LookAtQueue());
    ASSAY_TRY_VOID(SubmitMissing());
    if (!options_.wait) return WriteAccounts();
    while (!open_.empty()) {
      if (Stop()) return Cancel();
      options_.clock.Sleep(options_.poll);
      ASSAY_TRY_VOID(LookAtQueue());  // before the results: whoever ended in between has one
      ASSAY_TRY_VOID(Collect());
      ASSAY_TRY_VOID(SubmitLost());
    }
    return WriteAccounts();
  }

 private:
  bool Stop() const {
    return (options_.interrupted && options_.interrupted()) || work_.purse().Exceeded();
  }

  /// The plan that tasks run: batch.json as it is now, under a name that is its digest.
  Status WritePlan() {
    ASSAY_TRY(const std::string plan, ReadFile(work_.folder().path() / "batch.json"));
    digest_ = Sha256Hex(plan);
    return WriteFileAtomically(tasks_ / ("batch-" + digest_ + ".json"), plan);
  }

  /// Jobs of an earlier shell, which may be running still.
  Status ReadJobs() {
    const Path file = tasks_ / "jobs.json";
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return {};
    ASSAY_TRY(const Json json, ReadJsonFile(file.string()));
    for (const auto& [id, array] : json.items()) {
      if (!array.is_string() || array.get<std::string>().find('/') != std::string::npos)
        return Fail(ErrorKind::kMalformedInput, "names no array", file.string());
      ASSAY_TRY(std::vector<std::size_t> instances, ReadArray(tasks_ / array.get<std::string>()));
      jobs_.push_back({id, std::move(instances)});
      record_[id] = array;
    }
    return {};
  }

  std::vector<std::string> JobIds() const {
    std::vector<std::string> ids;
    for (const Job& job : jobs_) ids.push_back(job.id);
    return ids;
  }

  Status LookAtQueue() {
    ASSAY_TRY(const std::set<TaskId> active, cluster_.Active(JobIds()));
    active_.clear();
    for (const Job& job : jobs_) {
      for (std::size_t number = 0; number < job.instances.size(); ++number) {
        if (active.contains({job.id, number})) active_.insert(job.instances[number]);
      }
    }
    if (active_.size() != told_) {
      told_ = active_.size();
      work_.Word(
          fmt::format("the cluster runs or holds {} of {} open instances", told_, open_.size()));
    }
    return {};
  }

  /// What has begun and what has ended since the last look.
  Status Collect() {
    for (auto it = open_.begin(); it != open_.end();) {
      const std::size_t index = *it;
      if (const auto claim = LatestClaim(work_.folder().path(), index);
          claim && claimed_[index] <= claim->generation) {
        claimed_[index] = claim->generation + 1;
        ASSAY_TRY_VOID(work_.Started(
            index, fmt::format("slurm {}_{} on {}", claim->job, claim->number, claim->node),
            claim->sister));
      }
      const auto ended = ReadResult(work_.folder().path(), index);
      if (!ended) {
        ++it;
        continue;
      }
      ASSAY_TRY_VOID(work_.Ended(index, *ended));
      runs::Usage spent = ended->tokens;
      spent += ended->lost;
      const Task& task = work_.plan().tasks[index];
      work_.purse().Spent(task.id(), task.request.model.spec, spent);
      it = open_.erase(it);
    }
    return {};
  }

  /// Leaders, and those without an open leader, in one array; the others in one that begins when it
  /// has ended.
  Status SubmitMissing() {
    std::vector<std::size_t> first, second;
    for (const std::size_t index :
         InOrder(work_.plan(), std::vector<std::size_t>(open_.begin(), open_.end()))) {
      if (active_.contains(index)) continue;
      ++submitted_[index];
      const auto leader = work_.leaders()[index];
      (leader && open_.contains(*leader) ? second : first).push_back(index);
    }
    ASSAY_TRY_VOID(Submit(first, {}));
    // Leaders may run in jobs of an earlier shell.
    return Submit(second, JobIds());
  }

  Status Submit(const std::vector<std::size_t>& instances, const std::vector<std::string>& after) {
    for (std::size_t at = 0; at < instances.size(); at += kMostOfAnArray) {
      const auto begin = instances.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = instances.begin() +
                       static_cast<std::ptrdiff_t>(std::min(at + kMostOfAnArray, instances.size()));
      const std::vector<std::size_t> part(begin, end);
      std::size_t number = 0;
      std::error_code error;
      while (std::filesystem::exists(tasks_ / ArrayFile(number), error)) ++number;
      ASSAY_TRY_VOID(
          WriteFileAtomically(tasks_ / ArrayFile(number), CompactJson(Json(part)) + "\n"));
      Submission submission{.name = "assay-" + work_.folder().path().filename().string(),
                            .tasks = part.size(),
                            .at_once = options_.at_once,
                            .after = after,
                            .folder = std::filesystem::current_path(error),
                            .output = std::filesystem::absolute(tasks_, error),
                            .resources = work_.plan().resources,
                            .command = options_.command};
      for (const std::string& word :
           {std::string("--resume"),
            std::filesystem::absolute(work_.folder().path(), error).string(),
            std::string("--batch-digest"), digest_, std::string("--array"), ArrayFile(number),
            std::string("--task")})
        submission.command.push_back(word);
      ASSAY_TRY(const std::string job, cluster_.Submit(submission));
      jobs_.push_back({job, part});
      record_[job] = ArrayFile(number);
      ASSAY_TRY_VOID(WriteFileAtomically(tasks_ / "jobs.json", PrettyJson(record_)));
      work_.Word(fmt::format("{} {} with {} task{}", options_.wait ? "submitted job" : "wrote", job,
                             part.size(), part.size() == 1 ? "" : "s"));
      if (options_.wait) continue;
      std::string line;
      for (const std::string& word : submission.command) line += (line.empty() ? "" : " ") + word;
      work_.Word("  each task runs: " + line + " N");
    }
    return {};
  }

  /// Instances that no task has any more, and that left no result.
  Status SubmitLost() {
    std::vector<std::size_t> again;
    for (const std::size_t index : std::vector<std::size_t>(open_.begin(), open_.end())) {
      if (active_.contains(index)) {
        missed_[index] = 0;
        continue;
      }
      if (++missed_[index] < kPatience) continue;
      missed_[index] = 0;
      if (submitted_[index]++ < kMostSubmissions) {
        again.push_back(index);
        continue;
      }
      ASSAY_TRY_VOID(work_.Ended(
          index, {.instance = work_.plan().tasks[index].id(),
                  .end = End::kFailed,
                  .reason = fmt::format("its task ended without a result {} times; what it printed "
                                        "stands in {}",
                                        kMostSubmissions, tasks_.string()),
                  .resumable = true}));
      open_.erase(index);
    }
    if (again.empty()) return {};
    work_.Word(fmt::format("{} tasks ended without a result: submitted again", again.size()));
    return Submit(again, {});
  }

  Status Cancel() {
    ASSAY_TRY_VOID(cluster_.Cancel(JobIds()));
    work_.Word("cancelled; waiting until the cluster knows of no task any more");
    while (true) {
      ASSAY_TRY_VOID(LookAtQueue());
      if (active_.empty()) break;
      options_.clock.Sleep(options_.poll);
    }
    ASSAY_TRY_VOID(Collect());
    return WriteAccounts();
  }

  /// accounting.json: of the cluster, where it keeps account, else of the tasks themselves.
  Status WriteAccounts() {
    const std::map<TaskId, Account> known = cluster_.Accounts(JobIds());
    Json rows = Json::array();
    for (const Job& job : jobs_) {
      for (std::size_t number = 0; number < job.instances.size(); ++number) {
        const std::size_t index = job.instances[number];
        const std::string id = work_.plan().tasks[index].id();
        Json row = {{"instance", id}, {"job", job.id}, {"task", number}};
        if (const auto account = known.find({job.id, number}); account != known.end()) {
          row["state"] = account->second.state;
          row["node"] = account->second.node;
          row["seconds"] = account->second.seconds;
          row["cpu_seconds"] = account->second.cpu_seconds;
        } else if (const auto ended = ReadResult(work_.folder().path(), index); ended) {
          row["state"] = Name(ended->end);
          row["node"] = ended->where;
          row["seconds"] = ended->seconds;
          row["cpu_seconds"] = ended->cpu_seconds;
          row["max_rss_bytes"] = ended->max_rss_bytes;
        } else {
          continue;
        }
        rows.push_back(std::move(row));
      }
    }
    return WriteFileAtomically(work_.folder().path() / "accounting.json",
                               PrettyJson({{"schema", "assay.batch_accounting/1"},
                                           {"source", known.empty() ? "tasks" : "sacct"},
                                           {"tasks", std::move(rows)}}));
  }

  Cluster& cluster_;
  const SlurmOptions& options_;
  Work& work_;
  const Path tasks_;
  std::string digest_;
  std::vector<Job> jobs_;
  Json record_ = Json::object();
  std::set<std::size_t> open_;    // without a result
  std::set<std::size_t> active_;  // of which a task waits or runs
  std::map<std::size_t, int> claimed_, missed_, submitted_;
  std::size_t told_ = 0;
};

}  // namespace

Result<std::vector<std::size_t>> ReadArray(const Path& file) {
  ASSAY_TRY(const Json json, ReadJsonFile(file.string()));
  std::vector<std::size_t> instances;
  for (const Json& each : json) {
    ASSAY_TRY(const std::uint64_t index, json_detail::Convert<std::uint64_t>(each, file.string()));
    instances.push_back(index);
  }
  return instances;
}

models::RequestLimits ShareOf(models::RequestLimits limits, unsigned at_once) {
  const std::uint64_t parts = std::max(1u, at_once);
  const auto share = [parts](std::uint64_t whole) {
    return whole == 0 ? 0 : std::max<std::uint64_t>(1, whole / parts);
  };
  limits.at_once = static_cast<std::uint32_t>(share(limits.at_once));
  limits.requests_per_minute = share(limits.requests_per_minute);
  limits.tokens_per_minute = share(limits.tokens_per_minute);
  return limits;
}

Status SlurmExecutor::Run(Work& work, const std::vector<std::size_t>& todo) {
  // What an earlier session saw fail, or stop at a limit, is tried again: its result has been
  // recorded, and would end its task at once.
  const BatchState state = work.folder().state();
  for (const std::size_t index : todo) {
    const auto found = state.instances.find(work.plan().tasks[index].id());
    if (found == state.instances.end() || !found->second.ended) continue;
    std::error_code error;
    std::filesystem::remove(ResultFile(work.folder().path(), index), error);
  }
  return Watch(cluster_, options_, work).Run(todo);
}

}  // namespace assay::batch
