#include "batch/cluster_task.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/digest.h"
#include "batch/folder.h"
#include "batch/sisters.h"

namespace assay::batch {
namespace {

Path FileOf(const Path& batch, std::size_t index, const std::string& suffix) {
  return batch / "tasks" / (std::to_string(index) + suffix);
}

Path ClaimFile(const Path& batch, std::size_t index, int generation) {
  return FileOf(batch, index, ".claim." + std::to_string(generation));
}

Result<Claim> ClaimFromJson(const Json& json, const std::string& place) {
  ASSAY_TRY(ObjectReader reader, ObjectReader::Of(json, place));
  Claim claim;
  ASSAY_TRY(claim.job, reader.Required<std::string>("job"));
  ASSAY_TRY(const std::uint64_t number, reader.Required<std::uint64_t>("number"));
  claim.number = number;
  ASSAY_TRY(claim.node, reader.Required<std::string>("node"));
  ASSAY_TRY(claim.sister, reader.Required<std::string>("sister"));
  ASSAY_TRY_VOID(reader.Finish());
  return claim;
}

// The claim that comes after `before`. False: somebody else was first.
Result<bool> Take(const ClusterTask& task, const Claim& claim) {
  const Path file = ClaimFile(task.batch, task.index, claim.generation);
  const Path fresh = file.string() + ".tmp." + task.node + "." + std::to_string(::getpid());
  const Json json = {
      {"job", claim.job}, {"number", claim.number}, {"node", claim.node}, {"sister", claim.sister}};
  // Whole before it has its name: a reader sees no half of a claim.
  ASSAY_TRY_VOID(WriteFileAtomically(fresh, CompactJson(json) + "\n"));
  const bool taken = ::link(fresh.c_str(), file.c_str()) == 0;
  const int error = errno;
  ::unlink(fresh.c_str());
  if (taken || error == EEXIST) return taken;
  return Fail(ErrorKind::kEnvironment, std::string("cannot claim: ") + std::strerror(error),
              file.string(), "check that the batch's folder is writable from this node");
}

// Waits until nobody else runs the instance. The lock goes with the descriptor.
Result<UniqueFd> Lock(const ClusterTask& task) {
  const Path file = FileOf(task.batch, task.index, ".lock");
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) {
    return Fail(ErrorKind::kEnvironment, std::string("cannot be opened: ") + std::strerror(errno),
                file.string(), "check that the batch's folder is writable from this node");
  }
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    return Fail(ErrorKind::kEnvironment, std::string("cannot be locked: ") + std::strerror(errno),
                file.string());
  }
  return fd;
}

// Leaders end before their followers begin (the arrays depend on one another): what stands in the
// leader's result now stands there for good.
std::optional<prompts::Sister> SisterOf(const ClusterTask& task, const Plan& plan,
                                        std::optional<std::size_t> leader) {
  if (!leader || !TakesSister(plan.tasks[task.index].request)) return std::nullopt;
  const std::string id = plan.tasks[*leader].id();
  const std::optional<InstanceEnded> ended = ReadResult(task.batch, *leader);
  Path vetted = ended ? ended->vetted : "";
  if (vetted.empty()) {
    // One that ended here, or was up to date, left no result: its folder says where it is.
    const auto state = BatchFolder::Look(task.batch);
    const auto found =
        state ? state->instances.find(id) : std::map<std::string, InstanceState>::const_iterator{};
    if (!state || found == state->instances.end()) return std::nullopt;
    if (found->second.up_to_date) vetted = found->second.up_to_date->vetted;
    if (found->second.ended) vetted = found->second.ended->vetted;
  }
  if (vetted.empty()) return std::nullopt;
  auto sister = SisterFrom(id, vetted.is_absolute() ? vetted : task.batch / vetted);
  return sister ? std::optional(*std::move(sister)) : std::nullopt;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Our own, and that of the workers that have ended.
void CountCost(InstanceEnded& ended) {
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    ended.cpu_seconds += Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
    ended.max_rss_bytes =
        std::max(ended.max_rss_bytes, static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
  }
}

}  // namespace

Path ResultFile(const Path& batch, std::size_t index) { return FileOf(batch, index, ".json"); }

std::optional<InstanceEnded> ReadResult(const Path& batch, std::size_t index) {
  const Path file = ResultFile(batch, index);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const Result<Json> json = ReadJsonFile(file.string());
  if (!json) return std::nullopt;
  auto ended = EndedFromJson(*json, file.string());
  return ended ? std::optional(*std::move(ended)) : std::nullopt;
}

std::optional<Claim> LatestClaim(const Path& batch, std::size_t index) {
  std::optional<Claim> latest;
  std::error_code error;
  for (int generation = 0; std::filesystem::exists(ClaimFile(batch, index, generation), error);
       ++generation) {
    const Path file = ClaimFile(batch, index, generation);
    const Result<Json> json = ReadJsonFile(file.string());
    Result<Claim> claim =
        json ? ClaimFromJson(*json, file.string()) : std::unexpected(json.error());
    latest = claim ? *std::move(claim) : Claim{};
    latest->generation = generation;
  }
  return latest;
}

Result<Plan> PlanOfTask(const Path& batch, const std::string& digest, const ops::Library& library,
                        const std::vector<std::string>& ops) {
  const Path file = batch / "tasks" / ("batch-" + digest + ".json");
  ASSAY_TRY(const std::string text, ReadFile(file));
  if (Sha256Hex(text) != digest) {
    return Fail(ErrorKind::kMalformedInput, "the plan is not the one that was submitted",
                file.string(), "submit the batch again: assay batch --resume");
  }
  ASSAY_TRY(const Json json, ParseJson(text, file.string()));
  return PlanFromJson(json, file.string(), library, ops);
}

Result<TaskEnd> RunClusterTask(const ClusterTask& task, const Plan& plan, const RunTools& tools,
                               Cluster& cluster) {
  if (task.index >= plan.tasks.size())
    return Fail(ErrorKind::kUsage, "the plan has no such instance", std::to_string(task.index));
  ASSAY_TRY(const UniqueFd lock, Lock(task));
  if (ReadResult(task.batch, task.index)) return TaskEnd::kDoneBefore;
  const std::optional<Claim> before = LatestClaim(task.batch, task.index);
  const bool requeued = before && before->job == task.job && before->number == task.number;
  if (before && !before->job.empty() && !requeued) {
    // Where the file system's locks mean nothing, the cluster knows who is alive.
    ASSAY_TRY(const std::set<TaskId> active, cluster.Active({before->job}));
    if (active.contains({before->job, before->number})) return TaskEnd::kElsewhere;
  }
  const std::optional<std::size_t> leader = LeaderOf(plan, task.index);
  RunInputs inputs{.task = plan.tasks[task.index],
                   .batch = task.batch,
                   .sister = SisterOf(task, plan, leader),
                   .regressions = {}};
  const Path shared = task.batch / "regressions";
  if (leader) inputs.regressions = SharedRegressions(shared, plan.tasks[*leader].request.instance);
  ASSAY_TRY(const bool taken, Take(task, {.job = task.job,
                                          .number = task.number,
                                          .node = task.node,
                                          .sister = inputs.sister ? inputs.sister->instance : "",
                                          .generation = before ? before->generation + 1 : 0}));
  if (!taken) return TaskEnd::kElsewhere;

  InstanceEnded ended = RunInstance(inputs, tools);
  // Who is told to go has not come to an end: the run is taken up by whoever is next.
  if (ended.resumable && tools.interrupted && tools.interrupted()) return TaskEnd::kInterrupted;
  if (!task.job.empty()) {
    ended.where = "slurm " + task.job + "_" + std::to_string(task.number) + " on " + task.node;
  }
  CountCost(ended);
  if (!leader && plan.share) {
    (void)ShareRegressions(shared, inputs.task.request.instance,
                           task.batch / "runs" / inputs.task.id());
  }
  ASSAY_TRY_VOID(
      WriteFileAtomically(ResultFile(task.batch, task.index), PrettyJson(ToJson(ended))));
  return TaskEnd::kRan;
}

}  // namespace assay::batch
