#include "batch/batch.h"

#include <fmt/format.h>

#include "agent/loop/request_json.h"
#include "agent/models/secret.h"
#include "agent/prompts/prompt.h"
#include "base/digest.h"
#include "batch/summarise.h"

namespace assay::batch {
namespace {

// What the model is, and what it is asked with. Time-outs and keys change nothing about a kernel; a
// transcript is what it says.
Result<Json> ModelFacts(const models::ModelSpec& model) {
  Json facts = {{"model", model.spec},
                {"base_url", models::PublicUrl(model.base_url)},
                {"max_output_tokens", model.max_output_tokens}};
  if (model.temperature) facts["temperature"] = *model.temperature;
  if (model.spec.starts_with("replay/")) {
    ASSAY_TRY(const models::ParsedSpec parsed, models::ParseModelSpec(model.spec));
    ASSAY_TRY(const std::string transcript, ReadFile(parsed.name));
    facts["transcript"] = Sha256Hex(transcript);
  }
  return facts;
}

// Limits are left out: a kernel that was accepted within less is the same under more.
Json OptionFacts(const loop::GenerateRequest& request, bool share) {
  const loop::StrategyOptions& strategy = request.strategy;
  Json facts = {{"strategy", loop::Name(strategy.kind)},
                {"samples", strategy.samples},
                {"width", strategy.width},
                {"depth", strategy.depth},
                {"stagnation", strategy.stagnation},
                {"feedback", prompts::Name(request.feedback)},
                {"share", share}};
  if (strategy.optimize) facts["optimize"] = strategy.attempts;
  return facts;
}

// Whether the kernel is still where the record says it was put.
bool StillThere(const runs::InstanceRecord& record) {
  if (record.vetted.empty()) return false;
  for (const auto& [name, digest] : record.files) {
    const auto bytes = ReadFile(Path(record.vetted) / name, 1ull << 30);
    if (!bytes || Sha256Hex(*bytes) != digest) return false;
  }
  return true;
}

struct Known {
  std::size_t index = 0;
  runs::InstanceRecord record;
  bool there = false;
};

std::vector<Known> UpToDate(const BatchRequest& request, const runs::Store& store,
                            const std::vector<runs::InstanceKey>& keys, const BatchState& state) {
  std::vector<Known> known;
  if (request.store.empty()) return known;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    // What this very batch has begun is its own to end.
    const auto found = state.instances.find(request.plan.tasks[i].id());
    if (found != state.instances.end()) continue;
    if (auto record = runs::FindRecord(store, keys[i])) {
      const bool there = StillThere(*record);
      known.push_back({i, *std::move(record), there});
    }
  }
  return known;
}

InstanceUpToDate EventOf(const Known& known, const std::string& key) {
  const auto kernel = known.record.files.find("kernel.cu");
  return {known.record.instance, key,
          kernel == known.record.files.end() ? std::string() : kernel->second, known.record.vetted};
}

Json BatchToJson(const BatchRequest& request, const std::vector<runs::InstanceKey>& keys,
                 const BatchEnvironment& environment, const std::string& prompts_digest) {
  std::vector<std::string> digests;
  for (const runs::InstanceKey& key : keys) digests.push_back(key.digest());
  Json batch = {{"schema", "assay.batch/1"},
                {"id", request.folder.filename().string()},
                {"kind", "generate"}};
  batch.update(PlanToJson(request.plan, digests, environment.versions, prompts_digest));
  batch["executor"] = environment.executor.name();
  batch["jobs"] = request.jobs;
  return batch;
}

std::string WhyStopped(const BatchEnvironment& environment) {
  if (const auto exceeded = environment.purse.Exceeded()) return *exceeded;
  if (environment.interrupted && environment.interrupted()) return "interrupted";
  return {};
}

}  // namespace

Result<std::vector<runs::InstanceKey>> KeysOf(const Plan& plan,
                                              const std::map<std::string, std::string>& judge,
                                              const std::string& prompts_digest) {
  std::vector<runs::InstanceKey> keys;
  for (const Task& task : plan.tasks) {
    const loop::GenerateRequest& request = task.request;
    const runs::JudgeFacts facts{.versions = judge,
                                 .engine = request.engine,
                                 .effort = std::string(loop::Name(request.effort)),
                                 .seed = request.seed,
                                 .unsafe_no_jail = request.unsafe_no_jail};
    ASSAY_TRY(Json model, ModelFacts(request.model));
    keys.push_back(runs::KeyOf({.instance = request.instance,
                                .judge = facts,
                                .prompts_digest = prompts_digest,
                                .model = std::move(model),
                                .options = OptionFacts(request, plan.share)}));
  }
  return keys;
}

Result<Path> FreshBatch(Clock& clock) {
  std::string stamp = clock.Timestamp().substr(0, 19);
  std::erase(stamp, ':');
  std::error_code error;
  for (int number = 1; number < 1000; ++number) {
    const Path folder =
        Path("batches") / (number == 1 ? stamp : fmt::format("{}-{}", stamp, number));
    if (!std::filesystem::exists(folder, error)) return folder;
  }
  return Fail(ErrorKind::kEnvironment, "no free name for the batch", "batches/" + stamp,
              "name a folder with --out");
}

Result<BatchOutcome> RunBatch(const BatchRequest& request, BatchEnvironment& environment) {
  ASSAY_TRY_VOID(CheckPlan(request.plan));
  ASSAY_TRY(const prompts::PromptLibrary prompts,
            prompts::PromptLibrary::Load(environment.prompts.empty()
                                             ? prompts::PromptLibrary::DefaultFolder()
                                             : environment.prompts));
  ASSAY_TRY(const std::vector<runs::InstanceKey> keys,
            KeysOf(request.plan, environment.judge, prompts.digest()));
  const runs::Store store(request.store);
  std::unique_ptr<BatchFolder> folder;
  if (request.resume) {
    ASSAY_TRY(folder, BatchFolder::Open(request.folder, environment.clock));
  }
  const BatchState before = folder ? folder->state() : BatchState{};
  const std::vector<Known> known = UpToDate(request, store, keys, before);
  std::vector<bool> done(request.plan.tasks.size(), false);
  bool all_there = true;
  for (const Known& each : known) {
    done[each.index] = true;
    all_there = all_there && each.there;
  }
  std::vector<std::size_t> todo;
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (!done[i] && !before.Done(request.plan.tasks[i].id())) todo.push_back(i);
  }
  const Json batch = BatchToJson(request, keys, environment, prompts.digest());

  BatchOutcome outcome;
  if (todo.empty() && all_there && (known.empty() || !request.resume)) {
    outcome.nothing_to_do = true;
    BatchState state = before;
    if (!request.resume) state.batch = batch;
    for (const Known& each : known)
      state.instances[each.record.instance].up_to_date = EventOf(each, keys[each.index].digest());
    outcome.summary = Summarise(state, request.folder);
    if (!request.resume) return outcome;
    outcome.folder = request.folder;
    // An earlier process may have ended between its last event and the summary.
    std::error_code error;
    if (std::filesystem::exists(request.folder / "summary.json", error)) return outcome;
    ASSAY_TRY(outcome.summary, WriteSummary(state, request.folder));
    return outcome;
  }

  if (!request.resume) {
    ASSAY_TRY(folder, BatchFolder::Create(request.folder, environment.clock));
    ASSAY_TRY_VOID(folder->Record(BatchStarted{batch}));
  } else {
    ASSAY_TRY_VOID(folder->Record(BatchResumed{batch}));
  }
  outcome.folder = request.folder;
  environment.observer.OnBegin(request.folder, request.plan, todo.size());
  for (const Known& each : known) {
    InstanceUpToDate event = EventOf(each, keys[each.index].digest());
    if (!each.there) {
      event.vetted = "runs/" + event.instance + "/vetted/" + event.instance;
      ASSAY_TRY_VOID(runs::Restore(store, each.record, request.folder / event.vetted));
    }
    ASSAY_TRY_VOID(folder->Record(event));
    environment.observer.OnUpToDate(each.index, event);
  }
  Work work(request.plan, keys, *folder, store, environment.purse, environment.observer);
  Status ran = todo.empty() ? Status{} : environment.executor.Run(work, todo);
  if (!ran) {
    (void)WriteSummary(folder->state(), request.folder);
    return std::unexpected(std::move(ran.error()));
  }
  const BatchState after = folder->state();
  bool open = false;
  for (const Task& task : request.plan.tasks) open = open || !after.Done(task.id());
  ASSAY_TRY_VOID(folder->Record(BatchStopped{open ? WhyStopped(environment) : "", open}));
  ASSAY_TRY(outcome.summary, WriteSummary(folder->state(), request.folder));
  return outcome;
}

int ExitCode(const Summary& summary) {
  const auto count = [&summary](End end) {
    const auto found = summary.totals.ends.find(std::string(Name(end)));
    return found == summary.totals.ends.end() ? 0 : found->second;
  };
  if (count(End::kFailed) > 0) return 3;
  if (count(End::kWaiting) + count(End::kInconclusive) > 0) return 2;
  return count(End::kRefuted) > 0 ? 1 : 0;
}

}  // namespace assay::batch
